//! The page `docs/cli.md`.

use std::collections::{BTreeMap, BTreeSet};

use clap::{Arg, ArgAction, Command};

use super::sections::{built, leaves, sections};

const HEAD: &str = "\
# The command line

<!-- Written by `make reference` from the definitions behind `--help`: do not edit. -->

Reference of all commands and options; `vmbake help COMMAND` prints the same. For explanations, see the pages about
[layers](layers.md), [outputs](outputs.md), [booting](boot.md), [first boot and user data](first-boot.md), [the store](caching.md),
[trust](trust.md), [the network](network.md) and [disk images](images.md).
";

/// The whole page.
pub fn page(root: Command) -> String {
    let root = built(root);
    let commands = leaves(&root);
    let mut page = String::from(HEAD);
    page += "\n| command | does |\n|---|---|\n";
    for command in &commands {
        let (name, about) = (name(command), about(command));
        page += &format!("| [`{name}`](#{}) | {} |\n", name.replace(' ', "-"), about.replace('|', "\\|"));
    }
    page += &format!("\n`vmbake` alone takes:\n{}", options(&root));
    page += &ending(&root, "##");
    page += &shared_options(&commands);
    for command in commands {
        page += &format!("\n## {}\n\n{}.\n", name(&command), about(&command));
        let usage = command.clone().render_usage().to_string();
        page += &format!("\n```text\n{}\n```\n", usage.trim_start_matches("Usage: ").trim_end());
        page += &options(&command);
        page += &ending(&command, "###").replace("\n### Examples\n", "");
    }
    page
}

fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or_else(|| command.get_name()).to_owned()
}

fn about(command: &Command) -> String {
    escaped(&command.get_about().map(ToString::to_string).unwrap_or_default())
}

/// What the help ends with: examples and tables as they are, paragraphs as text.
fn ending(command: &Command, level: &str) -> String {
    let mut text = String::new();
    for section in sections(command) {
        let lines = section.lines.join("\n");
        text += &match section.heading.as_str() {
            "" => format!("\n{}\n", escaped(&lines)),
            "Examples" => format!("\n{level} Examples\n\n```sh\n{lines}\n```\n"),
            heading => format!("\n{level} {heading}\n\n```text\n{lines}\n```\n"),
        };
    }
    text
}

/// The options of a command; of those under a heading, which several commands share, only the names.
fn options(command: &Command) -> String {
    let (shared, own): (Vec<&Arg>, Vec<&Arg>) = shown(command).partition(|arg| arg.get_help_heading().is_some());
    let mut text = table(own.into_iter().map(row));
    let mut names: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for arg in shared {
        let long = arg.get_long().map(|long| format!("`--{long}`"));
        names.entry(arg.get_help_heading().unwrap_or_default()).or_default().extend(long);
    }
    for (heading, names) in names {
        let anchor = heading.to_lowercase().replace(' ', "-");
        text += &format!("\n[{heading}](#{anchor}): {}.\n", names.join(", "));
    }
    text
}

/// A table for each heading of options, with every option once.
fn shared_options(commands: &[Command]) -> String {
    let mut headings: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for arg in commands.iter().flat_map(shown) {
        if let Some(heading) = arg.get_help_heading() {
            headings.entry(heading).or_default().insert(row(arg));
        }
    }
    let sections = headings.into_iter().map(|(heading, rows)| format!("\n## {heading}\n{}", table(rows)));
    sections.collect()
}

fn shown(command: &Command) -> impl Iterator<Item = &Arg> {
    let is_help = |arg: &Arg| matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpShort);
    command.get_arguments().filter(move |arg| !arg.is_hide_set() && !is_help(arg))
}

fn table(rows: impl IntoIterator<Item = String>) -> String {
    let rows: String = rows.into_iter().collect();
    match rows.is_empty() {
        true => String::new(),
        false => format!("\n| argument | meaning |\n|---|---|\n{rows}"),
    }
}

fn row(arg: &Arg) -> String {
    let mut meaning = escaped(&arg.get_help().map(ToString::to_string).unwrap_or_default());
    if takes_value(arg) && !arg.is_hide_possible_values_set() {
        meaning += &values(arg);
    }
    if takes_value(arg) && !arg.get_default_values().is_empty() {
        let defaults: Vec<_> = arg.get_default_values().iter().map(|value| value.to_string_lossy()).collect();
        meaning += &format!(" \\[default: {}\\]", defaults.join(", "));
    }
    // A table ends its cells at bars in code, too.
    format!("| `{}` | {} |\n", spelled(arg).replace('|', "\\|"), meaning.replace('|', "\\|"))
}

fn takes_value(arg: &Arg) -> bool {
    arg.is_positional() || arg.get_action().takes_values()
}

/// As the user writes it.
fn spelled(arg: &Arg) -> String {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    let flags = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    let names =
        arg.get_value_names().unwrap_or_default().iter().map(|name| name.as_str()).collect::<Vec<_>>().join(" ");
    let several = arg.get_num_args().is_some_and(|range| range.max_values() > 1);
    let value = format!("{names}{}", if several { "..." } else { "" });
    match (arg.is_positional(), takes_value(arg)) {
        (true, _) if arg.is_last_set() => format!("-- {value}"),
        (true, _) => value,
        (false, true) => format!("{flags} {value}"),
        (false, false) => flags,
    }
}

/// The values that it may have, with what they mean.
fn values(arg: &Arg) -> String {
    let values = arg.get_possible_values();
    let values = values.iter().filter(|value| !value.is_hide_set());
    let values = values.map(|value| match value.get_help() {
        Some(help) => format!("`{}` ({})", value.get_name(), escaped(&help.to_string())),
        None => format!("`{}`", value.get_name()),
    });
    let values: Vec<_> = values.collect();
    if values.is_empty() { String::new() } else { format!("; one of {}", values.join(", ")) }
}

/// Text without what Markdown would take for its own, but for code.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(index, part)| match index % 2 {
        0 => part
            .chars()
            .map(|char| if "\\<*[]".contains(char) { format!("\\{char}") } else { char.to_string() })
            .collect(),
        _ => format!("`{part}`"),
    });
    parts.collect()
}

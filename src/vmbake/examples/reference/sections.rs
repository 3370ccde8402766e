//! Takes apart what the help of a command ends with: headings with a colon, and the lines below them.

use clap::Command;

/// One part of it.
#[derive(Debug)]
pub struct Section {
    /// Without its colon; empty for a paragraph without a heading.
    pub heading: String,
    /// Without their indentation, if all have one.
    pub lines: Vec<String>,
}

/// The parts of a command's help behind its options, which blank lines separate.
pub fn sections(command: &Command) -> Vec<Section> {
    let text = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    text.split("\n\n").filter(|part| !part.is_empty()).map(section).collect()
}

fn section(part: &str) -> Section {
    let lines = |text: &str| text.lines().map(|line| line.strip_prefix("  ").unwrap_or(line).to_owned()).collect();
    match part.split_once(":\n") {
        Some((heading, rest)) if !heading.contains('\n') => Section { heading: heading.to_owned(), lines: lines(rest) },
        _ => Section { heading: String::new(), lines: lines(part) },
    }
}

/// The commands that do something, each with its whole name, in the order of the help.
pub fn leaves(root: &Command) -> Vec<Command> {
    let mut leaves = Vec::new();
    for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
        // A command with operands runs, even if it has subcommands.
        if !command.has_subcommands() || command.get_positionals().next().is_some() {
            leaves.push(command.clone());
        }
        leaves.extend(self::leaves(command));
    }
    leaves
}

/// All commands with their names, options of their parents and usage; `help` is not one of them.
pub fn built(root: Command) -> Command {
    let mut root = root.disable_help_subcommand(true);
    root.build();
    root
}

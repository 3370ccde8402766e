//! The man pages: one for vmbake, one for each command.

use std::io;

use clap::Command;
use clap_mangen::Man;

use super::sections::{built, leaves, sections};

/// Names of files, and what is in them.
pub fn pages(root: Command) -> io::Result<Vec<(String, Vec<u8>)>> {
    let version = env!("CARGO_PKG_VERSION");
    let root = built(root);
    let page = |command: Command| {
        let man = Man::new(command.clone()).source(format!("vmbake {version}")).manual("vmbake");
        let mut text = Vec::new();
        man.render_title(&mut text)?;
        man.render_name_section(&mut text)?;
        man.render_synopsis_section(&mut text)?;
        man.render_description_section(&mut text)?;
        man.render_options_section(&mut text)?;
        if command.has_subcommands() {
            text.extend(b".SH COMMANDS\n");
            for leaf in leaves(&command) {
                let about = leaf.get_about().map(ToString::to_string).unwrap_or_default();
                let name = leaf.get_display_name().unwrap_or_default();
                text.extend(format!(".TP\n\\fB{}\\fR(1)\n{}\n", escaped(name), escaped(&about)).into_bytes());
            }
        }
        text.extend(ending(&command).into_bytes());
        Ok((man.get_filename(), text))
    };
    std::iter::once(root.clone()).chain(leaves(&root)).map(page).collect()
}

/// What the help ends with, its lines as they are.
fn ending(command: &Command) -> String {
    let mut text = String::new();
    for section in sections(command) {
        let lines: String = section.lines.iter().map(|line| escaped(line) + "\n").collect();
        text += &match section.heading.as_str() {
            "" => format!(".PP\n{lines}"),
            heading => format!(".SH {}\n.nf\n{lines}.fi\n", heading.to_uppercase()),
        };
    }
    text
}

/// A line that roff prints as it is.
fn escaped(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    // What begins with these is a request.
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line }
}

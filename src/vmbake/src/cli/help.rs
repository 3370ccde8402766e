//! The top-level help, with commands grouped by task.

use std::fmt::Write as _;

use clap::Command;

/// Tasks and their commands, in the order of the help. Commands of disabled features are omitted.
const TASKS: [(&str, &[&str]); 7] = [
    ("Bake images", &["init", "update", "manifest", "fetch", "plan", "bake", "layer", "profile", "schema"]),
    (
        "Inspect images",
        &["inspect", "lint", "preflight", "ls", "cat", "explain", "diff", "sbom", "changelog", "report"],
    ),
    ("Run machines", &["boot", "user-data", "dev"]),
    ("Release images", &["key", "sign", "push", "pull", "delta", "apply", "convert", "publish", "podplane"]),
    ("Transfer and share inputs", &["archive", "bundle", "store"]),
    ("Verify", &["trust", "verify"]),
    ("Other", &["completions", "help"]),
];

/// The template of the help: clap lists all commands in one group. A line is at most as wide as its command's first clause.
pub(super) fn template(commands: &Command) -> String {
    let mut text = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (task, names) in TASKS {
        let _ = write!(text, "\n{task}:\n");
        for name in names {
            let command = commands.find_subcommand(name);
            if let Some(about) = command.and_then(Command::get_about).map(ToString::to_string) {
                let clause = about.split(": ").next().unwrap_or_default();
                let _ = writeln!(text, "  {name:<13}{clause}");
            } else if *name == "help" {
                let _ = writeln!(text, "  {name:<13}Print the help of a command");
            }
        }
    }
    text + "\nOptions:\n{options}{after-help}"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_has_a_task() {
        let root = Cli::command();
        for command in root.get_subcommands() {
            let name = command.get_name();
            let tasks = TASKS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(tasks, 1, "{name}");
        }
    }
}

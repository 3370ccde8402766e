//! Every command has examples, and every example is valid.

use std::process::Command;

use clap::{CommandFactory, Parser};
use vmbake::cli::Cli;

use super::sections::{built, leaves, sections};

/// The words of each command of an example, as a shell takes it apart; what it writes to is left out.
fn words(lines: &[String]) -> Vec<Vec<String>> {
    let lines: Vec<&str> = lines.iter().map(|line| line.split(" > ").next().unwrap()).collect();
    let script = format!("vmbake() {{ printf '%s\\n' vmbake \"$@\" ''; }}\n{}\n", lines.join("\n"));
    let output = Command::new("sh").args(["-euc", &script]).env("HOME", "/home/user").output().unwrap();
    assert!(output.status.success(), "{lines:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator("\n\n").map(|command| command.lines().map(str::to_owned).collect()).collect()
}

#[test]
fn of_each_command_are_understood() {
    let root = built(Cli::command());
    for command in std::iter::once(root.clone()).chain(leaves(&root)) {
        let name = command.get_bin_name().unwrap_or("vmbake");
        let examples = sections(&command).into_iter().find(|section| section.heading == "Examples");
        let lines = examples.unwrap_or_else(|| panic!("{name} has no examples")).lines;
        let commands = words(&lines);
        let expected = lines.iter().filter(|line| line.starts_with("vmbake ")).count();
        assert_eq!(commands.len(), expected, "{lines:?}");
        for words in commands {
            assert!(words.join(" ").starts_with(name), "{words:?} is not an example of {name}");
            if let Err(error) = Cli::try_parse_from(&words) {
                panic!("{words:?}: {error}");
            }
        }
    }
}

#[test]
fn are_taken_apart_as_a_shell_does() {
    let lines = ["vmbake a 'b c' \\", "    d > file", "vmbake e # f"].map(str::to_owned);
    assert_eq!(words(&lines), [vec!["vmbake", "a", "b c", "d"], vec!["vmbake", "e"]]);
    assert!(Cli::try_parse_from(["vmbake", "bake", "--sise", "8G", "node"]).is_err());
}

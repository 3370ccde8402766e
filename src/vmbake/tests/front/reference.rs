//! `docs/cli.md` is up to date with `make reference`, and man pages are valid groff.

use std::path::Path;
use std::process::Command;

use clap::CommandFactory;
use vmbake::cli::Cli;

use super::sections;
use crate::tools::have;

#[path = "../../examples/reference/markdown.rs"]
mod markdown;
#[path = "../../examples/reference/man.rs"]
mod man;

#[test]
fn the_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/cli.md");
    let found = std::fs::read_to_string(path).unwrap();
    let expected = markdown::page(Cli::command());
    let stale = found.lines().zip(expected.lines()).find(|(found, expected)| found != expected);
    assert!(found == expected, "docs/cli.md is stale: `make reference` writes it anew; it differs at {stale:?}");
}

#[test]
fn every_command_and_option_is_on_it() {
    let page = markdown::page(Cli::command());
    for command in sections::leaves(&sections::built(Cli::command())) {
        let name = command.get_bin_name().unwrap();
        let part = page.split("\n## ").find(|part| part.starts_with(&format!("{name}\n"))).unwrap();
        for option in command.get_arguments().filter_map(|arg| arg.get_long()).filter(|option| *option != "help") {
            assert!(part.contains(&format!("--{option}")), "{name} --{option}");
        }
    }
}

#[test]
fn man_pages_have_no_faults() {
    let pages = man::pages(Cli::command()).unwrap();
    let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"vmbake.1") && names.contains(&"vmbake-user-data-render.1"), "{names:?}");
    if !have(&["groff"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in pages {
        let path = dir.path().join(&name);
        std::fs::write(&path, text).unwrap();
        let args = ["-man", "-ww", "-Tascii", "-P-cbou"];
        let output = Command::new("groff").args(args).arg(&path).output().unwrap();
        let (page, said) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        assert!(output.status.success() && said.is_empty(), "{name}: {said}");
        assert!(page.contains("EXAMPLES\n") && page.contains("       vmbake "), "{name}: {page}");
    }
}

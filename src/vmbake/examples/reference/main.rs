//! `reference CLI_MD MAN_DIR`: writes the reference of the command line as Markdown and as man pages, from the same definitions
//! that `--help` prints. `make reference` runs it; a test says when the Markdown is stale.

use std::fs;
use std::path::Path;

use clap::CommandFactory;
use vmbake::cli::Cli;

mod sections;
mod markdown;
mod man;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [cli_md, man_dir] = arguments.as_slice() else {
        return Err("usage: reference CLI_MD MAN_DIR".into());
    };
    fs::write(cli_md, markdown::page(Cli::command()))?;
    fs::create_dir_all(man_dir)?;
    for (name, text) in man::pages(Cli::command())? {
        fs::write(Path::new(man_dir).join(name), text)?;
    }
    Ok(())
}

//! The command line of vmbake: runs a command, prints the chain of causes of an error and a hint.

use std::process::ExitCode;

use clap::Parser;
use vmbake::cli::{self, Cli, Outcome};

fn main() -> ExitCode {
    match cli::check_arguments(std::env::args_os()).and_then(|()| Cli::parse().run()) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            cli::advice::tell(&*error);
            ExitCode::FAILURE
        }
    }
}

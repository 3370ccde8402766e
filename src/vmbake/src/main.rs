//! The command line of vmbake: runs a command, and prints an error with its causes and a hint.

use std::process::ExitCode;

use clap::Parser;
use vmbake::cli::{self, Cli, Outcome};

fn main() -> ExitCode {
    match cli::check_arguments(std::env::args_os()).and_then(|()| Cli::parse().run()) {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            cli::error_report::print(&*error);
            ExitCode::FAILURE
        }
    }
}

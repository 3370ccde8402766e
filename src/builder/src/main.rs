//! The command line of vmbake: runs a command, prints the chain of causes of an error and a hint.

use std::process::ExitCode;

use clap::Parser;
use vmbake::cli::{Cli, Outcome, printable};

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", printable(&error.to_string()));
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  caused by: {}", printable(&error.to_string()));
                cause = error.source();
            }
            if let Some(hint) = vmbake::hint::hint(&*error) {
                eprintln!("hint: {}", printable(&hint));
            }
            ExitCode::FAILURE
        }
    }
}

//! The command line of vmbake: runs a command, prints the chain of causes of an error and a hint.

use std::process::ExitCode;

use clap::Parser;
use vmbake::cli::{Cli, Outcome};
use vmbake::escape;

fn main() -> ExitCode {
    match Cli::parse().run() {
        Ok(Outcome::Clean) => ExitCode::SUCCESS,
        Ok(Outcome::Findings) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {}", escape::error(&*error));
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  caused by: {}", escape::error(error));
                cause = error.source();
            }
            if let Some(hint) = vmbake::hint::hint(&*error) {
                eprintln!("hint: {}", escape::line(hint));
            }
            ExitCode::FAILURE
        }
    }
}

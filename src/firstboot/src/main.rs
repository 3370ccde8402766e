//! Finishes a baked image on its first boot.
//!
//! In: the manifest that the image was baked from and the kernel's tables. Out: the record `/var/lib/vmbake/firstboot.json`
//! and one line on standard output. What holds: `configure` converges from wherever an earlier run was killed, and
//! changes nothing when there is nothing new.

use std::error::Error as _;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use vmbake_firstboot::error;
mod facts;
mod state;
mod status;

use error::Error;

const HELP: &str = "\
Finishes a baked image on its first boot.

Usage: firstboot install [--root DIR]
       firstboot configure [--root DIR] [--dry-run]
       firstboot status [--root DIR] [--json]
       firstboot --help | --version

Called as NAME.sh, such as install.sh, it runs the command NAME.

Commands:
  install     succeed if the image was baked: then everything is installed
  configure   record what this machine is in /var/lib/vmbake/firstboot.json
  status      print what the last configure recorded

Options:
  --root DIR  work below DIR instead of /
  --dry-run   print what configure would, change nothing
  --json      print the whole record

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 not configured yet (status)
";

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_CONFIGURED: u8 = 3;

enum Command {
    Help,
    Version,
    Install { root: PathBuf },
    Configure { root: PathBuf, dry_run: bool },
    Status { root: PathBuf, json: bool },
}

fn main() -> ExitCode {
    let command = match parse(std::env::args_os()) {
        Ok(command) => command,
        Err(message) => {
            report(&format!("error: {message}\nhint: firstboot --help"));
            return ExitCode::from(USAGE);
        }
    };
    match run(command) {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            let mut message = format!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                message.push_str(&format!(": {error}"));
                cause = error.source();
            }
            report(&message);
            ExitCode::from(FAILED)
        }
    }
}

fn run(command: Command) -> Result<u8, Error> {
    match command {
        Command::Help => print(HELP)?,
        Command::Version => print(concat!("firstboot ", env!("CARGO_PKG_VERSION"), "\n"))?,
        Command::Install { root } => print(&format!("installed: {}\n", facts::installed(&root)?))?,
        Command::Configure { root, dry_run } => {
            let record = facts::gather(&root)?;
            if dry_run {
                state::check_directories(&root)?;
            } else {
                state::write_record(&root, &record)?;
            }
            print(&(status::line(&record) + "\n"))?;
        }
        Command::Status { root, json } => match state::read_record(&root)? {
            Some(record) if json => print(&format!("{record:#}\n"))?,
            Some(record) => print(&(status::line(&record) + "\n"))?,
            None => {
                report("not configured yet\nhint: firstboot configure");
                return Ok(NOT_CONFIGURED);
            }
        },
    }
    Ok(0)
}

fn parse(mut arguments: impl Iterator<Item = OsString>) -> Result<Command, String> {
    let called = arguments.next().and_then(|path| Path::new(&path).file_name()?.to_str().map(str::to_owned));
    let command = match called.as_deref().and_then(|name| name.strip_suffix(".sh")) {
        Some(command) => command.into(),
        None => arguments.next().ok_or("a command is missing")?,
    };
    let (mut root, mut dry_run, mut json) = (PathBuf::from("/"), false, false);
    let command = match command.to_str() {
        Some("--help" | "-h") => return Ok(Command::Help),
        Some("--version" | "-V") => return Ok(Command::Version),
        Some(command @ ("install" | "configure" | "status")) => command,
        _ => return Err(format!("unknown command {command:?}")),
    };
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--help" | "-h") => return Ok(Command::Help),
            Some("--root") => root = arguments.next().filter(|dir| !dir.is_empty()).ok_or("--root needs DIR")?.into(),
            Some("--dry-run") if command == "configure" => dry_run = true,
            Some("--json") if command == "status" => json = true,
            _ => return Err(format!("unknown argument {argument:?}")),
        }
    }
    Ok(match command {
        "install" => Command::Install { root },
        "configure" => Command::Configure { root, dry_run },
        _ => Command::Status { root, json },
    })
}

fn print(text: &str) -> Result<(), Error> {
    let mut output = std::io::stdout().lock();
    output.write_all(text.as_bytes()).and_then(|()| output.flush()).map_err(Error::Output)
}

/// To standard error, where a failure has nowhere left to be reported.
fn report(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

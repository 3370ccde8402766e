//! Configures a baked image on first boot, and keeps it in line with its settings on every later boot.
//!
//! In: the plan of the image, the settings of the machine and the kernel's tables. Out: files, users and units. Invariant:
//! every command converges after an earlier run was killed at any point, and changes nothing if nothing is new.

use std::path::Path;
use std::process::ExitCode;

mod arguments;

use arguments::{Arguments, Command};
use serde_json::Value;
use vmbake_firstboot::error::Error;
use vmbake_firstboot::exec::Ready;
use vmbake_firstboot::output::{chain, print, report};
use vmbake_firstboot::plan::{self, Plan};
use vmbake_firstboot::record::Record;
use vmbake_firstboot::root::{Lock, Root};
use vmbake_firstboot::{
    bootstrap, changes, configure, install, json, mutable, permissions, receive, record, status, users,
};

const FAILED: u8 = 1;
const USAGE: u8 = 2;
const NOT_CONFIGURED: u8 = 3;

/// Maximum length of a plan, in bytes; that of a control plane node has some 40 KB.
const MAX_PLAN: u64 = 4 << 20;

fn main() -> ExitCode {
    let arguments = match arguments::parse(std::env::args_os()) {
        Ok(arguments) => arguments,
        Err(message) => {
            report(&format!("error: {message}\nhint: run `firstboot --help`"));
            return ExitCode::from(USAGE);
        }
    };
    match run(&arguments) {
        Ok(code) => ExitCode::from(code),
        Err(error @ Error::NotReady { .. }) => {
            report(&format!("not configured yet: {}", chain(&error)));
            ExitCode::from(NOT_CONFIGURED)
        }
        Err(error) => {
            report(&format!("vmbake-firstboot: error: {}", chain(&error)));
            ExitCode::from(FAILED)
        }
    }
}

fn run(arguments: &Arguments) -> Result<u8, Error> {
    let root = Root::open(&arguments.root, arguments.dry_run)?;
    let code = command(&root, &arguments.command)?;
    if arguments.dry_run {
        changes::lines(&root).iter().try_for_each(|change| print(&format!("{change}\n")))?;
    }
    Ok(code)
}

fn command(root: &Root, command: &Command) -> Result<u8, Error> {
    match command {
        Command::Help => print(arguments::HELP)?,
        Command::Version => print(concat!("firstboot ", env!("CARGO_PKG_VERSION"), "\n"))?,
        Command::Install => print(&format!("installed: {}\n", install::run(root)?))?,
        Command::Status { json } => return show_status(root, *json),
        Command::Exec { name } => {
            let ready = Ready::new(root, &plan(root)?, name)?;
            if !root.dry_run() && root.is_system() {
                return Err(ready.run());
            }
            print(&ready.describe())?;
        }
        // No lock: it changes no files, and services that it waits for can wait for a run that has the lock.
        Command::Restart { no_block } => configure::restart(root, &plan(root)?, *no_block)?,
        _ => {
            let plan = plan(root)?;
            let lock = root.lock()?;
            locked(root, &plan, command, lock)?;
        }
    }
    Ok(0)
}

/// The commands that change the machine, one at a time.
fn locked(root: &Root, plan: &Plan, command: &Command, lock: Lock) -> Result<(), Error> {
    let mut record = Record::read(root)?;
    match command {
        Command::Bootstrap => {
            if let Some(inputs) = &plan.inputs {
                bootstrap::run(root, plan, inputs)?;
            }
        }
        Command::Permissions => permissions::apply(root, plan, &users::restore(root, plan)?)?,
        Command::Hosts => configure::hosts(root, plan)?,
        Command::UpdateMutableEnv { source, destination, delete } => {
            mutable::update(root, plan, source, destination, *delete)?;
        }
        Command::RecvWatch => {
            if !receive::run(root, plan, &mut record, lock)? {
                report("no files received");
            }
        }
        _ => {
            configure::run(root, plan, &mut record)?;
            if let Some(value) = record.value().filter(|_| !root.dry_run()) {
                print(&(status::line(value) + "\n"))?;
            }
        }
    }
    Ok(())
}

/// The plan of the image. Every image with this program has a plan, which can be empty.
fn plan(root: &Root) -> Result<Plan, Error> {
    let path = root.shown(plan::PATH);
    let bytes = root.read(plan::PATH, MAX_PLAN)?.ok_or_else(|| Error::missing(&path))?;
    let corrupt = |found| Error::Corrupt { path: path.clone(), expected: "a plan", found };
    let value: Value = serde_json::from_slice(&bytes).map_err(|error| corrupt(error.to_string()))?;
    Plan::read(&value).map_err(|wrong| corrupt(wrong.to_string()))
}

fn show_status(root: &Root, json: bool) -> Result<u8, Error> {
    let Some(record) = json::object(root, record::PATH)? else {
        report("not configured yet\nhint: run `firstboot configure`");
        return Ok(NOT_CONFIGURED);
    };
    print(&if json { format!("{record:#}\n") } else { status::line(&record) + "\n" })?;
    Ok(match record["state"].as_str() {
        Some("configured") => 0,
        Some("failed") => FAILED,
        _ => NOT_CONFIGURED,
    })
}

/// Whether a name is that of a script that this program reothers.
fn script(name: &Path) -> Option<String> {
    let name = name.file_name()?.to_str()?.strip_suffix(".sh")?;
    Some(if name == "nstance-recv-watch" { "recv-watch" } else { name }.to_owned())
}

//! systemd units, by systemctl(1): each call takes a tenth of a second or more, so units are batched.

use std::process::{Command, Stdio};

use crate::error::Error;
use crate::plan::{Action, Plan, Service};
use crate::root::Root;
use crate::template::{self, Scope};

/// Occasion for handling services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occasion {
    /// `restart`: by the action of each unit.
    Restart,
    /// After a delivery: restarts the units that require it.
    Receive,
}

/// Enables, starts and stops units; a failure of one does not affect the others. Units whose trigger file has `changed` come
/// first.
pub fn handle(
    root: &Root,
    plan: &Plan,
    scope: &Scope,
    occasion: Occasion,
    changed: &[&str],
    no_block: bool,
) -> Result<(), Error> {
    let has_changed = |service: &Service| changed.contains(&service.unit.as_str());
    let concerned = |service: &&Service| occasion == Occasion::Restart || service.on_receive || has_changed(service);
    let (mut on, mut off) = (Vec::new(), Vec::new());
    for service in plan.services.iter().filter(concerned) {
        let wanted = template::holds(service.when.as_deref(), scope).map_err(Error::fault(&service.unit))?;
        if wanted { on.push(service) } else { off.push(service.unit.as_str()) }
    }
    let units = |wanted: &dyn Fn(&Service) -> bool| -> Vec<&str> {
        on.iter().filter(|service| wanted(service)).map(|service| service.unit.as_str()).collect()
    };
    let block: &[&str] = if no_block { &["--no-block"] } else { &[] };
    let reloaded = systemctl(root, &["daemon-reload"], &[]);
    // Units that are missing or cannot be stopped are ignored.
    for error in each(root, &[&["disable", "--no-reload", "--now"], block].concat(), &off) {
        crate::report(&format!("warning: {}", crate::chain(&error)));
    }
    let mut failed: Vec<Error> = reloaded.err().into_iter().collect();
    let mut call = |arguments: &[&str], units: &[&str]| failed.extend(each(root, arguments, units));
    match occasion {
        Occasion::Restart => {
            call(&["enable", "--no-reload"], &units(&|_| true));
            call(&[&["start"], block].concat(), &units(&|service| service.action == Action::Start));
            call(&[&["restart"], block].concat(), &units(&|service| service.action == Action::Restart));
        }
        Occasion::Receive => {
            call(&["enable", "--no-reload"], &units(&|service| service.when.is_some()));
            call(&["restart"], &units(&has_changed));
            call(&["restart"], &units(&|service| !has_changed(service)));
        }
    }
    let mut failed = failed.into_iter();
    let first = failed.next();
    for error in failed {
        crate::report(&format!("error: {}", crate::chain(&error)));
    }
    first.map_or(Ok(()), Err)
}

/// Restarts units, regardless of their conditions.
pub fn restart(root: &Root, units: &[&str]) -> Result<(), Error> {
    systemctl(root, &["restart"], units)
}

/// Runs systemctl for all units at once; if one is masked or missing, it does nothing, so then for each unit separately.
fn each(root: &Root, arguments: &[&str], units: &[&str]) -> Vec<Error> {
    match systemctl(root, arguments, units) {
        Err(_) if matches!(arguments.first(), Some(&"enable" | &"disable")) => {
            units.iter().filter_map(|unit| systemctl(root, arguments, &[unit]).err()).collect()
        }
        done => done.err().into_iter().collect(),
    }
}

/// Runs systemctl, unless there are no units. Its output goes to stderr.
fn systemctl(root: &Root, arguments: &[&str], units: &[&str]) -> Result<(), Error> {
    if units.is_empty() && arguments != ["daemon-reload"] {
        return Ok(());
    }
    run(root, "/usr/bin/systemctl", &[arguments, units].concat())
}

/// Runs a program; below another root or in a dry run, it is only reported.
pub fn run(root: &Root, program: &str, arguments: &[&str]) -> Result<(), Error> {
    if root.dry_run() || !root.is_system() {
        return crate::print(&format!("run {program} {}\n", arguments.join(" ")));
    }
    execute(program, arguments)
}

/// Runs a program.
pub fn execute(program: &str, arguments: &[&str]) -> Result<(), Error> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .output()
        .map_err(Error::io("run", program.as_ref()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().replace('\n', "; ");
    Err(Error::Command { line: format!("{program} {}", arguments.join(" ")), status: output.status, said })
}

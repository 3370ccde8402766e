//! Does what was decided: the files are sent to a directory of root, and a script of the machine puts them in their places.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::actions::{Actions, SyncAction, placed, unit};
use super::machine::Installed;
use super::script::Script;
use super::state::State;
use super::{Destination, MachineState, SyncError, ssh};

const FUNCTIONS: &str = include_str!("apply.sh");

/// Sends the files, and has the machine use them.
pub(super) fn apply(to: &Destination, installed: &Installed, actions: &Actions) -> Result<MachineState, SyncError> {
    let folder = tempfile::Builder::new().prefix("vmbake-sync-").tempdir().map_err(SyncError::Stage)?;
    let script = prepare(folder.path(), installed, actions)?;
    ssh::send(to, installed.login, folder.path())?;
    let answer = ssh::run(to, "put the files in their places", script)?;
    let waits = answer.fields.iter().any(|field| field == b"waiting");
    Ok(if waits { MachineState::Waiting } else { MachineState::Configured })
}

/// Writes the files by their numbers, and the script that takes them from there.
fn prepare(folder: &Path, installed: &Installed, actions: &Actions) -> Result<String, SyncError> {
    let mut number = 0;
    let mut stage = |content: &[u8]| -> Result<String, SyncError> {
        number += 1;
        fs::write(folder.join(number.to_string()), content).map_err(SyncError::Stage)?;
        Ok(number.to_string())
    };
    let mut script = Script::new(FUNCTIONS);
    // First, so that a later run knows what an interrupted one may have sent.
    let pending = State { pending: true, ..actions.state.clone() };
    script.call("record", [stage(&serde_json::to_vec(&pending)?)?.as_str()]);
    for action in &actions.list {
        match action {
            SyncAction::Directory { path, ownership } => {
                let mode = format!("{:04o}", ownership.mode);
                let [above, name] = placed(path);
                script.call("directory", [&mode, &ownership.owner, &ownership.group, above, name]);
            }
            SyncAction::Write { path, ownership, content, .. } => {
                let (number, mode) = (stage(content)?, format!("{:04o}", ownership.mode));
                let [above, name] = placed(path);
                script.call("place", [&number, &mode, &ownership.owner, &ownership.group, above, name]);
            }
            SyncAction::Link { path, target, .. } => {
                let [above, name] = placed(path);
                script.call("link", [target, above, name]);
            }
            SyncAction::Remove { path, digest, .. } => {
                let [above, name] = placed(path);
                script.call("delete", [digest.hex().as_str(), above, name]);
            }
            SyncAction::Enable { .. } | SyncAction::Disable { .. } | SyncAction::Mask { .. } => {}
        }
    }
    services(&mut script, installed, actions);
    script.call("record", [stage(&serde_json::to_vec(&actions.state)?)?.as_str()]);
    Ok(script.finish())
}

/// Has units and the first-boot program use what was sent.
fn services(script: &mut Script, installed: &Installed, actions: &Actions) {
    let paths = actions.list.iter().filter_map(|action| match action {
        SyncAction::Write { path, .. } | SyncAction::Link { path, .. } | SyncAction::Remove { path, .. } => Some(path),
        _ => None,
    });
    let paths: Vec<&String> = paths.collect();
    let changed: BTreeSet<&str> = paths.iter().filter_map(|path| unit(path)).collect();
    if !changed.is_empty() {
        script.call("run systemctl daemon-reload", []);
    }
    for (folder, reader) in
        [("/sysctl.d/", "systemd-sysctl.service"), ("/modules-load.d/", "systemd-modules-load.service")]
    {
        if paths.iter().any(|path| path.contains(folder)) {
            script.call("run systemctl restart", [reader]);
        }
    }
    script.call("run", [super::machine::PROGRAM, "permissions"]);
    script.call("configure", []);
    for action in &actions.list {
        match action {
            SyncAction::Enable { unit } => {
                script.call("run systemctl unmask --", [unit.as_str()]);
                script.call("run systemctl enable --now --", [unit.as_str()]);
            }
            SyncAction::Disable { unit } => script.call("run systemctl disable --now --", [unit.as_str()]),
            SyncAction::Mask { unit } => script.call("run systemctl mask --now --", [unit.as_str()]),
            _ => {}
        }
    }
    script.call("restart", []);
    // Those of the plan were just restarted, if they are to run. A template has no instance of its own.
    let is_planned = |unit: &str| installed.plan.services.iter().any(|service| service.unit == unit);
    for unit in changed.into_iter().filter(|unit| !is_planned(unit) && !unit.contains("@.")) {
        script.call("run systemctl try-restart --", [unit]);
    }
}

//! Applies the actions: sends files to a directory of root, where a script on the machine moves them into place.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use super::actions::{Actions, SyncAction, is_of_systemd, placed, unit};
use super::machine::Installed;
use super::script::Script;
use super::state::State;
use super::{Destination, MachineState, SyncError, ssh};

const FUNCTIONS: &str = include_str!("apply.sh");

/// Sends and activates the files.
pub(super) fn apply(to: &Destination, installed: &Installed, actions: &Actions) -> Result<MachineState, SyncError> {
    let folder = tempfile::Builder::new().prefix("vmbake-sync-").tempdir().map_err(SyncError::Stage)?;
    // tempfile uses only letters and digits.
    let name = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    let script = prepare(folder.path(), &name, installed, actions)?;
    ssh::send(to, installed.login, folder.path(), &name)?;
    let answer = ssh::run(to, "move files into place", script)?;
    let waits = answer.fields.iter().any(|field| field == b"waiting");
    Ok(if waits { MachineState::Waiting } else { MachineState::Configured })
}

/// Writes numbered files, and the script that installs them.
fn prepare(folder: &Path, name: &str, installed: &Installed, actions: &Actions) -> Result<String, SyncError> {
    let mut number = 0;
    let mut stage = |content: &[u8]| -> Result<String, SyncError> {
        number += 1;
        fs::write(folder.join(number.to_string()), content).map_err(SyncError::Stage)?;
        Ok(number.to_string())
    };
    let mut script = Script::new(FUNCTIONS);
    script.call("begin", [name, &installed.state_hex]);
    // Recorded first, so that a later run knows which files an interrupted or earlier run sent.
    let mut pending = State { pending: true, sync: name.to_owned(), ..actions.state.clone() };
    pending.extend(&installed.state);
    script.call("record", [stage(&serde_json::to_vec(&pending)?)?.as_str()]);
    // A mask would hide the unit from what disables it, and from the first-boot program.
    for action in &actions.list {
        if let SyncAction::Unmask { unit } = action {
            script.call("run systemctl unmask --", [unit.as_str()]);
        }
    }
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
                if unit(path) == Some(name) {
                    script.call("retire", [path.as_str(), name]);
                }
                script.call("delete", [digest.hex().as_str(), above, name]);
            }
            SyncAction::RemoveDirectory { path } => {
                let [above, name] = placed(path);
                script.call("delete_directory", [above, name]);
            }
            SyncAction::Unmask { .. }
            | SyncAction::Start { .. }
            | SyncAction::Enable { .. }
            | SyncAction::Disable { .. }
            | SyncAction::Mask { .. } => {}
        }
    }
    services(&mut script, installed, actions);
    let state = State { sync: name.to_owned(), ..actions.state.clone() };
    script.call("record", [stage(&serde_json::to_vec(&state)?)?.as_str()]);
    Ok(script.finish())
}

/// Activates the sent files in units and the first-boot program.
fn services(script: &mut Script, installed: &Installed, actions: &Actions) {
    let sent = actions.list.iter().filter_map(|action| match action {
        SyncAction::Write { path, .. } | SyncAction::Link { path, .. } | SyncAction::Remove { path, .. } => Some(path),
        _ => None,
    });
    // Files that an interrupted run sent may not be in use yet.
    let earlier = installed.state.files.keys().filter(|_| installed.state.pending);
    let paths: BTreeSet<&String> = sent.chain(earlier).collect();
    if paths.iter().any(|path| is_of_systemd(path)) {
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
    for unit in &actions.relinked {
        script.call("run systemctl reenable --", [unit.as_str()]);
    }
    for action in &actions.list {
        match action {
            SyncAction::Link { path, target, .. } if target == "/dev/null" => {
                unit(path).into_iter().for_each(|unit| script.call("run systemctl stop --", [unit]));
            }
            // systemd starts instances of templates only.
            SyncAction::Enable { unit } if unit.contains("@.") => {
                script.call("run systemctl unmask --", [unit.as_str()]);
                script.call("run systemctl enable --", [unit.as_str()]);
            }
            SyncAction::Enable { unit } => {
                script.call("run systemctl unmask --", [unit.as_str()]);
                script.call("run systemctl enable --now --", [unit.as_str()]);
            }
            SyncAction::Start { unit } => script.call("run systemctl start --", [unit.as_str()]),
            SyncAction::Disable { unit } => script.call("run systemctl disable --now --", [unit.as_str()]),
            SyncAction::Mask { unit } => script.call("run systemctl mask --now --", [unit.as_str()]),
            _ => {}
        }
    }
    script.call("restart", actions.planned.iter().map(String::as_str));
    // Enabled units of the plan were just restarted. A template unit cannot be restarted.
    let changed: BTreeSet<&str> = paths.iter().filter_map(|path| unit(path)).collect();
    let changed: BTreeSet<&str> = changed.into_iter().filter(|unit| !unit.contains("@.")).collect();
    for unit in changed.iter().filter(|unit| !actions.planned.contains(**unit)) {
        script.call("restart_unit", [*unit]);
    }
    script.call("resume", []);
    let started = actions.list.iter().filter_map(|action| match action {
        SyncAction::Enable { unit } | SyncAction::Start { unit } => Some(unit.as_str()),
        _ => None,
    });
    let started: BTreeSet<&str> = started.chain(changed).filter(|unit| !unit.contains("@.")).collect();
    if !started.is_empty() {
        script.call("running", started);
    }
}

//! System V scripts: the links that update-rc.d(8) creates, changes and removes without insserv. systemd uses them only if no unit of that
//! name exists.

use vmbake_disk::tree::Kind;

use super::{Scope, offline};
use crate::merge::MergeError;
use crate::merge::place::Target;

const LEVELS: [&str; 8] = ["0", "1", "2", "3", "4", "5", "6", "S"];

/// Those in which a script can be switched on and off.
const SWITCHED: [&str; 5] = ["S", "2", "3", "4", "5"];

/// Why update-rc.d ends with status 1.
pub(in crate::merge) type Failed = String;

/// A link of a script: its directory, and its name there.
struct Link {
    dir: String,
    name: String,
}

/// The links of a script in some levels.
fn links(target: &Target, script: &str, levels: &[&str]) -> Vec<Link> {
    let mut found = Vec::new();
    for level in levels {
        let dir = format!("/etc/rc{level}.d");
        let kind = target.tree.resolve(dir.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
        let Some(Kind::Directory(names)) = kind else { continue };
        let of_script = names.keys().filter_map(|name| std::str::from_utf8(name).ok()).filter(|name| {
            let number = name.strip_suffix(script).and_then(|start| start.strip_prefix(['S', 'K']));
            number.is_some_and(|number| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
        });
        found.extend(of_script.map(|name| Link { dir: dir.clone(), name: name.to_owned() }));
    }
    found
}

/// A script of the system, and no other file.
fn source(target: &Target, script: &str) -> Result<Option<String>, MergeError> {
    let path = format!("/etc/init.d/{script}");
    let found = target.tree.resolve(path.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
    match found {
        Some(Kind::File(_)) if !script.contains('/') => target.text(&path).map(Some),
        _ => Ok(None),
    }
}

/// The levels that a script names in its header (LSB 3.1 chapter 22).
fn levels(text: &str, key: &str) -> Vec<&'static str> {
    let inside = text.lines().skip_while(|line| line.trim_end() != "### BEGIN INIT INFO");
    let header: Vec<&str> = inside.take_while(|line| line.trim_end() != "### END INIT INFO").collect();
    let listed = header.iter().rev().find_map(|line| line.strip_prefix(key)).unwrap_or_default();
    listed.split_whitespace().filter_map(|word| LEVELS.into_iter().find(|level| *level == word)).collect()
}

/// `update-rc.d SCRIPT defaults`, or `defaults-disabled`: the links of the script's header, unless it has some already.
pub(in crate::merge) fn defaults(
    target: &mut Target,
    script: &str,
    enabled: bool,
) -> Result<Result<(), Failed>, MergeError> {
    let Some(text) = source(target, script)? else {
        return Ok(Err(format!("unable to read /etc/init.d/{script}")));
    };
    if !links(target, script, &LEVELS).is_empty() {
        return Ok(Ok(()));
    }
    let start = if enabled { 'S' } else { 'K' };
    for (key, letter) in [("# Default-Start:", start), ("# Default-Stop:", 'K')] {
        for level in levels(&text, key) {
            target.symlink(&format!("/etc/rc{level}.d/{letter}01{script}"), &format!("../init.d/{script}"))?;
        }
    }
    Ok(Ok(()))
}

/// `update-rc.d SCRIPT remove`
pub(in crate::merge) fn remove(target: &mut Target, script: &str) -> Result<(), MergeError> {
    let found = links(target, script, &LEVELS);
    found.iter().try_for_each(|link| target.remove(&format!("{}/{}", link.dir, link.name)))
}

/// `update-rc.d SCRIPT enable` and `disable`, in those levels or in all in which the script starts, and of the unit of that name. Messages
/// that are not errors go to `told`.
pub(in crate::merge) fn switch(
    target: &mut Target,
    script: &str,
    on: bool,
    wanted: &[&str],
    told: &mut Vec<String>,
) -> Result<Result<(), Failed>, MergeError> {
    let Some(text) = source(target, script)? else {
        return Ok(Err(format!("cannot find a LSB script for {script}")));
    };
    let action = if on { "enable" } else { "disable" };
    let chosen: Vec<&str> = match wanted {
        [] => levels(&text, "# Default-Start:"),
        wanted => wanted.to_vec(),
    };
    if chosen.is_empty() {
        return Ok(Err(format!("{script} Default-Start contains no runlevels, aborting.")));
    }
    let (known, others): (Vec<&str>, Vec<&str>) = chosen.into_iter().partition(|level| SWITCHED.contains(level));
    told.extend(
        others
            .iter()
            .map(|level| format!("update-rc.d: warning: {action} action will have no effect on runlevel {level}")),
    );
    let found = links(target, script, &known);
    if found.is_empty() {
        return Ok(Err("no runlevel symlinks to modify, aborting!".to_owned()));
    }
    let letter = if on { 'S' } else { 'K' };
    for Link { dir, name } in found.iter().filter(|link| !link.name.starts_with(letter)) {
        let rest = name.strip_prefix(['S', 'K']).unwrap_or(name);
        target.rename(&format!("{dir}/{name}"), &format!("{dir}/{letter}{rest}"))?;
    }
    let unit = format!("{script}.service");
    if on {
        told.extend(offline::enable(target, Scope::System, &unit)?.err());
    } else {
        offline::disable(target, Scope::System, &unit)?;
    }
    Ok(Ok(()))
}

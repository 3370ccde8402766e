//! What systemctl(1) does to unit files without a running systemd.

use vmbake_disk::tree::Kind;

use super::{Scope, find, install_links, install_section, is_masked, is_preset, links_to};
use crate::merge::MergeError;
use crate::merge::place::Target;

/// What a unit is to `systemctl is-enabled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::merge) enum State {
    Enabled,
    Disabled,
    Static,
    Indirect,
    Masked,
    NotFound,
}

impl State {
    /// What is printed.
    pub(in crate::merge) fn name(self) -> &'static str {
        match self {
            Self::Enabled => "enabled",
            Self::Disabled => "disabled",
            Self::Static => "static",
            Self::Indirect => "indirect",
            Self::Masked => "masked",
            Self::NotFound => "not-found",
        }
    }

    /// The exit status.
    pub(in crate::merge) fn status(self) -> u8 {
        match self {
            Self::Enabled | Self::Static | Self::Indirect => 0,
            Self::Disabled | Self::Masked => 1,
            Self::NotFound => 4,
        }
    }
}

pub(in crate::merge) fn state(target: &Target, scope: Scope, unit: &str) -> Result<State, MergeError> {
    let Some((_, text)) = find(target, scope, unit)? else {
        let masked = scope.dirs().iter().any(|dir| is_masked(target, &format!("{dir}/{unit}")));
        return Ok(if masked { State::Masked } else { State::NotFound });
    };
    let links = install_links(target, scope, unit)?;
    let made = links.iter().any(|link| target.tree.find(link.path.as_bytes()).ok().flatten().is_some());
    if made || !links_to(target, scope, unit).is_empty() {
        return Ok(State::Enabled);
    }
    let has = |keys: &[&str]| install_section(&text).any(|(key, _)| keys.contains(&key));
    Ok(if has(&["WantedBy", "RequiredBy", "UpheldBy", "Alias", "DefaultInstance"]) {
        State::Disabled
    } else if has(&["Also"]) {
        State::Indirect
    } else {
        State::Static
    })
}

/// Makes the links of a unit. The error is a line for standard error.
pub(in crate::merge) fn enable(
    target: &mut Target,
    scope: Scope,
    unit: &str,
) -> Result<Result<(), String>, MergeError> {
    match state(target, scope, unit)? {
        State::NotFound => return Ok(Err(format!("Failed to enable unit: Unit {unit} does not exist"))),
        State::Masked => return Ok(Err(format!("Failed to enable unit: Unit {}/{unit} is masked", scope.etc()))),
        _ => {}
    }
    for link in install_links(target, scope, unit)? {
        target.symlink(&link.path, &link.target)?;
    }
    Ok(Ok(()))
}

/// Removes all links to a unit, and those that it would make.
pub(in crate::merge) fn disable(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    let mut paths = links_to(target, scope, unit);
    if find(target, scope, unit)?.is_some() {
        paths.extend(install_links(target, scope, unit)?.into_iter().map(|link| link.path));
    }
    for path in paths {
        target.remove_below(&path)?;
        let Some((dir, _)) = path.rsplit_once('/') else { continue };
        let found = target.tree.find(dir.as_bytes()).ok().flatten().map(|id| &target.tree.inode(id).kind);
        if matches!(found, Some(Kind::Directory(names)) if names.is_empty()) && dir != scope.etc() {
            target.remove_below(dir)?;
        }
    }
    Ok(())
}

/// Enables or disables a unit as presets have it.
pub(in crate::merge) fn preset(
    target: &mut Target,
    scope: Scope,
    unit: &str,
) -> Result<Result<(), String>, MergeError> {
    if is_preset(target, scope, unit)? {
        return enable(target, scope, unit);
    }
    disable(target, scope, unit).map(Ok)
}

/// Masks a unit, unless a file of an administrator stands there.
pub(in crate::merge) fn mask(target: &mut Target, scope: Scope, unit: &str) -> Result<Result<(), String>, MergeError> {
    let path = format!("{}/{unit}", scope.etc());
    if target.wrap(target.tree.find(path.as_bytes()))?.is_some() && !is_masked(target, &path) {
        return Ok(Err(format!("Failed to mask unit: File '{path}' already exists")));
    }
    target.symlink(&path, "/dev/null").map(Ok)
}

pub(in crate::merge) fn unmask(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    let path = format!("{}/{unit}", scope.etc());
    if is_masked(target, &path) { target.remove_below(&path) } else { Ok(()) }
}

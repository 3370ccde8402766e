//! Effects of systemctl(1) on unit files without a running systemd.

use vmbake_disk::tree::Kind;

use super::lookup::{ConfigLinks, Lookup, lookup};
use super::{Scope, Verb, install_links, is_masked, is_preset, link, links_to, made_links, preset_links, real_name};
use crate::merge::MergeError;
use crate::merge::place::Target;

/// What a unit is to `systemctl is-enabled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::merge) enum State {
    Enabled,
    /// Another name of a unit.
    Alias,
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
            Self::Alias => "alias",
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
            Self::Enabled | Self::Alias | Self::Static | Self::Indirect => 0,
            Self::Disabled | Self::Masked => 1,
            Self::NotFound => 4,
        }
    }
}

pub(in crate::merge) fn state(target: &Target, scope: Scope, unit: &str) -> Result<State, MergeError> {
    let found = match lookup(target, scope, unit, ConfigLinks::Follow)? {
        Lookup::Unit(found) => found,
        Lookup::Masked { .. } => return Ok(State::Masked),
        Lookup::Linked { .. } | Lookup::Missing => return Ok(State::NotFound),
    };
    if found.name != unit {
        return Ok(State::Alias);
    }
    let links = install_links(target, scope, unit, Verb::Preset)?;
    let made = links.iter().any(|link| target.tree.find(link.path.as_bytes()).ok().flatten().is_some());
    Ok(if made || !links_to(target, scope, unit).is_empty() {
        State::Enabled
    } else if found.install.has_rules() {
        State::Disabled
    } else if !found.install.also().is_empty() {
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
    if let Some(message) = refusal(target, scope, unit)? {
        return Ok(Err(message));
    }
    let links = install_links(target, scope, unit, Verb::Enable)?;
    link(target, unit, &links).map(Ok)
}

/// Why there is nothing to enable.
fn refusal(target: &Target, scope: Scope, unit: &str) -> Result<Option<String>, MergeError> {
    Ok(match state(target, scope, unit)? {
        State::NotFound => Some(format!("Failed to enable unit: Unit {unit} does not exist")),
        State::Masked => Some(format!("Failed to enable unit: Unit {}/{unit} is masked", scope.etc())),
        _ => None,
    })
}

/// Removes all links to a unit, and those that it would make.
pub(in crate::merge) fn disable(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    let unit = &real_name(target, scope, unit)?;
    let paths = match state(target, scope, unit)? {
        State::NotFound => links_to(target, scope, unit),
        _ => made_links(target, scope, unit)?,
    };
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
        return match refusal(target, scope, unit)? {
            Some(message) => Ok(Err(message)),
            None => preset_links(target, scope, unit).map(Ok),
        };
    }
    disable(target, scope, unit).map(Ok)
}

/// Masks a unit, unless the administrator has a file there.
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

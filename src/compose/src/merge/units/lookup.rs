//! Finds a unit and its drop-ins as `systemctl enable` of systemd 257 does: by its name, the name of its template, and aliases.

use std::collections::BTreeMap;

use vmbake_disk::tree::Kind;

use super::{Scope, UnitFault, fault};
use crate::merge::MergeError;
use crate::merge::place::Target;
pub use vmbake_layer::{UnitForm, UnitInstall, unit_file, unit_form};

/// Longest chain of aliases (`UNIT_FILE_FOLLOW_SYMLINK_MAX` of systemd).
const MAX_ALIASES: usize = 64;

/// What there is for a name.
pub(super) enum Lookup {
    Missing,
    Masked {
        path: String,
    },
    /// A link among the administrator's units, which systemctl does not enable.
    Linked {
        path: String,
        to: String,
    },
    Unit(Unit),
}

pub(super) struct Unit {
    /// Its own name, if it was found by an alias.
    pub(super) name: String,
    pub(super) file: String,
    pub(super) install: UnitInstall,
}

/// Whether links among the administrator's units are followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ConfigLinks {
    Follow,
    Refuse,
}

/// What is at the path of a unit.
enum Found {
    File,
    Masked,
    /// A link to another path.
    Link(String),
    /// A link that leads nowhere, or a node that cannot be a unit.
    Nothing(&'static str),
}

/// Directories of units, in their order.
pub(super) fn dirs(scope: Scope) -> &'static [&'static str] {
    match scope {
        Scope::System => &[
            "/etc/systemd/system.control",
            "/etc/systemd/system",
            "/etc/systemd/system.attached",
            "/usr/local/lib/systemd/system",
            "/usr/lib/systemd/system",
        ],
        Scope::User => &[
            "/etc/systemd/user",
            "/usr/local/share/systemd/user",
            "/usr/share/systemd/user",
            "/usr/local/lib/systemd/user",
            "/usr/lib/systemd/user",
        ],
    }
}

/// Finds a unit with its settings. An instance has the file of its template.
pub(super) fn lookup(target: &Target, scope: Scope, unit: &str, links: ConfigLinks) -> Result<Lookup, MergeError> {
    if unit_form(unit).is_none() {
        return Err(fault(target, unit, UnitFault::Template));
    }
    let mut name = unit.to_owned();
    for _ in 0..MAX_ALIASES {
        let Some((path, found)) = place(target, scope, &name)? else { return Ok(Lookup::Missing) };
        let to = match found {
            Found::File => return self::unit(target, scope, name, path).map(Lookup::Unit),
            Found::Masked => return Ok(Lookup::Masked { path }),
            Found::Nothing(found) => {
                return Err(fault(target, unit, UnitFault::Occupied { path, found: format!("a {found}") }));
            }
            Found::Link(to) => to,
        };
        let (dir, base) = to.rsplit_once('/').unwrap_or_default();
        let is_unit = dirs(scope).contains(&dir);
        if is_unit && links == ConfigLinks::Refuse && path.starts_with(&format!("{}/", scope.etc())) {
            return Ok(Lookup::Linked { path, to });
        }
        if !is_unit || base == name {
            return match at(target, &to)? {
                Some(Found::File) if is_unit || unit_form(&name) == Some(UnitForm::Plain) => {
                    self::unit(target, scope, name, to).map(Lookup::Unit)
                }
                Some(Found::Masked) => Ok(Lookup::Masked { path }),
                Some(_) => Ok(Lookup::Linked { path, to }),
                None => Ok(Lookup::Missing),
            };
        }
        let own = aliased(&name, base);
        name = own.ok_or_else(|| {
            fault(target, unit, UnitFault::Occupied { path, found: format!("a link to {to}, a unit of another type") })
        })?;
    }
    Ok(Lookup::Missing)
}

/// The unit that has another name by a link to `base`.
fn aliased(name: &str, base: &str) -> Option<String> {
    let kind = |name: &str| name.rsplit_once('.').map(|(_, kind)| kind.to_owned());
    if kind(name) != kind(base) {
        return None;
    }
    match (unit_form(name)?, unit_form(base)?) {
        (UnitForm::Instance, UnitForm::Template) => {
            let (_, instance) = name.split_once('@')?;
            let (prefix, _) = base.split_once('@')?;
            Some(format!("{prefix}@{instance}"))
        }
        (form, own) => (form == own).then(|| base.to_owned()),
    }
}

/// The first path that has a unit or its template, and what is there.
fn place(target: &Target, scope: Scope, unit: &str) -> Result<Option<(String, Found)>, MergeError> {
    let template = unit_file(unit);
    let names = [unit, &template];
    for name in &names[..if template == unit { 1 } else { 2 }] {
        for dir in dirs(scope) {
            let path = format!("{dir}/{name}");
            if let Some(found) = at(target, &path)? {
                return Ok(Some((path, found)));
            }
        }
    }
    Ok(None)
}

fn at(target: &Target, path: &str) -> Result<Option<Found>, MergeError> {
    let found = target.wrap(target.tree.find(path.as_bytes()))?;
    Ok(found.map(|id| match &target.tree.inode(id).kind {
        Kind::File(map) if map.is_empty() => Found::Masked,
        Kind::File(_) => Found::File,
        Kind::Symlink(_) if is_masked(target, path) => Found::Masked,
        Kind::Symlink(to) => match step(target, path, to) {
            Some(to) => Found::Link(to),
            None => Found::Nothing("broken link"),
        },
        found => Found::Nothing(found.name()),
    }))
}

/// The path to which a link leads, without links but that at its end.
fn step(target: &Target, path: &str, to: &[u8]) -> Option<String> {
    let to = str::from_utf8(to).ok()?;
    let (dir, _) = path.rsplit_once('/')?;
    let to = if to.starts_with('/') { to.to_owned() } else { format!("{dir}/{to}") };
    let (dir, name) = to.rsplit_once('/').filter(|(_, name)| !matches!(*name, "" | "." | ".."))?;
    let (dir, _) = target.tree.real_path(dir.as_bytes(), true).ok()??;
    Some(format!("{}/{name}", String::from_utf8(dir).ok()?))
}

/// Whether a path is a link to `/dev/null`.
pub(super) fn is_masked(target: &Target, path: &str) -> bool {
    let found = target.tree.find(path.as_bytes()).ok().flatten().map(|id| &target.tree.inode(id).kind);
    let null = |to: &[u8]| to == b"/dev/null" || step(target, path, to).as_deref() == Some("/dev/null");
    matches!(found, Some(Kind::Symlink(to)) if null(to))
}

/// Reads a unit's file and its drop-ins.
fn unit(target: &Target, scope: Scope, name: String, file: String) -> Result<Unit, MergeError> {
    let kind = name.rsplit_once('.').map_or("", |(_, kind)| kind);
    if name.contains('@') && !matches!(kind, "service" | "socket" | "target" | "timer" | "path") {
        return Err(fault(target, &name, UnitFault::NoTemplate));
    }
    let mut install = UnitInstall::new(&name);
    for path in [file.clone()].into_iter().chain(drop_ins(target, scope, &name)?) {
        let bytes = target.bytes(&path)?;
        install.read(&path, &bytes).map_err(|found| fault(target, &name, UnitFault::Install(found)))?;
    }
    Ok(Unit { name, file, install })
}

/// The drop-ins of a unit in the order of their names. One in an earlier directory hides others of the same name.
fn drop_ins(target: &Target, scope: Scope, unit: &str) -> Result<Vec<String>, MergeError> {
    let mut found = BTreeMap::new();
    for name in [unit, &unit_file(unit)] {
        for dir in dirs(scope).iter().map(|dir| format!("{dir}/{name}.d")) {
            let names = target.tree.resolve(dir.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
            let Some(Kind::Directory(names)) = names else { continue };
            let names = names.keys().filter(|name| name.ends_with(b".conf") && !name.starts_with(b"."));
            for name in names.filter_map(|name| str::from_utf8(name).ok()) {
                found.entry(name.to_owned()).or_insert_with(|| format!("{dir}/{name}"));
            }
        }
    }
    let mut paths = Vec::new();
    for path in found.into_values().filter(|path| !is_masked(target, path)) {
        let kind = target.tree.resolve(path.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
        match kind {
            Some(Kind::File(_)) => paths.push(path),
            found => {
                let found = format!("a {}", found.map_or("broken link", Kind::name));
                return Err(fault(target, unit, UnitFault::Occupied { path, found }));
            }
        }
    }
    Ok(paths)
}

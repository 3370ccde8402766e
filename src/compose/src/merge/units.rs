//! systemd units: the links of `systemctl enable`, `disable` and `mask`.
//!
//! [`loaded`] has the files of a unit that systemd reads, [`removed`] the links to removed units, [`helper`] has the records of deb-systemd-helper(1p), [`offline`] the effects of systemctl(1) without a running systemd, [`sysv`] the
//! links of System V scripts, [`verify`] the reasons why a service would not start, and [`lookup`] the locations of units and their
//! drop-ins.

pub(super) mod helper;
pub(super) mod loaded;
mod lookup;
pub(super) mod offline;
pub(super) mod removed;
pub(super) mod sysv;
pub(super) mod verify;

use std::collections::BTreeSet;

use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{MergeError, UnitFault, os_release};
use lookup::{ConfigLinks, Lookup, is_masked, lookup};
use vmbake_common::glob::matches;
pub use vmbake_layer::{InstallLink, Schema, unit_form};

pub(super) const ETC: &str = "/etc/systemd/system";

/// Whose units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    System,
    /// Those of all users' own instances of systemd.
    User,
}

impl Scope {
    fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
        }
    }

    /// Where links are made.
    fn etc(self) -> String {
        format!("/etc/systemd/{}", self.name())
    }
}

/// Does what a layer says about units.
pub(super) fn apply(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    for unit in &schema.units.enable {
        let links = install_links(target, Scope::System, unit, Verb::Enable)?;
        if links.is_empty() {
            return Err(fault(target, unit, UnitFault::NoInstall));
        }
        link(target, unit, &links)?;
    }
    for unit in &schema.units.disable {
        let unit = &real_name(target, Scope::System, unit)?;
        for path in made_links(target, Scope::System, unit)? {
            target.remove(&path)?;
        }
    }
    for unit in &schema.units.mask {
        mask(target, unit)?;
    }
    Ok(())
}

/// Masks a unit. As with systemctl, nothing else in `/etc` is replaced.
fn mask(target: &mut Target, unit: &str) -> Result<(), MergeError> {
    let path = format!("{ETC}/{unit}");
    let found = target.wrap(target.tree.find(path.as_bytes()))?.map(|id| &target.tree.inode(id).kind);
    let found = match found {
        Some(Kind::Symlink(to)) if !is_masked(target, &path) => format!("a link to {}", String::from_utf8_lossy(to)),
        None | Some(Kind::Symlink(_)) => return target.symlink(&path, "/dev/null"),
        Some(found) => format!("a {}", found.name()),
    };
    Err(fault(target, unit, UnitFault::Unmaskable { path, found }))
}

/// Units for which others are enabled and that the finished image lacks.
pub(super) fn missing(target: &Target, enabled: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for unit in enabled {
        let links = install_links(target, Scope::System, unit, Verb::Enable).unwrap_or_default();
        let made: Vec<&Link> = links.iter().filter(|link| link.is_made(target)).collect();
        let is_missing =
            |unit: &str| matches!(lookup(target, Scope::System, unit, ConfigLinks::Follow), Ok(Lookup::Missing));
        for dependent in made.iter().filter_map(|link| link.dependent()) {
            if !is_generated(dependent) && is_missing(dependent) {
                found.push(format!("unit {unit} is enabled for {dependent}, which is not in the image"));
            }
        }
    }
    found
}

/// Whether systemd or a generator makes a unit on the machine.
fn is_generated(unit: &str) -> bool {
    let kind = unit.rsplit_once('.').map_or("", |(_, kind)| kind);
    matches!(kind, "device" | "mount" | "automount" | "swap" | "slice" | "scope") || unit.contains('@')
}

/// Whether enabling a unit makes links.
pub(super) fn has_install(target: &Target, unit: &str) -> Result<bool, MergeError> {
    Ok(!install_links(target, Scope::System, unit, Verb::Enable)?.is_empty())
}

/// The links to a unit that `systemctl disable` removes, whatever created them: where others want it, and its other names.
fn links_to(target: &Target, scope: Scope, unit: &str) -> Vec<String> {
    let kind = |id| &target.tree.inode(id).kind;
    let etc = scope.etc();
    let Some(Kind::Directory(names)) = target.tree.resolve(etc.as_bytes()).ok().map(kind) else { return Vec::new() };
    let mut found = Vec::new();
    for (name, id) in names {
        let Ok(name) = std::str::from_utf8(name) else { continue };
        match kind(*id) {
            Kind::Directory(inner)
                if [".wants", ".requires", ".upholds"].iter().any(|end| name.ends_with(end))
                    && inner.get(unit.as_bytes()).is_some_and(|id| matches!(kind(*id), Kind::Symlink(_))) =>
            {
                found.push(format!("{etc}/{name}/{unit}"));
            }
            Kind::Symlink(to) if name != unit && to.rsplit(|byte| *byte == b'/').next() == Some(unit.as_bytes()) => {
                found.push(format!("{etc}/{name}"));
            }
            _ => {}
        }
    }
    found
}

/// The links that disabling a unit removes.
fn made_links(target: &Target, scope: Scope, unit: &str) -> Result<Vec<String>, MergeError> {
    let links = match lookup(target, scope, unit, ConfigLinks::Follow)? {
        Lookup::Masked { .. } => Vec::new(),
        _ => install_links(target, scope, unit, Verb::Preset)?,
    };
    let of_install = links.into_iter().filter(|link| link.is_made(target)).map(|link| link.path);
    Ok(of_install.chain(links_to(target, scope, unit)).collect())
}

struct Link {
    path: String,
    target: String,
    is_alias: bool,
}

impl Link {
    fn new(scope: Scope, link: InstallLink, file: &str) -> Self {
        Self { path: format!("{}/{}", scope.etc(), link.name), target: file.to_owned(), is_alias: link.is_alias }
    }

    /// The unit that has the linked one as a dependency.
    fn dependent(&self) -> Option<&str> {
        let (dir, _) = self.path.rsplit_once('/')?;
        dir.rsplit_once('/')?.1.rsplit_once('.').filter(|(unit, _)| unit_form(unit).is_some()).map(|(unit, _)| unit)
    }

    /// Whether the link that is there leads to something.
    fn is_taken(&self, target: &Target, to: &[u8]) -> bool {
        to == b"/dev/null" || target.tree.resolve(self.path.as_bytes()).is_ok()
    }

    /// Whether the link is there and leads to the file of the unit.
    fn is_made(&self, target: &Target) -> bool {
        let real = |path: &str| target.tree.real_path(path.as_bytes(), true).ok().flatten().map(|(path, _)| path);
        real(&self.path).is_some_and(|found| Some(found) == real(&self.target))
    }
}

/// Makes the links of a unit. As with systemctl, an alias replaces no file and no link to another unit, and other links replace links alone.
fn link(target: &mut Target, unit: &str, links: &[Link]) -> Result<(), MergeError> {
    for link in links {
        let found = target.wrap(target.tree.find(link.path.as_bytes()))?;
        let occupied = |found: String| UnitFault::Occupied { path: link.path.clone(), found };
        match found.map(|id| &target.tree.inode(id).kind) {
            Some(Kind::Symlink(_)) if link.is_made(target) => continue,
            Some(Kind::Symlink(to)) if link.is_alias && link.is_taken(target, to) => {
                let found = format!("a link to {}", String::from_utf8_lossy(to));
                return Err(fault(target, unit, occupied(found)));
            }
            None | Some(Kind::Symlink(_)) => target.symlink(&link.path, &link.target)?,
            Some(found) => return Err(fault(target, unit, occupied(format!("a {}", found.name())))),
        }
    }
    Ok(())
}

/// How systemctl takes what is wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    /// `enable` fails.
    Enable,
    /// `preset` leaves out links that are at fault, and follows links among the administrator's units.
    Preset,
}

/// Makes the links of a unit that are not there yet, as `systemctl preset` does.
fn preset_links(target: &mut Target, scope: Scope, unit: &str) -> Result<(), MergeError> {
    for link in install_links(target, scope, unit, Verb::Preset)? {
        if target.wrap(target.tree.find(link.path.as_bytes()))?.is_none() {
            target.symlink(&link.path, &link.target)?;
        }
    }
    Ok(())
}

/// The links of a unit, and of those that it names in `Also`. Of these, systemctl leaves out the ones that it cannot enable.
fn install_links(target: &Target, scope: Scope, unit: &str, verb: Verb) -> Result<Vec<Link>, MergeError> {
    let config = if verb == Verb::Enable { ConfigLinks::Refuse } else { ConfigLinks::Follow };
    let (mut links, mut todo, mut done) = (Vec::new(), vec![unit.to_owned()], BTreeSet::new());
    while let Some(name) = todo.pop() {
        if done.contains(&name) {
            continue;
        }
        let is_first = done.is_empty();
        done.insert(name.clone());
        let found = match lookup(target, scope, &name, config)? {
            Lookup::Unit(found) => found,
            _ if !is_first => continue,
            Lookup::Missing => return Err(fault(target, &name, UnitFault::Missing)),
            Lookup::Masked { path } => return Err(fault(target, &name, UnitFault::Masked { path })),
            Lookup::Linked { path, to } => return Err(fault(target, &name, UnitFault::Linked { path, to })),
        };
        if found.name != name && !done.insert(found.name.clone()) {
            continue;
        }
        let own = match verb {
            Verb::Enable => found.install.links().map_err(|wrong| fault(target, &name, UnitFault::Install(wrong)))?,
            Verb::Preset => found.install.each_link().flatten().collect(),
        };
        let file = name_of_file(target, &found.file)?;
        links.extend(own.into_iter().map(|link| Link::new(scope, link, file)));
        todo.extend(found.install.also().iter().cloned());
    }
    Ok(links)
}

/// The name by which systemctl finds a file: up to Debian 12, it looks below `/lib` before `/usr/lib`.
fn name_of_file<'a>(target: &Target, file: &'a str) -> Result<&'a str, MergeError> {
    let below_root = file.strip_prefix("/usr").filter(|file| file.starts_with("/lib/systemd/system/"));
    Ok(match below_root {
        Some(below_root) if os_release::is_debian_12_or_older(target)? => below_root,
        _ => file,
    })
}

/// The unit to which a name leads; the name itself where there is none.
fn real_name(target: &Target, scope: Scope, unit: &str) -> Result<String, MergeError> {
    Ok(match lookup(target, scope, unit, ConfigLinks::Follow)? {
        Lookup::Unit(found) => found.name,
        _ => unit.to_owned(),
    })
}

/// Whether presets (systemd.preset(5)) let a unit be enabled; where none speaks of it, it may.
fn is_preset(target: &Target, scope: Scope, unit: &str) -> Result<bool, MergeError> {
    let mut files = std::collections::BTreeMap::new();
    for dir in ["/etc", "/usr/local/lib", "/usr/lib"].map(|dir| format!("{dir}/systemd/{}-preset", scope.name())) {
        let found = target.tree.resolve(dir.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
        let Some(Kind::Directory(names)) = found else { continue };
        for name in names.keys().filter(|name| name.ends_with(b".preset")) {
            let path = format!("{dir}/{}", String::from_utf8_lossy(name));
            files.entry(name.clone()).or_insert(path);
        }
    }
    for path in files.values() {
        for line in target.text(path)?.lines() {
            let words: Vec<&str> = line.split_whitespace().collect();
            match words.as_slice() {
                ["enable", pattern, ..] if matches(pattern.as_bytes(), unit.as_bytes()) => return Ok(true),
                ["disable", pattern] if matches(pattern.as_bytes(), unit.as_bytes()) => return Ok(false),
                _ => {}
            }
        }
    }
    Ok(true)
}

fn fault(target: &Target, unit: &str, fault: UnitFault) -> MergeError {
    MergeError::Unit { layer: target.origin().layer.clone(), unit: unit.to_owned(), fault }
}

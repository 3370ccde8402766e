//! Units of systemd: the links that `systemctl enable`, `disable` and `mask` make. The records of Debian's deb-systemd-helper(1p)
//! about them are [`helper`], what systemctl(1) does without a running systemd is [`offline`],
//! and links of System V scripts are [`sysv`].

pub(super) mod helper;
pub(super) mod offline;
pub(super) mod sysv;

use vmbake_disk::tree::Kind;

use super::place::Target;
use super::{MergeError, UnitFault};
pub use vmbake_layer::{Schema, install_section, matches, unfold, unit_file};

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

    fn dirs(self) -> [String; 3] {
        ["/etc", "/usr/local/lib", "/usr/lib"].map(|dir| format!("{dir}/systemd/{}", self.name()))
    }
}

/// Does what a layer says about units.
pub(super) fn apply(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    for unit in &schema.units.enable {
        let links = links(target, unit)?;
        if links.is_empty() {
            let is_template = unit.contains("@.") && has_install_section(target, unit)?;
            return Err(fault(target, unit, if is_template { UnitFault::NoInstance } else { UnitFault::NoInstall }));
        }
        for link in links {
            target.symlink(&link.path, &link.target)?;
        }
    }
    for unit in &schema.units.disable {
        let of_install = links(target, unit)?.into_iter().map(|link| link.path);
        for path in of_install.chain(links_to(target, Scope::System, unit)).collect::<Vec<_>>() {
            target.remove(&path)?;
        }
    }
    for unit in &schema.units.mask {
        target.symlink(&format!("{ETC}/{unit}"), "/dev/null")?;
    }
    Ok(())
}

/// Whether a unit says what enabling it would link.
fn has_install_section(target: &Target, unit: &str) -> Result<bool, MergeError> {
    Ok(find(target, Scope::System, unit)?.is_some_and(|(_, text)| install_section(&text).next().is_some()))
}

/// Whether enabling a unit makes links.
pub(super) fn has_install(target: &Target, unit: &str) -> Result<bool, MergeError> {
    Ok(!links(target, unit)?.is_empty())
}

/// The links to a unit that `systemctl disable` removes, whoever made them: where others want it, and its other names.
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

struct Link {
    path: String,
    target: String,
}

/// The links of a unit of the system.
fn links(target: &Target, unit: &str) -> Result<Vec<Link>, MergeError> {
    let links = install_links(target, Scope::System, unit)?;
    // systemctl refuses to give an instance the name of a plain unit.
    let names = links.iter().filter_map(|link| link.path.strip_prefix(ETC)?.strip_prefix('/'));
    let alias = names.filter(|name| !name.contains('/')).find(|name| unit.contains('@') && !name.contains('@'));
    match alias {
        Some(alias) => Err(fault(target, unit, UnitFault::Name { key: "Alias".to_owned(), value: alias.to_owned() })),
        None => Ok(links),
    }
}

/// The links of a unit's `[Install]` section (systemd.unit(5)): `Alias`, `WantedBy`, `RequiredBy`, `UpheldBy`, and those
/// of the units that it names in `Also`. A template without `DefaultInstance` has none but those of `Alias`.
fn install_links(target: &Target, scope: Scope, unit: &str) -> Result<Vec<Link>, MergeError> {
    let mut links = Vec::new();
    let mut todo = vec![unit.to_owned()];
    let mut done = Vec::new();
    while let Some(unit) = todo.pop() {
        if done.contains(&unit) {
            continue;
        }
        let found = find(target, scope, &unit)?;
        let (Some((file, text)), etc) = (found, scope.etc()) else {
            // systemctl goes on without what `Also` names.
            match done.is_empty() {
                true => return Err(fault(target, &unit, UnitFault::Missing)),
                false => continue,
            }
        };
        let name = installed_name(&unit, &text);
        for (key, value) in install_section(&text) {
            for word in value.split_whitespace() {
                let word =
                    instance_of(name.as_deref(), word).filter(|word| !word.contains(['%', '/'])).ok_or_else(|| {
                        // systemd takes names only; with a slash the link would stand anywhere, and other specifiers are not expanded here.
                        let (key, value) = (key.to_owned(), word.to_owned());
                        fault(target, &unit, UnitFault::Name { key, value })
                    })?;
                let end = match key {
                    "Alias" => {
                        links.push(Link { path: format!("{etc}/{word}"), target: file.clone() });
                        continue;
                    }
                    "WantedBy" => "wants",
                    "RequiredBy" => "requires",
                    "UpheldBy" => "upholds",
                    "Also" => {
                        todo.push(word);
                        continue;
                    }
                    _ => continue,
                };
                if let Some(name) = &name {
                    links.push(Link { path: format!("{etc}/{word}.{end}/{name}"), target: file.clone() });
                }
            }
        }
        done.push(unit);
    }
    Ok(links)
}

/// The name under which others want a unit: that of a template has the default instance, if there is one.
fn installed_name(unit: &str, text: &str) -> Option<String> {
    match unit.split_once("@.") {
        None => Some(unit.to_owned()),
        Some((prefix, kind)) => {
            let instance = install_section(text).find(|(key, _)| *key == "DefaultInstance").map(|(_, value)| value);
            instance.filter(|instance| !instance.is_empty()).map(|instance| format!("{prefix}@{instance}.{kind}"))
        }
    }
}

/// A word with `%i` replaced by the instance.
fn instance_of(name: Option<&str>, word: &str) -> Option<String> {
    if !word.contains("%i") {
        return Some(word.to_owned());
    }
    let (instance, _) = name?.split_once('@')?.1.rsplit_once('.')?;
    Some(word.replace("%i", instance))
}

/// A unit's file: where it is, and its text. An instance has that of its template. `None` where it is nowhere or masked.
fn find(target: &Target, scope: Scope, unit: &str) -> Result<Option<(String, String)>, MergeError> {
    if unit.contains('/') {
        return Err(fault(target, unit, UnitFault::Template));
    }
    let template = unit_file(unit);
    for name in [unit, &template] {
        for dir in scope.dirs() {
            let path = format!("{dir}/{name}");
            let file = target.tree.resolve(path.as_bytes()).ok().map(|id| &target.tree.inode(id).kind);
            if matches!(file, Some(Kind::File(_))) {
                let text = target.text(&path)?;
                return Ok(Some((path, unfold(&text))));
            }
            if is_masked(target, &path) {
                return Ok(None);
            }
        }
    }
    Ok(None)
}

/// Whether a path is a link to `/dev/null`.
fn is_masked(target: &Target, path: &str) -> bool {
    let found = target.tree.find(path.as_bytes()).ok().flatten().map(|id| &target.tree.inode(id).kind);
    matches!(found, Some(Kind::Symlink(to)) if to == b"/dev/null")
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

//! Effects of layers on an image and on machines: layers in, a list of effects with layer and key out.
//!
//! Only the layers are read, before any artifact is available. Therefore an archive affects everything below the path that it is unpacked
//! to, and a Debian package, which may write anywhere, affects everything.

use vmbake_firstboot::plan::Plan;

use super::command_line::joined;
use super::real_path::{is_below, real};
use super::{AuditedScript, Install, Layer, ScriptUnits, Units, keys};
use vmbake_common::glob::matches;

/// Set-uid, set-gid and sticky bit.
pub const SPECIAL_BITS: u16 = 0o7000;

/// One effect of a layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// What is done.
    pub kind: EffectKind,
    /// To what: a path, a name or a command. Of a path with wildcards the directory before the first one.
    pub value: String,
    /// The path with its wildcards, if it has any.
    pub pattern: Option<String>,
    pub layer: String,
    pub key: &'static str,
}

/// A sort of effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectKind {
    /// A file or link is written.
    Write,
    /// An archive is unpacked to a directory.
    Unpack,
    /// A directory is there.
    Directory,
    /// What others wrote is changed or removed.
    Change,
    /// A file or directory gets set-uid, set-gid or sticky bits, or file capabilities.
    Setuid,
    /// A user or group is made.
    User,
    /// A maintainer script is answered for.
    Script,
    /// A program runs on the first boot.
    Command,
}

impl EffectKind {
    /// The list of `asks` in `bundle.json` that names such effects.
    pub fn asked_by(self) -> &'static str {
        match self {
            Self::Write | Self::Unpack | Self::Directory | Self::Change => "paths",
            Self::Setuid => "setuid",
            Self::User => "users",
            Self::Script => "scripts",
            Self::Command => "commands",
        }
    }
}

impl Effect {
    /// Whether what is at `path` is changed, or is below what is.
    pub fn changes(&self, path: &str) -> bool {
        let Some((parent, name)) = self.pattern.as_ref().and_then(|pattern| pattern.rsplit_once('/')) else {
            return is_below(path, &self.value);
        };
        let inside = path.strip_prefix(parent).and_then(|rest| rest.strip_prefix('/'));
        inside.is_some_and(|inside| {
            name == "**" || matches(name.as_bytes(), inside.split('/').next().unwrap_or(inside).as_bytes())
        })
    }
}

/// All effects of a layer, sorted, each once.
pub fn effects(layer: &Layer) -> Vec<Effect> {
    let mut found = Collected { layer: layer.schema.name.clone(), effects: Vec::new() };
    keys::collect_effects(layer, &mut found);
    found.effects.sort();
    found.effects.dedup();
    found.effects
}

/// Effects as they are found.
pub(super) struct Collected {
    layer: String,
    effects: Vec<Effect>,
}

impl Collected {
    fn add(&mut self, kind: EffectKind, key: &'static str, value: &str) {
        let is_path = !matches!(kind, EffectKind::User | EffectKind::Script | EffectKind::Command);
        let value = if is_path { real(value) } else { value.to_owned() };
        self.effects.push(Effect { kind, value, pattern: None, layer: self.layer.clone(), key });
    }

    /// A directory, whose special bits are granted as those of files.
    fn directory(&mut self, key: &'static str, path: &str, mode: u16) {
        self.add(EffectKind::Directory, key, path);
        if mode & SPECIAL_BITS != 0 {
            self.add(EffectKind::Setuid, key, path);
        }
    }

    /// A change of all paths that match a pattern.
    fn matching(&mut self, key: &'static str, pattern: &str) {
        self.add(EffectKind::Change, key, parent_of_pattern(pattern));
        if let Some(effect) = self.effects.last_mut().filter(|_| pattern.contains('*')) {
            effect.pattern = Some(real(pattern));
        }
    }

    fn all<'a>(&mut self, kind: EffectKind, key: &'static str, values: impl IntoIterator<Item = &'a String>) {
        values.into_iter().for_each(|value| self.add(kind, key, value));
    }
}

/// Effects of files below `files/`, and of those that other keys stand for.
pub(super) fn files(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Write, "files", layer.files.keys());
}

pub(super) fn symlinks(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Write, "symlinks", layer.schema.symlinks.keys());
}

pub(super) fn directories(layer: &Layer, found: &mut Collected) {
    for (path, rule) in &layer.schema.directories {
        found.directory("directories", path, rule.ownership().mode);
    }
}

pub(super) fn capabilities(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Change, "capabilities", layer.schema.capabilities.keys());
}

pub(super) fn modes(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Change, "modes", layer.schema.modes.keys());
}

pub(super) fn empty(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Change, "empty", &layer.schema.empty);
}

pub(super) fn truncate(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Change, "truncate", &layer.schema.truncate);
}

pub(super) fn remove(layer: &Layer, found: &mut Collected) {
    for pattern in &layer.schema.remove {
        found.matching("remove", pattern);
    }
}

pub(super) fn units(layer: &Layer, found: &mut Collected) {
    let Units { enable, disable, mask, files: _ } = &layer.schema.units;
    if [enable, disable, mask].iter().any(|units| !units.is_empty()) {
        found.add(EffectKind::Directory, "units", "/etc/systemd/system");
    }
}

pub(super) fn setuid(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::Setuid, "setuid", &layer.schema.setuid);
}

pub(super) fn users(layer: &Layer, found: &mut Collected) {
    for (name, user) in &layer.schema.users {
        found.add(EffectKind::User, "users", name);
        found.add(EffectKind::Directory, "users", &user.home_of(name));
    }
}

pub(super) fn groups(layer: &Layer, found: &mut Collected) {
    found.all(EffectKind::User, "groups", layer.schema.groups.keys());
}

/// Effects of artifacts, downloads and local files.
pub(super) fn installs(layer: &Layer, found: &mut Collected) {
    for (_, name, install) in layer.schema.installs() {
        match install {
            Install::File { path, .. } => found.add(EffectKind::Write, "install", path),
            Install::Tar { path, .. } | Install::Zip { path, .. } => found.add(EffectKind::Unpack, "install", path),
            Install::Deb => {
                found.add(EffectKind::Unpack, "install", "/");
                found.add(EffectKind::Script, "install", name);
            }
        }
    }
}

pub(super) fn scripts(layer: &Layer, found: &mut Collected) {
    layer.schema.scripts.iter().for_each(|one| script(found, one));
}

pub(super) fn first_boot(layer: &Layer, found: &mut Collected) {
    layer.schema.first_boot.iter().for_each(|plan| plan_effects(found, plan));
}

fn script(found: &mut Collected, script: &AuditedScript) {
    let AuditedScript {
        package,
        script: _,
        sha256: _,
        upgrade: _,
        remove: _,
        defer: _,
        skip: _,
        triggers: _,
        users: _,
        groups: _,
        directories,
        files,
        symlinks,
        alternatives,
        units: ScriptUnits { enable },
    } = script;
    found.add(EffectKind::Script, "scripts", package);
    for (path, owner) in directories {
        found.directory("scripts", path, owner.mode);
    }
    found.all(EffectKind::Change, "scripts", files.keys());
    found.all(EffectKind::Write, "scripts", symlinks.keys());
    if !enable.is_empty() {
        found.add(EffectKind::Directory, "scripts", "/etc/systemd/system");
    }
    for alternative in alternatives {
        found.add(EffectKind::Write, "scripts", &alternative.link);
        alternative.slaves.values().for_each(|(link, _)| found.add(EffectKind::Write, "scripts", link));
    }
}

fn plan_effects(found: &mut Collected, plan: &Plan) {
    let Plan {
        inputs: _,
        variables: _,
        detect: _,
        values: _,
        checks: _,
        connect: _,
        users,
        accounts,
        directories,
        modes,
        optional_modes,
        files,
        blocks,
        commands,
        services: _,
        exec: _,
        receive: _,
        received,
        keys,
    } = plan;
    for file in files {
        // Its directory gets a mode and an owner, whether it is there or not.
        if let Some(directory) = &file.directory {
            found.directory("first_boot/files", parent(before_template(&file.path)), directory.mode);
        }
        match before_template(&file.path) {
            path if path.len() == file.path.len() => found.add(EffectKind::Write, "first_boot/files", path),
            // Anything below where the variable part begins.
            path => found.add(EffectKind::Unpack, "first_boot/files", parent(path)),
        }
    }
    for block in blocks {
        found.add(EffectKind::Change, "first_boot/blocks", parent_of_pattern(before_template(&block.path)));
    }
    for (path, owner) in directories.iter() {
        found.directory("first_boot/directories", path, owner.mode);
    }
    found.all(EffectKind::Change, "first_boot/modes", modes.keys());
    for path in optional_modes.keys() {
        found.matching("first_boot/optional_modes", path);
    }
    for (_, place) in received.iter() {
        found.add(EffectKind::Unpack, "first_boot/received", &place.directory);
    }
    for (_, place) in keys.iter() {
        found.add(EffectKind::Unpack, "first_boot/keys", &place.directory);
    }
    found.all(EffectKind::User, "first_boot/users", users.keys());
    found.all(EffectKind::User, "first_boot/accounts", accounts.keys());
    for command in commands {
        found.add(EffectKind::Command, "first_boot/commands", &joined(command));
    }
}

/// The part of a path before its first variable.
fn before_template(path: &str) -> &str {
    path.find("{").and_then(|at| path.get(..at)).unwrap_or(path)
}

/// The directory that a path is in.
fn parent(path: &str) -> &str {
    match path.rsplit_once('/') {
        Some(("", _)) | None => "/",
        Some((parent, _)) => parent,
    }
}

/// A path with wildcards, up to the directory before the first one.
fn parent_of_pattern(pattern: &str) -> &str {
    match pattern.find('*').and_then(|at| pattern.get(..at)) {
        Some(before) => parent(before),
        None => pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_names_of_one_directory() {
        for (pattern, path, expected) in [
            ("/etc/*-", "/etc/passwd-", true),
            ("/etc/*-", "/etc/passwd", false),
            ("/etc/*-", "/etc/systemd/x-", false),
            ("/etc/*-", "/etc/old-/x", true),
            ("/var/cache/apt/*.bin", "/var/cache/apt/a.bin", true),
            ("/a/b*c*d", "/a/bxcyd", true),
            ("/a/b*c*d", "/a/bxd", false),
            ("/usr/share/doc/**", "/usr/share/doc/a/b", true),
            ("/usr/share/doc/**", "/usr/share/docs", false),
            ("/a", "/a/b", true),
        ] {
            let mut found = Collected { layer: String::new(), effects: Vec::new() };
            found.matching("remove", pattern);
            assert_eq!(found.effects[0].changes(path), expected, "{pattern} {path}");
        }
    }
}

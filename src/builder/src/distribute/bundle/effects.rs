//! What layers do to an image and to machines: layers enter, a list of effects leaves, each with the layer and the key that has it.
//!
//! Everything is told from the layers alone, before any artifact is there. So an archive counts as whatever is below the path that it
//! is unpacked to, and a Debian package, which goes where it likes, as everything.

use vmbake_firstboot::plan::Plan;

use super::words::real;
use crate::layer::{AuditedScript, Install, Layer, Schema};

/// One effect of a layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Effect {
    /// What is done.
    pub kind: EffectKind,
    /// To what: a path, a name or a command.
    pub value: String,
    /// The layer.
    pub layer: String,
    /// Its key.
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
    /// A file gets privileges.
    Setuid,
    /// A user or group is made.
    User,
    /// A maintainer script is answered for.
    Script,
    /// A program runs on the first boot.
    Command,
}

impl EffectKind {
    /// The list of [`Asks`](super::document::Asks) that names such effects.
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

/// All effects of a layer, sorted, each once.
pub fn effects(layer: &Layer) -> Vec<Effect> {
    let mut found = Collected { layer: layer.schema.name.clone(), effects: Vec::new() };
    let schema = &layer.schema;
    found.all(EffectKind::Write, "files", layer.files.keys());
    found.all(EffectKind::Write, "symlinks", schema.symlinks.keys());
    found.all(EffectKind::Directory, "directories", schema.directories.keys());
    found.all(EffectKind::Change, "modes", schema.modes.keys());
    found.all(EffectKind::Change, "empty", &schema.empty);
    for pattern in &schema.remove {
        found.add(EffectKind::Change, "remove", parent_of_pattern(pattern));
    }
    found.all(EffectKind::Setuid, "setuid", &schema.setuid);
    installs(&mut found, schema);
    for (name, user) in &schema.users {
        found.add(EffectKind::User, "users", name);
        let home = user.home.clone().unwrap_or_else(|| format!("/home/{name}"));
        found.add(EffectKind::Directory, "users", &home);
    }
    found.all(EffectKind::User, "groups", schema.groups.keys());
    schema.scripts.iter().for_each(|one| script(&mut found, one));
    schema.first_boot.iter().for_each(|plan| first_boot(&mut found, plan));
    found.effects.sort();
    found.effects.dedup();
    found.effects
}

/// Effects as they are found.
struct Collected {
    layer: String,
    effects: Vec<Effect>,
}

impl Collected {
    fn add(&mut self, kind: EffectKind, key: &'static str, value: &str) {
        let is_path = !matches!(kind, EffectKind::User | EffectKind::Script | EffectKind::Command);
        let value = if is_path { real(value) } else { value.to_owned() };
        self.effects.push(Effect { kind, value, layer: self.layer.clone(), key });
    }

    fn all<'a>(&mut self, kind: EffectKind, key: &'static str, values: impl IntoIterator<Item = &'a String>) {
        values.into_iter().for_each(|value| self.add(kind, key, value));
    }
}

fn installs(found: &mut Collected, schema: &Schema) {
    for (_, name, install) in schema.installs() {
        match install {
            Install::File { path, .. } => found.add(EffectKind::Write, "install", path),
            Install::Tar { path, .. } => found.add(EffectKind::Unpack, "install", path),
            Install::Deb => {
                found.add(EffectKind::Unpack, "install", "/");
                found.add(EffectKind::Script, "install", name);
            }
        }
    }
}

fn script(found: &mut Collected, script: &AuditedScript) {
    found.add(EffectKind::Script, "scripts", &script.package);
    found.all(EffectKind::Directory, "scripts", script.directories.keys());
    found.all(EffectKind::Change, "scripts", script.files.keys());
    found.all(EffectKind::Write, "scripts", script.symlinks.keys());
    for alternative in &script.alternatives {
        found.add(EffectKind::Write, "scripts", &alternative.link);
        alternative.slaves.values().for_each(|(link, _)| found.add(EffectKind::Write, "scripts", link));
    }
}

fn first_boot(found: &mut Collected, plan: &Plan) {
    for file in &plan.files {
        match before_template(&file.path) {
            path if path.len() == file.path.len() => found.add(EffectKind::Write, "first_boot/files", path),
            // Anything below where the variable part begins.
            path => found.add(EffectKind::Unpack, "first_boot/files", parent(path)),
        }
    }
    for block in &plan.blocks {
        found.add(EffectKind::Change, "first_boot/blocks", parent_of_pattern(before_template(&block.path)));
    }
    found.all(EffectKind::Directory, "first_boot/directories", plan.directories.keys());
    found.all(EffectKind::Change, "first_boot/modes", plan.modes.keys());
    for path in plan.optional_modes.keys() {
        found.add(EffectKind::Change, "first_boot/optional_modes", parent_of_pattern(path));
    }
    for (_, place) in plan.received.iter() {
        found.add(EffectKind::Unpack, "first_boot/received", &place.directory);
    }
    for (_, place) in plan.keys.iter() {
        found.add(EffectKind::Unpack, "first_boot/keys", &place.directory);
    }
    found.all(EffectKind::User, "first_boot/users", plan.users.keys());
    found.all(EffectKind::User, "first_boot/accounts", plan.accounts.keys());
    for command in &plan.commands {
        found.add(EffectKind::Command, "first_boot/commands", &command.join(" "));
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

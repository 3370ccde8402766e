//! Keys of a layer that cannot be synced: a layer and the machine's documents in; different keys and incomparable keys out.

use vmbake_firstboot::plan::Account as PlanAccount;

use super::NewImage;
use super::machine::{Found, Installed};
use vmbake_common::escape;
use vmbake_layer::{Account, DevSync, Install, KEYS, Key, Layer, LayerError};

/// Keys that are compared with the machine.
const COMPARED: [&str; 5] = ["groups", "users", "alternatives", "images", "remove"];

/// Compared properties of a user.
fn described<'a>(id: u32, home: &str, shell: &str, groups: impl Iterator<Item = &'a String>) -> String {
    let groups: Vec<&str> = groups.map(String::as_str).collect();
    let groups =
        if groups.is_empty() { "no additional groups".to_owned() } else { format!("groups {}", groups.join(", ")) };
    format!("id {id}, home {home}, shell {shell} and {groups}")
}

/// Collects what needs a new image.
pub(super) struct Keys<'a> {
    layer: &'a Layer,
    installed: &'a Installed,
    pub(super) differs: Vec<NewImage>,
    /// Keys that are not recorded on a machine.
    pub(super) unknown: Vec<NewImage>,
}

/// Compares all keys of a layer that are not sent.
pub(super) fn compare<'a>(layer: &'a Layer, installed: &'a Installed, found: &Found) -> Result<Keys<'a>, LayerError> {
    let mut keys = Keys { layer, installed, differs: Vec::new(), unknown: Vec::new() };
    let schema = &layer.schema;
    keys.artifacts()?;
    let is_unknown = |key: &&Key| key.sync == DevSync::NewImage && !COMPARED.contains(&key.name);
    for key in KEYS.iter().filter(is_unknown) {
        keys.unknown_if(key.is_set(schema), key.name, "not recorded on the machine");
    }
    for (name, id) in &schema.groups {
        let found = installed.groups.get(name);
        keys.unless(found == Some(&id.to_string()), "groups", || match found {
            Some(found) => format!("group {name} has id {found} on the machine, expected {id}"),
            None => format!("group {name} does not exist on the machine"),
        });
    }
    schema.users.iter().for_each(|(name, user)| keys.user(name, user));
    for (name, path) in &schema.alternatives {
        let link = found.nodes.get(&format!("/etc/alternatives/{name}"));
        keys.unless(link.is_some_and(|link| link.target == *path), "alternatives", || {
            let found = link.map_or("nothing", |link| link.target.as_str());
            format!("expected {name} to lead to {path}, found {found} on the machine")
        });
    }
    if let Some(folder) = &schema.images {
        let is_there = keys.origins(folder).next().is_some();
        keys.unless(is_there, "images", || format!("the image has no container images in {folder}"));
    }
    for path in &schema.remove {
        let is_pattern = path.contains('*');
        keys.unknown_if(is_pattern, "remove", path);
        keys.unless(is_pattern || !found.nodes.contains_key(path), "remove", || {
            format!("{path} exists on the machine")
        });
    }
    Ok(keys)
}

impl Keys<'_> {
    fn unless(&mut self, holds: bool, key: &str, why: impl FnOnce() -> String) {
        if !holds {
            self.differs.push(NewImage::of(&self.layer.schema.name, key, why()));
        }
    }

    fn unknown_if(&mut self, is_set: bool, key: &str, why: &str) {
        if is_set {
            self.unknown.push(NewImage::of(&self.layer.schema.name, key, why.to_owned()));
        }
    }

    /// The recorded origins of `folder` and of paths below it.
    fn origins(&self, folder: &str) -> impl Iterator<Item = Option<&str>> {
        let exact = escape::path(folder.as_bytes());
        let below = format!("{}/", exact.trim_end_matches('/'));
        let paths = self.installed.record.paths.iter();
        paths
            .filter(move |(path, _)| **path == exact || path.starts_with(&below))
            .map(|(_, origin)| origin.artifact.as_deref())
    }

    /// Packages and other artifacts: requests and destinations.
    fn artifacts(&mut self) -> Result<(), LayerError> {
        let (layer, content) = (self.layer, self.installed.manifest.content());
        let name = &layer.schema.name;
        let request = layer.schema.request();
        let made_for = content.closure.as_ref().and_then(|closure| closure.layers.get(name));
        let same = made_for.map_or(request.is_empty(), |made_for| *made_for == request);
        self.unless(same, "packages", || "other packages were resolved for the image".to_owned());
        let asked = layer.upstream_request(&content.os.arch)?;
        let pinned = content.requests.get(name).cloned().unwrap_or_default();
        let images = asked.container_images == pinned.container_images;
        self.unless(images, "container_images", || "the image has other container images".to_owned());
        for (artifact, install) in layer.schema.installs().map(|(_, artifact, install)| (artifact, install)) {
            let key = if layer.schema.artifacts.contains_key(artifact) { "artifacts" } else { "downloads" };
            let is_known = asked.downloads.get(artifact) == pinned.downloads.get(artifact);
            self.unless(is_known, key, || format!("{artifact} has a different URL, version or proof in the image"));
            let record = &self.installed.record;
            let is_of_layer = record.artifacts.get(artifact).is_some_and(|known| known.layer == *name);
            let is_kept = record.kept.get(artifact).is_some_and(|known| known.layer == *name);
            self.unless(is_of_layer || is_kept, key, || format!("{artifact} is not in the image"));
            if let Install::File { path, .. } | Install::Tar { path, .. } | Install::Zip { path, .. } = install
                && is_of_layer
            {
                let is_there = self.origins(path).any(|origin| origin == Some(artifact));
                self.unless(is_there, key, || format!("{artifact} is not installed at {path}"));
                let has_rules = matches!(install, Install::Tar { .. } | Install::Zip { .. });
                self.unknown_if(has_rules, key, &format!("`strip` and `members` of {artifact}"));
            }
        }
        for (artifact, _) in self.installed.record.artifacts.iter().filter(|(_, known)| known.layer == *name) {
            let is_asked = layer.schema.install(artifact).is_some();
            let is_chosen = content.dependencies.get(artifact).is_some_and(|entry| entry.chosen.is_some());
            self.unless(is_asked || is_chosen, "artifacts", || format!("{artifact} is in the image"));
        }
        Ok(())
    }

    fn user(&mut self, name: &str, user: &Account) {
        let Account { id, home: _, shell, groups, optional_groups, subordinate, password_hash, ssh_authorized_keys } =
            user;
        let home = user.home_of(name);
        let is_same = |found: &PlanAccount| {
            (found.id, &found.home, &found.shell) == (*id, &home, shell)
                && (&found.groups, &found.optional_groups) == (groups, optional_groups)
        };
        let found = self.installed.plan.accounts.get(name);
        let expected = || described(*id, &home, shell, groups.iter().chain(optional_groups));
        self.unless(found.is_some_and(is_same), "users", || match found {
            Some(found) => {
                let groups = found.groups.iter().chain(&found.optional_groups);
                let found = described(found.id, &found.home, &found.shell, groups);
                format!("expected user {name} with {}, found {found} in the image", expected())
            }
            None => format!("expected user {name} in the image, found no such user"),
        });
        let is_set = subordinate.is_some() || password_hash.is_some() || !ssh_authorized_keys.is_empty();
        self.unknown_if(is_set, "users", &format!("subordinate ids, password and keys of {name}"));
    }
}

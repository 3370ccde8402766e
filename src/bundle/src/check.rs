//! Checks a bundle by itself: its document and layers in, all violations of the rules for bundles out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::contents::BundleContents;
use super::error::BundleError;
use super::foreign_units::foreign_units;
use vmbake_common::address;
use vmbake_layer::effects::{Effect, EffectKind, SPECIAL_BITS, effects};
use vmbake_layer::real_path::{is_below, real};
use vmbake_layer::{Account, BootConfig, BootEffect, KEYS, Key, Layer, Schema};
use vmbake_manifest::package_request::PackageRequest;

impl BundleContents {
    /// Fails if anything is wrong with it; `path` is for messages.
    pub fn require_sound(&self, path: &Path) -> Result<(), BundleError> {
        match complaints(self) {
            complaints if complaints.is_empty() => Ok(()),
            complaints => Err(BundleError::Unsound { path: path.to_owned(), complaints }),
        }
    }
}

/// Everything that is wrong with a bundle, a line each, sorted.
pub fn complaints(bundle: &BundleContents) -> Vec<String> {
    let mut found = BTreeSet::new();
    digests(bundle, &mut found);
    let own: Vec<Effect> = bundle.own.iter().flat_map(effects).collect();
    for effect in &own {
        asked(bundle, effect, &mut found);
        through_link(&own, effect, &mut found);
        kept(bundle, effect, &mut found);
    }
    for layer in &bundle.own {
        let mut say = |what: String| {
            found.insert(format!("layer {}: {what}", layer.schema.name));
        };
        names(bundle, layer, &mut say);
        keys(&layer.schema, &mut say);
        groups(bundle, &layer.schema, &mut say);
        foreign_units(bundle, &own, layer, &mut say);
        boot_configs(bundle, &own, layer, &mut say);
    }
    fragment(bundle, &mut found);
    found.into_iter().collect()
}

/// Layers that are not the ones that the document names.
fn digests(bundle: &BundleContents, found: &mut BTreeSet<String>) {
    let there: BTreeMap<&String, _> = bundle.own.iter().map(|layer| (&layer.schema.name, layer.digest)).collect();
    if bundle.own.is_empty() {
        found.insert("no layers".to_owned());
    }
    if !bundle.is_packed {
        return;
    }
    for (name, digest) in &bundle.document.layers {
        match there.get(name) {
            None => {
                found.insert(format!("layer {name}: listed in bundle.json, but missing"));
            }
            Some(other) if other != digest => {
                found.insert(format!("layer {name}: expected digest {digest} of bundle.json, found {other}"));
            }
            Some(_) => {}
        }
    }
    for name in there.keys().filter(|name| !bundle.document.layers.contains_key(**name)) {
        found.insert(format!("layer {name}: not listed in bundle.json"));
    }
}

/// An effect that the document does not request.
fn asked(bundle: &BundleContents, effect: &Effect, found: &mut BTreeSet<String>) {
    let Effect { kind, value, layer, key, .. } = effect;
    let list = kind.asked_by();
    let asks = bundle.document.asks.lists();
    let asks = asks.iter().find(|(name, _)| *name == list).map(|(_, values)| *values);
    let is_asked = |asked: &String| match list {
        "paths" => is_below(value, asked),
        "setuid" => real(asked) == *value,
        _ => asked == value,
    };
    if !asks.into_iter().flatten().any(is_asked) {
        found.insert(format!("layer {layer}: `{key}`: {value:?} is not in `asks/{list}` of bundle.json"));
    }
}

/// A path that goes through a link of the bundle's own leads elsewhere than it says.
fn through_link(own: &[Effect], effect: &Effect, found: &mut BTreeSet<String>) {
    let links = own.iter().filter(|other| other.key == "symlinks" && effect.value != other.value);
    for link in links.filter(|link| effect.kind.asked_by() == "paths" && is_below(&effect.value, &link.value)) {
        let Effect { value, layer, key, .. } = effect;
        found
            .insert(format!("layer {layer}: `{key}`: {value:?} leads through the link {:?} of the bundle", link.value));
    }
}

/// What an image would bring into a path that machines keep, where each version would find that of another one. Directories may be there, and what
/// the first boot writes is the machine's own.
fn kept(bundle: &BundleContents, effect: &Effect, found: &mut BTreeSet<String>) {
    let Effect { kind, value, layer, key, .. } = effect;
    let is_content = matches!(kind, EffectKind::Write | EffectKind::Unpack | EffectKind::Change);
    let is_kept = bundle.document.state.iter().any(|path| is_below(value, &real(path)));
    if is_content && is_kept && !key.starts_with("first_boot/") {
        found.insert(format!(
            "layer {layer}: `{key}`: {value:?} is in `state` of bundle.json, which updates of machines keep"
        ));
    }
}

/// Names that are not the publisher's.
fn names(bundle: &BundleContents, layer: &Layer, say: &mut impl FnMut(String)) {
    let document = &bundle.document;
    let schema = &layer.schema;
    let prefix = format!("{}.", document.publisher);
    if !document.owns(&schema.name) {
        say(format!("its name does not start with {prefix:?}"));
    }
    for (_, name, _) in schema.installs().filter(|(_, name, _)| !document.owns(name)) {
        say(format!("the name of artifact {name:?} does not start with {prefix:?}"));
    }
    for os in document.os.iter().filter(|os| !schema.os.contains(*os)) {
        say(format!("does not support {os}, which the bundle is for"));
    }
}

/// Keys that a bundle may not have.
fn keys(schema: &Schema, say: &mut impl FnMut(String)) {
    let is_set = |key: &Key| match key.name {
        "packages" => !PackageRequest { remove_packages: Vec::new(), ..schema.request() }.is_empty(),
        _ => key.is_set(schema),
    };
    for key in KEYS.iter().filter(|key| is_set(key)) {
        if let Some(instead) = key.not_in_bundles {
            say(format!("`{}` is not supported in a bundle: {instead}", key.name));
        }
    }
    let plan = schema.first_boot.as_ref();
    let of_the_image = [
        ("inputs", plan.is_some_and(|plan| plan.inputs.is_some())),
        ("receive", plan.is_some_and(|plan| plan.receive.is_some())),
    ];
    for (key, _) in of_the_image.iter().filter(|(_, is_set)| *is_set) {
        say(format!("`first_boot/{key}` is not supported in a bundle: set it in a layer of the image"));
    }
    for (name, account) in &schema.users {
        // Its groups are compared with the grants.
        let Account {
            id: _,
            home: _,
            shell: _,
            groups: _,
            optional_groups: _,
            subordinate: _,
            password_hash,
            ssh_authorized_keys,
        } = account;
        if password_hash.is_some() || !ssh_authorized_keys.is_empty() {
            say(format!("`users`: {name} can log in with a password or keys, which are not supported in a bundle"));
        }
    }
}

/// Groups that users of the bundle would join: a member of some groups of Debian can do what root can.
fn groups(bundle: &BundleContents, schema: &Schema, say: &mut impl FnMut(String)) {
    let users = schema.users.iter().map(|(name, user)| ("users", name, &user.groups, &user.optional_groups));
    let accounts = schema.first_boot.iter().flat_map(|plan| plan.accounts.iter());
    let accounts = accounts.map(|(name, user)| ("first_boot/accounts", name, &user.groups, &user.optional_groups));
    for (key, name, groups, optional) in users.chain(accounts) {
        for group in groups.iter().chain(optional).filter(|group| !bundle.document.asks.users.contains(*group)) {
            say(format!("`{key}`: {name} joins group {group:?}, which is not in `asks/users` of bundle.json"));
        }
    }
}

/// Files from which systemd creates paths and accounts at boot that the document does not request.
fn boot_configs(bundle: &BundleContents, own: &[Effect], layer: &Layer, say: &mut impl FnMut(String)) {
    let asks = &bundle.document.asks;
    let users: BTreeSet<&str> = bundle.own.iter().flat_map(|layer| layer.schema.user_names()).collect();
    // A user has a group of the same name.
    let groups: BTreeSet<&str> = bundle.own.iter().flat_map(|layer| layer.schema.accounts()).collect();
    let files: BTreeMap<String, &[u8]> =
        layer.files.iter().map(|(path, file)| (real(path), file.content.as_slice())).collect();
    for path in layer.schema.first_boot.iter().flat_map(|plan| plan.files.iter().map(|file| &file.path)) {
        // A file whose name only the machine knows.
        if path
            .find('{')
            .and_then(|at| path.get(..at))
            .is_some_and(|beginning| BootConfig::is_reached(&real(beginning)))
        {
            say(format!(
                "`first_boot/files`: {path:?} may take effect at boot: expected a path without expressions in `asks/paths`"
            ));
        }
    }
    let is_written = |effect: &&Effect| effect.kind == EffectKind::Write && effect.layer == layer.schema.name;
    for Effect { value: path, key, .. } in own.iter().filter(is_written) {
        let is_named = asks.paths.iter().any(|asked| real(asked) == *path);
        let Some(config) = BootConfig::of(path).filter(|_| !is_named) else { continue };
        let Some(text) = files.get(path).filter(|_| *key == "files") else {
            // A bake reads the file of an artifact.
            if *key != "install" {
                say(format!("`{key}`: {path:?} takes effect at boot, but is not in `asks/paths`"));
            }
            continue;
        };
        for (line, effect) in config.effects(text) {
            let what = match effect {
                BootEffect::Path { path: made, .. } if !asks.paths.iter().any(|asked| is_below(&made, asked)) => {
                    format!("{made:?} is not in `asks/paths` of bundle.json")
                }
                BootEffect::Path { path: made, mode } => {
                    let is_asked =
                        mode & SPECIAL_BITS == 0 || asks.setuid.iter().any(|asked| real(asked) == real(&made));
                    if is_asked {
                        continue;
                    }
                    format!("{made:?} is not in `asks/setuid` of bundle.json")
                }
                BootEffect::User(name) if users.contains(name.as_str()) => continue,
                BootEffect::User(name) => format!("{name:?} is not a user of the bundle's layers"),
                BootEffect::Group(name) if groups.contains(name.as_str()) => continue,
                BootEffect::Group(name) => format!("{name:?} is not a group of the bundle's layers"),
                BootEffect::Member { user, group }
                    if users.contains(user.as_str()) && groups.contains(group.as_str()) =>
                {
                    continue;
                }
                BootEffect::Member { user, group } => {
                    format!("{user:?} and {group:?} are not a user and a group of the bundle's layers")
                }
                BootEffect::Unknown => "not supported in a bundle unless `asks/paths` lists the file".to_owned(),
            };
            say(format!("{path}:{line}: {what}"));
        }
    }
}

/// Sources that are not the publisher's own.
fn fragment(bundle: &BundleContents, found: &mut BTreeSet<String>) {
    let Some(value) = &bundle.fragment else { return };
    if let Some(place) = address::in_json(value, &|_| false) {
        found.insert(format!("sources.json: {place}: {}", address::MESSAGE));
    }
    for (key, entries) in value.as_object().into_iter().flatten() {
        let names: Vec<&str> = match (key.as_str(), entries) {
            ("archives", serde_json::Value::Object(archives)) => archives.keys().map(String::as_str).collect(),
            ("dependencies", serde_json::Value::Array(all)) => {
                for one in all.iter().filter(|one| one["proof"] == "first-use") {
                    found.insert(format!("sources.json: {} has no proof other than its first download", one["name"]));
                }
                all.iter().map(|one| one["name"].as_str().unwrap_or_default()).collect()
            }
            _ => {
                found.insert(format!("sources.json: `{key}` is not allowed in a bundle"));
                continue;
            }
        };
        for name in names.into_iter().filter(|name| !bundle.document.owns(name)) {
            found.insert(format!("sources.json: {name:?} does not start with \"{}.\"", bundle.document.publisher));
        }
    }
}

//! Rules for layers of an extension: layers in, one line out for each key that systemd would not handle as a bake does.
//!
//! A merged hierarchy is read-only, exists only while it is merged, and appears late during boot.

use std::collections::BTreeSet;

use super::release::ExtensionKind;
use vmbake_layer::effects::{Effect, EffectKind, effects};
use vmbake_layer::real_path::is_below;
use vmbake_layer::{Install, Layer, Schema};

/// All reasons why `layers` cannot become such an extension, each with layer and key.
pub(super) fn refusals(layers: &[Layer], kind: ExtensionKind) -> Vec<String> {
    let mut found = BTreeSet::new();
    for layer in layers {
        let of_effects = effects(layer).into_iter().filter_map(|effect| of_effect(&effect, kind));
        let all = of_effects.chain(of_schema(&layer.schema, kind)).chain(of_owners(&layer.schema));
        found.extend(all.map(|(key, what)| format!("layer {}: `{key}`: {what}", layer.schema.name)));
    }
    found.into_iter().collect()
}

/// Why an extension cannot have an effect; `None` if it can, or if its key is refused anyway.
fn of_effect(effect: &Effect, kind: ExtensionKind) -> Option<(&'static str, String)> {
    let Effect { kind: what, value, key, .. } = effect;
    // A package is reported once by name, not by the paths that it could write.
    if ["first_boot", "units", "scripts"].contains(&key.split('/').next().unwrap_or(key)) {
        return None;
    }
    let why = match what {
        EffectKind::Unpack if value == "/" => return None,
        EffectKind::Write | EffectKind::Unpack | EffectKind::Directory => {
            return place(value, kind).map(|why| (*key, why));
        }
        EffectKind::Change => "extensions cannot change or remove files of the machine",
        EffectKind::Setuid => "extensions cannot contain privileged files",
        EffectKind::User => "accounts must exist before extensions are merged: create them in the image",
        EffectKind::Script => {
            "Debian packages need dpkg's database and maintainer scripts, which are not available in an extension"
        }
        EffectKind::Command => return None,
    };
    Some((*key, format!("{value:?}: {why}")))
}

/// Why an extension cannot have `path`.
fn place(path: &str, kind: ExtensionKind) -> Option<String> {
    let why = match kind {
        _ if is_below(path, kind.root()) => return None,
        ExtensionKind::Sysext if is_below(path, "/etc") => "a sysext does not merge /etc; use --confext",
        ExtensionKind::Sysext if is_below(path, "/opt") => {
            "a merged /opt is read-only, but the first boot writes to it"
        }
        ExtensionKind::Sysext => "sysexts only contain files below /usr",
        ExtensionKind::Confext => "confexts only contain files below /etc",
    };
    Some(format!("{path:?}: {why}"))
}

/// Keys that are always refused.
fn of_schema(schema: &Schema, kind: ExtensionKind) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let units = [("enable", &schema.units.enable), ("disable", &schema.units.disable), ("mask", &schema.units.mask)];
    for (what, unit) in units.iter().flat_map(|(what, list)| list.iter().map(move |unit| (what, unit))) {
        let below = match kind {
            ExtensionKind::Sysext => "/usr/lib/systemd/system",
            ExtensionKind::Confext => "/etc/systemd/system",
        };
        let why =
            format!("{what} {unit:?}: to start a unit of an extension, use `Upholds=` in {below}/TARGET.d/NAME.conf");
        found.push(("units", why));
    }
    let late = "is read before extensions are merged";
    for (key, is_there) in [("sysctl", !schema.sysctl.is_empty()), ("modules_load", !schema.modules_load.is_empty())] {
        found.extend(is_there.then(|| (key, late.to_owned())));
    }
    let of_images = [
        ("first_boot", schema.first_boot.is_some(), "the machine has already booted"),
        (
            "scripts",
            !schema.scripts.is_empty(),
            "Debian packages need dpkg's database, which is not available in an extension",
        ),
        ("capabilities", !schema.capabilities.is_empty(), "extensions cannot contain privileged files"),
        (
            "expand",
            !schema.expand.is_empty(),
            "placeholders for kind, version and images are not supported in an extension",
        ),
    ];
    found.extend(of_images.iter().filter(|(_, is_there, _)| *is_there).map(|(key, _, why)| (*key, (*why).to_owned())));
    found
}

/// Owners other than root, and privileged modes.
fn of_owners(schema: &Schema) -> Vec<(&'static str, String)> {
    let files = schema.files.iter().map(|(path, rule)| ("files", path, rule.ownership(path)));
    let directories = schema.directories.iter().map(|(path, rule)| ("directories", path, rule.ownership()));
    let mut found = Vec::new();
    for (key, path, owned) in files.chain(directories) {
        if owned.owner != "root" || owned.group != "root" {
            found.push((key, format!("{path:?}: expected owner root:root, found {}:{}", owned.owner, owned.group)));
        }
        if owned.mode > 0o777 {
            found.push((key, format!("{path:?}: mode {:04o} has set-uid, set-gid or sticky bits", owned.mode)));
        }
    }
    for (_, name, install) in schema.installs() {
        if let Install::File { mode, .. } = install
            && *mode > 0o777
        {
            found.push(("install", format!("{name}: mode {mode:04o} has set-uid, set-gid or sticky bits")));
        }
    }
    found
}

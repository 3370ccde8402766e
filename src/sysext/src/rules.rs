//! What keeps layers from being an extension: layers enter, a line leaves for each thing that systemd would not do as a bake does.
//!
//! A merged hierarchy is read-only, is there only while it is merged, and comes after much of what sets a machine up.

use std::collections::BTreeSet;

use super::release::ExtensionKind;
use vmbake_distribute::bundle::effects::{Effect, EffectKind, effects};
use vmbake_distribute::bundle::is_below;
use vmbake_layer::{Install, Layer, Schema};

/// All that keeps `layers` from being such an extension, each with its layer and key.
pub(super) fn refusals(layers: &[Layer], kind: ExtensionKind) -> Vec<String> {
    let mut found = BTreeSet::new();
    for layer in layers {
        let of_effects = effects(layer).into_iter().filter_map(|effect| of_effect(&effect, kind));
        let all = of_effects.chain(of_schema(&layer.schema, kind)).chain(of_owners(&layer.schema));
        found.extend(all.map(|(key, what)| format!("layer {}: `{key}`: {what}", layer.schema.name)));
    }
    found.into_iter().collect()
}

/// Why an effect cannot be one of an extension; `None` if it can, or if its key is refused as a whole.
fn of_effect(effect: &Effect, kind: ExtensionKind) -> Option<(&'static str, String)> {
    let Effect { kind: what, value, key, .. } = effect;
    // An archive package is told once, by its name, and not by the paths that it might write.
    if ["first_boot", "units", "scripts"].contains(&key.split('/').next().unwrap_or(key)) {
        return None;
    }
    let why = match what {
        EffectKind::Unpack if value == "/" => return None,
        EffectKind::Write | EffectKind::Unpack | EffectKind::Directory => {
            return place(value, kind).map(|why| (*key, why));
        }
        EffectKind::Change => "an extension adds files, and cannot change or remove those of the machine",
        EffectKind::Setuid => "privileges of files are not taken from extensions",
        EffectKind::User => "accounts are made before extensions are merged; make them in the image",
        EffectKind::Script => "a Debian package needs dpkg's database and its scripts, which an extension has not",
        EffectKind::Command => return None,
    };
    Some((*key, format!("{value:?}: {why}")))
}

/// Why nothing of an extension can be at `path`.
fn place(path: &str, kind: ExtensionKind) -> Option<String> {
    let why = match kind {
        _ if is_below(path, kind.root()) => return None,
        ExtensionKind::Sysext if is_below(path, "/etc") => "a sysext does not merge /etc; --confext does",
        ExtensionKind::Sysext if is_below(path, "/opt") => {
            "a merged /opt is read-only, and the first boot writes there"
        }
        ExtensionKind::Sysext => "a sysext holds nothing outside of /usr",
        ExtensionKind::Confext => "a confext holds nothing outside of /etc",
    };
    Some(format!("{path:?}: {why}"))
}

/// Keys that are refused whatever they say.
fn of_schema(schema: &Schema, kind: ExtensionKind) -> Vec<(&'static str, String)> {
    let mut found = Vec::new();
    let units = [("enable", &schema.units.enable), ("disable", &schema.units.disable), ("mask", &schema.units.mask)];
    for (what, unit) in units.iter().flat_map(|(what, list)| list.iter().map(move |unit| (what, unit))) {
        let below = match kind {
            ExtensionKind::Sysext => "/usr/lib/systemd/system",
            ExtensionKind::Confext => "/etc/systemd/system",
        };
        let why = format!("{what} {unit:?}: an extension starts a unit by `Upholds=` in {below}/TARGET.d/NAME.conf");
        found.push(("units", why));
    }
    let late = "is read before extensions are merged";
    for (key, is_there) in [("sysctl", !schema.sysctl.is_empty()), ("modules_load", !schema.modules_load.is_empty())] {
        found.extend(is_there.then(|| (key, late.to_owned())));
    }
    let of_images = [
        ("first_boot", schema.first_boot.is_some(), "the first boot of the machine is over"),
        ("scripts", !schema.scripts.is_empty(), "a Debian package needs dpkg's database, which an extension has not"),
        ("capabilities", !schema.capabilities.is_empty(), "an extension has no files with privileges"),
        ("expand", !schema.expand.is_empty(), "an extension has no kind, version or images to put in"),
    ];
    found.extend(of_images.iter().filter(|(_, is_there, _)| *is_there).map(|(key, _, why)| (*key, (*why).to_owned())));
    found
}

/// Owners other than root, and bits of privileges.
fn of_owners(schema: &Schema) -> Vec<(&'static str, String)> {
    let files = schema.files.iter().map(|(path, rule)| ("files", path, rule.ownership(path)));
    let directories = schema.directories.iter().map(|(path, rule)| ("directories", path, rule.ownership()));
    let mut found = Vec::new();
    for (key, path, owned) in files.chain(directories) {
        if owned.owner != "root" || owned.group != "root" {
            found.push((key, format!("{path:?}: belongs to {}:{}, and not to root:root", owned.owner, owned.group)));
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

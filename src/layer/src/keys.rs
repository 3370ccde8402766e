//! The keys of `layer.json`: for each, what other code does with it.
//!
//! A key that is not in the table does not compile. Keys with their own modules are checked and applied by functions of
//! these, all others in `check` and `settings`.

pub(crate) mod container;
mod sudoers;
pub(crate) mod swap;

use std::collections::{BTreeMap, BTreeSet};

use DevSync::{Manifest, NewImage, Nothing, Sent};

use super::effects::{self, Collected};
use super::findings::Findings;
use super::settings::{Setting, argument_entries, ssh_key_entries};
use super::sysctl::sysctl_entries;
use super::{Layer, Schema, Units};
use vmbake_manifest::package_request::{Choice, System};

/// A key of `layer.json`.
pub struct Key {
    pub name: &'static str,
    /// How `vmbake dev sync` handles it.
    pub sync: DevSync,
    /// What to do in place of using the key in a bundle; `None` if bundles can have it.
    pub not_in_bundles: Option<&'static str>,
    is_set: fn(&Schema) -> bool,
    effects: fn(&Layer, &mut Collected),
    check: fn(&mut Findings, &Layer),
    files: fn(&Schema) -> Vec<Setting>,
    exclusive: fn(&Schema) -> Vec<(String, String)>,
}

/// How `vmbake dev sync` handles a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DevSync {
    /// It describes the layer, or affects only a bake.
    Nothing,
    /// It is compared with the manifest and the record of origins.
    Manifest,
    /// It is sent: as files, links, units, or in the plan.
    Sent,
    /// If it differs, a new image is needed.
    NewImage,
}

/// For keys that belong to the image.
const IN_IMAGE: &str = "set it in a layer of the image";
/// For keys that are resolved for an image.
const DEPENDS: &str = "the result depends on the image";
/// For local files, which a bundle does not contain.
const PUBLISH: &str = "publish the files and list them in `downloads`";

impl Key {
    /// A key that every bundle can have: it has no effects, or those of `files`.
    const fn harmless(sync: DevSync) -> Self {
        Self {
            name: "",
            sync,
            not_in_bundles: None,
            is_set: |_| true,
            effects: |_, _| (),
            check: |_, _| (),
            files: |_| Vec::new(),
            exclusive: |_| Vec::new(),
        }
    }

    /// A key with effects, for which a bundle needs permissions.
    const fn with_effects(sync: DevSync, effects: fn(&Layer, &mut Collected)) -> Self {
        Self { effects, ..Self::harmless(sync) }
    }

    /// A key that no bundle can have.
    const fn refused(sync: DevSync, instead: &'static str) -> Self {
        Self { not_in_bundles: Some(instead), ..Self::harmless(sync) }
    }

    /// Sets the function that checks it.
    const fn check(self, check: fn(&mut Findings, &Layer)) -> Self {
        Self { check, ..self }
    }

    /// Sets the function for the files that it stands for.
    const fn files(self, files: fn(&Schema) -> Vec<Setting>) -> Self {
        Self { files, ..self }
    }

    /// Sets the function for entries whose values must be the same in all layers of a kind.
    const fn exclusive(self, exclusive: fn(&Schema) -> Vec<(String, String)>) -> Self {
        Self { exclusive, ..self }
    }

    /// Whether a layer has the key.
    pub fn is_set(&self, schema: &Schema) -> bool {
        (self.is_set)(schema)
    }
}

macro_rules! keys {
    ($($name:ident: $key:expr,)*) => {
        /// All keys.
        pub const KEYS: &[Key] = &[$(Key {
            name: stringify!($name),
            is_set: |schema| schema.$name.is_set(),
            ..$key
        },)*];

        // Without `..`, so that a key that is missing in the table does not compile.
        const _: fn(&Schema) = |Schema { $($name: _,)* }| ();
    };
}

keys! {
    name: Key::harmless(Nothing),
    version: Key::harmless(Nothing),
    description: Key::harmless(Nothing),
    os: Key::harmless(Nothing),
    requires: Key::harmless(Nothing),
    bases: Key::refused(Nothing, IN_IMAGE),
    bundles: Key::refused(Nothing, IN_IMAGE),
    artifacts: Key::with_effects(Manifest, effects::installs),
    downloads: Key::with_effects(Manifest, effects::installs),
    local_files: Key::refused(Manifest, PUBLISH),
    container_images: Key::refused(Manifest, DEPENDS),
    images: Key::refused(NewImage, IN_IMAGE),
    system: Key::refused(NewImage, IN_IMAGE).exclusive(system_entries),
    // The rest of the request for packages is refused with this key.
    packages: Key::refused(Manifest, DEPENDS),
    recommends: Key::harmless(Manifest),
    archive: Key::harmless(Manifest),
    hold: Key::harmless(Manifest),
    without: Key::harmless(Manifest),
    upgrade: Key::harmless(Manifest),
    remove_packages: Key::refused(Manifest, IN_IMAGE),
    scripts: Key::with_effects(NewImage, effects::scripts),
    debconf: Key::refused(NewImage, DEPENDS),
    groups: Key::with_effects(NewImage, effects::groups),
    users: Key::with_effects(NewImage, effects::users),
    directories: Key::with_effects(Sent, effects::directories),
    files: Key::with_effects(Sent, effects::files),
    expand: Key::harmless(Sent),
    alternatives: Key::refused(NewImage, IN_IMAGE).exclusive(|schema| entries(&schema.alternatives)),
    capabilities: Key::with_effects(NewImage, effects::capabilities)
        .exclusive(|schema| entries(&schema.capabilities)),
    sudoers: Key::refused(Sent, IN_IMAGE)
        .check(sudoers::check)
        .files(sudoers::files)
        .exclusive(sudoers::entries),
    modes: Key::with_effects(Sent, effects::modes),
    in_place: Key::harmless(Nothing),
    before_packages: Key::harmless(Nothing),
    keep_conffiles: Key::harmless(Nothing),
    setuid: Key::with_effects(Nothing, effects::setuid),
    symlinks: Key::with_effects(Sent, effects::symlinks),
    units: Key::with_effects(Sent, effects::units),
    remove: Key::with_effects(NewImage, effects::remove),
    empty: Key::with_effects(NewImage, effects::empty),
    truncate: Key::with_effects(NewImage, effects::truncate),
    keep: Key::refused(Nothing, IN_IMAGE),
    sysctl: Key::harmless(Sent).exclusive(sysctl_entries),
    modules_load: Key::harmless(Sent),
    hostname: Key::refused(Sent, IN_IMAGE),
    timezone: Key::refused(Sent, IN_IMAGE),
    kernel_arguments: Key::refused(Sent, IN_IMAGE).exclusive(argument_entries),
    locale: Key::refused(Sent, IN_IMAGE),
    keyboard: Key::refused(Sent, IN_IMAGE),
    ssh_authorized_keys: Key::refused(Sent, IN_IMAGE).exclusive(ssh_key_entries),
    motd: Key::refused(Sent, IN_IMAGE),
    os_release: Key::refused(NewImage, IN_IMAGE),
    swap: Key::refused(NewImage, IN_IMAGE)
        .check(swap::check)
        .files(swap::files)
        .exclusive(swap::entries),
    container: Key::refused(Nothing, IN_IMAGE).check(container::check),
    // Bundles can have parts of it.
    first_boot: Key::with_effects(Sent, effects::first_boot),
}

fn system_entries(schema: &Schema) -> Vec<(String, String)> {
    let text = |system: &System| format!("{:?} of {:?}", system.variant, system.archive);
    schema.system.iter().map(|system| ("variant".to_owned(), text(system))).collect()
}

fn entries(map: &BTreeMap<String, String>) -> Vec<(String, String)> {
    map.iter().map(|(entry, value)| (entry.clone(), value.clone())).collect()
}

/// Effects of a layer, in no order.
pub(super) fn collect_effects(layer: &Layer, found: &mut Collected) {
    KEYS.iter().for_each(|key| (key.effects)(layer, found));
}

/// Checks the keys with their own modules.
pub(super) fn check(found: &mut Findings, layer: &Layer) {
    KEYS.iter().for_each(|key| (key.check)(found, layer));
}

/// The files that keys with their own modules stand for.
pub(super) fn files(schema: &Schema) -> impl Iterator<Item = Setting> {
    KEYS.iter().flat_map(|key| (key.files)(schema))
}

/// Entries whose values must be the same in all layers of a kind: key, entry, value.
pub(super) fn exclusive(schema: &Schema) -> impl Iterator<Item = (&'static str, String, String)> {
    KEYS.iter().flat_map(|key| (key.exclusive)(schema).into_iter().map(|(entry, value)| (key.name, entry, value)))
}

/// Whether a value differs from that of an absent key.
trait IsSet {
    fn is_set(&self) -> bool;
}

impl IsSet for String {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl<T> IsSet for Option<T> {
    fn is_set(&self) -> bool {
        self.is_some()
    }
}

impl<T> IsSet for Vec<T> {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl<T> IsSet for BTreeSet<T> {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl<K, V> IsSet for BTreeMap<K, V> {
    fn is_set(&self) -> bool {
        !self.is_empty()
    }
}

impl IsSet for Choice {
    fn is_set(&self) -> bool {
        *self != Self::default()
    }
}

impl IsSet for Units {
    fn is_set(&self) -> bool {
        let Self { enable, disable, mask, files } = self;
        [enable, disable, mask].into_iter().any(IsSet::is_set) || files.is_set()
    }
}

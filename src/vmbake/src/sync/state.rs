//! Record of past syncs, kept on the machine.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;

/// Path on the machine. Only root can access the directory.
pub(super) const PATH: &str = "/var/lib/vmbake/sync/state.json";

/// Record of past syncs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// Whether sent files are not activated yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) pending: bool,
    /// Name of the sync that wrote the record: each record differs from those before it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(super) sync: String,
    /// Sent files and links, by path.
    #[serde(default)]
    pub(super) files: BTreeMap<String, SentFile>,
    /// Directories that sync created as parents of sent files.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) directories: BTreeSet<String>,
    /// Units that were enabled, disabled or masked, by layer and name, with their states before, and whether they were active.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(super) units: BTreeMap<String, BTreeMap<String, String>>,
}

impl State {
    /// Adds the entries of an earlier record that are missing, and earlier content of files: until a sync has succeeded, a file may have either.
    pub(super) fn extend(&mut self, earlier: &Self) {
        for (path, before) in &earlier.files {
            let sent = self.files.entry(path.clone()).or_insert_with(|| before.clone());
            sent.earlier.extend(before.earlier.iter().chain([&before.digest]).filter(|digest| **digest != sent.digest));
        }
        self.directories.extend(earlier.directories.iter().cloned());
        for (layer, units) in &earlier.units {
            let known = self.units.entry(layer.clone()).or_default();
            for (unit, before) in units {
                known.entry(unit.clone()).or_insert_with(|| before.clone());
            }
        }
    }
}

/// A file or link that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SentFile {
    pub(super) layer: String,
    /// Digest of the content, or of a link's target.
    pub(super) digest: Digest,
    /// Digests of what was sent before, if a sync was interrupted.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) earlier: BTreeSet<Digest>,
    /// Whether its path did not exist before.
    pub(super) created: bool,
}

//! What sync has done to a machine, as the machine keeps it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use vmbake_common::digest::Digest;

/// Where the machine keeps it. Only root can read and change the directory.
pub(super) const PATH: &str = "/var/lib/vmbake/sync/state.json";

/// What sync has done to a machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct State {
    /// Whether files were sent, and the services do not use them yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) pending: bool,
    /// Files and links that were sent, by path.
    #[serde(default)]
    pub(super) files: BTreeMap<String, SentFile>,
}

/// A file or link that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SentFile {
    pub(super) layer: String,
    /// Digest of the content; of links, of the target.
    pub(super) digest: Digest,
    /// Whether there was nothing at its path before.
    pub(super) created: bool,
}

//! Record of past syncs, kept on the machine.

use std::collections::BTreeMap;

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
    /// Sent files and links, by path.
    #[serde(default)]
    pub(super) files: BTreeMap<String, SentFile>,
}

/// A file or link that was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SentFile {
    pub(super) layer: String,
    /// Digest of the content, or of a link's target.
    pub(super) digest: Digest,
    /// Whether its path did not exist before.
    pub(super) created: bool,
}

//! IDs of users and groups created by maintainer scripts, pinned so that they are the same in all images.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Users and groups created by maintainer scripts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedAccounts {
    /// User IDs by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<String, u32>,
    /// Group IDs by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, u32>,
}

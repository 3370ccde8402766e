//! The ids of the accounts that maintainer scripts make, which stay the same from one image to the next.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Users and groups that maintainer scripts make.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PinnedAccounts {
    /// Ids of users by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub users: BTreeMap<String, u32>,
    /// Ids of groups by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub groups: BTreeMap<String, u32>,
}

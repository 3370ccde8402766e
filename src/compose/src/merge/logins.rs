//! Users that layers allow to log in, for the record of origins: `lint` accepts their passwords and keys.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::accounts::AUTHORIZED_KEYS;
use vmbake_layer::Layer;

/// How a user may log in, by what a layer says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    pub layer: String,
    /// Whether the user has a password.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub password: bool,
    /// The file with keys for ssh.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keys: Option<String>,
}

/// The users that may log in by what a layer says.
pub(super) fn find(layers: &[Layer]) -> BTreeMap<String, Login> {
    let mut found = BTreeMap::new();
    for layer in layers {
        for (name, account) in &layer.schema.users {
            let password = account.password_hash.as_ref().is_some_and(|hash| hash.starts_with('$'));
            let keys = (!account.ssh_authorized_keys.is_empty())
                .then(|| format!("{}/{}", account.home_of(name), AUTHORIZED_KEYS));
            if password || keys.is_some() {
                found.insert(name.clone(), Login { layer: layer.schema.name.clone(), password, keys });
            }
        }
    }
    found
}

//! Records of dependency resolution for packages that layers request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::package_request::PackageRequest;
use vmbake_common::digest::Digest;

/// The inputs of a dependency resolution: equal inputs give equal packages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosureRecord {
    /// Digest of the base image; absent if the system is made of packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Digest>,
    /// The requests of layers.
    pub layers: BTreeMap<String, PackageRequest>,
}

/// Why a package was chosen: a layer requests it, or it is a dependency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageReason {
    /// The layer that installs it.
    pub layer: String,
    /// The chain of dependencies from the requested package to this one.
    pub reason: String,
    /// The version in the base that it replaces.
    pub upgrades: Option<String>,
}

impl PackageReason {
    /// The package that the layer requests.
    pub fn root(&self) -> &str {
        self.reason.split(' ').next().unwrap_or_default()
    }
}

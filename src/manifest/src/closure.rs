//! What a manifest says of packages that were chosen since layers ask for them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::package_request::PackageRequest;
use vmbake_common::digest::Digest;

/// What packages were chosen for: where it is the same, they are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClosureRecord {
    /// Digest of the base image.
    pub base: Digest,
    /// What layers ask for.
    pub layers: BTreeMap<String, PackageRequest>,
}

/// A package that was chosen since a layer asks for it, or for one that needs it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageReason {
    /// The layer, which installs it.
    pub layer: String,
    /// The package that it asks for, and those that lead from there to this one, which is the last.
    pub reason: String,
    /// The version of the base whose place it takes.
    pub upgrades: Option<String>,
}

impl PackageReason {
    /// The package that the layer asks for.
    pub fn root(&self) -> &str {
        self.reason.split(' ').next().unwrap_or_default()
    }
}

//! `bundles.lock.json` next to the manifests: the bundles of an image by digest.
//!
//! Versions never decrease without permission, and a version never gets another digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::contents::BundleContents;
use super::error::BundleError;
use super::footprint::BundleFootprint;
use vmbake_common::atomic_file::write_file;
use vmbake_common::digest::Digest;
use vmbake_common::message::FileError;
use vmbake_oci::RemoteName;
use vmbake_release::version::Version;

/// Its name.
pub const LOCK: &str = "bundles.lock.json";
/// The form that is read and written.
const SCHEMA: u32 = 1;
/// Longest lock that is read, in bytes: a bundle with the most files that layers may have takes two million.
const MAX_LOCK: u64 = 32 << 20;

/// The bundles that were taken, by `PUBLISHER.NAME`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundleLock {
    schema: u32,
    bundles: BTreeMap<String, LockedBundle>,
}

/// A bundle that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LockedBundle {
    pub version: Version,
    /// Digest of its index.
    pub digest: Digest,
    /// Who has signed it.
    pub signer: String,
    /// The repository that it came from last, unless that was a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brings: Option<BundleFootprint>,
    /// Every version that was ever taken, with its digest.
    pub taken: BTreeMap<String, Digest>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TakenFrom {
    /// Digest of its index.
    pub digest: Digest,
    /// Who has signed it.
    pub signer: String,
    /// The repository, unless it was a file.
    pub repository: Option<String>,
}

/// What may change in a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockRules {
    /// Whether another version may replace the locked one.
    pub upgrade: bool,
    /// Whether that may be a lower one.
    pub downgrade: bool,
}

impl BundleLock {
    /// The lock in the folder of the manifests; an empty one where there is none.
    pub fn load(folder: &Path) -> Result<Self, BundleError> {
        let path = Self::path(folder);
        if path.symlink_metadata().is_err() {
            return Ok(Self { schema: SCHEMA, bundles: BTreeMap::new() });
        }
        let text = vmbake_bake::release::read(&path, MAX_LOCK);
        let text = text.map_err(|source| BundleError::File(FileError::new(path.clone(), "read", source)))?;
        let lock: Self = serde_json::from_slice(&text).map_err(|error| BundleError::syntax(&path, &error))?;
        match lock.schema {
            SCHEMA => Ok(lock),
            _ => {
                let (key, what) = ("schema".to_owned(), format!("unsupported schema: expected {SCHEMA}"));
                Err(BundleError::Document { path, key, what })
            }
        }
    }

    /// The file of the lock in that folder.
    pub fn path(folder: &Path) -> PathBuf {
        folder.join(LOCK)
    }

    /// What is locked of a bundle.
    pub fn get(&self, title: &str) -> Option<&LockedBundle> {
        self.bundles.get(title)
    }

    /// All bundles that are locked, by name.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.bundles.keys().map(String::as_str)
    }

    /// The only bundle that came from a repository.
    pub fn from_repository(&self, repository: &str) -> Option<(&str, &LockedBundle)> {
        let mut all = self.bundles.iter().filter(|(_, locked)| locked.repository.as_deref() == Some(repository));
        match (all.next(), all.next()) {
            (Some((title, only)), None) => Some((title, only)),
            _ => None,
        }
    }

    /// What a name without a tag and a digest stands for: the bundle that is locked of that repository. Other names stay; `folder` is that of the
    /// lock.
    pub fn locate(&self, name: RemoteName, folder: &Path) -> Result<RemoteName, BundleError> {
        if name.tag.is_some() || name.digest.is_some() {
            return Ok(name);
        }
        match self.from_repository(&name.repository.to_string()) {
            Some((_, locked)) => Ok(RemoteName { digest: Some(locked.digest), ..name }),
            None => Err(BundleError::NotLocked { name: name.to_string(), path: Self::path(folder) }),
        }
    }

    /// Takes a bundle, if the lock and what the bundle says of upgrades admit it.
    pub fn take(&mut self, bundle: &BundleContents, from: TakenFrom, rules: LockRules) -> Result<(), BundleError> {
        let (document, TakenFrom { digest, signer, mut repository }) = (&bundle.document, from);
        let (title, version) = (document.title(), &document.version);
        let refused = |what: String| Err(BundleError::Locked { title: document.title(), what });
        let mut taken = BTreeMap::new();
        if let Some(locked) = self.bundles.get(&title) {
            if let Some(other) = locked.taken.get(&version.to_string()).filter(|other| **other != digest) {
                return refused(format!(
                    "version {version} has digest {digest}, expected {other}: the content of a version must never change"
                ));
            }
            let order = version.compare(&locked.version);
            let upgrade = document.upgrade.as_ref().filter(|_| order.is_gt());
            if locked.digest != digest && !rules.upgrade {
                return refused(format!("expected the locked version {}, found {version}", locked.version));
            }
            if order.is_lt() && !rules.downgrade {
                return refused(format!("version {version} is lower than the locked version {}", locked.version));
            }
            if let Some(upgrade) = upgrade.filter(|upgrade| !upgrade.from.admits(&locked.version)) {
                let from = &upgrade.from;
                return refused(format!(
                    "version {version} only replaces {from}, but the locked version is {}",
                    locked.version
                ));
            }
            taken.clone_from(&locked.taken);
            // A copy in a file says nothing of where others are.
            repository = repository.or_else(|| locked.repository.clone());
        }
        taken.insert(version.to_string(), digest);
        let brings = Some(BundleFootprint::of(bundle)?);
        self.bundles
            .insert(title, LockedBundle { version: version.clone(), digest, signer, repository, brings, taken });
        Ok(())
    }

    /// Writes the lock, unless the file says the same; tells whether it was written.
    pub fn save(&self, folder: &Path) -> Result<bool, BundleError> {
        if self.bundles.is_empty() || Self::load(folder).is_ok_and(|known| known == *self) {
            return Ok(false);
        }
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        write_file(&Self::path(folder), &text, true)?;
        Ok(true)
    }
}

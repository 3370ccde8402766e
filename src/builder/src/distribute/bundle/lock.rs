//! Which bundles an image has: `bundles.lock.json` beside the manifests, by digest.
//!
//! Versions only rise, and a version that was ever taken never has another digest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::document::BundleDocument;
use super::error::BundleError;
use super::version::Version;
use crate::atomic_file::write_file;
use crate::digest::Digest;

/// Its name.
pub const LOCK: &str = "bundles.lock.json";
/// The form that is read and written.
const SCHEMA: u32 = 1;

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
    /// Its version.
    pub version: Version,
    /// Digest of its index.
    pub digest: Digest,
    /// Who has signed it.
    pub signer: String,
    /// Every version that was ever taken, with its digest.
    pub taken: BTreeMap<String, Digest>,
}

/// What may change in a lock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LockRules {
    /// Whether another version may take the place of the locked one.
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
        let text = super::contents::read(&path)?;
        let lock: Self = serde_json::from_slice(&text).map_err(|error| BundleError::syntax(&path, &error))?;
        match lock.schema {
            SCHEMA => Ok(lock),
            _ => {
                let (key, what) = ("schema".to_owned(), format!("is not {SCHEMA}, which this program reads"));
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

    /// Takes a bundle, if the lock and what the bundle says of upgrades admit it.
    pub fn take(
        &mut self,
        document: &BundleDocument,
        digest: Digest,
        signer: &str,
        rules: LockRules,
    ) -> Result<(), BundleError> {
        let (title, version) = (document.title(), &document.version);
        let refused = |what: String| Err(BundleError::Locked { title: document.title(), what });
        let mut taken = BTreeMap::new();
        if let Some(locked) = self.bundles.get(&title) {
            if let Some(other) = locked.taken.get(&version.to_string()).filter(|other| **other != digest) {
                return refused(format!("version {version} was {other}, and is {digest} now: a version never changes"));
            }
            let order = version.compare(&locked.version);
            let upgrade = document.upgrade.as_ref().filter(|_| order.is_gt());
            if locked.digest != digest && !rules.upgrade {
                return refused(format!("version {} is locked, this is {version}", locked.version));
            }
            if order.is_lt() && !rules.downgrade {
                return refused(format!("version {version} is lower than {}, which is locked", locked.version));
            }
            if let Some(upgrade) = upgrade.filter(|upgrade| !upgrade.from.admits(&locked.version)) {
                let from = &upgrade.from;
                return refused(format!(
                    "version {version} takes the place of {from} only, and {} is locked",
                    locked.version
                ));
            }
            taken.clone_from(&locked.taken);
        }
        taken.insert(version.to_string(), digest);
        let locked = LockedBundle { version: version.clone(), digest, signer: signer.to_owned(), taken };
        self.bundles.insert(title, locked);
        Ok(())
    }

    /// Writes the lock, unless the file says the same.
    pub fn save(&self, folder: &Path) -> Result<(), BundleError> {
        if self.bundles.is_empty() || Self::load(folder).is_ok_and(|known| known == *self) {
            return Ok(());
        }
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(write_file(&Self::path(folder), &text, true)?)
    }
}

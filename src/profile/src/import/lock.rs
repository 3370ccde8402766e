//! `profile.lock.json`: the imported profiles in a directory.
//!
//! A version of a profile identifies one `spec`, as in a cluster. A changed value gives another instance with another name.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::error::ImportError;
use super::instance::Instance;
use vmbake_common::atomic_file::renew_file;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::input;

const NAME: &str = "profile.lock.json";
/// Largest lock, in bytes: an instance takes some 3 KB.
const LARGEST: u64 = 16 << 20;

/// The lock of a folder.
#[derive(Clone, Debug, Default)]
pub struct Lock {
    path: PathBuf,
    form: Form,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    schema: u32,
    /// Name -> version -> digest of the `spec`.
    profiles: BTreeMap<String, BTreeMap<String, Digest>>,
    /// By the name of the kind.
    instances: BTreeMap<String, Instance>,
}

impl Default for Form {
    fn default() -> Self {
        Self { schema: 1, profiles: BTreeMap::new(), instances: BTreeMap::new() }
    }
}

impl Lock {
    /// Reads the lock of a folder; an empty one if there is none.
    pub fn open(folder: &Path) -> Result<Self, ImportError> {
        let path = folder.join(NAME);
        let wrong = |message: String| ImportError::Document { path: path.clone(), message };
        let text = match std::fs::metadata(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(Self { path, form: Form::default() });
            }
            Ok(found) if found.len() > LARGEST => return Err(wrong("expected at most 16 MiB".to_owned())),
            _ => input::read(&path, LARGEST).map_err(|source| ImportError::File { path: path.clone(), source })?,
        };
        let form: Form = serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        match form.schema {
            1 => Ok(Self { path, form }),
            other => Err(wrong(format!("expected schema 1, found {other}"))),
        }
    }

    /// Refuses a version of a profile that was imported with another content.
    pub fn admit(&self, instance: &Instance) -> Result<(), ImportError> {
        let Instance { profile, version, spec, .. } = instance;
        match self.form.profiles.get(profile).and_then(|versions| versions.get(version)) {
            Some(known) if known != spec => Err(ImportError::Changed {
                lock: self.path.clone(),
                name: profile.clone(),
                version: version.clone(),
                known: known.to_string(),
                found: spec.to_string(),
            }),
            _ => Ok(()),
        }
    }

    /// Remembers an instance by the name of its kind.
    pub fn add(&mut self, kind: &str, instance: Instance) {
        let versions = self.form.profiles.entry(instance.profile.clone()).or_default();
        versions.insert(instance.version.clone(), instance.spec);
        self.form.instances.insert(kind.to_owned(), instance);
    }

    /// Writes it.
    pub fn write(&self) -> Result<(), ImportError> {
        let wrong =
            |error: serde_json::Error| ImportError::Document { path: self.path.clone(), message: error.to_string() };
        let text = escape::json(&self.form).map_err(wrong)?;
        renew_file(&self.path, text.as_bytes())?;
        Ok(())
    }

    /// The instance of a kind.
    pub fn instance(&self, kind: &str) -> Result<&Instance, ImportError> {
        self.form.instances.get(kind).ok_or_else(|| ImportError::NoInstance {
            lock: self.path.clone(),
            name: kind.to_owned(),
            known: self.form.instances.keys().cloned().collect(),
        })
    }
}

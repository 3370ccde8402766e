//! Records the newest version that was pulled by each reference, to refuse older ones.
//!
//! Each reference has one file, written atomically. A lock serializes concurrent runs.

use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::version::Version;
use vmbake_common::atomic_file::write_file;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::ownership;

use super::error::PullError;

/// Maximum size of a record.
const MAX_LEN: u64 = 64 << 10;

/// The state directory.
#[derive(Clone, Debug)]
pub struct SeenReleases {
    /// `None` if neither the caller nor the environment provides one: then only pulls that compare no version work.
    folder: Option<PathBuf>,
}

/// The record of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SeenRelease {
    /// `HOST/NAME:TAG`.
    reference: String,
    pub(super) version: Version,
    /// Digest of the index.
    pub(super) digest: Digest,
}

impl SeenReleases {
    /// Uses the given directory, or `$XDG_STATE_HOME/vmbake/releases`, by default below `~/.local/state`.
    pub fn open(folder: Option<PathBuf>) -> Self {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let default = || {
            let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
            Some(state.join("vmbake/releases"))
        };
        Self { folder: folder.or_else(default) }
    }

    /// Passes the record of a reference to `decide` and stores its result, under the lock.
    pub(super) fn update(
        &self,
        reference: &str,
        decide: impl FnOnce(Option<&SeenRelease>) -> Result<Option<(Version, Digest)>, PullError>,
    ) -> Result<(), PullError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| PullError::State { path, source }
        };
        let folder = self.folder.as_deref().ok_or(PullError::NoState)?;
        ownership::make_folder(folder).map_err(failed(folder))?;
        let lock = folder.join("lock");
        let file = ownership::open_or_make(&lock).map_err(failed(&lock))?;
        file.lock().map_err(failed(&lock))?;
        let path = folder.join(format!("{}.json", Digest::of(reference.as_bytes()).hex()));
        let seen = read(&path)?;
        if seen.as_ref().is_some_and(|seen| seen.reference != reference) {
            return Err(PullError::State { path, source: std::io::Error::other("it is for another reference") });
        }
        if let Some((version, digest)) = decide(seen.as_ref())? {
            let reference = reference.to_owned();
            let text = escape::json(&SeenRelease { reference, version, digest });
            let text = text.map_err(|source| PullError::State { path: path.clone(), source: source.into() })?;
            write_file(&path, text.as_bytes(), true)?;
        }
        Ok(())
    }
}

/// Reads a record. An unreadable file is an error: without it, any version would be accepted.
fn read(path: &Path) -> Result<Option<SeenRelease>, PullError> {
    let failed = |source| PullError::State { path: path.to_owned(), source };
    let file = match ownership::open(path) {
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(failed)?,
    };
    ownership::own(&file, path).map_err(|exposed| failed(exposed.into()))?;
    let mut text = Vec::new();
    file.take(MAX_LEN).read_to_end(&mut text).map_err(failed)?;
    serde_json::from_slice(&text).map(Some).map_err(|source| failed(source.into()))
}

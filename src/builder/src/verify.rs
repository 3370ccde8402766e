//! Checks every artifact against its pinned length and digest: [`Fetched`] in, [`Verified`] out.
//!
//! Later stages take only [`Verified`], which nothing but [`verify`] makes: what was not checked cannot be staged.

use std::fs::File;
use std::io::{Seek, SeekFrom};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use crate::fetch::{Fetched, FetchedArtifact};
use crate::manifest::{Dependency, Digest};
use crate::parallel::for_each;

/// Why an artifact is refused.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum VerifyError {
    #[error("{path}: cannot read {name}")]
    Read { name: String, path: PathBuf, source: std::io::Error },
    #[error("{path}: {name} has {found} bytes, the manifest says {expected}")]
    Size { name: String, path: PathBuf, expected: u64, found: u64 },
    #[error("{path}: {name} has digest {found}, the manifest says {expected}")]
    Digest { name: String, path: PathBuf, expected: Box<Digest>, found: Box<Digest> },
}

/// An artifact whose bytes are those that the manifest pins, open at its start.
#[derive(Debug)]
pub struct Artifact {
    name: String,
    dependency: Dependency,
    file: File,
}

impl Artifact {
    /// Its name in the manifest.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the manifest says of it.
    pub fn dependency(&self) -> &Dependency {
        &self.dependency
    }

    /// Its content.
    pub fn file(&self) -> &File {
        &self.file
    }
}

/// All artifacts of a manifest, sorted by name, each proven; made only by [`verify`].
#[derive(Debug)]
pub struct Verified {
    artifacts: Vec<Artifact>,
}

impl Verified {
    /// The artifacts, sorted by name.
    pub fn artifacts(&self) -> &[Artifact] {
        &self.artifacts
    }
}

/// Hashes all artifacts that fetching has not hashed, on up to `threads` threads. The first refusal by name is returned,
/// whichever thread met it.
pub fn verify(fetched: Fetched, threads: NonZeroUsize) -> Result<Verified, VerifyError> {
    let artifacts = for_each(fetched.artifacts, threads, check).into_iter().collect::<Result<_, _>>()?;
    Ok(Verified { artifacts })
}

fn check(artifact: FetchedArtifact) -> Result<Artifact, VerifyError> {
    let FetchedArtifact { name, dependency, path, mut file, hashed } = artifact;
    if !hashed {
        check_file(&name, &path, &mut file, &dependency)?;
    }
    Ok(Artifact { name, dependency, file })
}

/// Checks one open file against what is pinned of it, and leaves it at its start.
pub fn check_file(name: &str, path: &Path, file: &mut File, pinned: &Dependency) -> Result<(), VerifyError> {
    let read = |source| VerifyError::Read { name: name.to_owned(), path: path.to_owned(), source };
    let len = file.metadata().map_err(read)?.len();
    let size = |found| VerifyError::Size { name: name.to_owned(), path: path.to_owned(), expected: pinned.size, found };
    if len != pinned.size {
        return Err(size(len));
    }
    let (found, len) = pinned.digest.of_stream(&mut *file).map_err(read)?;
    if len != pinned.size {
        return Err(size(len));
    }
    if found != pinned.digest {
        let (name, path) = (name.to_owned(), path.to_owned());
        return Err(VerifyError::Digest { name, path, expected: Box::new(pinned.digest), found: Box::new(found) });
    }
    file.seek(SeekFrom::Start(0)).map_err(read)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fetch::{Supply, fetch};
    use crate::manifest::Manifest;
    use crate::progress::Progress;
    use crate::sources::Sources;
    use crate::store::Store;

    fn pinned(content: &[u8], size: usize, store: &Path) -> Result<Verified, VerifyError> {
        let digest = Digest::of(b"good");
        let text = format!(
            r#"{{"vmconfig":{{"version":"dev","kind":"k","os":{{"name":"o","arch":"a"}},"dependencies":
            {{"x":{{"version":"1","url":"u","type":"binary","digest":"{digest}","size":{size}}}}}}}}}"#
        );
        let store = Store::open(Some(store.to_owned())).unwrap();
        std::fs::create_dir_all(store.path(&digest).parent().unwrap()).unwrap();
        std::fs::write(store.path(&digest), content).unwrap();
        let manifest = Manifest::parse(Path::new("m"), text.into_bytes()).unwrap();
        let (sources, threads) = (Sources::load(None).unwrap(), NonZeroUsize::MIN);
        let supply = Supply { store: &store, sources: &sources, client: None, threads };
        verify(fetch(&manifest, &supply, &Progress::new(true)).unwrap(), threads)
    }

    #[test]
    fn only_the_pinned_bytes_pass() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(pinned(b"good", 4, dir.path()).unwrap().artifacts().len(), 1);
        assert!(matches!(pinned(b"evil", 4, dir.path()), Err(VerifyError::Digest { .. })));
        assert!(matches!(pinned(b"good", 5, dir.path()), Err(VerifyError::Size { expected: 5, found: 4, .. })));
        assert!(matches!(pinned(b"goo", 4, dir.path()), Err(VerifyError::Size { .. })));
    }
}

//! Verifies fetched inputs against their pinned lengths and digests: returns [`Verified`].
//!
//! Only this module creates these types, and decoders accept no others, so unverified data cannot be decoded. Unchanged
//! private files are not hashed again. A base image that others can write to is copied first, so that the verified
//! bytes are the bytes read later.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::image::{Image, ImageError};

use crate::images::{self, ImagesError, VerifiedImage};
use crate::local;
use crate::{Fetched, FetchedArtifact, FetchedBase};
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_common::ownership::InsecurePermissions;
use vmbake_common::parallel::run;
use vmbake_manifest::{ContainerImage, Dependency, Manifest};
use vmbake_store::store::Store;

/// Name of the base image in messages.
const BASE: &str = "the base image";

/// Why an input was rejected.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{path}: cannot read {name}")]
    Read { name: String, path: PathBuf, source: std::io::Error },
    #[error("{path}: {name} has {found} bytes, expected {expected} according to the manifest")]
    Size { name: String, path: PathBuf, expected: u64, found: u64 },
    #[error("{path}: {name} has digest {found}, expected {expected} according to the manifest")]
    Digest { name: String, path: PathBuf, expected: Box<Digest>, found: Box<Digest> },
    #[error("{path}: cannot use the base image")]
    Image { path: PathBuf, source: ImageError },
    #[error(transparent)]
    Container(#[from] ImagesError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for VerifyError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Digest { name, path, .. } | Self::Size { name, path, .. } if name == BASE => Some(format!(
                "use `vmbake update KIND --base {}` to pin this file; the pinned image may be the same disk in another format",
                escape::name(path.as_os_str().as_encoded_bytes())
            )),
            Self::Digest { .. } | Self::Size { .. } => Some(
                "`vmbake fetch` replaces corrupt files in the store; if the file is intact, the manifest pins another one"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    vmbake_common::causes!(Container, Message; Read, Image);
}

/// An artifact with the pinned digest, positioned at its start.
#[derive(Debug)]
pub struct Artifact {
    name: String,
    dependency: Dependency,
    file: File,
}

impl Artifact {
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its entry in the manifest.
    pub fn dependency(&self) -> &Dependency {
        &self.dependency
    }

    pub fn file(&self) -> &File {
        &self.file
    }
}

/// A base image, with the pinned digest if one is pinned.
#[derive(Debug)]
pub struct Base {
    path: PathBuf,
    image: Arc<Image>,
    digest: Digest,
    copied: Option<InsecurePermissions>,
}

impl Base {
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Digest of the file.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Why it was copied, if others could modify it.
    pub fn copied(&self) -> Option<&InsecurePermissions> {
        self.copied.as_ref()
    }

    pub fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image)
    }
}

/// All verified inputs of an image; created only by [`check`].
pub struct Verified {
    /// The artifacts, in the order in which they were fetched.
    pub artifacts: Vec<Artifact>,
    /// The container images, in the same order.
    pub images: Vec<VerifiedImage>,
    /// The base image; none if the system is made of packages.
    pub base: Option<Base>,
}

/// Verifies the base image, the artifacts and the container images on up to `threads` threads.
///
/// Which error is returned does not depend on scheduling: that of the base image, then of the first artifact, then of
/// the first image.
pub fn check(
    fetched: Fetched,
    base: Option<FetchedBase>,
    store: &Store,
    threads: NonZeroUsize,
) -> Result<Verified, VerifyError> {
    let mut jobs: Vec<(u64, Job)> = base.into_iter().map(|base| (u64::MAX, Job::Base(Box::new(base)))).collect();
    jobs.extend(
        fetched.artifacts.into_iter().map(|artifact| (artifact.dependency.size, Job::Artifact(Box::new(artifact)))),
    );
    // Their lengths are known only from their documents.
    jobs.extend(fetched.images.into_iter().map(|image| (u64::MAX, Job::Image(Box::new(image)))));
    let (mut base, mut artifacts, mut images) = (None, Vec::new(), Vec::new());
    for done in run(jobs, threads, |job, _| job.check(store)) {
        match done? {
            Done::Base(checked) => base = Some(checked),
            Done::Artifact(checked) => artifacts.push(*checked),
            Done::Image(checked) => images.push(checked),
        }
    }
    Ok(Verified { artifacts, images, base })
}

/// Verifies the artifacts only, without base and container images.
pub fn check_artifacts(fetched: Fetched, store: &Store, threads: NonZeroUsize) -> Result<Vec<Artifact>, VerifyError> {
    let jobs = fetched.artifacts.into_iter().map(|artifact| (artifact.dependency.size, artifact)).collect();
    run(jobs, threads, |artifact, _| check_artifact(artifact, store)).into_iter().collect()
}

enum Job {
    Artifact(Box<FetchedArtifact>),
    Image(Box<ContainerImage>),
    Base(Box<FetchedBase>),
}

enum Done {
    Artifact(Box<Artifact>),
    Image(VerifiedImage),
    Base(Base),
}

impl Job {
    fn check(self, store: &Store) -> Result<Done, VerifyError> {
        match self {
            Self::Artifact(artifact) => {
                check_artifact(*artifact, store).map(|checked| Done::Artifact(Box::new(checked)))
            }
            Self::Image(image) => Ok(Done::Image(images::check(&image, store)?)),
            Self::Base(base) => check_base(*base, store).map(Done::Base),
        }
    }
}

/// Verifies an artifact, unless that was done while fetching it.
fn check_artifact(artifact: FetchedArtifact, store: &Store) -> Result<Artifact, VerifyError> {
    if !artifact.hashed {
        check_file(&artifact.name, &artifact.path, &artifact.file, &artifact.dependency, store)?;
        if let Err(source) = artifact.check_program() {
            let (name, path) = (artifact.name, artifact.path);
            return Err(VerifyError::Message(
                message!("{}: {name} is not the program that its source requires", path.display()).by(source),
            ));
        }
    }
    let FetchedArtifact { name, dependency, file, .. } = artifact;
    Ok(Artifact { name, dependency, file })
}

/// Verifies the base image, unless that was done while fetching it.
fn check_base(base: FetchedBase, store: &Store) -> Result<Base, VerifyError> {
    let FetchedBase { path, file, pinned, hashed, .. } = base;
    let read = |source| VerifyError::Read { name: BASE.to_owned(), path: path.clone(), source };
    if let Some(pinned) = &pinned {
        check_len(BASE, &path, &file, pinned)?;
    }
    let (file, copied) = store.private(&path, file).map_err(read)?;
    if let Some(pinned) = pinned.as_ref().filter(|_| !hashed) {
        check_file(BASE, &path, &file, pinned, store)?;
    }
    let image = Image::of(file.try_clone().map_err(read)?, &path);
    let image = image.map_err(|source| VerifyError::Image { path: path.clone(), source })?;
    let digest = match &pinned {
        Some(pinned) => pinned.digest,
        // No digest is pinned: the current one is recorded.
        None => store.digest(&path, &file, &Digest::of(b"")).map_err(read)?.0,
    };
    Ok(Base { path, image: Arc::new(image), digest, copied })
}

/// Verifies a given archive of a root file system, and copies it into the store.
pub fn keep_root(manifest: &Manifest, given: &Path, store: &Store) -> Result<(), VerifyError> {
    let Some(pinned) = manifest.content().root_base() else { return Ok(()) };
    let path = || given.to_owned();
    let file = input::open_regular(given);
    let file = file.map_err(|source| VerifyError::Read { name: BASE.to_owned(), path: path(), source })?;
    check_file(BASE, given, &file, pinned, store)?;
    let kept = local::keep([(path(), pinned.digest)], store);
    kept.map_err(|source| VerifyError::Message(message!("{}: cannot copy the base", given.display()).by(source)))
}

/// Verifies an open file against its pinned length and digest, and rewinds it.
fn check_file(name: &str, path: &Path, file: &File, pinned: &Dependency, store: &Store) -> Result<(), VerifyError> {
    check_len(name, path, file, pinned)?;
    let read = |source: io::Error| VerifyError::Read { name: name.to_owned(), path: path.to_owned(), source };
    let (found, len) = store.digest(path, file, &pinned.digest).map_err(read)?;
    if len != pinned.size {
        let (name, path) = (name.to_owned(), path.to_owned());
        return Err(VerifyError::Size { name, path, expected: pinned.size, found: len });
    }
    if found != pinned.digest {
        let (name, path) = (name.to_owned(), path.to_owned());
        return Err(VerifyError::Digest { name, path, expected: Box::new(pinned.digest), found: Box::new(found) });
    }
    Ok(())
}

/// Compares the length of an open file with the pinned one.
fn check_len(name: &str, path: &Path, file: &File, pinned: &Dependency) -> Result<(), VerifyError> {
    let (name, path) = (name.to_owned(), path.to_owned());
    match file.metadata() {
        Ok(meta) if meta.len() == pinned.size => Ok(()),
        Ok(meta) => Err(VerifyError::Size { name, path, expected: pinned.size, found: meta.len() }),
        Err(source) => Err(VerifyError::Read { name, path, source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::{Supply, fetch};
    use vmbake_common::progress::Progress;
    use vmbake_pin::anchors::Anchors;
    use vmbake_pin::sources::Sources;
    use vmbake_store::store::Store;

    fn pinned(content: &[u8], size: usize, store: &Path) -> Result<Vec<Artifact>, VerifyError> {
        let digest = Digest::of(b"good");
        let text = format!(
            r#"{{"vmconfig":{{"version":"dev","kind":"k","os":{{"name":"o","arch":"a"}},"dependencies":
            {{"x":{{"version":"1","url":"u","type":"binary","digest":"{digest}","size":{size}}}}}}}}}"#
        );
        let store = Store::open(Some(store.to_owned())).unwrap();
        std::fs::create_dir_all(store.path(&digest).parent().unwrap()).unwrap();
        std::fs::write(store.path(&digest), content).unwrap();
        let manifest = Manifest::parse(Path::new("m"), text.into_bytes()).unwrap();
        let (sources, threads) =
            (Sources::load(&vmbake_common::catalog::Catalog::built_in()).unwrap(), NonZeroUsize::MIN);
        let supply = Supply { store: &store, sources: &sources, anchors: &Anchors::default(), client: None, threads };
        let fetched = fetch(&manifest, &supply, &Progress::new(true)).unwrap();
        fetched.artifacts.into_iter().map(|artifact| check_artifact(artifact, &store)).collect()
    }

    #[test]
    fn only_the_pinned_bytes_pass() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(pinned(b"good", 4, dir.path()).unwrap().len(), 1);
        assert!(matches!(pinned(b"evil", 4, dir.path()), Err(VerifyError::Digest { .. })));
        assert!(matches!(pinned(b"good", 5, dir.path()), Err(VerifyError::Size { expected: 5, found: 4, .. })));
        assert!(matches!(pinned(b"goo", 4, dir.path()), Err(VerifyError::Size { .. })));
    }
}

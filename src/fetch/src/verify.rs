//! Checks inputs against their pinned lengths and digests: what was fetched enters, [`Verified`] leaves.
//!
//! Nothing else makes these, and whatever decodes takes nothing else: what was not checked cannot be decoded. Private files that
//! were hashed before and have not been touched since are not hashed again. A base that others can write to is copied before it is
//! checked, so that what is checked is what is read later.

use std::fs::File;
use std::io;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::image::{Image, ImageError};

use crate::images::{self, ImagesError, VerifiedImage};
use crate::{Fetched, FetchedArtifact, FetchedBase};
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::ownership::Exposed;
use vmbake_common::parallel::run;
use vmbake_manifest::{ContainerImage, Dependency};
use vmbake_store::store::Store;

/// Name of the base image in messages.
const BASE: &str = "the base image";

/// Why an artifact is refused.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{path}: cannot read {name}")]
    Read { name: String, path: PathBuf, source: std::io::Error },
    #[error("{path}: {name} has {found} bytes, the manifest says {expected}")]
    Size { name: String, path: PathBuf, expected: u64, found: u64 },
    #[error("{path}: {name} has digest {found}, the manifest says {expected}")]
    Digest { name: String, path: PathBuf, expected: Box<Digest>, found: Box<Digest> },
    #[error("{path}: the base image is unusable")]
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
                "`vmbake update KIND --image {}` pins this file; the pinned image may be the same disk in another format",
                escape::name(path.as_os_str().as_encoded_bytes())
            )),
            Self::Digest { .. } | Self::Size { .. } => Some(
                "`vmbake fetch` replaces what is damaged in the store; else the manifest is of another file".to_owned(),
            ),
            _ => None,
        }
    }

    vmbake_common::causes!(Container, Message; Read, Image);
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

/// A base image whose bytes are those that the manifest pins, where it pins any.
#[derive(Debug)]
pub struct Base {
    path: PathBuf,
    image: Arc<Image>,
    digest: Digest,
    copied: Option<Exposed>,
}

impl Base {
    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Digest of the file: the pinned one, where one is pinned.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// Why it was copied, where others could change it.
    pub fn copied(&self) -> Option<&Exposed> {
        self.copied.as_ref()
    }

    /// Its disk.
    pub fn image(&self) -> Arc<Image> {
        Arc::clone(&self.image)
    }
}

/// All that an image is made of; made only by [`check`].
pub struct Verified {
    /// The artifacts, in the order in which they came.
    pub artifacts: Vec<Artifact>,
    /// The container images, in the same order.
    pub images: Vec<VerifiedImage>,
    /// The base image.
    pub base: Base,
}

/// Checks the base, the artifacts and the container images on up to `threads` threads.
///
/// Of several refusals the same is returned whichever thread met it first: the base's, then that of the first artifact, then that of
/// the first image.
pub fn check(
    fetched: Fetched,
    base: FetchedBase,
    store: &Store,
    threads: NonZeroUsize,
) -> Result<Verified, VerifyError> {
    let mut jobs: Vec<(u64, Job)> = vec![(u64::MAX, Job::Base(Box::new(base)))];
    jobs.extend(
        fetched.artifacts.into_iter().map(|artifact| (artifact.dependency.size, Job::Artifact(Box::new(artifact)))),
    );
    // Only their documents tell how large they are.
    jobs.extend(fetched.images.into_iter().map(|image| (u64::MAX, Job::Image(Box::new(image)))));
    let (mut base, mut artifacts, mut images) = (None, Vec::new(), Vec::new());
    for done in run(jobs, threads, |job, _| job.check(store)) {
        match done? {
            Done::Base(checked) => base = Some(checked),
            Done::Artifact(checked) => artifacts.push(*checked),
            Done::Image(checked) => images.push(checked),
        }
    }
    Ok(Verified {
        artifacts,
        images,
        base: base.ok_or(VerifyError::Message(Message::new("a thread stopped before the base image was checked")))?,
    })
}

/// Checks the artifacts alone, for what has no base. Container images are left out.
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

/// Checks one artifact, unless fetching it has.
fn check_artifact(artifact: FetchedArtifact, store: &Store) -> Result<Artifact, VerifyError> {
    if !artifact.hashed {
        check_file(&artifact.name, &artifact.path, &artifact.file, &artifact.dependency, store)?;
        if let Err(source) = artifact.check_program() {
            let (name, path) = (artifact.name, artifact.path);
            return Err(VerifyError::Message(
                message!("{}: {name} is not the program that its source demands", path.display()).by(source),
            ));
        }
    }
    let FetchedArtifact { name, dependency, file, .. } = artifact;
    Ok(Artifact { name, dependency, file })
}

/// Checks the base image, unless fetching it has.
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
        // Nobody has said what it is; the image is one of what it was today.
        None => store.digest(&path, &file, &Digest::of(b"")).map_err(read)?.0,
    };
    Ok(Base { path, image: Arc::new(image), digest, copied })
}

/// Checks one open file against what is pinned of it, and leaves it at its start.
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

/// Compares the length of an open file with what is pinned of it.
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
    use vmbake_manifest::Manifest;
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

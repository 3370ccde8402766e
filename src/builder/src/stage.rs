//! Turns proven artifacts into entries whose contents are ranges of files: [`Verified`] in, [`Staged`] out.
//!
//! A compressed archive is decompressed once, into an unnamed temporary file; an uncompressed one is used in place.

pub mod archive;
mod headers;
mod compress;
mod deb;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use vmbake_disk::source::{FileSource, ReadAt};

pub use archive::{ArchiveError, Entry, EntryKind, Limits};
pub use deb::{Control, Deb, DebError};

use crate::embedded::{MissingProgram, program};
use crate::images::Layout;
use crate::layer::{Install, Layer};
use crate::manifest::Manifest;
use crate::verify::{Artifact, Verified};

/// Name of the artifact that the builder brings itself: the first-boot program.
pub(crate) const FIRSTBOOT: &str = "firstboot";

/// Why artifacts cannot be staged.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum StageError {
    #[error("layer {layer} installs artifact {name}, which the manifest does not have")]
    Missing { layer: String, name: String },
    #[error("artifact {name} of the manifest is installed by no layer of the kind")]
    Unused { name: String },
    #[error("artifact {name} is installed by the layers {first} and {second}")]
    Twice { name: String, first: String, second: String },
    #[error("{name}: cannot read")]
    Read { name: String, source: std::io::Error },
    #[error("{name}: not a usable archive")]
    Archive { name: String, source: ArchiveError },
    #[error("{name}: not a usable Debian package")]
    Deb { name: String, source: DebError },
    #[error(transparent)]
    Program(#[from] MissingProgram),
}

impl StageError {
    /// The error that this one only passes on.
    pub(crate) fn inner(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Program(error) => Some(error),
            _ => None,
        }
    }
}

/// What an artifact puts into the tree.
pub(crate) enum Content {
    /// One file.
    File { path: String, mode: u16, len: u64 },
    /// Regular files of an archive, with their paths in the image.
    Members(Vec<Entry>),
    /// A Debian package.
    Deb(Deb),
}

/// One artifact with its place in the image.
pub(crate) struct StagedArtifact {
    pub(crate) layer: usize,
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) content: Content,
}

/// All artifacts of an image, in the order in which they are installed; made only by [`stage`].
pub struct Staged {
    pub(crate) layers: Vec<Layer>,
    pub(crate) artifacts: Vec<StagedArtifact>,
    /// The container images, where a layer brings them.
    pub(crate) images: Option<Layout>,
}

/// Stages the artifacts that `layers` install. Every artifact of the manifest must be installed by exactly one layer.
pub fn stage(
    layers: Vec<Layer>,
    verified: &Verified,
    images: Option<Layout>,
    manifest: &Manifest,
) -> Result<Staged, StageError> {
    let arch = &manifest.content().os.arch;
    let mut owner: BTreeMap<&str, usize> = BTreeMap::new();
    let mut artifacts = Vec::new();
    for (index, layer) in layers.iter().enumerate() {
        for (name, install) in &layer.schema.artifacts {
            if let Some(first) = owner.insert(name, index) {
                let (first, second) = (layers[first].schema.name.clone(), layer.schema.name.clone());
                return Err(StageError::Twice { name: name.clone(), first, second });
            }
            artifacts.push(match verified.artifacts().iter().find(|artifact| artifact.name() == name) {
                Some(artifact) => stage_one(index, artifact, install, arch)?,
                None if name == FIRSTBOOT => stage_program(index, install, arch)?,
                None => {
                    return Err(StageError::Missing { layer: layer.schema.name.clone(), name: name.clone() });
                }
            });
        }
    }
    match verified.artifacts().iter().find(|artifact| !owner.contains_key(artifact.name())) {
        Some(artifact) => Err(StageError::Unused { name: artifact.name().to_owned() }),
        None => Ok(Staged { layers, artifacts, images }),
    }
}

fn stage_program(layer: usize, install: &Install, arch: &str) -> Result<StagedArtifact, StageError> {
    let (digest, bytes) = program(arch)?;
    let Install::File { path, mode } = install else {
        return Err(StageError::Unused { name: FIRSTBOOT.to_owned() });
    };
    Ok(StagedArtifact {
        layer,
        name: FIRSTBOOT.to_owned(),
        digest: format!("sha256:{digest}"),
        source: Arc::new(bytes.to_vec()),
        content: Content::File { path: path.clone(), mode: *mode, len: bytes.len() as u64 },
    })
}

fn stage_one(layer: usize, artifact: &Artifact, install: &Install, arch: &str) -> Result<StagedArtifact, StageError> {
    let name = artifact.name().to_owned();
    let read = |source| StageError::Read { name: name.clone(), source };
    let (file, content): (File, Content) = match install {
        Install::File { path, mode } => {
            let len = artifact.dependency().size;
            let content = Content::File { path: path.clone(), mode: *mode, len };
            (artifact.file().try_clone().map_err(read)?, content)
        }
        Install::Tar { path, strip, members } => {
            let archive = |source| StageError::Archive { name: name.clone(), source };
            let (plain, entries) = archive::open(artifact.file(), &Limits::ARTIFACT).map_err(archive)?;
            let members = archive::select(entries, path, *strip, members).map_err(archive)?;
            (plain, Content::Members(members))
        }
        Install::Deb => {
            let (data, deb) =
                deb::read(artifact.file(), arch).map_err(|source| StageError::Deb { name: name.clone(), source })?;
            (data, Content::Deb(deb))
        }
    };
    let source: Arc<dyn ReadAt> = Arc::new(FileSource::new(file).map_err(read)?);
    Ok(StagedArtifact { layer, name: name.clone(), digest: artifact.dependency().digest.to_string(), source, content })
}

/// Path of the temporary directory, for messages.
pub(crate) fn temporary() -> PathBuf {
    std::env::temp_dir()
}

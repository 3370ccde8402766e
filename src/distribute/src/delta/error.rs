//! Why a delta was not made or not applied.

use std::path::PathBuf;

use vmbake_common::message::Message;
use vmbake_disk::image::{Format, ImageError};
use vmbake_disk::write::WriteError;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::release::sign::SignError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;

/// Why a delta was not made or not applied.
#[derive(Debug, thiserror::Error)]
pub enum DeltaError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: cannot read")]
    Read {
        path: PathBuf,
        /// What the system or the image's format says.
        source: std::io::Error,
    },
    #[error("{path}: not the statement of a delta")]
    Statement { path: PathBuf, source: serde_json::Error },
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned { path: PathBuf, signer: String, reason: String },
    #[error(
        "{path}: has {found_len} bytes with digest {found}, the statement says {expected_len} bytes with {expected}"
    )]
    OtherDelta { path: PathBuf, found: Box<Digest>, found_len: u64, expected: Box<Digest>, expected_len: u64 },
    #[error("{path}: a disk of {found} bytes, the statement says {expected}")]
    Length { path: PathBuf, found: u64, expected: u64 },
    #[error("{path}: the disk in it has fs-verity digest {found}, the delta is for {expected}")]
    OtherBase { path: PathBuf, found: Box<Digest>, expected: Box<Digest> },
    #[error("{path}: the disk is as stated, but as {format} it has digest {found}, the statement says {expected}")]
    OtherFile { path: PathBuf, format: Format, found: Box<Checksum>, expected: Box<Digest> },
    #[error("{path}: cannot write the disk")]
    Write { path: PathBuf, source: WriteError },
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    Sign(#[from] SignError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for DeltaError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Read { path, .. } if path.extension().is_some_and(|end| end == "json") => {
                "the statement that `vmbake delta` wrote belongs beside the delta, called as it is with .json behind"
            }
            Self::OtherBase { .. } | Self::Length { .. } => {
                "a delta fits one release only: `base` in its statement names that one"
            }
            Self::OtherDelta { .. } => "a copy may have failed: get the delta and its statement again",
            Self::OtherFile { .. } => {
                "only vmbake in the version that baked the image writes the same file; --format raw writes the disk itself"
            }
            Self::NotSigned { .. } => "--key names the public key; the signature belongs beside the statement",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Image, Publish, Sign, Message; Read, Write);
}

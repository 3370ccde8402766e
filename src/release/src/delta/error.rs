//! Errors of deltas.

use std::path::PathBuf;

use vmbake_common::message::Message;
use vmbake_disk::image::{Format, ImageError};
use vmbake_disk::write::WriteError;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::release::sign::SignError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;

/// Why a delta was not created or applied.
#[derive(Debug, thiserror::Error)]
pub enum DeltaError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: not a valid statement of a delta")]
    Statement { path: PathBuf, source: serde_json::Error },
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned { path: PathBuf, signer: String, reason: String },
    #[error(
        "{path}: has {found_len} bytes with digest {found}, but the statement specifies {expected_len} bytes with {expected}"
    )]
    OtherDelta { path: PathBuf, found: Box<Digest>, found_len: u64, expected: Box<Digest>, expected_len: u64 },
    #[error("{path}: disk of {found} bytes, but the statement specifies {expected}")]
    Length { path: PathBuf, found: u64, expected: u64 },
    #[error("{path}: the disk has fs-verity digest {found}, but the delta is for {expected}")]
    OtherBase { path: PathBuf, found: Box<Digest>, expected: Box<Digest> },
    #[error(
        "{path}: the disk is correct, but the {format} file has digest {found}, while the statement specifies {expected}"
    )]
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
                "the statement of `vmbake delta` must be next to the delta, with the suffix .json"
            }
            Self::OtherBase { .. } | Self::Length { .. } => {
                "a delta can be applied to a single release, named `base` in its statement"
            }
            Self::OtherDelta { .. } => "the file may be corrupt: download the delta and its statement again",
            Self::OtherFile { .. } => {
                "only the version of vmbake that baked the image writes the same file; use --format raw to write the disk itself"
            }
            Self::NotSigned { .. } => "use --key with the public key; the signature must be next to the statement",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Image, Publish, Sign, Message; Read, Write);
}

//! Errors of a pull.

use std::path::PathBuf;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why a release was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("{name}: neither tag nor digest given")]
    Unnamed { name: String },
    #[error("{name}: tag refers to {found}, expected {expected}")]
    Moved { name: String, expected: Box<Digest>, found: Box<Digest> },
    #[error("{name}: not a release of vmbake: artifact type is {found:?}")]
    NoRelease { name: String, found: String },
    #[error("{digest}: invalid document")]
    Syntax { digest: Box<Digest>, source: serde_json::Error },
    #[error("{digest}: {reason}")]
    Invalid { digest: Box<Digest>, reason: String },
    #[error("{name}: no trusted signer given")]
    NoSigner { name: String },
    #[error("{digest}: not signed by {signer}: {reason}")]
    Unsigned {
        digest: Box<Digest>,
        signer: String,
        /// Why the existing signatures were rejected.
        reason: String,
    },
    #[error("{name}: signed as a release of {found}, expected {asked}")]
    Name { name: String, asked: String, found: String },
    #[error("{name}: release without a name, expected {asked}")]
    Unbound { name: String, asked: String },
    #[error("{name}: version {version} is older than version {newest}, which was pulled before")]
    Older { name: String, version: String, newest: String },
    #[error("{name}: version {version} was pulled before with another digest: expected {seen}, found {found}")]
    SameVersion {
        name: String,
        version: String,
        /// Digest of the index that was pulled before.
        seen: Box<Digest>,
        found: Box<Digest>,
    },
    #[error("{name}: release without a version, but version {newest} was pulled before")]
    Unversioned { name: String, newest: String },
    #[error("cannot record the version: neither HOME nor XDG_STATE_HOME is set")]
    NoState,
    #[error("{path}: cannot read or write the record of the newest version")]
    State { path: PathBuf, source: std::io::Error },
    #[error("{name}: {found} of {wanted}, available: {there}")]
    Image {
        name: String,
        /// `no image`, or `several images`.
        found: &'static str,
        wanted: String,
        there: String,
    },
    #[error("{digest}: layer {layer} has media type {found:?}, expected {expected}")]
    Layer { digest: Box<Digest>, layer: usize, found: String, expected: String },
    #[error("{digest}: chunk {chunk} is not a zstd frame with {len} bytes of content {expected}")]
    Chunk {
        digest: Box<Digest>,
        chunk: usize,
        /// The expected length of its content.
        len: usize,
        /// The expected digest of its content.
        expected: Box<Digest>,
    },
    #[error("{path}: expected {expected}, found {found}")]
    Checksum { path: PathBuf, expected: Box<Checksum>, found: Box<Checksum> },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for PullError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unnamed { .. } => "use HOST/NAME:TAG, HOST/NAME@DIGEST, or both",
            Self::NoSigner { .. } => {
                "use --key with the publisher's public key, or --certificate-identity and \
                --certificate-oidc-issuer; --allow-unsigned accepts what the registry returns"
            }
            Self::Unsigned { .. } => "`vmbake push --key KEY` signs a release",
            Self::Name { .. } => {
                "the registry may serve another release; for a copy in a repository with another name, pass the original name with --name"
            }
            Self::Unbound { .. } => {
                "it was pushed by a version of vmbake that did not record a name: leave out --name to accept it"
            }
            Self::Older { .. } | Self::Unversioned { .. } => {
                "the registry may withhold newer releases; use --allow-downgrade to accept this one"
            }
            Self::SameVersion { .. } => "each release needs a unique version; use --allow-downgrade to accept this one",
            Self::NoState | Self::State { .. } => "use --state with a directory that only you can write to",
            Self::Image { .. } => "use --arch and --format to choose",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Registry, Store, Publish, File; State);
}

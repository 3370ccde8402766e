//! Why a release was not pulled.

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
    #[error("{name}: has neither a tag nor a digest")]
    Unnamed { name: String },
    #[error("{name}: the tag stands for {found}, not for {expected}")]
    Moved { name: String, expected: Box<Digest>, found: Box<Digest> },
    #[error("{name}: not a release of vmbake, but of type {found:?}")]
    NoRelease { name: String, found: String },
    #[error("{digest}: not a valid document")]
    Syntax { digest: Box<Digest>, source: serde_json::Error },
    #[error("{digest}: {reason}")]
    Invalid { digest: Box<Digest>, reason: String },
    #[error("{name}: nothing says who must have signed it")]
    NoSigner { name: String },
    #[error("{digest}: not signed by {signer}: {reason}")]
    Unsigned {
        digest: Box<Digest>,
        signer: String,
        /// What speaks against the signatures that there are.
        reason: String,
    },
    #[error("{name}: signed as a release of {found}, expected {asked}")]
    Name { name: String, asked: String, found: String },
    #[error("{name}: states no name, and {asked} was asked for")]
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
    #[error("{name}: has no version, but version {newest} was pulled before")]
    Unversioned { name: String, newest: String },
    #[error("cannot record the version: neither HOME nor XDG_STATE_HOME is set")]
    NoState,
    #[error("{path}: cannot read or record the newest version")]
    State { path: PathBuf, source: std::io::Error },
    #[error("{name}: {found} of {wanted}; it has {there}")]
    Image {
        name: String,
        /// `no image`, or `several images`.
        found: &'static str,
        wanted: String,
        there: String,
    },
    #[error("{digest}: layer {layer} is of type {found:?}, not {expected}")]
    Layer {
        digest: Box<Digest>,
        layer: usize,
        found: String,
        /// The type that it should have.
        expected: &'static str,
    },
    #[error("{digest}: chunk {chunk} is no zstd frame with {len} bytes of content {expected}")]
    Chunk {
        digest: Box<Digest>,
        chunk: usize,
        /// How long its content should be.
        len: usize,
        /// The digest that its content should have.
        expected: Box<Digest>,
    },
    #[error("{path}: has {found}, not {expected}")]
    Checksum { path: PathBuf, expected: Box<Checksum>, found: Box<Checksum> },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for PullError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Unnamed { .. } => "HOST/NAME:TAG, HOST/NAME@DIGEST, or both",
            Self::NoSigner { .. } => {
                "--key names the public key of who publishes it, --certificate-identity and --certificate-oidc-issuer a certificate; \
                 --allow-unsigned believes the registry"
            }
            Self::Unsigned { .. } => "`vmbake push --key KEY` signs a release that it pushes",
            Self::Name { .. } => {
                "the registry may serve another release; for a copy in a repository with another name, pass the original name with --name"
            }
            Self::Unbound { .. } => {
                "vmbake versions that did not record a name pushed it; without --name it is accepted"
            }
            Self::Older { .. } | Self::Unversioned { .. } => {
                "the registry may withhold newer releases; --allow-downgrade accepts this one"
            }
            Self::SameVersion { .. } => "each release needs a unique version; --allow-downgrade accepts this one",
            Self::NoState | Self::State { .. } => "pass a folder that only you can write to with --state",
            Self::Image { .. } => "--arch and --format choose",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Registry, Store, Publish, File; State);
}

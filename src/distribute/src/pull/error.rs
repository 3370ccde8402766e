//! Why a release was not pulled.

use std::path::PathBuf;

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why a release was not pulled.
#[derive(Debug, thiserror::Error)]
pub enum PullError {
    /// The registry does not give it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// What was pulled cannot be kept.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A file cannot get its name.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// The name has neither a tag nor a digest.
    #[error("{name}: has neither a tag nor a digest")]
    Unnamed { name: String },
    /// The tag does not stand for the digest beside it.
    #[error("{name}: the tag stands for {found}, not for {expected}")]
    Moved { name: String, expected: Box<Digest>, found: Box<Digest> },
    /// There is something else at that name.
    #[error("{name}: not a release of vmbake, but of type {found:?}")]
    NoRelease { name: String, found: String },
    /// A document has another form.
    #[error("{digest}: not a valid document")]
    Syntax { digest: Box<Digest>, source: serde_json::Error },
    /// A document says what cannot be.
    #[error("{digest}: {reason}")]
    Invalid { digest: Box<Digest>, reason: String },
    /// Nobody says who must have signed.
    #[error("{name}: nothing says who must have signed it")]
    NoSigner { name: String },
    /// One who must have signed has not.
    #[error("{digest}: not signed by {signer}: {reason}")]
    Unsigned {
        digest: Box<Digest>,
        signer: String,
        /// What speaks against the signatures that there are.
        reason: String,
    },
    /// It was signed as a release of another name.
    #[error("{name}: signed as a release of {found}, expected {asked}")]
    Name { name: String, asked: String, found: String },
    /// A name was asked for, and what was signed has none.
    #[error("{name}: states no name, and {asked} was asked for")]
    Unbound { name: String, asked: String },
    /// A newer version was pulled before.
    #[error("{name}: version {version} is older than version {newest}, which was pulled before")]
    Older { name: String, version: String, newest: String },
    /// Another release of the same version was pulled before, and nothing says which of them is newer.
    #[error("{name}: version {version} was pulled before with another digest: expected {seen}, found {found}")]
    SameVersion {
        name: String,
        version: String,
        /// Digest of the index that was pulled before.
        seen: Box<Digest>,
        found: Box<Digest>,
    },
    /// A version was pulled before, and this release states none.
    #[error("{name}: has no version, but version {newest} was pulled before")]
    Unversioned { name: String, newest: String },
    /// No folder for what was pulled is known.
    #[error("cannot record the version: neither HOME nor XDG_STATE_HOME is set")]
    NoState,
    /// What was pulled before cannot be read or remembered.
    #[error("{path}: cannot read or record the newest version")]
    State { path: PathBuf, source: std::io::Error },
    /// It has not exactly one image of that sort.
    #[error("{name}: {found} of {wanted}; it has {there}")]
    Image {
        name: String,
        /// `no image`, or `several images`.
        found: &'static str,
        wanted: String,
        there: String,
    },
    /// A layer is of a type that is not known, and what is left out would be missing in the disk.
    #[error("{digest}: layer {layer} is of type {found:?}, not {expected}")]
    Layer {
        digest: Box<Digest>,
        layer: usize,
        found: String,
        /// The type that it should have.
        expected: &'static str,
    },
    /// A chunk is not what the config says.
    #[error("{digest}: chunk {chunk} is no zstd frame with {len} bytes of content {expected}")]
    Chunk {
        digest: Box<Digest>,
        chunk: usize,
        /// How long its content should be.
        len: usize,
        /// The digest that its content should have.
        expected: Box<Digest>,
    },
    /// The whole image is not what the config says.
    #[error("{path}: has {found}, not {expected}")]
    Checksum { path: PathBuf, expected: Box<Checksum>, found: Box<Checksum> },
    /// A file cannot be read.
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    /// A file cannot be written.
    #[error("{path}: cannot write")]
    Write { path: PathBuf, source: std::io::Error },
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

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Registry(error) => Some(error),
            Self::Store(error) => Some(error),
            Self::Publish(error) => Some(error),
            _ => None,
        }
    }
}

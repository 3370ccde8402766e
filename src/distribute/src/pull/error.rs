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
    Unnamed {
        /// The name.
        name: String,
    },
    /// The tag does not stand for the digest beside it.
    #[error("{name}: the tag stands for {found}, not for {expected}")]
    Moved {
        /// The name.
        name: String,
        /// The digest in it.
        expected: Box<Digest>,
        /// What the tag stands for.
        found: Box<Digest>,
    },
    /// There is something else at that name.
    #[error("{name}: not a release of vmbake, but of type {found:?}")]
    NoRelease {
        /// The name.
        name: String,
        /// Its artifact type.
        found: String,
    },
    /// A document has another form.
    #[error("{digest}: not a valid document")]
    Syntax {
        /// The document.
        digest: Box<Digest>,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// A document says what cannot be.
    #[error("{digest}: {reason}")]
    Invalid {
        /// The document.
        digest: Box<Digest>,
        /// What it says.
        reason: String,
    },
    /// Nobody says who must have signed.
    #[error("{name}: nothing says who must have signed it")]
    NoSigner {
        /// The name of the release.
        name: String,
    },
    /// One who must have signed has not.
    #[error("{digest}: not signed by {signer}: {reason}")]
    Unsigned {
        /// The index.
        digest: Box<Digest>,
        /// Who must have signed.
        signer: String,
        /// What speaks against the signatures that there are.
        reason: String,
    },
    /// It was signed as a release of another name.
    #[error("{name}: signed as a release of {found}, expected {asked}")]
    Name {
        /// The name of the release.
        name: String,
        /// Name that it must have.
        asked: String,
        /// Name in the signed index.
        found: String,
    },
    /// A name was asked for, and what was signed has none.
    #[error("{name}: states no name, and {asked} was asked for")]
    Unbound {
        /// The name of the release.
        name: String,
        /// Name that it must have.
        asked: String,
    },
    /// A newer version was pulled before.
    #[error("{name}: version {version} is older than version {newest}, which was pulled before")]
    Older {
        /// The name of the release.
        name: String,
        /// Version in the signed index.
        version: String,
        /// Version that was pulled before.
        newest: String,
    },
    /// Another release of the same version was pulled before, and nothing says which of them is newer.
    #[error("{name}: version {version} was pulled before with another digest: expected {seen}, found {found}")]
    SameVersion {
        /// The name of the release.
        name: String,
        /// The version.
        version: String,
        /// Digest of the index that was pulled before.
        seen: Box<Digest>,
        /// Digest of this one.
        found: Box<Digest>,
    },
    /// A version was pulled before, and this release states none.
    #[error("{name}: has no version, but version {newest} was pulled before")]
    Unversioned {
        /// The name of the release.
        name: String,
        /// Version that was pulled before.
        newest: String,
    },
    /// No folder for what was pulled is known.
    #[error("cannot record the version: neither HOME nor XDG_STATE_HOME is set")]
    NoState,
    /// What was pulled before cannot be read or remembered.
    #[error("{path}: cannot read or record the newest version")]
    State {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It has not exactly one image of that sort.
    #[error("{name}: {found} of {wanted}; it has {there}")]
    Image {
        /// The name of the release.
        name: String,
        /// `no image`, or `several images`.
        found: &'static str,
        /// What is wanted.
        wanted: String,
        /// What there is.
        there: String,
    },
    /// A layer is of a type that is not known, and what is left out would be missing in the disk.
    #[error("{digest}: layer {layer} is of type {found:?}, not {expected}")]
    Layer {
        /// The manifest.
        digest: Box<Digest>,
        /// The layer, from 0.
        layer: usize,
        /// Its type.
        found: String,
        /// The type that it should have.
        expected: &'static str,
    },
    /// A chunk is not what the config says.
    #[error("{digest}: chunk {chunk} is no zstd frame with {len} bytes of content {expected}")]
    Chunk {
        /// The layer.
        digest: Box<Digest>,
        /// The chunk, from 0.
        chunk: usize,
        /// How long its content should be.
        len: usize,
        /// The digest that its content should have.
        expected: Box<Digest>,
    },
    /// The whole image is not what the config says.
    #[error("{path}: has {found}, not {expected}")]
    Checksum {
        /// The file.
        path: PathBuf,
        /// What it should have.
        expected: Box<Checksum>,
        /// What it has.
        found: Box<Checksum>,
    },
    /// A file cannot be read.
    #[error("{path}: cannot read")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file cannot be written.
    #[error("{path}: cannot write")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
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

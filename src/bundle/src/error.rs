//! Errors of bundles.

mod advice;

use std::path::{Path, PathBuf};

use vmbake_archive::ArchiveError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::message::FileError;
use vmbake_fetch::FetchError;
use vmbake_layer::LayerError;
use vmbake_manifest::ManifestError;
use vmbake_pin::prove::LinkError;
use vmbake_pin::resolve::ResolveError;
use vmbake_pin::sources::SourcesError;
use vmbake_release::DocumentError;
use vmbake_release::pull::PullError;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    #[error("{path}:{line}:{column}: {message}")]
    Syntax {
        path: PathBuf,
        /// Its line, counted from 1.
        line: usize,
        /// Its column, counted from 1.
        column: usize,
        message: String,
    },
    #[error("{path}: `{key}`: {what}")]
    Document {
        path: PathBuf,
        /// The key, with a slash between keys.
        key: String,
        what: String,
    },
    #[error("{path}: contains {what}")]
    Limit {
        path: PathBuf,
        /// What it has too much of.
        what: String,
    },
    #[error("{}", escape::each_line(complaints.iter().map(|what| format!("{}: {what}", path.display()))))]
    Unsound { path: PathBuf, complaints: Vec<String> },
    #[error("{target}: artifact {name} is neither in `downloads` of a layer nor in sources.json")]
    NoSource { name: String, target: String },
    #[error("{name}: not pinned, or the pin is no longer verified")]
    Unpinned { name: String },
    #[error("{name}: the pin in pins.json cannot be verified")]
    PinLost { name: String, source: Box<LinkError> },
    #[error("{digest}: not in the store")]
    NoBlob { digest: Box<Digest> },
    #[error("{path}: expected digest {expected}, found {found}")]
    Damaged {
        path: PathBuf,
        /// The digest that it should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error(transparent)]
    Sources(#[from] SourcesError),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Fetch(#[from] FetchError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Carry(#[from] ArchiveError),
    #[error(transparent)]
    Sign(#[from] DocumentError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("{path}: {name}: {what}")]
    Layout { path: PathBuf, name: String, what: String },
    #[error("{name}: neither tag nor digest given")]
    Unnamed { name: String },
    #[error("{name}: tag refers to {found}, expected {expected}")]
    Moved {
        name: String,
        /// The digest that its index should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned { path: PathBuf, signer: String, reason: String },
    #[error("{name}: bundles in a registry are not supported here")]
    Remote { name: String },
    #[error("{name}: tag refers to {found}, expected {expected}")]
    Tagged { name: String, expected: Box<Digest>, found: Box<Digest> },
    #[error("{path}: not found: bundles of {name} are not trusted")]
    NoPublisher {
        name: String,
        /// The file that would say whom to believe.
        path: PathBuf,
    },
    #[error("{path}: `{key}`: {what}")]
    Publisher { path: PathBuf, key: String, what: String },
    #[error("{path}: publisher {publisher}: {what}")]
    NotGranted { path: PathBuf, publisher: String, what: String },
    #[error("bundle {title}: {what}")]
    Locked { title: String, what: String },
    #[error("{}", escape::each_line(conflicts))]
    Conflicts { conflicts: Vec<String> },
    #[error("{name}: no tag given, and no bundle of that name in {path}")]
    NotLocked { name: String, path: PathBuf },
    #[error("{name}: expected bundle {expected} of bundles.lock.json, found {found}")]
    OtherBundle { name: String, expected: String, found: String },
    #[error("{name}: no tag is a version")]
    NoVersion { name: String },
    #[error("bundle {title}: {why}")]
    NoReference {
        /// The bundle that is asked for.
        title: String,
        why: String,
    },
    #[error("layer {layer}: names {fixed}, but {with} is a different bundle {title}")]
    Fixed {
        layer: String,
        title: String,
        fixed: String,
        /// What is to take its place.
        with: String,
    },
    #[error("newly required without a default: {variables}; nothing was written")]
    NewlyRequired { variables: String },
    #[error("bundle {title}: artifact {name} cannot be verified")]
    Unproven { title: String, name: String, source: Box<LinkError> },
    #[error("not trusting {name}: stdin is not a terminal (use --yes)")]
    Unattended { name: String },
    #[error("{path}: no key or publisher to verify the signature with")]
    NoSigner { path: PathBuf },
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error("cannot serialize a document as JSON")]
    Json(#[from] serde_json::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

impl BundleError {
    /// What serde_json says, with its place in front.
    pub(super) fn syntax(path: &Path, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
        Self::Syntax { path: path.to_owned(), line: error.line(), column: error.column(), message }
    }
}

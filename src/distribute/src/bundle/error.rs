//! Why a bundle cannot be used.

mod advice;

use std::path::{Path, PathBuf};

use crate::archive::CarryError;
use crate::pull::PullError;
use crate::release::DocumentError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_fetch::FetchError;
use vmbake_layer::LayerError;
use vmbake_manifest::ManifestError;
use vmbake_pin::prove::LinkError;
use vmbake_pin::resolve::ResolveError;
use vmbake_pin::sources::SourcesError;
use vmbake_store::registry::RegistryError;
use vmbake_store::store::StoreError;

/// Why a bundle cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BundleError {
    /// A file cannot be read.
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    /// `bundle.json` is not of its form.
    #[error("{path}:{line}:{column}: {message}")]
    Syntax {
        path: PathBuf,
        /// Its line, counted from 1.
        line: usize,
        /// Its column, counted from 1.
        column: usize,
        message: String,
    },
    /// `bundle.json` says what cannot be.
    #[error("{path}: `{key}`: {what}")]
    Document {
        path: PathBuf,
        /// The key, with a slash between keys.
        key: String,
        what: String,
    },
    /// It has more of something than any bundle.
    #[error("{path}: has {what}")]
    Limit {
        path: PathBuf,
        /// What it has too much of.
        what: String,
    },
    /// Its layers or sources do what a bundle may not do.
    #[error("{}", lines(path, complaints))]
    Unsound { path: PathBuf, complaints: Vec<String> },
    /// A layer installs what nothing says the address of.
    #[error("{target}: artifact {name} is neither a download of a layer nor in sources.json")]
    NoSource { name: String, target: String },
    /// An artifact is not pinned, and nothing may be downloaded.
    #[error("{name}: is not pinned, or no longer proven")]
    Unpinned { name: String },
    /// What is pinned cannot be fetched or proven any more.
    #[error("{name}: is pinned in pins.json, and that is not proven")]
    PinLost { name: String, source: Box<LinkError> },
    /// A blob is not in the store.
    #[error("{digest}: is not in the store")]
    NoBlob { digest: Box<Digest> },
    /// A blob of the store has changed.
    #[error("{path}: has digest {found}, not {expected}")]
    Damaged {
        path: PathBuf,
        /// The digest that it should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    /// It cannot be written.
    #[error("{path}: cannot write")]
    Write { path: PathBuf, source: std::io::Error },
    /// Its layers cannot be used.
    #[error(transparent)]
    Layer(#[from] LayerError),
    /// Its sources cannot be used.
    #[error(transparent)]
    Sources(#[from] SourcesError),
    /// An artifact cannot be resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// An artifact cannot be fetched or is not proven.
    #[error(transparent)]
    Fetch(#[from] FetchError),
    /// Its pins are no manifest.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A tar file cannot be read or written.
    #[error(transparent)]
    Carry(#[from] CarryError),
    /// It cannot be signed.
    #[error(transparent)]
    Sign(#[from] DocumentError),
    /// It cannot get its name.
    #[error(transparent)]
    Publish(#[from] PublishError),
    /// It is not what `vmbake bundle pack` writes.
    #[error("{path}: {name}: {what}")]
    Layout { path: PathBuf, name: String, what: String },
    /// A name in a registry has neither a tag nor a digest.
    #[error("{name}: has neither a tag nor a digest")]
    Unnamed { name: String },
    /// It is not the one that was expected.
    #[error("{name}: stands for {found}, not for {expected}")]
    Moved {
        name: String,
        /// The digest that its index should have.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    /// Somebody has not signed it.
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned { path: PathBuf, signer: String, reason: String },
    /// It is in a registry, where a layout on this machine is needed.
    #[error("{name}: is in a registry")]
    Remote { name: String },
    /// A tag stands for something else.
    #[error("{name}: stands for {found}, not for {expected}")]
    Tagged { name: String, expected: Box<Digest>, found: Box<Digest> },
    /// Nobody trusts its publisher.
    #[error("{path}: there is no such file, so bundles of {name} are not trusted")]
    NoPublisher {
        name: String,
        /// The file that would say whom to believe.
        path: PathBuf,
    },
    /// What is said of a publisher cannot be.
    #[error("{path}: `{key}`: {what}")]
    Publisher { path: PathBuf, key: String, what: String },
    /// A bundle is not what its publisher may publish.
    #[error("{path}: publisher {publisher}: {what}")]
    NotGranted { path: PathBuf, publisher: String, what: String },
    /// The lock does not admit a bundle.
    #[error("bundle {title}: {what}")]
    Locked { title: String, what: String },
    /// Bundles do not go together with an image, or with each other.
    #[error("{}", conflicts.iter().map(escape::line).collect::<Vec<_>>().join("\n"))]
    Conflicts { conflicts: Vec<String> },
    /// A repository is named without a tag, and nothing is locked of it.
    #[error("{name}: has no tag, and {path} has no bundle of it")]
    NotLocked { name: String, path: PathBuf },
    /// A repository provides another bundle than the locked one.
    #[error("{name}: expected bundle {expected}, as in bundles.lock.json, found {found}")]
    OtherBundle { name: String, expected: String, found: String },
    /// A repository has no bundle that could be chosen.
    #[error("{name}: has no tag that is a version")]
    NoVersion { name: String },
    /// Nothing says where another version of a bundle would be.
    #[error("bundle {title}: {why}")]
    NoReference {
        /// The bundle that is asked for.
        title: String,
        why: String,
    },
    /// A layer fixes the version of a bundle, and another one is to take its place.
    #[error("layer {layer}: names {fixed}, and {with} is another bundle {title}")]
    Fixed {
        layer: String,
        title: String,
        fixed: String,
        /// What is to take its place.
        with: String,
    },
    /// Machines that have the user data of before would stop.
    #[error("newly required without a default: {variables}; nothing was written")]
    NewlyRequired { variables: String },
    /// An artifact is not proven.
    #[error("bundle {title}: artifact {name} is not proven")]
    Unproven { title: String, name: String, source: Box<LinkError> },
    /// Nobody can be asked whether a publisher is trusted.
    #[error("{name}: nobody can be asked here whether it may do that: nothing was written")]
    Unattended { name: String },
    /// Nothing says who must have signed.
    #[error("{path}: nothing says who must have signed it")]
    NoSigner { path: PathBuf },
    /// The registry does not give or take it.
    #[error(transparent)]
    Registry(#[from] RegistryError),
    /// Its signatures cannot be fetched.
    #[error(transparent)]
    Pull(#[from] PullError),
    /// A document cannot be written as JSON.
    #[error("cannot write a document as JSON")]
    Json(#[from] serde_json::Error),
}

impl BundleError {
    /// What serde_json says, with its place in front.
    pub(super) fn syntax(path: &Path, error: &serde_json::Error) -> Self {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
        Self::Syntax { path: path.to_owned(), line: error.line(), column: error.column(), message }
    }
}

/// A line for each complaint.
fn lines(path: &Path, complaints: &[String]) -> String {
    let line = |what: &String| escape::line(format!("{}: {what}", path.display()));
    complaints.iter().map(line).collect::<Vec<_>>().join("\n")
}

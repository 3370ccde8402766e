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
    Read {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// `bundle.json` is not of its form.
    #[error("{path}:{line}:{column}: {message}")]
    Syntax {
        /// The file.
        path: PathBuf,
        /// Its line, counted from 1.
        line: usize,
        /// Its column, counted from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// `bundle.json` says what cannot be.
    #[error("{path}: `{key}`: {what}")]
    Document {
        /// The file.
        path: PathBuf,
        /// The key, with a slash between keys.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// It has more of something than any bundle.
    #[error("{path}: has {what}")]
    Limit {
        /// Where it is.
        path: PathBuf,
        /// What it has too much of.
        what: String,
    },
    /// Its layers or sources do what a bundle may not do.
    #[error("{}", lines(path, complaints))]
    Unsound {
        /// Where it is.
        path: PathBuf,
        /// What is wrong.
        complaints: Vec<String>,
    },
    /// A layer installs what nothing says the address of.
    #[error("{target}: artifact {name} is neither a download of a layer nor in sources.json")]
    NoSource {
        /// The artifact.
        name: String,
        /// Kind, system and architecture.
        target: String,
    },
    /// An artifact is not pinned, and nothing may be downloaded.
    #[error("{name}: is not pinned, or no longer proven")]
    Unpinned {
        /// The artifact.
        name: String,
    },
    /// What is pinned cannot be fetched or proven any more.
    #[error("{name}: is pinned in pins.json, and that is not proven")]
    PinLost {
        /// The artifact.
        name: String,
        /// The link that is missing.
        source: Box<LinkError>,
    },
    /// A blob is not in the store.
    #[error("{digest}: is not in the store")]
    NoBlob {
        /// Its digest.
        digest: Box<Digest>,
    },
    /// A blob of the store has changed.
    #[error("{path}: has digest {found}, not {expected}")]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The digest that it should have.
        expected: Box<Digest>,
        /// The digest that it has.
        found: Box<Digest>,
    },
    /// It cannot be written.
    #[error("{path}: cannot write")]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
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
    Layout {
        /// Where it is.
        path: PathBuf,
        /// The part that is wrong.
        name: String,
        /// What is wrong.
        what: String,
    },
    /// A name in a registry has neither a tag nor a digest.
    #[error("{name}: has neither a tag nor a digest")]
    Unnamed {
        /// The name.
        name: String,
    },
    /// It is not the one that was expected.
    #[error("{name}: stands for {found}, not for {expected}")]
    Moved {
        /// Where it is.
        name: String,
        /// The digest that its index should have.
        expected: Box<Digest>,
        /// The digest that it has.
        found: Box<Digest>,
    },
    /// Somebody has not signed it.
    #[error("{path}: not signed by {signer}: {reason}")]
    NotSigned {
        /// Where it is.
        path: PathBuf,
        /// Who should have.
        signer: String,
        /// Why that does not hold.
        reason: String,
    },
    /// It is in a registry, where a layout on this machine is needed.
    #[error("{name}: is in a registry")]
    Remote {
        /// Its name.
        name: String,
    },
    /// A tag stands for something else.
    #[error("{name}: stands for {found}, not for {expected}")]
    Tagged {
        /// The name with its tag.
        name: String,
        /// The index of the bundle.
        expected: Box<Digest>,
        /// What the tag stands for.
        found: Box<Digest>,
    },
    /// Nobody trusts its publisher.
    #[error("{path}: there is no such file, so bundles of {name} are not trusted")]
    NoPublisher {
        /// The publisher.
        name: String,
        /// The file that would say whom to believe.
        path: PathBuf,
    },
    /// What is said of a publisher cannot be.
    #[error("{path}: `{key}`: {what}")]
    Publisher {
        /// The file.
        path: PathBuf,
        /// The key.
        key: String,
        /// What is wrong.
        what: String,
    },
    /// A bundle is not what its publisher may publish.
    #[error("{path}: publisher {publisher}: {what}")]
    NotGranted {
        /// Where the bundle is.
        path: PathBuf,
        /// The publisher.
        publisher: String,
        /// What is not granted.
        what: String,
    },
    /// The lock does not admit a bundle.
    #[error("bundle {title}: {what}")]
    Locked {
        /// The bundle.
        title: String,
        /// Why it is not admitted.
        what: String,
    },
    /// Bundles do not go together with an image, or with each other.
    #[error("{}", conflicts.iter().map(escape::line).collect::<Vec<_>>().join("\n"))]
    Conflicts {
        /// All conflicts, with both sides.
        conflicts: Vec<String>,
    },
    /// A repository is named without a tag, and nothing is locked of it.
    #[error("{name}: has no tag, and {path} has no bundle of it")]
    NotLocked {
        /// The repository.
        name: String,
        /// The lock.
        path: PathBuf,
    },
    /// A repository provides another bundle than the locked one.
    #[error("{name}: expected bundle {expected}, as in bundles.lock.json, found {found}")]
    OtherBundle {
        /// The repository.
        name: String,
        /// The bundle that is locked.
        expected: String,
        /// The bundle that is there.
        found: String,
    },
    /// A repository has no bundle that could be chosen.
    #[error("{name}: has no tag that is a version")]
    NoVersion {
        /// The repository.
        name: String,
    },
    /// Nothing says where another version of a bundle would be.
    #[error("bundle {title}: {why}")]
    NoReference {
        /// The bundle that is asked for.
        title: String,
        /// Why it is not known.
        why: String,
    },
    /// A layer fixes the version of a bundle, and another one is to take its place.
    #[error("layer {layer}: names {fixed}, and {with} is another bundle {title}")]
    Fixed {
        /// The layer.
        layer: String,
        /// The bundle.
        title: String,
        /// What the layer names.
        fixed: String,
        /// What is to take its place.
        with: String,
    },
    /// Machines that have the user data of before would stop.
    #[error("newly required without a default: {variables}; nothing was written")]
    NewlyRequired {
        /// The variables, each with its bundle.
        variables: String,
    },
    /// An artifact is not proven.
    #[error("bundle {title}: artifact {name} is not proven")]
    Unproven {
        /// The bundle.
        title: String,
        /// The artifact.
        name: String,
        /// The link that is missing.
        source: Box<LinkError>,
    },
    /// Nobody can be asked whether a publisher is trusted.
    #[error("{name}: nobody can be asked here whether it may do that: nothing was written")]
    Unattended {
        /// The publisher.
        name: String,
    },
    /// Nothing says who must have signed.
    #[error("{path}: nothing says who must have signed it")]
    NoSigner {
        /// Where the bundle is.
        path: PathBuf,
    },
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

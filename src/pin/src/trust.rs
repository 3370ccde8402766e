//! Trust anchors in `trust/`: the keys and authorities in a file, and the differences between two versions.
//!
//! Parses a file, or the documents of its upstream, to an [`Anchor`], which describes its contents and can be written
//! back. A file is replaced only after a review of the changes: see [`Proposal`].

use jiff::Timestamp;
use sigstore_trust_root::TrustedRoot;
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;

use vmbake_proof::openpgp::{Keyring, KeyringError};

pub use item::Item;
pub use proposal::{Proposal, ProposalError};
pub use table::{renew_readme, table};

mod item;
mod proposal;
mod table;

/// Prefix of the media type of a trusted root; the version follows.
const MEDIA_TYPE: &str = "application/vnd.dev.sigstore.trustedroot";

/// Why a trust anchor cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error("{name}: cannot use the keyring")]
    Keyring { name: String, source: KeyringError },
    #[error("{name}: not a valid sigstore trusted root")]
    Root { name: String, source: Box<dyn std::error::Error + Send + Sync> },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for TrustError {
    vmbake_common::causes!(Message; Keyring);
}

/// Why a trusted root cannot prove anything.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RootFault {
    #[error("media type is {found:?}, expected {MEDIA_TYPE}")]
    MediaType { found: String },
    #[error("no {what} listed")]
    NoEntry { what: &'static str },
}

impl Hint for RootFault {}

/// The content of a file in `trust/`.
#[derive(Clone, Debug)]
pub struct Anchor {
    name: String,
    bytes: Vec<u8>,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Keys(Keyring),
    Root(Box<TrustedRoot>),
}

impl Anchor {
    /// Parses the file `name`, whose extension determines its type.
    pub fn parse(name: &str, bytes: Vec<u8>) -> Result<Self, TrustError> {
        let content = if name.ends_with(".asc") {
            let keyring =
                Keyring::parse(&bytes).map_err(|source| TrustError::Keyring { name: name.to_owned(), source })?;
            Content::Keys(keyring)
        } else if name.ends_with(".json") {
            Content::Root(Box::new(root(name, &bytes)?))
        } else {
            return Err(TrustError::Message(message!("{name}: neither a keyring (.asc) nor a trusted root (.json)")));
        };
        Ok(Self { name: name.to_owned(), bytes, content })
    }

    /// Creates the file `name` from the documents of its upstream: the keys of all documents in a canonical order and
    /// form, or a single trusted root unchanged.
    pub fn of_documents(name: &str, documents: Vec<Vec<u8>>) -> Result<Self, TrustError> {
        if !name.ends_with(".asc") {
            let found = documents.len();
            let [document] = <[Vec<u8>; 1]>::try_from(documents)
                .map_err(|_| TrustError::Message(message!("{name}: expected a single URL, found {found}")))?;
            return Self::parse(name, document);
        }
        let error = |source| TrustError::Keyring { name: name.to_owned(), source };
        let keyrings: Result<Vec<Keyring>, _> = documents.iter().map(|bytes| Keyring::parse(bytes)).collect();
        let keyring = Keyring::union(keyrings.map_err(error)?);
        Self::parse(name, keyring.armored().map_err(error)?.join(&b'\n'))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Its keys and authorities as of `now`, sorted.
    pub fn items(&self, now: Timestamp) -> Result<Vec<Item>, TrustError> {
        match &self.content {
            Content::Keys(keyring) => {
                item::of_keyring(keyring, now).map_err(|source| TrustError::Keyring { name: self.name.clone(), source })
            }
            Content::Root(root) => Ok(item::of_root(root)),
        }
    }
}

fn root(name: &str, bytes: &[u8]) -> Result<TrustedRoot, TrustError> {
    let error = |source| TrustError::Root { name: name.to_owned(), source };
    let text = std::str::from_utf8(bytes).map_err(|source| error(source.into()))?;
    let root = TrustedRoot::from_json(text).map_err(|source| error(source.into()))?;
    let refused = |fault| TrustError::Message(message!("{name}: {fault}"));
    if !root.media_type.starts_with(MEDIA_TYPE) {
        return Err(refused(RootFault::MediaType { found: root.media_type }));
    }
    for (what, count) in [
        ("certificate authority", root.certificate_authorities.len()),
        ("certificate log", root.ctlogs.len()),
        ("transparency log", root.tlogs.len()),
    ] {
        if count == 0 {
            return Err(refused(RootFault::NoEntry { what }));
        }
    }
    Ok(root)
}

/// The differences between two versions of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AnchorChange {
    /// Only in the new version.
    pub added: Vec<Item>,
    /// Only in the old version.
    pub removed: Vec<Item>,
    /// Items of the new version with another validity, owner or signature.
    pub changed: Vec<Item>,
}

impl AnchorChange {
    /// Compares two versions.
    pub fn between(old: &[Item], new: &[Item]) -> Self {
        let without = |items: &[Item], others: &[Item]| -> Vec<Item> {
            items.iter().filter(|item| !others.iter().any(|other| other.is_same(item))).cloned().collect()
        };
        let differs = |item: &&Item| old.iter().any(|other| other.is_same(item) && other != *item);
        Self {
            added: without(new, old),
            removed: without(old, new),
            changed: new.iter().filter(|item| differs(item) && !old.contains(item)).cloned().collect(),
        }
    }
}

//! A new version of an anchor that was fetched, but is not trusted yet: shows the differences, and replaces the file on
//! acceptance.

use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::{Anchor, AnchorChange, Content, Item, TrustError};
use vmbake_common::atomic_file::{PublishError, write_file};
use vmbake_common::hint::Hint;
use vmbake_common::input;

/// Why a new version cannot be shown or accepted.
#[derive(Debug, thiserror::Error)]
pub enum ProposalError<E: Hint + 'static> {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{name}: cannot fetch")]
    Fetch { name: String, source: E },
    #[error(transparent)]
    Trust(#[from] TrustError),
}

impl<E: Hint + 'static> Hint for ProposalError<E> {
    vmbake_common::causes!(Trust; Read, Fetch);
}

/// A new version of one file.
#[derive(Clone, Debug)]
pub struct Proposal {
    path: PathBuf,
    anchor: Anchor,
    change: AnchorChange,
    faults: Vec<Item>,
    is_new: bool,
}

impl Proposal {
    /// Fetches the file `name` of `dir` from its upstream, and compares both. A missing file counts as empty.
    pub fn fetch<E: Hint + 'static>(
        dir: &Path,
        name: &str,
        urls: &[String],
        fetch: &dyn Fn(&str) -> Result<Vec<u8>, E>,
        now: Timestamp,
    ) -> Result<Self, ProposalError<E>> {
        let documents = urls.iter().map(|url| fetch(url)).collect::<Result<Vec<_>, E>>();
        let documents = documents.map_err(|source| ProposalError::Fetch { name: name.to_owned(), source })?;
        let anchor = Anchor::of_documents(name, documents)?;
        let path = dir.join(name);
        let old = match input::read(&path, input::MAX_INPUT) {
            Ok(bytes) => Some(Anchor::parse(name, bytes)?),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
            Err(source) => return Err(ProposalError::Read { path, source }),
        };
        let items = anchor.items(now)?;
        let before = old.as_ref().map(|old| old.items(now)).transpose()?.unwrap_or_default();
        let is_new = match &old {
            // Line breaks and comments of armor are ignored.
            Some(Anchor { content: Content::Keys(_), .. }) => before != items,
            Some(old) => old.bytes != anchor.bytes,
            None => true,
        };
        let change = AnchorChange::between(&before, &items);
        let faults = items.into_iter().filter(|item| item.fault.is_some()).collect();
        Ok(Self { path, anchor, change, faults, is_new })
    }

    pub fn name(&self) -> &str {
        self.anchor.name()
    }

    /// Whether it differs from the existing file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }

    /// The differences.
    pub fn change(&self) -> &AnchorChange {
        &self.change
    }

    /// Items that are expired or revoked.
    pub fn faults(&self) -> &[Item] {
        &self.faults
    }

    /// Replaces the file atomically.
    pub fn accept(&self) -> Result<(), PublishError> {
        write_file(&self.path, self.anchor.bytes(), true)
    }
}

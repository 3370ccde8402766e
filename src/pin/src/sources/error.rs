//! Errors in sources.

use std::path::PathBuf;

use vmbake_common::catalog::CatalogError;
use vmbake_common::hint::Hint;
use vmbake_common::spelling::of_path;

/// Why the sources cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SourcesError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}:{column}: {message}")]
    Syntax {
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The column number, from 1.
        column: usize,
        message: String,
    },
    #[error("{path}: {place}: {message}")]
    Invalid {
        path: PathBuf,
        /// The location as a JSON pointer or a name.
        place: String,
        message: String,
    },
    #[error("unknown kind {kind} for {os} on {arch}, known kinds: {known}")]
    Unknown { kind: String, os: String, arch: String, known: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
}

impl Hint for SourcesError {
    fn hint(&self) -> Option<String> {
        let Self::Read { path, source } = self else { return None };
        of_path(path, source, "without --sources, the built-in sources are used")
    }

    vmbake_common::causes!(Catalog; Read);
}

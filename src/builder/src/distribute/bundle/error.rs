//! Why a bundle cannot be used.

use std::path::{Path, PathBuf};

use crate::hint::Hint;

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

impl Hint for BundleError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Syntax { .. } | Self::Document { .. } => Some(
                "`vmbake schema bundle` prints the form of bundle.json; docs/bundles.md says what it means".to_owned(),
            ),
            _ => None,
        }
    }
}

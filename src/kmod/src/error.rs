//! Why modules or their indexes cannot be read.

use std::io;

use vmbake_common::hint::Hint;

/// A failure, with the path of the file as the caller named it.
#[derive(Debug, thiserror::Error)]
pub enum KmodError {
    #[error("{path}: cannot read")]
    Read { path: String, source: io::Error },
    #[error("{path}: {fault}")]
    Corrupt { path: String, fault: Fault },
    /// depmod accepts the input, but equal output is not certain.
    #[error("{path}: unsupported: {what}")]
    Unsupported { path: String, what: String },
    /// depmod writes no index in this case.
    #[error("{path}: dependency cycle of modules: {}", .modules.join(" -> "))]
    Cycle {
        path: String,
        /// The first one is also the last one.
        modules: Vec<String>,
    },
}

impl Hint for KmodError {
    vmbake_common::causes!(; Read);
}

/// What is wrong in a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {offset}: expected {expected}, found {found}")]
pub struct Fault {
    /// From the start of the file, or of the decompressed file.
    pub offset: u64,
    pub what: &'static str,
    pub expected: String,
    pub found: String,
}

impl Fault {
    pub(crate) fn new(offset: u64, what: &'static str, expected: impl ToString, found: impl ToString) -> Self {
        Self { offset, what, expected: expected.to_string(), found: found.to_string() }
    }

    pub(crate) fn at(self, path: &str) -> KmodError {
        KmodError::Corrupt { path: path.to_owned(), fault: self }
    }
}

pub(crate) fn unsupported(path: &str, what: impl Into<String>) -> KmodError {
    KmodError::Unsupported { path: path.to_owned(), what: what.into() }
}

/// Bytes of a file, for messages.
pub(crate) fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

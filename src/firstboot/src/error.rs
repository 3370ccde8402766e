//! Everything that can stop the program, with the path at which it stopped.

use std::io;
use std::path::PathBuf;

/// Why a command failed. `Io` is the system's refusal, `Corrupt` a damaged input, `Refused` one that is not safe to use.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A system call failed.
    #[error("{action} {path}")]
    Io {
        /// What was attempted, as a verb.
        action: &'static str,
        /// On which file.
        path: PathBuf,
        /// What the system answered.
        source: io::Error,
    },
    /// A file does not hold what it must hold.
    #[error("{path}: expected {expected}, found {found}")]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// What it should hold.
        expected: &'static str,
        /// What it holds.
        found: String,
    },
    /// Something stands where it must not, or is larger than is read.
    #[error("{path}: refused: expected {expected}, found {found}")]
    Refused {
        /// Which file or directory.
        path: PathBuf,
        /// What may stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// Standard output is gone.
    #[error("write to standard output")]
    Output(#[source] io::Error),
}

impl Error {
    /// An `Io` made for `map_err`.
    pub fn io(action: &'static str, path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }
}

//! Everything that can stop the program, with the path at which it stopped.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// Why a command failed. `Io` is the system's refusal, `Corrupt` and `Syntax` a damaged input, `Refused` and `TooLarge` one
/// that is not safe to use. No message has the value of a variable in it: values may be secrets.
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
    /// A line of a file with variables cannot be read.
    #[error("{path}:{line}: expected {expected}")]
    Syntax {
        /// Which file.
        path: PathBuf,
        /// Line, from 1; of text in quotes, where the quote begins.
        line: usize,
        /// What should be there.
        expected: &'static str,
    },
    /// Something stands where it must not.
    #[error("{path}: refused: expected {expected}, found {found}")]
    Refused {
        /// Which file or directory.
        path: PathBuf,
        /// What may stand there.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// More than is read.
    #[error("{path}: refused: expected at most {}, found more", Size(*limit))]
    TooLarge {
        /// Which file or directory.
        path: PathBuf,
        /// The most that is read, in bytes.
        limit: u64,
    },
    /// A file has a variable that may not be set on a running machine.
    #[error("{path}: refused: {name} is none of the variables that may change")]
    NotMutable {
        /// Which file.
        path: PathBuf,
        /// Name of the variable.
        name: String,
    },
    /// A file has a variable twice, with different values.
    #[error("{path}: refused: {name} has two values")]
    Ambiguous {
        /// Which file.
        path: PathBuf,
        /// Name of the variable.
        name: String,
    },
    /// A user or group is missing.
    #[error("{path}: no {kind} {name}")]
    NoAccount {
        /// The file that should have it.
        path: PathBuf,
        /// `user` or `group`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Standard output is gone.
    #[error("write to standard output")]
    Output(#[source] io::Error),
}

impl Error {
    /// An `Io` made for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::Io { action, path, source }
    }

    /// A `Refused`.
    pub fn refused(path: &Path, expected: &'static str, found: impl Into<String>) -> Self {
        Self::Refused { path: path.to_path_buf(), expected, found: found.into() }
    }

    /// A `Syntax`.
    pub fn syntax(path: &Path, line: usize, expected: &'static str) -> Self {
        Self::Syntax { path: path.to_path_buf(), line, expected }
    }
}

/// A number of bytes in the largest unit that divides it.
struct Size(u64);

impl fmt::Display for Size {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => write!(formatter, "{} MiB", bytes >> 20),
            bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => write!(formatter, "{} KiB", bytes >> 10),
            bytes => write!(formatter, "{bytes} bytes"),
        }
    }
}

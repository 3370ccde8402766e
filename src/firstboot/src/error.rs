//! Errors of the program, with their paths.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use crate::template::Fault;

/// Error of a command. `Io` is an error of the system, `Corrupt` and `Syntax` are malformed inputs, `Refused` and `TooLarge` are
/// unsafe ones. Messages do not contain values of variables that can be secrets.
#[derive(thiserror::Error)]
pub enum Error {
    #[error("{action} {path}")]
    Io {
        /// The failed action, as a verb.
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{path}: expected {expected}, found {found}")]
    Corrupt { path: PathBuf, expected: &'static str, found: String },
    #[error("{path}:{line}: expected {expected}")]
    Syntax {
        path: PathBuf,
        /// Line, from 1; for quoted text, the start of the quote.
        line: usize,
        expected: &'static str,
    },
    #[error("{path}: refused: expected {expected}, found {found}")]
    Refused { path: PathBuf, expected: &'static str, found: String },
    #[error("{path}: refused: expected at most {}, found more", Size(*limit))]
    TooLarge {
        path: PathBuf,
        /// Limit in bytes.
        limit: u64,
    },
    #[error("{path}: refused: {name} is not a mutable variable")]
    NotMutable { path: PathBuf, name: String },
    #[error("{path}: refused: {name} is set twice")]
    Ambiguous { path: PathBuf, name: String },
    #[error("{path}: no {kind} {name}")]
    NoAccount {
        /// The account file.
        path: PathBuf,
        /// `user` or `group`.
        kind: &'static str,
        name: String,
    },
    #[error("{subject}")]
    Fault {
        /// Its subject: a path, a variable, a unit.
        subject: String,
        source: Fault,
    },
    #[error("{message}")]
    Check {
        /// The plan's message.
        message: String,
    },
    #[error("{name}: expected {expected}, found {found}")]
    Setting {
        name: String,
        expected: String,
        /// The quoted start of the value, unless it can be a secret.
        found: String,
    },
    #[error("{path}: missing or empty")]
    NotReady { path: PathBuf },
    #[error("{path}: missing or empty, although {marker} records that it was written")]
    Lost { path: PathBuf, marker: PathBuf },
    #[error("connect to {address}")]
    Connect { address: String, source: io::Error },
    #[error("{line}: {status}: {said}")]
    Command {
        line: String,
        status: ExitStatus,
        /// Its stderr.
        said: String,
    },
    #[error("unknown {what} {name:?}: expected one of: {known}")]
    Unknown { what: &'static str, name: String, known: String },
    #[error("machines of this kind receive no files")]
    NothingReceived,
    #[error("write to standard output")]
    Output(#[source] io::Error),
}

/// The message: derived code would add kilobytes to the program.
impl fmt::Debug for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Error {
    /// Wraps a `Fault`, for `map_err`.
    pub fn fault(subject: &str) -> impl Fn(Fault) -> Self {
        move |source| Self::Fault { subject: subject.to_owned(), source }
    }

    /// Creates an `Io`, for `map_err`.
    pub fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::failed(action, path, source)
    }

    #[cold]
    #[inline(never)]
    pub fn failed(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }

    /// The error for a missing `path`.
    pub fn missing(path: &Path) -> Self {
        Self::failed("find", path, io::ErrorKind::NotFound.into())
    }

    #[cold]
    #[inline(never)]
    pub fn refused(path: &Path, expected: &'static str, found: &str) -> Self {
        Self::Refused { path: path.to_path_buf(), expected, found: found.to_owned() }
    }

    #[cold]
    #[inline(never)]
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

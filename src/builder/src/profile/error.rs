//! Why a profile is not rendered.

use std::fmt;
use std::path::PathBuf;

use crate::hint::Hint;
use crate::spelling::{did_you_mean, near, of_path};

/// A place in a file that people wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spot {
    /// The file.
    pub path: PathBuf,
    /// Its line, from 1.
    pub line: usize,
    /// The column in it, from 1.
    pub column: usize,
}

impl fmt::Display for Spot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

/// Why a profile is not rendered.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// A file that was named is not readable.
    #[error("{path}: cannot read")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// A file is larger than any that is meant.
    #[error("{path}: expected at most {limit} bytes, found more")]
    Large {
        /// The file.
        path: PathBuf,
        /// The most that is read.
        limit: usize,
    },
    /// It is not UTF-8.
    #[error("{path}: expected UTF-8")]
    NotText {
        /// The file.
        path: PathBuf,
    },
    /// It is not YAML.
    #[error("{spot}: not valid YAML: {message}")]
    Syntax {
        /// Where.
        spot: Spot,
        /// What the parser says.
        message: String,
    },
    /// It is YAML, but of a sort that one of its readers takes for something else, or that costs too much.
    #[error("{spot}: {what}")]
    Unsupported {
        /// Where.
        spot: Spot,
        /// What is there.
        what: &'static str,
    },
    /// No such field is known there.
    #[error("{spot}: unknown field {field}")]
    UnknownField {
        /// Where.
        spot: Spot,
        /// Its name.
        field: String,
        /// Those that are known.
        known: Vec<&'static str>,
    },
    /// A field must be there.
    #[error("{spot}: there is no field {field}")]
    MissingField {
        /// Where it belongs.
        spot: Spot,
        /// Its name.
        field: &'static str,
    },
    /// A value does not have its form.
    #[error("{spot}: expected {expected}, found {found}")]
    Value {
        /// Where.
        spot: Spot,
        /// The form.
        expected: String,
        /// What stands there.
        found: String,
    },
    /// It means something, but not for an image of Debian that is complete when it starts.
    #[error("{spot}: {what} is refused: {why}")]
    Refused {
        /// Where.
        spot: Spot,
        /// What was asked for.
        what: String,
        /// Why it cannot be had.
        why: &'static str,
    },
}

impl ProfileError {
    pub(super) fn value(spot: Spot, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Value { spot, expected: expected.into(), found: found.into() }
    }
}

impl Hint for ProfileError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, source } => of_path(path, source, "name a YAML file"),
            Self::UnknownField { field, known, .. } => Some(match near(field, known.iter().copied()) {
                names if names.is_empty() => format!("known are {}", known.join(", ")),
                names => did_you_mean(&names),
            }),
            _ => None,
        }
    }
}

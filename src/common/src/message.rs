//! Errors that differ only in their text: no code matches on them.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::path::PathBuf;

use crate::hint::Hint;

/// A failed operation on a file.
#[derive(Debug, thiserror::Error)]
#[error("{path}: cannot {action}")]
pub struct FileError {
    pub path: PathBuf,
    /// A verb, such as `read`.
    pub action: &'static str,
    pub source: std::io::Error,
}

impl FileError {
    pub fn new(path: impl Into<PathBuf>, action: &'static str, source: std::io::Error) -> Self {
        Self { path: path.into(), action, source }
    }
}

impl Hint for FileError {
    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        Some(&self.source)
    }
}

/// A message with an optional cause.
#[derive(Debug)]
pub struct Message {
    text: Cow<'static, str>,
    source: Option<Box<dyn Hint + Send + Sync>>,
}

impl Message {
    pub fn new(text: impl Into<Cow<'static, str>>) -> Self {
        Self { text: text.into(), source: None }
    }

    /// Adds the cause.
    #[must_use]
    pub fn by(self, source: impl Hint + Send + Sync + 'static) -> Self {
        Self { source: Some(Box::new(source)), ..self }
    }
}

/// Creates a [`Message`] from a format string.
#[macro_export]
macro_rules! message {
    ($($argument:tt)*) => {
        $crate::message::Message::new(format!($($argument)*))
    };
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Error for Message {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

impl Hint for Message {
    fn inner(&self) -> Option<&(dyn Hint + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Hint + 'static))
    }
}

impl From<&'static str> for Box<dyn Hint + Send + Sync> {
    fn from(text: &'static str) -> Self {
        Self::from(Message::new(text))
    }
}

impl From<String> for Box<dyn Hint + Send + Sync> {
    fn from(text: String) -> Self {
        Self::from(Message::new(text))
    }
}

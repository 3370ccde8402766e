//! A request to a server, before mirrors and redirects: method, URL, headers and body.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use ureq::http::{HeaderName, Method};

/// Headers of a request.
pub type Headers = Vec<(HeaderName, String)>;

/// The body of a request, which can be read again for a retry.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// No body and no length.
    None,
    Bytes(&'a [u8]),
    /// A part of a file.
    Range {
        /// The file, which must not change in the meantime.
        file: &'a File,
        /// Start of the part in bytes.
        offset: u64,
        len: u64,
    },
}

impl<'a> Payload<'a> {
    /// Its length in bytes.
    pub fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Range { len, .. } => *len,
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes, if they are in memory.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Bytes(bytes) => Some(bytes),
            Self::None | Self::Range { .. } => None,
        }
    }

    /// A reader of the bytes; `None` without a body.
    pub(crate) fn reader(&self) -> Option<Box<dyn Read + 'a>> {
        match *self {
            Self::None => None,
            Self::Bytes(bytes) => Some(Box::new(bytes)),
            Self::Range { file, offset, len } => Some(Box::new(RangeReader { file, offset, left: len })),
        }
    }
}

/// Reads a part of a file without moving the file position, which is shared.
struct RangeReader<'a> {
    file: &'a File,
    offset: u64,
    left: u64,
}

impl Read for RangeReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let len = self.file.read_at(&mut buffer[..most], self.offset)?;
        if len == 0 && most > 0 {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "file was truncated while it was being read"));
        }
        self.offset += len as u64;
        self.left -= len as u64;
        Ok(len)
    }
}

/// A request. Settings that all requests share are in the [`Client`](super::Client).
#[derive(Clone)]
pub struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: &'a str,
    pub(super) headers: Headers,
    pub(super) payload: Payload<'a>,
    /// Whether mirrors apply to the URL.
    pub(super) mirrors: bool,
    /// Whether the URL was chosen by a server; the user's token is not sent to it.
    pub(super) anonymous: bool,
    /// Whether the body is a secret, which redirects must not carry to another server.
    pub(super) confined: bool,
}

/// Headers and body may contain credentials.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url)
    }
}

impl<'a> Request<'a> {
    pub fn get(url: &'a str) -> Self {
        Self::new(Method::GET, url, Payload::None)
    }

    pub fn head(url: &'a str) -> Self {
        Self::new(Method::HEAD, url, Payload::None)
    }

    pub fn post(url: &'a str, body: &'a [u8]) -> Self {
        Self::new(Method::POST, url, Payload::Bytes(body))
    }

    pub fn put(url: &'a str, payload: Payload<'a>) -> Self {
        Self::new(Method::PUT, url, payload)
    }

    /// A request with any method.
    pub fn of(method: Method, url: &'a str, body: &'a [u8]) -> Self {
        Self::new(method, url, Payload::Bytes(body))
    }

    fn new(method: Method, url: &'a str, payload: Payload<'a>) -> Self {
        Self { method, url, headers: Headers::new(), payload, mirrors: true, anonymous: false, confined: false }
    }

    #[must_use]
    pub fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    #[must_use]
    pub fn headers(mut self, headers: &[(HeaderName, String)]) -> Self {
        self.headers.extend_from_slice(headers);
        self
    }

    /// Ignores mirrors.
    #[must_use]
    pub fn without_mirrors(self) -> Self {
        Self { mirrors: false, ..self }
    }

    /// Sends no token of the user: the URL was chosen by a server.
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { anonymous: true, ..self }
    }

    /// Refuses redirects to another server: the body is a secret.
    #[must_use]
    pub fn confined(self) -> Self {
        Self { confined: true, ..self }
    }
}

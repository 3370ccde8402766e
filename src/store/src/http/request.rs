//! What is asked of a server, before mirrors and redirects: a method, an address, headers and a body.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use ureq::http::{HeaderName, Method};

/// Headers of a request, each with its value.
pub type Headers = Vec<(HeaderName, String)>;

/// What a request sends. It can be read again, when the request is repeated.
#[derive(Clone, Copy, Debug)]
pub enum Payload<'a> {
    /// Nothing, not even a length.
    None,
    /// Bytes in memory.
    Bytes(&'a [u8]),
    /// A part of a file.
    Range {
        /// The file, which must not change meanwhile.
        file: &'a File,
        /// Where the part begins, in bytes.
        offset: u64,
        /// Its length in bytes.
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

    /// Whether it has no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Its bytes, where they are in memory.
    pub(super) fn bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Self::Bytes(bytes) => Some(bytes),
            Self::None | Self::Range { .. } => None,
        }
    }

    /// Its bytes from the first one; `None` where nothing is to be sent.
    pub(crate) fn reader(&self) -> Option<Box<dyn Read + 'a>> {
        match *self {
            Self::None => None,
            Self::Bytes(bytes) => Some(Box::new(bytes)),
            Self::Range { file, offset, len } => Some(Box::new(RangeReader { file, offset, left: len })),
        }
    }
}

/// Reads a part of a file without moving its position, which others may use at the same time.
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
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file has become shorter"));
        }
        self.offset += len as u64;
        self.left -= len as u64;
        Ok(len)
    }
}

/// A request. It says all that is special about it; the [`Client`](super::Client) has what all requests share.
#[derive(Clone)]
pub struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: &'a str,
    pub(super) headers: Headers,
    pub(super) payload: Payload<'a>,
    /// Whether a mirror may answer in place of the address.
    pub(super) mirrors: bool,
    /// Whether the address is one that a server has named, which gets nothing of the user's own.
    pub(super) anonymous: bool,
    /// Whether what is sent is a secret, which no redirect may carry to another place.
    pub(super) confined: bool,
}

/// Headers may have credentials, and so may what is sent.
impl fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.url)
    }
}

impl<'a> Request<'a> {
    /// Asks for what is at `url`.
    pub fn get(url: &'a str) -> Self {
        Self::new(Method::GET, url, Payload::None)
    }

    /// Asks for the headers of what is at `url`.
    pub fn head(url: &'a str) -> Self {
        Self::new(Method::HEAD, url, Payload::None)
    }

    /// Sends `body` to `url`.
    pub fn post(url: &'a str, body: &'a [u8]) -> Self {
        Self::new(Method::POST, url, Payload::Bytes(body))
    }

    /// Puts `payload` at `url`.
    pub fn put(url: &'a str, payload: Payload<'a>) -> Self {
        Self::new(Method::PUT, url, payload)
    }

    /// Sends `body` to `url` by any method.
    pub fn of(method: Method, url: &'a str, body: &'a [u8]) -> Self {
        Self::new(method, url, Payload::Bytes(body))
    }

    fn new(method: Method, url: &'a str, payload: Payload<'a>) -> Self {
        Self { method, url, headers: Headers::new(), payload, mirrors: true, anonymous: false, confined: false }
    }

    /// Adds a header.
    #[must_use]
    pub fn header(mut self, name: HeaderName, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Adds headers.
    #[must_use]
    pub fn headers(mut self, headers: &[(HeaderName, String)]) -> Self {
        self.headers.extend_from_slice(headers);
        self
    }

    /// Asks the address itself, whatever mirrors there are.
    #[must_use]
    pub fn without_mirrors(self) -> Self {
        Self { mirrors: false, ..self }
    }

    /// Leaves out the user's token: a server has named the address.
    #[must_use]
    pub fn anonymous(self) -> Self {
        Self { anonymous: true, ..self }
    }

    /// Refuses redirects to another place: what is sent is a secret.
    #[must_use]
    pub fn confined(self) -> Self {
        Self { confined: true, ..self }
    }
}

//! What is asked of a server, before mirrors and redirects: a method, an address, headers and a body.

use ureq::http::{HeaderName, Method};

/// Headers of a request, each with its value.
pub type Headers = Vec<(HeaderName, String)>;

/// A request. It says all that is special about it; the [`Client`](super::Client) has what all requests share.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub(super) method: Method,
    pub(super) url: &'a str,
    pub(super) headers: Headers,
    pub(super) body: &'a [u8],
    /// Whether a mirror may answer in place of the address.
    pub(super) mirrors: bool,
    /// Whether the address is one that a server has named, which gets nothing of the user's own.
    pub(super) anonymous: bool,
}

impl<'a> Request<'a> {
    /// Asks for what is at `url`.
    pub fn get(url: &'a str) -> Self {
        Self::new(Method::GET, url, &[])
    }

    /// Sends `body` to `url`.
    pub fn post(url: &'a str, body: &'a [u8]) -> Self {
        Self::new(Method::POST, url, body)
    }

    fn new(method: Method, url: &'a str, body: &'a [u8]) -> Self {
        Self { method, url, headers: Headers::new(), body, mirrors: true, anonymous: false }
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
}

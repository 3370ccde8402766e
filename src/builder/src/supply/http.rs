//! HTTP for everything that vmbake downloads: mirrors, proxies, bounded redirects, retries, bounded waiting.
//!
//! A URL enters, a bounded document or a stream leaves. Nothing that leaves is trusted: the caller proves it. Proxies come
//! from the environment (`https_proxy`, `no_proxy`, …) and the roots of TLS from the operating system, or from
//! `SSL_CERT_FILE`. Retries wait with a growing pause, or as long as `Retry-After` (RFC 9110, section 10.2.3) asks.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use crate::hint::Hint;

use ureq::Agent;
use ureq::http::{HeaderMap, Method, Response, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};

pub use mirror::{InvalidMirror, Mirror, Mirrors};
pub use pace::{Deadline, Timeouts};
pub use retry::{ATTEMPTS, pause, retry};

use hops::Hops;
use pace::Paced;
pub(crate) use pace::broken;

mod hops;
mod mirror;
mod pace;
mod retry;

/// Redirects that are followed for one request. Release sites need two.
const MAX_REDIRECTS: usize = 5;

/// Why something could not be downloaded.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum HttpError {
    #[error("{url}: not an http or https address")]
    Invalid { url: String },
    #[error("{url}: no answer")]
    Transport { url: String, source: Box<ureq::Error> },
    #[error("{url}: the connection broke after {received} bytes")]
    Broken { url: String, received: u64, source: std::io::Error },
    #[error("{url}: the server answers {status}")]
    Status { url: String, status: u16, retry_after: Option<Duration>, challenge: Option<String> },
    #[error("{url}: more than {MAX_REDIRECTS} redirects")]
    Redirects { url: String },
    #[error("{url}: redirects from https to {target}")]
    Downgrade { url: String, target: String },
    #[error("{url}: redirects with {status} to {target}, where a POST would become something else")]
    Method { url: String, status: u16, target: String },
    #[error("{url}: more than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
    #[error("{url}: only {bytes} bytes came in {seconds:.1} seconds")]
    Slow { url: String, bytes: u64, seconds: f32 },
    #[error("{url}: not complete after {seconds:.1} seconds")]
    Deadline { url: String, seconds: f32 },
}

impl Hint for HttpError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Status { url, status: 403 | 429, .. } if url.contains("github") => {
                "GITHUB_TOKEN raises the limit of GitHub's API, which is 60 requests an hour without it"
            }
            Self::Transport { .. } | Self::Broken { .. } | Self::Slow { .. } | Self::Deadline { .. } => {
                "--mirror PREFIX=URL asks another place; https_proxy names a proxy, SSL_CERT_FILE more authorities"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl HttpError {
    /// Whether the same request may succeed a little later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Transport { source, .. } => !matches!(**source, ureq::Error::Tls(_) | ureq::Error::Rustls(_)),
            Self::Broken { .. } | Self::Slow { .. } => true,
            Self::Status { status, .. } => matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504),
            _ => false,
        }
    }

    /// Whether the server says that there is nothing at that address.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Status { status: 404 | 410, .. })
    }
}

/// An HTTP client; cheap to share between threads, and to clone.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    mirrors: Mirrors,
    github_token: Option<String>,
    limits: Timeouts,
}

/// The start of an answer whose body is still to be read.
#[derive(Debug)]
pub struct Answer {
    /// Where it came from, after mirrors and redirects.
    pub url: String,
    /// Its status; 2xx always.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    body: ureq::Body,
    limits: Timeouts,
    deadline: Deadline,
}

impl Answer {
    /// The body, without limit to its length: the reader counts.
    pub fn into_reader(self) -> impl Read {
        Paced::new(self.body.into_with_config().limit(u64::MAX).reader(), self.limits, self.deadline)
    }

    /// The whole body, if it has at most `limit` bytes.
    pub fn read(self, limit: u64) -> Result<Vec<u8>, HttpError> {
        let url = self.url.clone();
        let mut content = Vec::new();
        let result = self.into_reader().take(limit.saturating_add(1)).read_to_end(&mut content);
        let received = content.len() as u64;
        match result {
            Ok(_) if received > limit => Err(HttpError::TooLarge { url, limit }),
            Ok(_) => Ok(content),
            Err(source) => Err(broken(&url, received, source)),
        }
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

impl Client {
    /// A client that asks `mirrors` in place of the addresses they stand for.
    pub fn new(mirrors: Mirrors) -> Self {
        Self::with_limits(mirrors, Timeouts::default())
    }

    /// A client that asks other things of servers.
    pub fn with_limits(mirrors: Mirrors, limits: Timeouts) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(limits.silence))
            .timeout_recv_response(Some(limits.silence))
            .timeout_per_read(Some(limits.silence))
            .user_agent(concat!("vmbake/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        // One that was read from a file may end with a newline, which no header can have.
        let token = std::env::var("GITHUB_TOKEN").ok().map(|token| token.trim().to_owned());
        Self { agent, mirrors, github_token: token.filter(|token| !token.is_empty()), limits }
    }

    /// The same client without the user's token, for addresses that a server has named.
    pub fn anonymous(&self) -> Self {
        Self { github_token: None, ..self.clone() }
    }

    /// What it asks of servers.
    pub fn limits(&self) -> &Timeouts {
        &self.limits
    }

    /// The document at `url`, of at most `limit` bytes; asks again when that may help.
    pub fn get(&self, url: &str, limit: u64) -> Result<Vec<u8>, HttpError> {
        self.document(&Method::GET, url, &BTreeMap::new(), "", |answer| answer.read(limit))
    }

    /// The answer to a JSON document posted to `url`.
    pub fn post_json(&self, url: &str, body: &str, limit: u64) -> Result<Vec<u8>, HttpError> {
        let headers = BTreeMap::from([(header::CONTENT_TYPE.as_str(), "application/json".to_owned())]);
        self.document(&Method::POST, url, &headers, body, |answer| answer.read(limit))
    }

    /// What `read` makes of the answer from `url`, asked again when that may help.
    pub fn get_with<T>(
        &self,
        url: &str,
        headers: &BTreeMap<&str, String>,
        read: impl Fn(Answer) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        self.document(&Method::GET, url, headers, "", read)
    }

    fn document<T>(
        &self,
        method: &Method,
        url: &str,
        headers: &BTreeMap<&str, String>,
        body: &str,
        read: impl Fn(Answer) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let deadline = Deadline::after(self.limits.document);
        retry(|| read(self.send(method, url, headers, body, deadline)?))
    }

    /// The start of the answer from `url`, asked once, whose body must be there at the deadline.
    pub fn open(&self, url: &str, headers: &BTreeMap<&str, String>, deadline: Deadline) -> Result<Answer, HttpError> {
        self.send(&Method::GET, url, headers, "", deadline)
    }

    /// Makes one request and follows its redirects.
    fn send(
        &self,
        method: &Method,
        url: &str,
        headers: &BTreeMap<&str, String>,
        body: &str,
        deadline: Deadline,
    ) -> Result<Answer, HttpError> {
        let mut next = self.mirrors.map(url);
        let mut hops = Hops::new(parse(&next)?, method, headers, body, self.github_token.as_deref());
        for _ in 0..=MAX_REDIRECTS {
            deadline.check(&next)?;
            let uri = parse(&next)?;
            let transport = |source| HttpError::Transport { url: next.clone(), source: Box::new(source) };
            let response = self.agent.run(hops.request(&uri)?).map_err(transport)?;
            match hops.next(&uri, &response)? {
                Some(target) => next = self.mirrors.map(&target),
                None => return self.answer(next, response, deadline),
            }
        }
        Err(HttpError::Redirects { url: url.to_owned() })
    }

    fn answer(&self, url: String, response: Response<ureq::Body>, deadline: Deadline) -> Result<Answer, HttpError> {
        let (head, body) = response.into_parts();
        if head.status.is_success() {
            return Ok(Answer { url, status: head.status, headers: head.headers, body, limits: self.limits, deadline });
        }
        Err(refused(url, head.status, &head.headers))
    }
}

fn parse(url: &str) -> Result<Uri, HttpError> {
    let uri: Uri = url.parse().map_err(|_| HttpError::Invalid { url: url.to_owned() })?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(HttpError::Invalid { url: url.to_owned() }),
    }
}

/// The scheme that a reference starts with, if it has one; the case of its letters does not matter (RFC 3986, section 3.1).
pub(crate) fn scheme(reference: &str) -> Option<String> {
    let (scheme, _) = reference.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

/// What a status other than 2xx means.
fn refused(url: String, status: StatusCode, headers: &HeaderMap) -> HttpError {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(header::RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
    // A registry may offer several ways, each in a header of its own.
    let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenge = challenges.max_by_key(|value| value.to_ascii_lowercase().starts_with("bearer "));
    HttpError::Status { url, status: status.as_u16(), retry_after, challenge: challenge.map(str::to_owned) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_anonymous_client_has_no_token() {
        let client = Client { github_token: Some("t".to_owned()), ..Client::new(Mirrors::default()) };
        assert!(client.anonymous().github_token.is_none());
    }
}

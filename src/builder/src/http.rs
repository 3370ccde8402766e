//! HTTP for everything that vmbake downloads: mirrors, proxies, bounded redirects, retries.
//!
//! A URL enters, a bounded document or a stream leaves. Nothing that leaves is trusted: the caller proves it. Proxies come
//! from the environment (`https_proxy`, `no_proxy`, …) and the roots of TLS from the operating system, or from
//! `SSL_CERT_FILE`. Retries wait with a growing pause, or as long as `Retry-After` (RFC 9110, section 10.2.3) asks.

use std::collections::BTreeMap;
use std::io::Read;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{HeaderMap, Method, Request, Response, StatusCode, Uri, header};
use ureq::tls::{RootCerts, TlsConfig};

pub use mirror::{InvalidMirror, Mirror, Mirrors};
pub use retry::{ATTEMPTS, pause, retry};

mod mirror;
mod retry;

/// Redirects that are followed for one request. Release sites need two.
const MAX_REDIRECTS: usize = 5;
/// A server that is silent for this long is gone.
const SILENCE: Duration = Duration::from_secs(30);
/// Host of the API that takes `GITHUB_TOKEN`, whose limit for anonymous requests is 60 an hour.
const GITHUB_API: &str = "api.github.com";

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
    #[error("{url}: more than {limit} bytes")]
    TooLarge { url: String, limit: u64 },
}

impl HttpError {
    /// Whether the same request may succeed a little later.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Transport { source, .. } => !matches!(**source, ureq::Error::Tls(_) | ureq::Error::Rustls(_)),
            Self::Broken { .. } => true,
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
}

impl Answer {
    /// The body, without limit: the reader counts.
    pub fn into_reader(self) -> impl Read {
        self.body.into_with_config().limit(u64::MAX).reader()
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
            Err(source) => Err(HttpError::Broken { url, received, source }),
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
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(SILENCE))
            .timeout_recv_response(Some(SILENCE))
            .timeout_per_read(Some(SILENCE))
            .user_agent(concat!("vmbake/", env!("CARGO_PKG_VERSION")))
            .build()
            .new_agent();
        // One that was read from a file may end with a newline, which no header can have.
        let token = std::env::var("GITHUB_TOKEN").ok().map(|token| token.trim().to_owned());
        Self { agent, mirrors, github_token: token.filter(|token| !token.is_empty()) }
    }

    /// The document at `url`, of at most `limit` bytes; asks again when that may help.
    pub fn get(&self, url: &str, limit: u64) -> Result<Vec<u8>, HttpError> {
        retry(|| self.open(url, &BTreeMap::new())?.read(limit))
    }

    /// The answer to a JSON document posted to `url`.
    pub fn post_json(&self, url: &str, body: &str, limit: u64) -> Result<Vec<u8>, HttpError> {
        let headers = BTreeMap::from([(header::CONTENT_TYPE.as_str(), "application/json".to_owned())]);
        retry(|| self.send(&Method::POST, url, &headers, body)?.read(limit))
    }

    /// The start of the answer from `url`, asked once.
    pub fn open(&self, url: &str, headers: &BTreeMap<&str, String>) -> Result<Answer, HttpError> {
        self.send(&Method::GET, url, headers, "")
    }

    /// Makes one request and follows its redirects. `Authorization` goes to the first host only.
    fn send(
        &self,
        method: &Method,
        url: &str,
        headers: &BTreeMap<&str, String>,
        body: &str,
    ) -> Result<Answer, HttpError> {
        let mut next = self.mirrors.map(url);
        let first_host = parse(&next)?.authority().cloned();
        for _ in 0..=MAX_REDIRECTS {
            let uri = parse(&next)?;
            let same_host = uri.authority().cloned() == first_host;
            let mut request = Request::builder().method(method).uri(uri.clone());
            for (name, value) in headers.iter().filter(|(name, _)| same_host || **name != "authorization") {
                request = request.header(*name, value);
            }
            if let Some(token) = self.github_token.as_ref().filter(|_| is_github_api(&uri)) {
                request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
            }
            let invalid = |_| HttpError::Invalid { url: next.clone() };
            let request = request.body(body.to_owned()).map_err(invalid)?;
            let transport = |source| HttpError::Transport { url: next.clone(), source: Box::new(source) };
            let response = self.agent.run(request).map_err(transport)?;
            match redirect_target(&uri, &response) {
                Some(target) => next = self.mirrors.map(&target?),
                None => return answer(next, response),
            }
        }
        Err(HttpError::Redirects { url: url.to_owned() })
    }
}

fn parse(url: &str) -> Result<Uri, HttpError> {
    let uri: Uri = url.parse().map_err(|_| HttpError::Invalid { url: url.to_owned() })?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(HttpError::Invalid { url: url.to_owned() }),
    }
}

fn is_github_api(uri: &Uri) -> bool {
    uri.scheme_str() == Some("https") && uri.host() == Some(GITHUB_API)
}

/// Where a 3xx answer points to (RFC 9110, section 15.4); `None` for every other answer.
fn redirect_target(from: &Uri, response: &Response<ureq::Body>) -> Option<Result<String, HttpError>> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let target = response.headers().get(header::LOCATION)?.to_str().ok()?;
    let url = from.to_string();
    let scheme = scheme(target);
    if from.scheme_str() == Some("https") && scheme.as_deref() == Some("http") {
        return Some(Err(HttpError::Downgrade { url, target: target.to_owned() }));
    }
    let absolute = if let Some(rest) = target.strip_prefix("//") {
        format!("{}://{rest}", from.scheme_str()?)
    } else if target.starts_with('/') {
        format!("{}://{}{target}", from.scheme_str()?, from.authority()?)
    } else if scheme.is_some() {
        target.to_owned()
    } else {
        let folder = from.path().rsplit_once('/').map_or("", |(folder, _)| folder);
        format!("{}://{}{folder}/{target}", from.scheme_str()?, from.authority()?)
    };
    Some(Ok(absolute))
}

/// The scheme that a reference starts with, if it has one; the case of its letters does not matter (RFC 3986, section 3.1).
pub(crate) fn scheme(reference: &str) -> Option<String> {
    let (scheme, _) = reference.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

fn answer(url: String, response: Response<ureq::Body>) -> Result<Answer, HttpError> {
    let (head, body) = response.into_parts();
    if !head.status.is_success() {
        let text = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let retry_after = text(header::RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
        // A registry may offer several ways, each in a header of its own.
        let challenges = head.headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
        let challenge = challenges.max_by_key(|value| value.to_ascii_lowercase().starts_with("bearer "));
        let challenge = challenge.map(str::to_owned);
        return Err(HttpError::Status { url, status: head.status.as_u16(), retry_after, challenge });
    }
    Ok(Answer { url, status: head.status, headers: head.headers, body })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_are_resolved_against_the_address_they_come_from() {
        let from: Uri = "https://a.example/x/y?z".parse().unwrap();
        let target = |location: &str| {
            let response = Response::builder().status(302).header("location", location);
            redirect_target(&from, &response.body(ureq::Body::builder().data("")).unwrap()).unwrap()
        };
        assert_eq!(target("https://b.example/q").unwrap(), "https://b.example/q");
        assert_eq!(target("/q").unwrap(), "https://a.example/q");
        assert_eq!(target("q").unwrap(), "https://a.example/x/q");
        assert_eq!(target("//b.example/q").unwrap(), "https://b.example/q");
        assert_eq!(target("q?next=http://b.example/").unwrap(), "https://a.example/x/q?next=http://b.example/");
        assert_eq!(target("HTTPS://b.example/q").unwrap(), "HTTPS://b.example/q");
        for plain in ["http://b.example/q", "HTTP://b.example/q", "hTTp://b.example/q"] {
            assert!(matches!(target(plain), Err(HttpError::Downgrade { .. })), "{plain}");
        }
    }
}

//! The HTTP client for all downloads: mirrors, proxies, bounded redirects, retries and time limits.
//!
//! Input: a [`Request`]. Output: an [`Answer`], read as a bounded document or a stream. Nothing received is trusted:
//! the caller verifies it. Proxies come from the environment (`https_proxy`, `no_proxy`, …), TLS roots from the
//! operating system or `SSL_CERT_FILE`. [`Retry`] is the common retry policy: exponential back-off, or the delay in
//! `Retry-After` (RFC 9110, section 10.2.3).

use std::sync::Arc;
use std::time::Duration;

use ureq::http::{self, Uri};
use ureq::tls::{RootCerts, TlsConfig};
use ureq::{Agent, SendBody};

use vmbake_common::address::{self, UrlCredentials};
use vmbake_common::hint::Hint;

pub use answer::Answer;
pub use api::{Api, ApiLimits, Reply};
pub use limits::{Deadline, Limits};
pub use mirror::{InvalidMirror, Mirror, Mirrors};
pub use request::{Headers, Payload, Request};
pub use retry::{Failures, Retry, is_temporary_status, jitter};
pub use ureq::http::{Method, header};

pub(crate) use limits::broken;
use redirect::RedirectChain;

mod request;
mod redirect;
mod answer;
mod api;
mod mirror;
mod limits;
mod retry;

/// Factor for the idle timeout after an upload: servers hash and copy the data before they respond.
const PATIENCE: u32 = 10;
/// Maximum number of redirects for a request. Release sites need two.
const MAX_REDIRECTS: usize = 5;

/// Why an HTTP request failed.
#[derive(Debug, thiserror::Error)]
pub enum HttpError {
    #[error("{url}: not an http or https URL")]
    Invalid { url: String },
    #[error("{url}: request failed")]
    Transport { url: String, source: Box<ureq::Error> },
    #[error("{url}: connection lost after {received} bytes")]
    Broken {
        url: String,
        /// Bytes of the body received.
        received: u64,
        source: std::io::Error,
    },
    #[error("{url}: the server returned status {status}")]
    Status {
        url: String,
        /// The status, never 2xx.
        status: u16,
        /// The delay that the server requests, if any.
        retry_after: Option<Duration>,
        /// The authentication challenge of the server, if any.
        challenge: Option<String>,
    },
    #[error("{url}: {source}")]
    Credentials { url: String, source: UrlCredentials },
    #[error("{url}: more than {MAX_REDIRECTS} redirects")]
    Redirects { url: String },
    #[error("{url}: insecure redirect from https to {target}")]
    Downgrade { url: String, target: String },
    #[error("{url}: redirect with status {status} to {target} would not repeat the POST request")]
    Method {
        url: String,
        /// 301, 302 or 303.
        status: u16,
        target: String,
    },
    #[error("{url}: refusing to send a secret to redirect target {target}")]
    Elsewhere { url: String, target: String },
    #[error("{url}: larger than the limit of {limit} bytes")]
    TooLarge {
        url: String,
        /// The maximum length in bytes.
        limit: u64,
    },
    #[error("{url}: too slow: received {bytes} bytes in {seconds:.1} seconds")]
    Slow {
        url: String,
        bytes: u64,
        /// The time spent waiting for them.
        seconds: f32,
    },
    #[error("{url}: not complete after {seconds:.1} seconds")]
    Deadline { url: String, seconds: f32 },
}

impl Hint for HttpError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Status { url, status: 403 | 429, .. } if url.contains("github") => {
                "set GITHUB_TOKEN to raise the rate limit of GitHub's API, which is 60 requests an hour without it"
            }
            Self::Transport { .. } | Self::Broken { .. } | Self::Slow { .. } | Self::Deadline { .. } => {
                "use --mirror PREFIX=URL for a mirror, https_proxy for a proxy, SSL_CERT_FILE for additional certificate authorities"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(; Broken, Credentials);
}

impl HttpError {
    /// Whether a retry may succeed.
    pub fn is_temporary(&self) -> bool {
        match self {
            Self::Transport { source, .. } => !matches!(**source, ureq::Error::Tls(_) | ureq::Error::Rustls(_)),
            Self::Broken { .. } | Self::Slow { .. } => true,
            // Some servers use this status for rate limits, and state the delay.
            Self::Status { status: 403, retry_after, .. } => retry_after.is_some(),
            Self::Status { status, .. } => is_temporary_status(*status),
            _ => false,
        }
    }

    /// Whether the request certainly did not reach the server: there was no connection.
    pub fn is_unsent(&self) -> bool {
        match self {
            Self::Invalid { .. } | Self::Credentials { .. } => true,
            Self::Transport { source, .. } => match &**source {
                ureq::Error::HostNotFound | ureq::Error::ConnectionFailed | ureq::Error::BadUri(_) => true,
                ureq::Error::Tls(_) | ureq::Error::Rustls(_) => true,
                ureq::Error::Timeout(ureq::Timeout::Resolve | ureq::Timeout::Connect) => true,
                ureq::Error::Io(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
                _ => false,
            },
            _ => false,
        }
    }

    /// Whether the server reports that the file does not exist.
    pub fn is_absent(&self) -> bool {
        matches!(self, Self::Status { status: 404 | 410, .. })
    }
}

/// An HTTP client; cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct Client {
    agent: Agent,
    mirrors: Mirrors,
    github_token: Option<String>,
    limits: Limits,
}

impl Client {
    /// A client that uses `mirrors` for the URLs that they cover.
    pub fn new(mirrors: Mirrors) -> Self {
        Self::with_limits(mirrors, Limits::default())
    }

    /// A client with other time limits.
    pub fn with_limits(mirrors: Mirrors, limits: Limits) -> Self {
        let crypto = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = TlsConfig::builder()
            .unversioned_rustls_crypto_provider(crypto)
            .root_certs(RootCerts::PlatformVerifier)
            .build();
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
        // A token read from a file may end with a newline, which is invalid in a header.
        let token = std::env::var("GITHUB_TOKEN").ok().map(|token| token.trim().to_owned());
        Self { agent, mirrors, github_token: token.filter(|token| !token.is_empty()), limits }
    }

    /// The time limits.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The document at `url`, of at most `limit` bytes.
    pub fn get(&self, url: &str, limit: u64) -> Result<Vec<u8>, HttpError> {
        self.send(&Request::get(url), |answer| answer.read(limit))
    }

    /// Sends a request for a document and passes the response to `read`; retries temporary failures.
    pub fn send<T>(
        &self,
        request: &Request<'_>,
        read: impl Fn(Answer) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        self.send_within(request, self.limits.document, read)
    }

    /// As [`Client::send`], with another time limit for all attempts together.
    pub fn send_within<T>(
        &self,
        request: &Request<'_>,
        allowed: Duration,
        read: impl Fn(Answer) -> Result<T, HttpError>,
    ) -> Result<T, HttpError> {
        let deadline = Deadline::after(allowed);
        self.limits.retry.run(|| read(self.send_once(request, deadline)?))
    }

    /// The URL requested in place of `url`.
    pub fn address(&self, url: &str) -> String {
        self.mirrors.map(url)
    }

    /// Sends a request once, follows redirects and returns the start of the response. The body must be complete by the
    /// deadline.
    pub fn send_once(&self, request: &Request<'_>, deadline: Deadline) -> Result<Answer, HttpError> {
        let mirrored = |url: &str| if request.mirrors { self.mirrors.map(url) } else { url.to_owned() };
        let mut next = mirrored(request.url);
        let mut chain = RedirectChain::new(parse(&next)?, request, self.github_token.as_deref());
        for _ in 0..=MAX_REDIRECTS {
            deadline.check(&next)?;
            let uri = parse(&next)?;
            let transport = |source| HttpError::Transport { url: next.clone(), source: Box::new(source) };
            let response = self.exchange(chain.request(&uri)?).map_err(transport)?;
            match chain.next(&uri, &response)? {
                Some(target) => next = mirrored(&target),
                None => return Answer::new(next, response, self.limits, deadline),
            }
        }
        Err(HttpError::Redirects { url: request.url.to_owned() })
    }

    /// Sends one request. The time limit for uploads allows for a slow connection and for processing by the server.
    fn exchange(&self, request: http::Request<Payload<'_>>) -> Result<http::Response<ureq::Body>, ureq::Error> {
        let (mut parts, payload) = request.into_parts();
        let Some(mut reader) = payload.reader() else { return self.agent.run(http::Request::from_parts(parts, ())) };
        parts.headers.insert(header::CONTENT_LENGTH, payload.len().into());
        let request = http::Request::from_parts(parts, SendBody::from_reader(&mut reader));
        let sending = Duration::from_secs(payload.len() / self.limits.least_rate.max(1));
        let request = self
            .agent
            .configure_request(request)
            .timeout_send_body(Some(self.limits.silence + sending))
            .timeout_recv_response(Some(self.limits.silence * PATIENCE))
            .build();
        self.agent.run(request)
    }
}

fn parse(url: &str) -> Result<Uri, HttpError> {
    if address::has_userinfo(url) {
        return Err(HttpError::Credentials { url: address::redacted(url), source: UrlCredentials });
    }
    let uri: Uri = url.parse().map_err(|_| HttpError::Invalid { url: url.to_owned() })?;
    match uri.scheme_str() {
        Some("http" | "https") => Ok(uri),
        _ => Err(HttpError::Invalid { url: url.to_owned() }),
    }
}

/// Whether a text is an http or https URL with a host.
pub fn is_address(url: &str) -> bool {
    parse(url).is_ok_and(|uri| uri.host().is_some_and(|host| !host.is_empty()))
}

/// The host of a plain HTTP URL, without the brackets of IPv6; `None` for any other text.
pub fn plain_host(url: &str) -> Option<String> {
    let uri = parse(url).ok().filter(|uri| uri.scheme_str() == Some("http"))?;
    Some(uri.host()?.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase())
}

/// Whether two URLs are of the same server, and may receive the same credentials.
pub(crate) fn is_same_server(one: &str, other: &str) -> bool {
    match (parse(one), parse(other)) {
        (Ok(one), Ok(other)) => redirect::origin(&one) == redirect::origin(&other),
        _ => false,
    }
}

/// Resolves a `Location` header in a response from `url`; refuses a downgrade from TLS.
pub(crate) fn located(url: &str, location: &str) -> Result<String, HttpError> {
    redirect::reference_target(&parse(url)?, location)
}

/// The scheme of a URI reference, if it has one; its case does not matter (RFC 3986, section 3.1).
pub(crate) fn scheme(reference: &str) -> Option<String> {
    let (scheme, _) = reference.split_once(':')?;
    let is_scheme = scheme.starts_with(|c: char| c.is_ascii_alphabetic())
        && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    is_scheme.then(|| scheme.to_ascii_lowercase())
}

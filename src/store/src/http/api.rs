//! An HTTP client for APIs: a single exchange whose response has a status and a bounded body. Retries are up to the
//! caller.
//!
//! Mirrors, redirects and the user's tokens are not used: requests may be signed for exactly one URL.

use std::io::Read;
use std::net::IpAddr;
use std::time::Duration;

use ureq::Agent;
use ureq::http::{self, HeaderMap, Method, Uri, header};

use super::{Client, HttpError, Request, parse};

/// Limits for servers of an API.
#[derive(Clone, Copy, Debug)]
pub struct ApiLimits {
    /// Maximum number of idle connections.
    pub connections: usize,
    /// Connect timeout.
    pub connect: Duration,
    /// Timeout for waiting for the server to send.
    pub silence: Duration,
    /// Timeout for waiting for the server to receive. Connections that share a slow line wait for each other.
    pub sending: Duration,
    /// Timeout of the whole exchange.
    pub exchange: Duration,
}

impl Default for ApiLimits {
    /// 64 blocks of 512 KiB that share a line of 1 Mbit/s are sent in four and a half minutes.
    fn default() -> Self {
        let [connect, silence, sending, exchange] = [5, 15, 60, 600].map(Duration::from_secs);
        Self { connections: 4, connect, silence, sending, exchange }
    }
}

/// A response with any status.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn is_success(&self) -> bool {
        matches!(self.status, 200..=299)
    }

    /// A header as text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The delay in seconds that the server requests; dates are not supported.
    pub fn retry_after(&self) -> Option<Duration> {
        self.header(header::RETRY_AFTER.as_str())?.parse().ok().map(Duration::from_secs)
    }
}

/// A client of an API; cheap to clone and to share between threads.
#[derive(Clone, Debug)]
pub struct Api {
    agent: Agent,
    /// Without a proxy, for link-local addresses.
    direct: Agent,
}

impl Client {
    /// A client of an API, with the same proxies and TLS roots.
    pub fn api(&self, limits: ApiLimits) -> Api {
        let base = self.agent.config();
        let agent = |config: ureq::config::ConfigBuilder<ureq::typestate::AgentScope>| {
            config
                .tls_config(base.tls_config().clone())
                .http_status_as_error(false)
                .max_redirects(0)
                .max_redirects_will_error(false)
                .max_idle_connections(limits.connections)
                .max_idle_connections_per_host(limits.connections)
                .timeout_per_call(Some(limits.exchange))
                .timeout_connect(Some(limits.connect))
                .timeout_recv_response(Some(limits.silence))
                .timeout_per_read(Some(limits.silence))
                .timeout_per_write(Some(limits.sending))
                .user_agent(concat!("vmbake/", env!("CARGO_PKG_VERSION")))
                .build()
                .new_agent()
        };
        Api { agent: agent(Agent::config_builder()), direct: agent(Agent::config_builder().proxy(None)) }
    }
}

impl Api {
    /// Sends a request and reads a response of at most `limit` bytes. Errors contain the URL without its query.
    pub fn send(&self, request: &Request<'_>, limit: u64) -> Result<Reply, HttpError> {
        let uri = parse(request.url)?;
        let url = request.url.split('?').next().unwrap_or_default().to_owned();
        let invalid = || HttpError::Invalid { url: url.clone() };
        let mut head = http::Request::builder().method(&request.method).uri(uri.clone());
        for (name, value) in &request.headers {
            head = head.header(name, value);
        }
        let agent = if is_link_local(&uri) { &self.direct } else { &self.agent };
        let response = match request.payload.bytes() {
            Some(bytes) if has_body(&request.method) => agent.run(head.body(bytes).map_err(|_| invalid())?),
            _ => agent.run(head.body(()).map_err(|_| invalid())?),
        };
        let response =
            response.map_err(|source| HttpError::Transport { url: url.clone(), source: Box::new(source) })?;
        let (head, body) = response.into_parts();
        let mut content = Vec::new();
        let result =
            body.into_with_config().limit(u64::MAX).reader().take(limit.saturating_add(1)).read_to_end(&mut content);
        let received = content.len() as u64;
        match result {
            Ok(_) if received > limit => Err(HttpError::TooLarge { url, limit }),
            Ok(_) => Ok(Reply { status: head.status.as_u16(), headers: head.headers, body: content }),
            Err(source) => Err(HttpError::Broken { url, received, source }),
        }
    }
}

/// Whether a request with this method has a body, perhaps an empty one.
fn has_body(method: &Method) -> bool {
    matches!(*method, Method::POST | Method::PUT | Method::PATCH)
}

/// Whether an address is link-local, such as that of an instance's metadata service.
fn is_link_local(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    match host.parse() {
        Ok(IpAddr::V4(address)) => address.is_link_local() || address.is_loopback(),
        Ok(IpAddr::V6(address)) => {
            address.is_loopback() || address.is_unicast_link_local() || address.is_unique_local()
        }
        Err(_) => host.eq_ignore_ascii_case("localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_of_an_instance_are_asked_without_a_proxy() {
        for url in [
            "http://169.254.169.254/latest",
            "http://169.254.170.2/",
            "http://[fd00:ec2::254]/",
            "http://127.0.0.1:1/",
            "http://localhost:1/",
        ] {
            assert!(is_link_local(&url.parse().unwrap()), "{url}");
        }
        for url in ["https://ec2.eu-central-1.amazonaws.com/", "http://10.0.0.1/", "http://169.254.169.254.example/"] {
            assert!(!is_link_local(&url.parse().unwrap()), "{url}");
        }
    }
}

//! Adapts the project's HTTP client to the AWS SDK, which uses it to find credentials: from STS, container endpoints
//! and instance metadata.
//!
//! A call blocks its thread, which does nothing else: credentials are resolved in a separate runtime.

use std::fmt;
use std::sync::{Arc, Mutex};

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use super::plain_http::exposes_credentials;
use vmbake_common::parallel::locked;
use vmbake_store::http::header::{self, HeaderName};
use vmbake_store::http::{Api, ApiLimits, Client, HttpError, Method, Request};

/// Maximum length of a document with credentials.
const MAX_ANSWER: u64 = 1 << 20;

/// Creates connectors that use our client.
pub(super) struct Connectors {
    http: Client,
    allow_http: bool,
    refused: Refused,
}

/// The first URL that was refused for plain HTTP. It is kept here because the SDK turns errors of a connector into
/// text.
#[derive(Clone, Debug, Default)]
pub(super) struct Refused(Arc<Mutex<Option<String>>>);

impl Refused {
    /// Returns the URL and clears it.
    pub(super) fn take(&self) -> Option<String> {
        locked(&self.0).take()
    }

    fn note(&self, url: &str) {
        locked(&self.0).get_or_insert_with(|| url.split('?').next().unwrap_or_default().to_owned());
    }
}

impl Connectors {
    pub(super) fn new(http: &Client, allow_http: bool, refused: &Refused) -> Self {
        Self { http: http.clone(), allow_http, refused: refused.clone() }
    }
}

impl fmt::Debug for Connectors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connectors")
    }
}

impl HttpClient for Connectors {
    fn http_connector(&self, settings: &HttpConnectorSettings, _: &RuntimeComponents) -> SharedHttpConnector {
        let usual = ApiLimits::default();
        let connect = settings.connect_timeout().unwrap_or(usual.connect);
        let silence = settings.read_timeout().unwrap_or(usual.silence);
        let api = self.http.api(ApiLimits { connect, silence, ..usual });
        SharedHttpConnector::new(Connector { api, allow_http: self.allow_http, refused: self.refused.clone() })
    }
}

/// Sends requests.
struct Connector {
    api: Api,
    allow_http: bool,
    refused: Refused,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        HttpConnectorFuture::ready(self.exchange(&request))
    }
}

impl Connector {
    fn exchange(&self, request: &HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let user = |reason: &str| ConnectorError::user(reason.to_owned().into());
        if !self.allow_http && exposes_credentials(request.uri()) {
            self.refused.note(request.uri());
            return Err(user("plain HTTP to another machine"));
        }
        let method =
            Method::from_bytes(request.method().as_bytes()).map_err(|error| ConnectorError::user(error.into()))?;
        let body = request.body().bytes().ok_or_else(|| user("streaming bodies are not supported"))?;
        let mut made = Request::of(method, request.uri(), body);
        // These are set by our client.
        let own = [header::CONTENT_LENGTH, header::HOST];
        for (name, value) in request.headers() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| ConnectorError::user(error.into()))?;
            if !own.contains(&name) {
                made = made.header(name, value);
            }
        }
        let reply = self.api.send(&made, MAX_ANSWER).map_err(failed)?;
        let status = reply.status.try_into().map_err(|_| user("invalid status"))?;
        let mut response = HttpResponse::new(status, reply.body.into());
        for (name, value) in &reply.headers {
            if let Ok(value) = value.to_str() {
                response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(response)
    }
}

/// The SDK retries after time-outs and lost connections.
fn failed(error: HttpError) -> ConnectorError {
    match error.is_temporary() {
        true => ConnectorError::io(error.into()),
        false => ConnectorError::other(error.into(), None),
    }
}

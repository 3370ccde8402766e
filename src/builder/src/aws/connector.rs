//! The project's HTTP client, as the library that finds credentials uses it: for STS, containers' endpoints and instances' metadata.
//!
//! A call blocks its thread, which does nothing else: credentials are looked for in a runtime of their own.

use std::fmt;

use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;

use crate::supply::http::header::{self, HeaderName};
use crate::supply::http::{Api, ApiLimits, Client, HttpError, Method, Request};

/// The longest document with credentials that is read.
const MAX_ANSWER: u64 = 1 << 20;

/// Makes connectors over our client.
pub(super) struct Connectors(Client);

impl Connectors {
    pub(super) fn new(http: &Client) -> Self {
        Self(http.clone())
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
        SharedHttpConnector::new(Connector(self.0.api(ApiLimits { connect, silence, ..usual })))
    }
}

/// Makes requests.
struct Connector(Api);

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
        let method =
            Method::from_bytes(request.method().as_bytes()).map_err(|error| ConnectorError::user(error.into()))?;
        let body = request.body().bytes().ok_or_else(|| user("a body that is a stream"))?;
        let mut made = Request::of(method, request.uri(), body);
        // The length is what is sent, and the host that of the address.
        let own = [header::CONTENT_LENGTH, header::HOST];
        for (name, value) in request.headers() {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| ConnectorError::user(error.into()))?;
            if !own.contains(&name) {
                made = made.header(name, value);
            }
        }
        let reply = self.0.send(&made, MAX_ANSWER).map_err(failed)?;
        let status = reply.status.try_into().map_err(|_| user("a status that is none"))?;
        let mut response = HttpResponse::new(status, reply.body.into());
        for (name, value) in &reply.headers {
            if let Ok(value) = value.to_str() {
                response.headers_mut().append(name.as_str().to_owned(), value.to_owned());
            }
        }
        Ok(response)
    }
}

/// The library repeats what may help: time-outs and broken connections.
fn failed(error: HttpError) -> ConnectorError {
    match error.is_temporary() {
        true => ConnectorError::io(error.into()),
        false => ConnectorError::other(error.into(), None),
    }
}

//! API calls: the request and its response.

use serde::de::DeserializeOwned;

use super::error::AwsError;
use super::service::Service;
use super::xml::Xml;
use vmbake_store::http::{Method, Reply};

/// Default maximum length of a response: a page of a list has some megabytes.
const MAX_ANSWER: u64 = 32 << 20;

/// An unsigned request to a service.
pub(super) struct Call<'a> {
    pub(super) service: Service,
    pub(super) action: &'a str,
    pub(super) method: Method,
    /// Path and query, escaped.
    pub(super) path: &'a str,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: &'a [u8],
    pub(super) resource: Option<&'a str>,
    /// IDs of resources that may not be visible yet.
    pub(super) wait_until_visible: Option<&'a str>,
    pub(super) unsigned_payload: bool,
    pub(super) rate_limited: bool,
    pub(super) not_idempotent: bool,
    pub(super) limit: u64,
}

impl<'a> Call<'a> {
    pub(super) fn get(service: Service, action: &'a str, path: &'a str) -> Self {
        Self::new(service, action, Method::GET, path, b"")
    }

    pub(super) fn post(service: Service, action: &'a str, path: &'a str, body: &'a [u8]) -> Self {
        Self::new(service, action, Method::POST, path, body)
    }

    pub(super) fn put(service: Service, action: &'a str, path: &'a str, body: &'a [u8]) -> Self {
        Self::new(service, action, Method::PUT, path, body)
    }

    fn new(service: Service, action: &'a str, method: Method, path: &'a str, body: &'a [u8]) -> Self {
        let (unsigned_payload, rate_limited, not_idempotent) = (false, false, false);
        let (headers, resource, wait_until_visible, limit) = (Vec::new(), None, None, MAX_ANSWER);
        Self {
            service,
            action,
            method,
            path,
            headers,
            body,
            resource,
            wait_until_visible,
            unsigned_payload,
            rate_limited,
            not_idempotent,
            limit,
        }
    }

    /// Adds a signed header. Its name must be in lower case.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Sets the resource to name in errors.
    pub(super) fn resource(self, resource: &'a str) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// Does not sign the body.
    pub(super) fn unsigned_payload(self) -> Self {
        Self { unsigned_payload: true, ..self }
    }

    /// Applies the rate limit that all threads share.
    pub(super) fn rate_limited(self) -> Self {
        Self { rate_limited: true, ..self }
    }

    /// Retries while a resource that this program has just created is not visible yet.
    pub(super) fn wait_until_visible(self, id: &'a str) -> Self {
        Self { wait_until_visible: Some(id), ..self }
    }

    /// Disables retries if the request may have been processed.
    pub(super) fn not_idempotent(self) -> Self {
        Self { not_idempotent: true, ..self }
    }

    /// Sets the maximum length of the response.
    pub(super) fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }
}

/// A successful response of a service.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) action: String,
    pub(super) reply: Reply,
}

impl Answer {
    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.reply.header(name)
    }

    pub(super) fn body(&self) -> &[u8] {
        &self.reply.body
    }

    /// The body, without a copy.
    pub(super) fn into_body(self) -> Vec<u8> {
        self.reply.body
    }

    /// The error for a missing element.
    pub(super) fn lacks(&self, what: &'static str) -> AwsError {
        AwsError::Answer { action: self.action.clone(), what }
    }

    /// Parses the body as JSON; `what` is its name in errors.
    pub(super) fn json<T: DeserializeOwned>(&self, what: &'static str) -> Result<T, AwsError> {
        serde_json::from_slice(self.body()).map_err(|_| self.lacks(what))
    }

    /// Parses the body as XML.
    pub(super) fn xml(self) -> Result<Xml, AwsError> {
        match String::from_utf8(self.reply.body) {
            Ok(text) => Ok(Xml::new(self.action, text)),
            Err(_) => Err(AwsError::Answer { action: self.action, what: "XML" }),
        }
    }
}

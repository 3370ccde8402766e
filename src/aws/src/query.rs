//! The Query protocol of EC2 and STS: requests as forms, responses in XML.

use super::call::Call;
use super::client::Aws;
use super::error::AwsError;
use super::service::Service;
use super::xml::Xml;

/// Media type of a form.
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// The parameters of an action.
#[derive(Clone)]
pub(super) struct Form {
    action: String,
    pairs: Vec<(String, String)>,
    resource: Option<String>,
    wait_until_visible: Option<String>,
    not_idempotent: bool,
}

impl Form {
    pub(super) fn new(action: &str, version: &str) -> Self {
        let pairs = vec![("Action".to_owned(), action.to_owned()), ("Version".to_owned(), version.to_owned())];
        Self { action: action.to_owned(), pairs, resource: None, wait_until_visible: None, not_idempotent: false }
    }

    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.pairs.push((name.to_owned(), value.into()));
        self
    }

    /// Adds an optional parameter.
    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds filters, all of which must match by one of their values.
    pub(super) fn filters(mut self, filters: &[(&str, &[&str])]) -> Self {
        for (index, (name, values)) in (1..).zip(filters) {
            self = self.with(&format!("Filter.{index}.Name"), *name);
            for (number, value) in (1..).zip(*values) {
                self = self.with(&format!("Filter.{index}.Value.{number}"), *value);
            }
        }
        self
    }

    /// Adds tags for new resources of these types.
    pub(super) fn tagged(mut self, types: &[&str], tags: &[(String, String)]) -> Self {
        if tags.is_empty() {
            return self;
        }
        for (index, kind) in (1..).zip(types) {
            let at = format!("TagSpecification.{index}");
            self = self.with(&format!("{at}.ResourceType"), *kind);
            for (number, (key, value)) in (1..).zip(tags) {
                self =
                    self.with(&format!("{at}.Tag.{number}.Key"), key).with(&format!("{at}.Tag.{number}.Value"), value);
            }
        }
        self
    }

    /// Sets the resource to name in errors.
    pub(super) fn of(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Sets the resource to name in errors, and retries while it is not visible yet.
    pub(super) fn of_new_resource(self, resource: &str) -> Self {
        self.of(resource).wait_until_visible(resource)
    }

    /// Retries while a resource that this program has just created is not visible yet.
    pub(super) fn wait_until_visible(self, id: &str) -> Self {
        Self { wait_until_visible: Some(id.to_owned()), ..self }
    }

    /// Disables retries if the request may have been processed.
    pub(super) fn not_idempotent(self) -> Self {
        Self { not_idempotent: true, ..self }
    }

    /// The action's IAM name.
    pub(super) fn iam(&self, service: Service) -> String {
        service.iam(&self.action)
    }

    fn encode(&self) -> String {
        let pairs: Vec<String> =
            self.pairs.iter().map(|(name, value)| format!("{}={}", escaped(name), escaped(value))).collect();
        pairs.join("&")
    }
}

impl Aws {
    /// Calls an action of the Query protocol.
    pub(super) fn query(&self, service: Service, form: &Form) -> Result<Xml, AwsError> {
        let body = form.encode();
        let mut call = Call::post(service, &form.action, "/", body.as_bytes()).header("content-type", FORM);
        if let Some(resource) = &form.resource {
            call = call.resource(resource);
        }
        if let Some(id) = &form.wait_until_visible {
            call = call.wait_until_visible(id);
        }
        if form.not_idempotent {
            call = call.not_idempotent();
        }
        self.call(&call)?.xml()
    }
}

/// Escapes a value in a form, path or query: everything but unreserved characters (RFC 3986, section 2.3), as
/// signatures require.
pub(super) fn escaped(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

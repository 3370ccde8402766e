//! The Query protocol of EC2 and STS: parameters of an action enter, a form leaves, and XML comes back.

use super::call::Call;
use super::client::Aws;
use super::error::AwsError;
use super::service::Service;
use super::xml::Xml;

/// Type of a form.
const FORM: &str = "application/x-www-form-urlencoded; charset=utf-8";

/// The parameters of an action.
#[derive(Clone)]
pub(super) struct Form {
    action: String,
    pairs: Vec<(String, String)>,
    resource: Option<String>,
    young: Option<String>,
    once: bool,
}

impl Form {
    /// The form of an action in a version of its API.
    pub(super) fn new(action: &str, version: &str) -> Self {
        let pairs = vec![("Action".to_owned(), action.to_owned()), ("Version".to_owned(), version.to_owned())];
        Self { action: action.to_owned(), pairs, resource: None, young: None, once: false }
    }

    /// Adds a parameter.
    pub(super) fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        self.pairs.push((name.to_owned(), value.into()));
        self
    }

    /// Adds a parameter that has a value.
    pub(super) fn with_some(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.with(name, value),
            None => self,
        }
    }

    /// Adds filters, of which all have to fit by one of their values.
    pub(super) fn filters(mut self, filters: &[(&str, &[&str])]) -> Self {
        for (index, (name, values)) in (1..).zip(filters) {
            self = self.with(&format!("Filter.{index}.Name"), *name);
            for (number, value) in (1..).zip(*values) {
                self = self.with(&format!("Filter.{index}.Value.{number}"), *value);
            }
        }
        self
    }

    /// Adds the tags that new resources of some types get.
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

    /// Names in errors what it is done to.
    pub(super) fn of(self, resource: &str) -> Self {
        Self { resource: Some(resource.to_owned()), ..self }
    }

    /// Names in errors what it is done to, and waits for it where this program has just made it.
    pub(super) fn of_young(self, resource: &str) -> Self {
        self.of(resource).young(resource)
    }

    /// Waits for what this program has just made.
    pub(super) fn young(self, id: &str) -> Self {
        Self { young: Some(id.to_owned()), ..self }
    }

    /// Is not to be repeated where it may have been done.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// The action as IAM calls it.
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
    /// Does an action of the Query protocol.
    pub(super) fn query(&self, service: Service, form: &Form) -> Result<Xml, AwsError> {
        let body = form.encode();
        let mut call = Call::post(service, &form.action, "/", body.as_bytes()).header("content-type", FORM);
        if let Some(resource) = &form.resource {
            call = call.resource(resource);
        }
        if let Some(young) = &form.young {
            call = call.young(young);
        }
        if form.once {
            call = call.once();
        }
        self.call(&call)?.xml()
    }
}

/// A value in a form, a path or a query: everything but unreserved characters is escaped (RFC 3986, section 2.3), as signatures demand it.
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

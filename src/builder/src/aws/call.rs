//! One call: a request enters, is signed, sent and repeated as long as that may help, and its answer leaves.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant, SystemTime};

use serde::de::DeserializeOwned;

use super::client::Aws;
use super::error::AwsError;
use super::retry::{Attempts, Next, Policy};
use super::xml::Xml;
use super::{refusal, sign};
use crate::parallel::locked;
use crate::supply::http::header::HeaderName;
use crate::supply::http::{Api, ApiLimits, Client, Headers, HttpError, Method, Reply, Request};

/// Connections that are kept alive: as many threads may put blocks.
const CONNECTIONS: usize = 128;
/// The longest answer that is read, unless a call knows better: a page of a list has some megabytes.
const MAX_ANSWER: u64 = 32 << 20;
/// How long a snapshot or an image may be unknown to a service after it was made.
const YOUTH: Duration = Duration::from_secs(120);

/// A service, as its endpoints and signatures call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Service {
    Ebs,
    Ec2,
    Ssm,
    Sts,
}

impl Service {
    /// All that are asked.
    pub(super) const ALL: [Self; 4] = [Self::Ebs, Self::Ec2, Self::Ssm, Self::Sts];

    /// Its name in endpoints, signatures and policies.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ebs => "ebs",
            Self::Ec2 => "ec2",
            Self::Ssm => "ssm",
            Self::Sts => "sts",
        }
    }

    /// An action as IAM calls it.
    pub(super) fn iam(self, action: &str) -> String {
        format!("{}:{action}", self.name())
    }
}

/// A request to a service, before it is signed.
pub(super) struct Call<'a> {
    service: Service,
    action: &'a str,
    method: Method,
    /// Path and query, escaped.
    path: &'a str,
    headers: Vec<(&'static str, String)>,
    body: &'a [u8],
    resource: Option<&'a str>,
    /// What may not be known yet.
    young: Option<&'a str>,
    unsigned_payload: bool,
    paced: bool,
    once: bool,
    limit: u64,
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
        let (unsigned_payload, paced, once) = (false, false, false);
        let (headers, resource, young, limit) = (Vec::new(), None, None, MAX_ANSWER);
        Self { service, action, method, path, headers, body, resource, young, unsigned_payload, paced, once, limit }
    }

    /// Adds a header, which is signed. Its name is in lower case.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Names in errors what it is done to.
    pub(super) fn resource(self, resource: &'a str) -> Self {
        Self { resource: Some(resource), ..self }
    }

    /// Does not sign the body.
    pub(super) fn unsigned_payload(self) -> Self {
        Self { unsigned_payload: true, ..self }
    }

    /// Counts for the limit of requests in a second that all threads share.
    pub(super) fn paced(self) -> Self {
        Self { paced: true, ..self }
    }

    /// Waits for a snapshot or an image that this program has just made and that the service does not know yet.
    pub(super) fn young(self, id: &'a str) -> Self {
        Self { young: Some(id), ..self }
    }

    /// Is not repeated where it may have been done.
    pub(super) fn once(self) -> Self {
        Self { once: true, ..self }
    }

    /// Reads an answer of at most so many bytes.
    pub(super) fn limit(self, limit: u64) -> Self {
        Self { limit, ..self }
    }
}

/// The answer of a service that did what it was asked for.
#[derive(Debug)]
pub(super) struct Answer {
    action: String,
    reply: Reply,
}

impl Answer {
    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.reply.header(name)
    }

    /// The body.
    pub(super) fn body(&self) -> &[u8] {
        &self.reply.body
    }

    /// The body, without a copy.
    pub(super) fn into_body(self) -> Vec<u8> {
        self.reply.body
    }

    /// The error that it lacks something.
    pub(super) fn lacks(&self, what: &'static str) -> AwsError {
        AwsError::Answer { action: self.action.clone(), what }
    }

    /// The body as a JSON document, which is called `what`.
    pub(super) fn json<T: DeserializeOwned>(&self, what: &'static str) -> Result<T, AwsError> {
        serde_json::from_slice(self.body()).map_err(|_| self.lacks(what))
    }

    /// The body as an XML document.
    pub(super) fn xml(self) -> Result<Xml, AwsError> {
        match String::from_utf8(self.reply.body) {
            Ok(text) => Ok(Xml::new(self.action, text)),
            Err(_) => Err(AwsError::Answer { action: self.action, what: "XML" }),
        }
    }
}

/// How requests reach AWS.
pub(super) struct Transport {
    api: Api,
    pub(super) policy: Policy,
    /// When this program made which snapshots and images.
    made: Mutex<BTreeMap<String, Instant>>,
}

impl Transport {
    pub(super) fn new(http: &Client, limits: ApiLimits, policy: Policy) -> Self {
        let limits = ApiLimits { connections: CONNECTIONS, ..limits };
        Self { api: http.api(limits), policy, made: Mutex::default() }
    }

    /// Notes that a snapshot or an image was just made.
    pub(super) fn made(&self, id: &str) {
        locked(&self.made).insert(id.to_owned(), Instant::now());
    }

    /// Whether a service may still have to hear of one of these, which are separated by commas.
    fn is_young(&self, ids: &str) -> bool {
        let (made, youth) = (locked(&self.made), YOUTH.min(self.policy.total));
        ids.split(", ").any(|id| made.get(id).is_some_and(|made| made.elapsed() < youth))
    }
}

impl Aws {
    /// Makes a call, and repeats it as long as that may help.
    pub(super) fn call(&self, call: &Call<'_>) -> Result<Answer, AwsError> {
        self.call_checked(call, Ok)
    }

    /// The same, with the answer that `read` makes of that of the service; a wrong checksum in it is a reason to repeat the call.
    pub(super) fn call_checked<T>(
        &self,
        call: &Call<'_>,
        read: impl Fn(Answer) -> Result<T, AwsError>,
    ) -> Result<T, AwsError> {
        let mut attempts = Attempts::new(self.shared.transport.policy);
        loop {
            let used = self.shared.identity.credentials()?;
            if call.paced {
                self.pace.wait();
            }
            attempts.begin();
            let (error, retry_after) = match self.attempt(call, &used, attempts.made()) {
                Ok(answer) => match read(answer) {
                    Err(error @ AwsError::Checksum { .. }) => (error, None),
                    result => {
                        if call.paced {
                            self.pace.succeeded();
                        }
                        return result;
                    }
                },
                Err(failure) => failure,
            };
            if call.paced && error.refusal().is_some_and(super::error::Refusal::is_throttled) {
                self.pace.throttled();
            }
            let is_young = call.young.is_some_and(|ids| self.shared.transport.is_young(ids));
            match attempts.next(error, call.once, is_young, retry_after) {
                Next::Again(pause) => std::thread::sleep(pause),
                Next::Renew(error) => {
                    if !self.shared.identity.renew(&used)? {
                        return Err(error);
                    }
                }
                Next::Final(error) => return Err(error),
            }
        }
    }

    /// Makes a call once; an error comes with what `Retry-After` says.
    fn attempt(
        &self,
        call: &Call<'_>,
        credentials: &aws_credential_types::Credentials,
        number: u32,
    ) -> Result<Answer, (AwsError, Option<Duration>)> {
        let action = call.service.iam(call.action);
        let url = match self.shared.endpoints.url(call.service, &self.region) {
            Ok(endpoint) => format!("{endpoint}{}", call.path),
            Err(error) => return Err((error, None)),
        };
        let signable = sign::Signable {
            method: call.method.as_str(),
            url: &url,
            headers: &call.headers,
            body: (!call.unsigned_payload).then_some(call.body),
        };
        let scope = sign::Scope { region: &self.region, service: call.service.name(), time: SystemTime::now() };
        let signed = sign::sign(&signable, credentials, &scope)
            .map_err(|reason| (AwsError::Sign { action: action.clone(), reason }, None))?;
        let request = Request::of(call.method.clone(), &url, call.body).headers(&headers(&call.headers, signed));
        match self.shared.transport.api.send(&request, call.limit) {
            Ok(reply) if reply.is_success() => Ok(Answer { action, reply }),
            Ok(reply) => {
                let mut refusal = refusal::parse(&reply);
                refusal.action = action;
                refusal.resource = call.resource.map(str::to_owned);
                refusal.region = self.region.to_string();
                refusal.attempts = number;
                Err((AwsError::Refused(Box::new(refusal)), reply.retry_after()))
            }
            Err(source) => Err((unanswered(action, source), None)),
        }
    }
}

fn unanswered(action: String, source: HttpError) -> AwsError {
    let may_be_done = !source.is_unsent();
    AwsError::Http { action, may_be_done, source: Box::new(source) }
}

/// The headers of a call, and those that sign it.
fn headers(own: &[(&'static str, String)], signed: Vec<(&'static str, String)>) -> Headers {
    let own = own.iter().map(|(name, value)| (HeaderName::from_static(name), value.clone()));
    own.chain(signed.into_iter().map(|(name, value)| (HeaderName::from_static(name), value))).collect()
}

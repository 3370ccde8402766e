//! Signs and sends calls, and retries them.

use std::time::{Duration, SystemTime};

use super::call::{Answer, Call};
use super::client::Aws;
use super::error::AwsError;
use super::retry::{Attempts, Next};
use super::{refusal, sign};
use vmbake_store::http::header::HeaderName;
use vmbake_store::http::{Headers, HttpError, Request};

impl Aws {
    /// Sends a call and retries failures.
    pub(super) fn call(&self, call: &Call<'_>) -> Result<Answer, AwsError> {
        self.call_checked(call, Ok)
    }

    /// As [`Self::call`], with the response parsed by `read`; a checksum mismatch in it is retried.
    pub(super) fn call_checked<T>(
        &self,
        call: &Call<'_>,
        read: impl Fn(Answer) -> Result<T, AwsError>,
    ) -> Result<T, AwsError> {
        let mut attempts = Attempts::new(self.shared.transport.policy);
        loop {
            let used = self.shared.identity.credentials()?;
            if call.rate_limited {
                self.rate_limit.wait();
            }
            attempts.begin();
            let (error, retry_after) = match self.attempt(call, &used, attempts.made()) {
                Ok(answer) => match read(answer) {
                    Err(error @ AwsError::Checksum { .. }) => (error, None),
                    result => {
                        if call.rate_limited {
                            self.rate_limit.succeeded();
                        }
                        return result;
                    }
                },
                Err(failure) => failure,
            };
            if call.rate_limited && error.refusal().is_some_and(super::error::ServiceRefusal::is_throttled) {
                self.rate_limit.throttled();
            }
            let is_recently_created =
                call.wait_until_visible.is_some_and(|ids| self.shared.transport.is_recently_created(ids));
            match attempts.next(error, call.not_idempotent, is_recently_created, retry_after) {
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

    /// Sends a call once; an error includes the delay from `Retry-After`.
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

/// The headers of a call, including the signature.
fn headers(own: &[(&'static str, String)], signed: Vec<(&'static str, String)>) -> Headers {
    let own = own.iter().map(|(name, value)| (HeaderName::from_static(name), value.clone()));
    own.chain(signed.into_iter().map(|(name, value)| (HeaderName::from_static(name), value))).collect()
}

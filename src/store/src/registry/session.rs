//! Authentication: answers challenges of a registry with the user's credentials.
//!
//! Only challenges of the registry itself are answered, never those of a redirect target.

use std::sync::Mutex;

use base64ct::{Base64, Encoding};

use crate::download::DownloadError;
use crate::http::header::{self, HeaderName};
use crate::http::{Client, HttpError, Request, is_same_server, scheme};
use vmbake_common::message;
use vmbake_common::parallel::locked;
use vmbake_oci::RepositoryName;

use super::challenge::{Challenge, MAX_TOKEN, TokenServer, parse_token};
use super::credentials::{Credential, Credentials, Secret};
use super::error::RegistryError;

/// Maximum number of new tokens per request.
const MAX_RENEWALS: usize = 2;
/// Media type of requests to a token server.
const FORM: &str = "application/x-www-form-urlencoded";

/// The authentication state for a registry.
#[derive(Debug)]
pub(super) struct Session {
    client: Client,
    credentials: Credentials,
    name: RepositoryName,
    /// A URL of the registry, after mirrors.
    place: String,
    /// The required scopes.
    scopes: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Looked up once, on the first challenge.
    credential: Option<Option<Credential>>,
    authorization: Option<Secret>,
}

impl Session {
    pub(super) fn new(
        client: &Client,
        credentials: &Credentials,
        name: &RepositoryName,
        place: String,
        scopes: Vec<String>,
    ) -> Self {
        let (client, credentials, name) = (client.clone(), credentials.clone(), name.clone());
        Self { client, credentials, name, place, scopes, state: Mutex::default() }
    }

    /// Sends a request with authorization; repeats it after the authorization has expired.
    pub(super) fn authorized<T>(
        &self,
        request: impl Fn(&[(HeaderName, String)]) -> Result<T, DownloadError>,
    ) -> Result<T, RegistryError> {
        let headers = |authorization: &Option<Secret>| -> Vec<(HeaderName, String)> {
            authorization.iter().map(|secret| (header::AUTHORIZATION, secret.0.to_string())).collect()
        };
        let mut used = locked(&self.state).authorization.clone();
        for _ in 0..MAX_RENEWALS {
            match request(&headers(&used)) {
                Err(DownloadError::Http(HttpError::Status {
                    status: 401, url, challenge: Some(challenge), ..
                })) if is_same_server(&url, &self.place) => {
                    used = Some(self.renewed(used, &url, challenge)?);
                }
                result => return Ok(result?),
            }
        }
        match request(&headers(&used)) {
            Err(DownloadError::Http(HttpError::Status { status: 401, url, .. })) => Err(self.refused(url)),
            result => Ok(result?),
        }
    }

    /// Replaces an authorization `used` that the registry rejected.
    fn renewed(&self, used: Option<Secret>, url: &str, challenge: String) -> Result<Secret, RegistryError> {
        let mut state = locked(&self.state);
        // Another thread may have renewed it.
        if let Some(newer) = state.authorization.clone().filter(|newer| Some(newer) != used.as_ref()) {
            return Ok(newer);
        }
        if state.credential.is_none() {
            state.credential = Some(self.credentials.of(self.host(), &self.name)?);
        }
        let credential = state.credential.clone().flatten();
        let renewed = match Challenge::parse(&challenge) {
            Some(Challenge::Basic) => match credential {
                Some(Credential::Password { user, password }) if used.is_none() => basic(&user, &password),
                _ => return Err(self.refusal(url.to_owned(), credential.is_some())),
            },
            Some(Challenge::Bearer(server)) => self.token(&server, credential.as_ref(), url, challenge)?,
            None => return Err(RegistryError::Challenge { url: self.name.to_string(), challenge }),
        };
        state.authorization = Some(renewed.clone());
        Ok(renewed)
    }

    fn token(
        &self,
        server: &TokenServer,
        credential: Option<&Credential>,
        asked: &str,
        challenge: String,
    ) -> Result<Secret, RegistryError> {
        let url = self.name.to_string();
        if is_downgrade(asked, &server.realm) {
            return Err(RegistryError::Message(message!("{url}: token endpoint does not use HTTPS: {challenge:?}")));
        }
        let wanted = server.url(&self.scopes);
        let form;
        // The registry chooses the token server, so the user's other tokens must not be sent to it.
        let request = match credential {
            None => Request::get(&wanted),
            Some(Credential::Password { user, password }) => {
                Request::get(&wanted).header(header::AUTHORIZATION, basic(user, password).0.to_string())
            }
            Some(Credential::Identity(identity)) => {
                form = Secret::new(server.form(&self.scopes, &identity.0));
                Request::post(&server.realm, form.0.as_bytes()).header(header::CONTENT_TYPE, FORM).confined()
            }
        };
        let answer = match self.client.send(&request.anonymous(), |answer| answer.read(MAX_TOKEN)) {
            Err(HttpError::Status { status: 400 | 401 | 403, url, .. }) => {
                return Err(self.refusal(url, credential.is_some()));
            }
            answer => answer?,
        };
        let token = parse_token(&answer).ok_or(RegistryError::Challenge { url, challenge })?;
        Ok(Secret::new(format!("Bearer {token}")))
    }

    fn refused(&self, url: String) -> RegistryError {
        let is_known = matches!(locked(&self.state).credential, Some(Some(_)));
        self.refusal(url, is_known)
    }

    fn refusal(&self, url: String, is_known: bool) -> RegistryError {
        let host = self.host().to_owned();
        match is_known {
            true => RegistryError::Denied { url, host },
            false => RegistryError::NoCredentials { url, host },
        }
    }

    /// The host of the registry, with its port if any.
    fn host(&self) -> &str {
        let rest = self.place.split_once("://").map_or(self.place.as_str(), |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }
}

/// A Basic authorization header (RFC 7617).
fn basic(user: &str, password: &Secret) -> Secret {
    let pair = Secret::new(format!("{user}:{}", *password.0));
    Secret::new(format!("Basic {}", Base64::encode_string(pair.0.as_bytes())))
}

/// Whether a registry with TLS names a token server without TLS.
fn is_downgrade(asked: &str, realm: &str) -> bool {
    let is_tls = |url: &str| scheme(url).as_deref() == Some("https");
    is_tls(asked) && !is_tls(realm)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_carried_as_safely_as_the_image() {
        assert!(!is_downgrade("https://r.example/v2/", "https://a.example/token"));
        assert!(!is_downgrade("http://127.0.0.1:5000/v2/", "http://127.0.0.1:5000/token"));
        for realm in ["http://a.example/token", "HTTP://a.example/token", "/token"] {
            assert!(is_downgrade("https://r.example/v2/", realm), "{realm}");
        }
    }
}

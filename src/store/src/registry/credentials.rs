//! The user's registry credentials: from the files of docker and podman, and from the credential helpers that they
//! configure.
//!
//! Searched in this order: `$REGISTRY_AUTH_FILE`, `$DOCKER_CONFIG/config.json`,
//! `$XDG_RUNTIME_DIR/containers/auth.json`, `$XDG_CONFIG_HOME/containers/auth.json`, `~/.config/containers/auth.json`,
//! `~/.docker/config.json`. The first match applies. Messages and debug output never contain credentials.

use std::env;
use std::fmt;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};

use docker_credential::{CredentialRetrievalError, DockerCredential, get_credential_from_reader};
use zeroize::Zeroizing;

use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_oci::RepositoryName;

/// Maximum length of a credentials file.
const MAX_FILE: u64 = 1 << 20;
/// The output of credential helpers for an unknown host.
const UNKNOWN: &str = "credentials not found";
/// Names of Docker Hub in the files.
const DOCKER_HUB: [&str; 2] = ["https://index.docker.io/v1/", "docker.io"];

/// Why credentials cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path}: no usable credentials for {host}: {reason}")]
    Unusable {
        path: PathBuf,
        host: String,
        /// The problem, without quoting the file.
        reason: String,
    },
}

impl Hint for CredentialError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::Unusable { host, .. } => Some(format!("log in again: `docker login {host}`")),
        }
    }

    vmbake_common::causes!(; Read);
}

/// A secret that is never printed and is wiped on drop.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Secret(pub(super) Zeroizing<String>);

impl Secret {
    pub(super) fn new(text: String) -> Self {
        Self(Zeroizing::new(text))
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// Credentials for a registry.
#[derive(Clone, Debug)]
pub(super) enum Credential {
    Password {
        user: String,
        password: Secret,
    },
    /// An identity token (distribution project, "OAuth2").
    Identity(Secret),
}

/// The files to search for credentials.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    files: Vec<PathBuf>,
}

impl Credentials {
    /// No files.
    pub fn none() -> Self {
        Self::default()
    }

    /// These files, in this order.
    pub fn in_files(files: Vec<PathBuf>) -> Self {
        Self { files }
    }

    /// The files of docker and podman for the current user.
    pub fn of_user() -> Self {
        let variable = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let below = |name: &str, rest: &str| variable(name).map(|folder| folder.join(rest));
        let files = [
            variable("REGISTRY_AUTH_FILE"),
            below("DOCKER_CONFIG", "config.json"),
            below("XDG_RUNTIME_DIR", "containers/auth.json"),
            below("XDG_CONFIG_HOME", "containers/auth.json"),
            below("HOME", ".config/containers/auth.json"),
            below("HOME", ".docker/config.json"),
        ];
        Self::in_files(files.into_iter().flatten().collect())
    }

    /// The credentials for a repository of `host`, the registry after mirrors.
    pub(super) fn of(&self, host: &str, name: &RepositoryName) -> Result<Option<Credential>, CredentialError> {
        for path in &self.files {
            let text = match read(path) {
                Ok(text) => text,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
                Err(source) => return Err(CredentialError::Read { path: path.clone(), source }),
            };
            // Only podman's files have entries for repositories; docker's helpers would be called for each name.
            let is_podman = path.file_name().is_none_or(|file| file != "config.json");
            for server in servers(host, name).into_iter().filter(|server| is_podman || !is_repository(server, host)) {
                match get_credential_from_reader(text.as_slice(), &server) {
                    Ok(found) => return Ok(Some(found.into())),
                    Err(error) => {
                        if let Some(reason) = fault(&error) {
                            let host = host.to_owned();
                            return Err(CredentialError::Unusable { path: path.clone(), host, reason });
                        }
                    }
                }
            }
        }
        Ok(None)
    }
}

/// Reads at most [`MAX_FILE`] bytes of a file.
fn read(path: &Path) -> io::Result<Zeroizing<Vec<u8>>> {
    let mut text = Zeroizing::new(Vec::new());
    input::open(path)?.take(MAX_FILE).read_to_end(&mut text)?;
    Ok(text)
}

/// The possible keys for a repository in the files, most specific first.
fn servers(host: &str, name: &RepositoryName) -> Vec<String> {
    if host == "registry-1.docker.io" {
        return DOCKER_HUB.map(str::to_owned).to_vec();
    }
    let mut servers = Vec::new();
    // A mirror may use other repository names.
    if host == name.host() {
        let mut path = Some(name.name());
        while let Some(name) = path {
            servers.push(format!("{host}/{name}"));
            path = name.rsplit_once('/').map(|(above, _)| above);
        }
    }
    servers.push(host.to_owned());
    servers
}

fn is_repository(server: &str, host: &str) -> bool {
    server.strip_prefix(host).is_some_and(|rest| rest.starts_with('/'))
}

/// The problem in an error; `None` if there are just no credentials. The output of a helper is omitted, since it may
/// contain secrets.
fn fault(error: &CredentialRetrievalError) -> Option<String> {
    match error {
        CredentialRetrievalError::NoCredentialConfigured => None,
        CredentialRetrievalError::HelperFailure { stdout, stderr, .. }
            if stdout.contains(UNKNOWN) || stderr.contains(UNKNOWN) =>
        {
            None
        }
        CredentialRetrievalError::HelperFailure { helper, .. } => Some(format!("{helper} failed")),
        other => Some(other.to_string()),
    }
}

impl From<DockerCredential> for Credential {
    fn from(found: DockerCredential) -> Self {
        match found {
            DockerCredential::IdentityToken(token) => Self::Identity(Secret::new(token)),
            DockerCredential::UsernamePassword(user, password) => {
                Self::Password { user, password: Secret::new(password) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str, name: &str) -> Result<Option<Credential>, CredentialError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("auth.json");
        std::fs::write(&path, text).unwrap();
        let name: RepositoryName = name.parse().unwrap();
        let host = if name.host() == "docker.io" { "registry-1.docker.io" } else { name.host() };
        Credentials::in_files(vec![dir.path().join("absent"), path]).of(host, &name)
    }

    fn user(text: &str, name: &str) -> Option<String> {
        match found(text, name).unwrap()? {
            Credential::Password { user, .. } => Some(user),
            Credential::Identity(_) => Some("token".to_owned()),
        }
    }

    #[test]
    fn the_closest_entry_counts() {
        // u:p, v:p
        let text = r#"{"auths": {"r.example": {"auth": "dTpw"}, "r.example/a/b": {"auth": "djpw"},
            "https://index.docker.io/v1/": {"auth": "dTpw"}, "t.example": {"auth": "", "identitytoken": "i"}}}"#;
        for (name, expected) in [
            ("r.example/a/b/c", Some("v")),
            ("r.example/a", Some("u")),
            ("docker.io/library/x", Some("u")),
            ("t.example/x", Some("token")),
            ("r.example:5000/a", None),
            ("r.example.evil.example/a", None),
        ] {
            assert_eq!(user(text, name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn nothing_of_a_credential_is_told() {
        let credential = found(r#"{"auths": {"r.example": {"auth": "dXNlcjpodW50ZXIy"}}}"#, "r.example/a").unwrap();
        assert!(!format!("{credential:?}").contains("hunter2"));
        for wrong in ["{", r#"{"auths": {"r.example": {"auth": "hunter2"}}}"#, "[]"] {
            let error = found(wrong, "r.example/a").unwrap_err();
            assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
        }
    }
}

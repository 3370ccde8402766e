//! Names of images and repositories: `registry.k8s.io/pause:3.10`, `ghcr.io/example/images@sha256:…`.

use std::fmt;
use std::str::FromStr;

use vmbake_common::address;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;

/// A parsed repository name of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepositoryName {
    host: String,
    name: String,
}

/// A parsed reference with a tag.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    pub repository: RepositoryName,
    pub tag: String,
}

/// A repository with optional tag and digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteName {
    pub repository: RepositoryName,
    /// The tag, which is mutable.
    pub tag: Option<String>,
    /// The digest, which is immutable.
    pub digest: Option<Digest>,
}

/// An invalid reference.
#[derive(Debug, thiserror::Error)]
#[error("invalid reference {text:?}: expected {form}")]
pub struct InvalidReference {
    text: String,
    form: &'static str,
}

impl Hint for InvalidReference {}

impl InvalidReference {
    fn new(text: &str, form: &'static str) -> Self {
        Self { text: shown(text), form }
    }
}

/// The text for messages. The part before an `@` may be credentials, unless a digest follows.
fn shown(text: &str) -> String {
    match text.rsplit_once('@') {
        Some((_, rest)) if !rest.starts_with("sha") => format!("***@{rest}"),
        _ => address::redacted(text),
    }
}

impl FromStr for RepositoryName {
    type Err = InvalidReference;

    /// Grammar of the distribution specification, section "Pulling manifests"; a host has a dot or a port, or is `localhost`.
    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = || InvalidReference::new(text, "HOST/NAME, such as ghcr.io/example/images");
        let (host, name) = text.split_once('/').ok_or_else(invalid)?;
        let is_host = (host == "localhost" || host.contains(['.', ':']))
            && !host.starts_with('.')
            && host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-[]".contains(c));
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
        };
        match is_host && name.split('/').all(is_part) {
            true => Ok(Self { host: host.to_owned(), name: name.to_owned() }),
            false => Err(invalid()),
        }
    }
}

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = || InvalidReference::new(text, "HOST/NAME:TAG, such as registry.k8s.io/pause:3.10");
        match text.parse().map_err(|_| invalid())? {
            RemoteName { repository, tag: Some(tag), digest: None } => Ok(Self { repository, tag }),
            _ => Err(invalid()),
        }
    }
}

impl FromStr for RemoteName {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let form = "HOST/NAME with :TAG or @DIGEST, such as ghcr.io/example/images:1.0";
        let invalid = || InvalidReference::new(text, form);
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse().map_err(|_| invalid())?)),
            None => (text, None),
        };
        let (host, path) = rest.split_once('/').ok_or_else(invalid)?;
        let (name, tag) = match path.split_once(':') {
            Some((name, tag)) => (name, Some(tag)),
            None => (path, None),
        };
        let repository = format!("{host}/{name}").parse().map_err(|_| invalid())?;
        match tag.is_none_or(is_tag) {
            true => Ok(Self { repository, tag: tag.map(str::to_owned), digest }),
            false => Err(invalid()),
        }
    }
}

/// Whether a text is a valid tag.
pub fn is_tag(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
        && text.len() <= 128
        && text.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c))
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.name)
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.repository, self.tag)
    }
}

impl fmt::Display for RemoteName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        self.tag.iter().try_for_each(|tag| write!(f, ":{tag}"))?;
        self.digest.iter().try_for_each(|digest| write!(f, "@{digest}"))
    }
}

impl RepositoryName {
    /// Its name within the registry.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The registry with its port, if any.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether the registry is on localhost. As in docker and oras, plain HTTP is used for it.
    pub fn is_local(&self) -> bool {
        let host = self.host.strip_prefix("[::1]").map(|_| "localhost");
        let host = host.or_else(|| self.host.split(':').next()).unwrap_or_default();
        host == "localhost" || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
    }

    /// Normalized name, equal for all spellings of the same server and repository: lower case, without a trailing dot
    /// of the host, leading zeros of the port, default ports, and the alternative name of Docker Hub.
    pub fn canonical(&self) -> String {
        let host = self.host.to_ascii_lowercase();
        let (host, port) = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => (name, port),
            _ => (host.as_str(), ""),
        };
        let ipv6 = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let host = match ipv6.map(str::parse::<std::net::Ipv6Addr>) {
            Some(Ok(address)) => format!("[{address}]"),
            _ => host.strip_suffix('.').unwrap_or(host).to_owned(),
        };
        let host = if host == "registry-1.docker.io" { "docker.io".to_owned() } else { host };
        match port.trim_start_matches('0') {
            "" | "80" | "443" => format!("{host}/{}", self.name),
            port => format!("{host}:{port}/{}", self.name),
        }
    }

    /// The base URL of its API. Docker Hub uses another host name than references do.
    pub fn base(&self, plain_http: bool) -> String {
        let host = if self.host == "docker.io" { "registry-1.docker.io" } else { &self.host };
        let scheme = if plain_http { "http" } else { "https" };
        format!("{scheme}://{host}/v2/{}", self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_taken_apart() {
        let reference: Reference = "docker.io/library/busybox:1.37".parse().unwrap();
        assert_eq!(reference.repository.base(false), "https://registry-1.docker.io/v2/library/busybox");
        let base = |text: &str| text.parse::<Reference>().unwrap().repository.base(true);
        assert_eq!(base("localhost:5000/a:b"), "http://localhost:5000/v2/a");
        for wrong in ["", "pause:3", "k8s.io/pause", "k8s.io/../x:1", "k8s.io/A:1", "k8s.io/a:b/c", "k8s.io/a: b"] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_remote_name_has_a_tag_a_digest_both_or_none() {
        let digest = Digest::of(b"");
        for rest in ["", ":1.0", &format!("@{digest}"), &format!(":1.0@{digest}")] {
            let text = format!("r.example:5000/a/b{rest}");
            assert_eq!(text.parse::<RemoteName>().unwrap().to_string(), text);
        }
        for wrong in ["r.example/a@sha256:1", "r.example/a:", "r.example", "r.example/a@", "r.example/a:b@c", "a/b:c"] {
            assert!(wrong.parse::<RemoteName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn spellings_of_one_registry_are_one() {
        for (spelled, expected) in [
            ("localhost:01/a", "localhost:1/a"),
            ("R.Example:443/a/b", "r.example/a/b"),
            ("r.example.:0443/a", "r.example/a"),
            ("r.example:/a", "r.example/a"),
            ("[0:0::1]:05000/a", "[::1]:5000/a"),
            ("registry-1.docker.io/library/a", "docker.io/library/a"),
            ("r.example:4430/a", "r.example:4430/a"),
            ("127.0.0.1:5000/a", "127.0.0.1:5000/a"),
        ] {
            assert_eq!(spelled.parse::<RepositoryName>().unwrap().canonical(), expected, "{spelled}");
        }
    }

    #[test]
    fn only_this_machine_is_local() {
        let is_local = |text: &str| text.parse::<RepositoryName>().unwrap().is_local();
        assert!(["localhost/a", "localhost:5000/a", "127.0.0.1:5000/a", "[::1]:5000/a"].into_iter().all(is_local));
        assert!(
            !["localhost.example/a", "127.0.0.1.example/a", "10.0.0.1:5000/a", "r.example/a"].into_iter().any(is_local)
        );
    }
}

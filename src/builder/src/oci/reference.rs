//! Names of images: `registry.k8s.io/pause:3.10`.

use std::fmt;
use std::str::FromStr;

use super::{Descriptor, MediaType};
use crate::digest::Digest;

/// A reference with a tag, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    host: String,
    name: String,
    pub(crate) tag: String,
}

/// A text that is no reference.
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not HOST/NAME:TAG, such as registry.k8s.io/pause:3.10")]
pub struct InvalidReference(String);

impl FromStr for Reference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        let invalid = || InvalidReference(text.to_owned());
        let (host, rest) = text.split_once('/').ok_or_else(invalid)?;
        let (name, tag) = rest.rsplit_once(':').ok_or_else(invalid)?;
        // Grammar of the distribution specification, section "Pulling manifests"; a host has a dot or a port.
        let is_host = host.contains(['.', ':']) && host.chars().all(|c| c.is_ascii_alphanumeric() || ".:-".contains(c));
        let is_part = |part: &str| {
            part.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit())
                && part.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "._-".contains(c))
        };
        let is_tag = tag.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
            && tag.len() <= 128
            && tag.chars().all(|c| c.is_ascii_alphanumeric() || "._-".contains(c));
        if !is_host || !name.split('/').all(is_part) || !is_tag {
            return Err(invalid());
        }
        Ok(Self { host: host.to_owned(), name: name.to_owned(), tag: tag.to_owned() })
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}:{}", self.host, self.name, self.tag)
    }
}

impl Reference {
    /// Docker Hub answers under another name than the one that references have.
    fn base(&self) -> String {
        let host = if self.host == "docker.io" { "registry-1.docker.io" } else { &self.host };
        format!("https://{host}/v2/{}", self.name)
    }

    pub(crate) fn manifest_url(&self, reference: &str) -> String {
        format!("{}/manifests/{reference}", self.base())
    }

    pub(crate) fn blob_url(&self, digest: &Digest) -> String {
        format!("{}/blobs/{digest}", self.base())
    }

    /// Where a document is: a config is a blob, an index or a manifest is not.
    pub(crate) fn document_url(&self, document: &Descriptor) -> String {
        match document.media_type {
            MediaType::Config => self.blob_url(&document.digest),
            _ => self.manifest_url(&document.digest.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_taken_apart() {
        let reference: Reference = "docker.io/library/busybox:1.37".parse().unwrap();
        assert_eq!(reference.manifest_url("1.37"), "https://registry-1.docker.io/v2/library/busybox/manifests/1.37");
        assert_eq!("localhost:5000/a:b".parse::<Reference>().unwrap().base(), "https://localhost:5000/v2/a");
        for wrong in ["", "pause:3", "k8s.io/pause", "k8s.io/../x:1", "k8s.io/A:1", "k8s.io/a:b/c", "k8s.io/a: b"] {
            assert!(wrong.parse::<Reference>().is_err(), "{wrong}");
        }
    }
}

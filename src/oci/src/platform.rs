//! Selects the image for a platform from an index.

use std::fmt;
use std::str::FromStr;

use super::OciError;
use super::document::Descriptor;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message;

/// A platform: operating system, architecture and optional variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Platform {
    os: String,
    architecture: String,
    variant: Option<String>,
}

/// An invalid platform.
#[derive(Debug, thiserror::Error)]
#[error("invalid platform {0:?}: expected OS/ARCH or OS/ARCH/VARIANT, such as linux/amd64")]
pub struct InvalidPlatform(String);

impl Hint for InvalidPlatform {}

impl FromStr for Platform {
    type Err = InvalidPlatform;

    fn from_str(text: &str) -> Result<Self, InvalidPlatform> {
        let parts: Vec<&str> = text.split('/').collect();
        let is_name = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        match parts[..] {
            [os, architecture, ref variant @ ..] if variant.len() < 2 && parts.iter().all(is_name) => Ok(Self {
                os: os.to_owned(),
                architecture: architecture.to_owned(),
                variant: variant.first().map(|variant| (*variant).to_owned()),
            }),
            _ => Err(InvalidPlatform(text.to_owned())),
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.os, self.architecture)?;
        self.variant.iter().try_for_each(|variant| write!(f, "/{variant}"))
    }
}

impl Platform {
    /// Whether an image for these names runs on the platform. A platform without a variant accepts every variant.
    pub(super) fn is(&self, os: &str, architecture: &str, variant: Option<&str>) -> bool {
        // A 64-bit ARM image without a variant is of version 8 (OCI image index, platform variants).
        let normal =
            |variant: Option<&str>| variant.filter(|v| architecture != "arm64" || *v != "v8").map(str::to_owned);
        let same_variant = self.variant.is_none() || normal(self.variant.as_deref()) == normal(variant);
        self.os == os && self.architecture == architecture && same_variant
    }

    /// The only entry of an index for this platform.
    pub(super) fn choose(&self, index: &Digest, entries: Vec<Descriptor>) -> Result<Descriptor, OciError> {
        let digest = || Box::new(*index);
        let mut others = Vec::new();
        let mut fitting = Vec::new();
        for entry in entries {
            match &entry.platform {
                Some(platform) if self.is(&platform.os, &platform.architecture, platform.variant.as_deref()) => {
                    fitting.push(entry);
                }
                // Attestations are stored as entries for unknown/unknown.
                Some(platform) if platform.os != "unknown" => {
                    others.push(format!("{}/{}", platform.os, platform.architecture));
                }
                _ => {}
            }
        }
        match fitting.len() {
            1 => Ok(fitting.swap_remove(0)),
            0 => {
                let found = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
                Err(OciError::Message(message!("{}: no image for {}, only for {found}", digest(), self)))
            }
            _ => Err(OciError::Message(message!("{}: more than one image for {}", digest(), self))),
        }
    }
}

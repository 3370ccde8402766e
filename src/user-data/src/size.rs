//! Sizes of user data: limits of providers, and a table of sizes.
//!
//! All limits apply to raw bytes, before encoding for an API.

use std::fmt;

use serde::Serialize;

use super::document::Part;

/// Provider of user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// A seed disk for cloud-init's NoCloud.
    Local,
    /// EC2.
    Aws,
    /// Compute Engine.
    Google,
    /// Azure, by custom data.
    Azure,
    /// Proxmox VE, by a snippet (`cicustom`).
    Proxmox,
}

impl Provider {
    /// All providers with their names in options and settings.
    pub const NAMES: [&str; 5] = ["local", "aws", "google", "azure", "proxmox"];
    const ALL: [Self; 5] = [Self::Local, Self::Aws, Self::Google, Self::Azure, Self::Proxmox];

    /// The provider of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().position(|known| *known == name).and_then(|at| Self::ALL.get(at)).copied()
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Aws => "aws",
            Self::Google => "google",
            Self::Azure => "azure",
            Self::Proxmox => "proxmox",
        }
    }

    /// Limit in bytes.
    ///
    /// - aws: "limited to 16 KB, in raw form, before it is base64-encoded"
    ///   (<https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-add-user-data.html>)
    /// - google: a value of the metadata has at most 262144 bytes; all keys and values of a machine together have less than 512 KB
    ///   (<https://cloud.google.com/compute/docs/reference/rest/v1/instances/setMetadata>)
    /// - azure: custom data has at most 65535 bytes
    ///   (<https://learn.microsoft.com/en-us/rest/api/compute/virtual-machines/create-or-update>, `osProfile.customData`)
    /// - proxmox: 1 MiB of a snippet are read (`read_cloudinit_snippets_file` of qemu-server)
    /// - local: no limit but that of the first-boot program, 1 MiB for the file with the settings
    ///   (<https://cloudinit.readthedocs.io/en/latest/reference/datasources/nocloud.html>)
    pub fn limit(self) -> Option<usize> {
        match self {
            Self::Local => None,
            Self::Aws => Some(16 << 10),
            Self::Google => Some(256 << 10),
            Self::Azure => Some((64 << 10) - 1),
            Self::Proxmox => Some(1 << 20),
        }
    }
}

/// Sizes in bytes of the document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// Provider of the limit.
    pub provider: Option<Provider>,
    /// The settings, without the certificates.
    pub settings: usize,
    pub nonce: usize,
    /// The setting with the certificates.
    pub authority: usize,
    /// Overhead.
    pub frame: usize,
    /// All of it.
    pub total: usize,
    /// The provider's limit, if any.
    pub limit: Option<usize>,
    /// Whether these are the sizes with the longest values of a template.
    #[serde(rename = "longest", skip_serializing_if = "std::ops::Not::not")]
    pub is_longest: bool,
}

impl Sizes {
    pub(super) fn new(provider: Option<Provider>, parts: &[(Part, usize)], is_longest: bool) -> Self {
        let of = |wanted| parts.iter().filter(|(part, _)| *part == wanted).map(|(_, bytes)| bytes).sum();
        Self {
            provider,
            settings: of(Part::Settings),
            nonce: of(Part::Nonce),
            authority: of(Part::Authority),
            frame: of(Part::Frame),
            total: parts.iter().map(|(_, bytes)| bytes).sum(),
            limit: provider.and_then(Provider::limit),
            is_longest,
        }
    }

    /// Name of the provider.
    pub fn provider(&self) -> &'static str {
        self.provider.map_or("none", Provider::name)
    }
}

/// A table with one line per part.
impl fmt::Display for Sizes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { settings, nonce, authority, frame, total, .. } = self;
        let end = if self.is_longest { ", with the longest values" } else { "" };
        for (name, bytes) in [("settings", settings), ("nonce", nonce), ("CA", authority), ("frame", frame)] {
            writeln!(f, "{name:<9}{bytes:>8}")?;
        }
        match self.limit {
            Some(limit) => {
                let tenths = total.saturating_mul(1000) / limit;
                writeln!(
                    f,
                    "total    {total:>8}  {}.{} % of {limit} ({}){end}",
                    tenths / 10,
                    tenths % 10,
                    self.provider()
                )
            }
            None => writeln!(f, "total    {total:>8}  no limit{end}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_providers_go_together() {
        for name in Provider::NAMES {
            assert_eq!(Provider::named(name).map(Provider::name), Some(name));
        }
        assert_eq!(Provider::named("AWS"), None);
    }

    #[test]
    fn a_table_adds_up() {
        let parts = [(Part::Frame, 100), (Part::Settings, 3000), (Part::Authority, 1000), (Part::Frame, 20)];
        let sizes = Sizes::new(Some(Provider::Aws), &parts, false);
        let expected = "settings     3000\nnonce           0\nCA           1000\nframe         120\n\
                        total        4120  25.1 % of 16384 (aws)\n";
        assert_eq!(sizes.to_string(), expected);
        let local = Sizes::new(Some(Provider::Local), &parts, false).to_string();
        assert!(local.ends_with("total        4120  no limit\n"), "{local}");
        let longest = Sizes::new(Some(Provider::Aws), &parts, true).to_string();
        assert!(longest.ends_with("25.1 % of 16384 (aws), with the longest values\n"), "{longest}");
    }
}

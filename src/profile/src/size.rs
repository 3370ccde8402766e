//! Size of user data, and the limit of the provider.

use std::fmt;

use super::error::ProfileError;
use vmbake_common::message;
use vmbake_user_data::Provider;

/// The size of a cloud-config.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserDataSize {
    phase: &'static str,
    provider: String,
    /// In bytes.
    pub total: usize,
    /// The most bytes that the provider takes, if that is known.
    pub limit: Option<usize>,
}

impl UserDataSize {
    pub(super) fn new(phase: &'static str, total: usize, provider: &str) -> Self {
        Self { phase, provider: provider.to_owned(), total, limit: limit(provider) }
    }

    /// Whether the provider would refuse it.
    pub fn is_too_large(&self) -> bool {
        self.limit.is_some_and(|limit| self.total > limit)
    }

    /// Refuses what the provider would refuse.
    pub fn check(&self) -> Result<(), ProfileError> {
        match self.limit {
            Some(limit) if self.total > limit => Err(ProfileError::Message(message!(
                "{} bytes of user data: {} accepts at most {limit}",
                self.total,
                self.provider
            ))),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for UserDataSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { phase, provider, total, .. } = self;
        match self.limit {
            Some(limit) => {
                let tenths = total.saturating_mul(1000) / limit;
                write!(f, "{phase:<13}{total:>8}  {}.{} % of {limit} ({provider})", tenths / 10, tenths % 10)
            }
            None => write!(f, "{phase:<13}{total:>8}  no limit known ({provider})"),
        }
    }
}

/// The most raw bytes that a provider takes, by its name for OSM.
///
/// - digitalocean: 64 KiB (<https://docs.digitalocean.com/reference/api/>, `user_data` of a droplet)
/// - hetzner: 32 KiB (<https://docs.hetzner.cloud/reference/cloud>, `user_data` of a server)
/// - openstack: 65535 bytes of base64 (<https://docs.openstack.org/api-ref/compute/>, `user_data` of a server)
fn limit(provider: &str) -> Option<usize> {
    match provider {
        "aws" => Provider::Aws.limit(),
        "azure" => Provider::Azure.limit(),
        "gce" => Provider::Google.limit(),
        "digitalocean" => Some(64 << 10),
        "hetzner" => Some(32 << 10),
        "openstack" => Some(65_535 / 4 * 3),
        _ => None,
    }
}

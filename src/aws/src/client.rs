//! The client: region, credentials and endpoints.

use std::fmt;
use std::sync::Arc;

use super::endpoint::{self, Endpoints};
use super::error::AwsError;
use super::identity::Identity;
use super::rate_limit::RateLimit;
use super::retry::Policy;
use super::settings::Settings;
use super::transport::Transport;
use vmbake_store::http::{ApiLimits, Client};

/// A client for one region; cheap to clone and to share between threads.
#[derive(Clone)]
pub struct Aws {
    pub(super) shared: Arc<Shared>,
    pub(super) region: Arc<str>,
    /// The quotas of the EBS direct APIs apply per region.
    pub(super) rate_limit: Arc<RateLimit>,
}

/// The state shared by the clients of all regions.
pub(super) struct Shared {
    pub(super) transport: Transport,
    pub(super) identity: Identity,
    pub(super) endpoints: Endpoints,
}

impl fmt::Debug for Aws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Aws({})", self.region)
    }
}

impl Aws {
    /// Finds region and credentials as the AWS CLI does: in the environment, profiles (with `role_arn`,
    /// `source_profile`, `credential_process`, `sso_session`), a web identity, a container's endpoint, and the instance
    /// metadata.
    ///
    /// Credentials are resolved immediately, so that missing ones are reported here. This may call STS and the metadata
    /// services of containers and instances.
    pub fn open(http: &Client, settings: &Settings) -> Result<Self, AwsError> {
        let transport = Transport::new(http, ApiLimits::default(), Policy::default());
        let (identity, found) = Identity::find(http, settings)?;
        let region = found.region.ok_or(AwsError::NoRegion)?;
        let endpoints = found.endpoints;
        let shared = Arc::new(Shared { transport, identity, endpoints });
        endpoint::check_region(&region)?;
        Ok(Self::new(shared, &region))
    }

    pub(super) fn new(shared: Arc<Shared>, region: &str) -> Self {
        Self { shared, region: region.into(), rate_limit: Arc::default() }
    }

    pub fn region(&self) -> &str {
        &self.region
    }

    /// A client for another region, with the same credentials. An endpoint set by the user still applies. An invalid
    /// name is refused by the first call.
    #[must_use]
    pub fn in_region(&self, region: &str) -> Self {
        Self::new(self.shared.clone(), region)
    }
}

//! The connection to AWS: HTTP client, retry policy, and recently created resources.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::retry::Policy;
use vmbake_common::parallel::locked;
use vmbake_store::http::{Api, ApiLimits, Client};

/// Maximum number of idle connections, one for each upload thread.
const CONNECTIONS: usize = 128;
/// Maximum time until a new snapshot or AMI is visible to a service.
const YOUTH: Duration = Duration::from_secs(120);

/// The connection to AWS.
pub(super) struct Transport {
    pub(super) api: Api,
    pub(super) policy: Policy,
    /// Creation times of snapshots and AMIs of this process.
    made: Mutex<BTreeMap<String, Instant>>,
}

impl Transport {
    pub(super) fn new(http: &Client, limits: ApiLimits, policy: Policy) -> Self {
        let limits = ApiLimits { connections: CONNECTIONS, ..limits };
        Self { api: http.api(limits), policy, made: Mutex::default() }
    }

    /// Records that a snapshot or an AMI was created.
    pub(super) fn made(&self, id: &str) {
        locked(&self.made).insert(id.to_owned(), Instant::now());
    }

    /// Whether one of these comma-separated resources may not be visible yet.
    pub(super) fn is_recently_created(&self, ids: &str) -> bool {
        let (made, youth) = (locked(&self.made), YOUTH.min(self.policy.total));
        ids.split(", ").any(|id| made.get(id).is_some_and(|made| made.elapsed() < youth))
    }
}

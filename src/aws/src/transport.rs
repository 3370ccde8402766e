//! How requests reach AWS: the connections, how often something is repeated, and what was just made.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::retry::Policy;
use vmbake_common::parallel::locked;
use vmbake_store::http::{Api, ApiLimits, Client};

/// Connections that are kept alive: as many threads may put blocks.
const CONNECTIONS: usize = 128;
/// How long a snapshot or an image may be unknown to a service after it was made.
const YOUTH: Duration = Duration::from_secs(120);

/// How requests reach AWS.
pub(super) struct Transport {
    pub(super) api: Api,
    pub(super) policy: Policy,
    /// When this program made which snapshots and images.
    made: Mutex<BTreeMap<String, Instant>>,
}

impl Transport {
    pub(super) fn new(http: &Client, limits: ApiLimits, policy: Policy) -> Self {
        let limits = ApiLimits { connections: CONNECTIONS, ..limits };
        Self { api: http.api(limits), policy, made: Mutex::default() }
    }

    /// Notes that a snapshot or an image was just made.
    pub(super) fn made(&self, id: &str) {
        locked(&self.made).insert(id.to_owned(), Instant::now());
    }

    /// Whether a service may still have to hear of one of these, which are separated by commas.
    pub(super) fn is_young(&self, ids: &str) -> bool {
        let (made, youth) = (locked(&self.made), YOUTH.min(self.policy.total));
        ids.split(", ").any(|id| made.get(id).is_some_and(|made| made.elapsed() < youth))
    }
}

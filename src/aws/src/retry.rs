//! The retry policy: that of all clients, with limits for throttling and for the time.

use std::time::{Duration, Instant};

use super::error::{AwsError, ServiceRefusal};
use vmbake_store::http::{Retry, jitter};

/// Attempts of a request that did not reach a server: a wrong host name stays wrong.
const UNSENT: u32 = 4;
/// Attempts of a block after a checksum mismatch.
const CHECKSUM: u32 = 3;

/// Divisor of the maximum delay after throttling: the shared rate limit slows requests down, too.
const THROTTLED: u32 = 8;

/// The limits of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// For server failures and lost connections.
    pub(super) retry: Retry,
    /// Maximum attempts after throttling.
    pub(super) throttled: u32,
    /// Time limit for retries.
    pub(super) total: Duration,
}

impl Default for Policy {
    /// A restarted service is back within a minute, and throttling may last minutes: an hour of work depends on it.
    fn default() -> Self {
        let (first_pause, max_pause) = (Duration::from_millis(200), Duration::from_secs(20));
        let retry = Retry { attempts: 9, first_pause, max_pause };
        Self { retry, throttled: 60, total: Duration::from_secs(600) }
    }
}

/// The reaction to a failure.
#[derive(Debug)]
pub(super) enum Next {
    /// Retry after a delay.
    Again(Duration),
    /// Retry with renewed credentials, if possible.
    Renew(AwsError),
    /// Fail.
    Final(AwsError),
}

/// The attempts of a call.
#[derive(Debug)]
pub(super) struct Attempts {
    policy: Policy,
    start: Instant,
    made: u32,
    /// The number of throttled attempts, which are counted separately.
    throttled: u32,
    renewed: bool,
}

impl Attempts {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, start: Instant::now(), made: 0, throttled: 0, renewed: false }
    }

    /// Counts a new attempt.
    pub(super) fn begin(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    /// The number of attempts so far.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// The reaction to `error`. `recently_created` means that the resource may not be visible yet.
    pub(super) fn next(
        &mut self,
        error: AwsError,
        not_idempotent: bool,
        recently_created: bool,
        retry_after: Option<Duration>,
    ) -> Next {
        if error.is_expired() && !self.renewed {
            self.renewed = true;
            return Next::Renew(error);
        }
        let is_throttled = error.refusal().is_some_and(ServiceRefusal::is_throttled);
        self.throttled = self.throttled.saturating_add(is_throttled.into());
        let count = if is_throttled { self.throttled } else { self.made.saturating_sub(self.throttled) };
        let longest = self.policy.retry.max_pause;
        let most = if is_throttled { longest / THROTTLED } else { longest };
        let pause = self.pause(most, retry_after);
        if count >= self.most(&error, not_idempotent, recently_created)
            || self.start.elapsed().saturating_add(pause) > self.policy.total
        {
            return Next::Final(error);
        }
        Next::Again(pause)
    }

    /// Maximum attempts for an error.
    fn most(&self, error: &AwsError, not_idempotent: bool, recently_created: bool) -> u32 {
        let attempts = self.policy.retry.attempts;
        match error {
            AwsError::Http { may_be_done: false, .. } if error.is_temporary() => attempts.min(UNSENT),
            AwsError::Http { .. } if error.is_temporary() && !not_idempotent => attempts,
            AwsError::Refused(refusal) if refusal.is_throttled() => self.policy.throttled,
            AwsError::Refused(refusal) if refusal.is_temporary() && !not_idempotent => attempts,
            // Bounded by the time since its creation.
            AwsError::Refused(_) if recently_created && error.is_not_found() => u32::MAX,
            AwsError::Checksum { .. } => attempts.min(CHECKSUM),
            _ => 1,
        }
    }

    /// A random delay from half of the back-off to all of it; at least what the service requests.
    fn pause(&self, most: Duration, retry_after: Option<Duration>) -> Duration {
        let retry = self.policy.retry;
        let half = retry.pause(self.made).min(most) / 2;
        let spread = half + jitter(half);
        retry_after.map_or(spread, |asked| asked.saturating_add(spread.min(retry.first_pause)))
    }
}

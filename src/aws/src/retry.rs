//! When a call is made again: how often, after which pause, and for how long at most.

use std::hash::{BuildHasher, RandomState};
use std::time::{Duration, Instant};

use super::error::{AwsError, ServiceRefusal};

/// Attempts of a request that never reached anybody: a wrong host name stays wrong.
const UNSENT: u32 = 4;
/// Attempts of a block whose checksum is not the one that was sent.
const CHECKSUM: u32 = 3;

/// The longest pause of a request that was throttled, as a part of that of others: the limit that all threads share slows it down as well.
const THROTTLED: u32 = 8;

/// What a call may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Policy {
    /// Attempts of which the last one is final, where the service fails or the connection breaks.
    pub(super) attempts: u32,
    /// The same where the service wants less in a time.
    pub(super) throttled: u32,
    /// The longest first pause; it doubles with each further one.
    pub(super) first_pause: Duration,
    /// The longest pause.
    pub(super) max_pause: Duration,
    /// After this time nothing is repeated.
    pub(super) total: Duration,
}

impl Default for Policy {
    /// A service that restarts is back within a minute, and a throttled account is asked for minutes: the work of an hour hangs on it.
    fn default() -> Self {
        let (first_pause, max_pause) = (Duration::from_millis(200), Duration::from_secs(20));
        Self { attempts: 9, throttled: 60, first_pause, max_pause, total: Duration::from_secs(600) }
    }
}

/// What follows a failure.
#[derive(Debug)]
pub(super) enum Next {
    /// The call is made again after a pause.
    Again(Duration),
    /// It is made again with newer credentials, if there are any.
    Renew(AwsError),
    /// It has failed.
    Final(AwsError),
}

/// The attempts of one call.
#[derive(Debug)]
pub(super) struct Attempts {
    policy: Policy,
    start: Instant,
    made: u32,
    /// As many of them were throttled, which says nothing about the others.
    throttled: u32,
    renewed: bool,
}

impl Attempts {
    pub(super) fn new(policy: Policy) -> Self {
        Self { policy, start: Instant::now(), made: 0, throttled: 0, renewed: false }
    }

    /// Counts an attempt that is about to be made.
    pub(super) fn begin(&mut self) {
        self.made = self.made.saturating_add(1);
    }

    /// Attempts so far.
    pub(super) fn made(&self) -> u32 {
        self.made
    }

    /// What follows `error`. A call that must not be repeated is `once`; `young` says that what it names may be unknown yet.
    pub(super) fn next(&mut self, error: AwsError, once: bool, young: bool, retry_after: Option<Duration>) -> Next {
        if error.is_expired() && !self.renewed {
            self.renewed = true;
            return Next::Renew(error);
        }
        let is_throttled = error.refusal().is_some_and(ServiceRefusal::is_throttled);
        self.throttled = self.throttled.saturating_add(is_throttled.into());
        let count = if is_throttled { self.throttled } else { self.made.saturating_sub(self.throttled) };
        let most = if is_throttled { self.policy.max_pause / THROTTLED } else { self.policy.max_pause };
        let pause = self.pause(most, retry_after);
        if count >= self.most(&error, once, young) || self.start.elapsed().saturating_add(pause) > self.policy.total {
            return Next::Final(error);
        }
        Next::Again(pause)
    }

    /// As many attempts an error is worth.
    fn most(&self, error: &AwsError, once: bool, young: bool) -> u32 {
        let attempts = self.policy.attempts;
        match error {
            AwsError::Http { may_be_done: false, .. } if error.is_temporary() => attempts.min(UNSENT),
            AwsError::Http { .. } if error.is_temporary() && !once => attempts,
            AwsError::Refused(refusal) if refusal.is_throttled() => self.policy.throttled,
            AwsError::Refused(refusal) if refusal.is_temporary() && !once => attempts,
            // The time since it was made bounds it.
            AwsError::Refused(_) if young && error.is_not_found() => u32::MAX,
            AwsError::Checksum { .. } => attempts.min(CHECKSUM),
            _ => 1,
        }
    }

    /// Up to the pause that doubles with each attempt, by chance, so that those who failed together do not ask again together; at least what
    /// the service asks for.
    fn pause(&self, most: Duration, retry_after: Option<Duration>) -> Duration {
        let doubled = 2u32.saturating_pow(self.made.saturating_sub(1).min(16));
        let longest = self.policy.first_pause.saturating_mul(doubled).min(most);
        let spread = by_chance(longest);
        retry_after.map_or(spread, |asked| asked.saturating_add(spread.min(self.policy.first_pause)))
    }
}

/// From half of a time to all of it.
fn by_chance(longest: Duration) -> Duration {
    let micros = u64::try_from(longest.as_micros()).unwrap_or(u64::MAX);
    let half = micros / 2;
    let chance = RandomState::new().hash_one(0_u8).checked_rem(half.saturating_add(1)).unwrap_or(0);
    Duration::from_micros(half.saturating_add(chance))
}

//! The retry policy: number of attempts and delays.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::HttpError;

/// When a failed request is repeated, with exponential back-off. All clients use this policy.
#[derive(Clone, Copy, Debug)]
pub struct Retry {
    /// Number of consecutive failures after which the request fails.
    pub attempts: u32,
    /// Delay after the first failure; it doubles with each further one.
    pub first_pause: Duration,
    /// Maximum delay, also of one that the server requests.
    pub max_pause: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { attempts: 5, first_pause: Duration::from_millis(250), max_pause: Duration::from_secs(30) }
    }
}

impl Retry {
    /// Repeats `request` after temporary failures.
    pub fn run<T>(&self, mut request: impl FnMut() -> Result<T, HttpError>) -> Result<T, HttpError> {
        let mut failures = self.failures(0);
        loop {
            match request() {
                Err(error) => failures.wait(error, 0)?,
                result => return result,
            }
        }
    }

    /// The delay after a number of consecutive failures.
    pub fn pause(&self, failures: u32) -> Duration {
        self.first_pause.saturating_mul(2u32.saturating_pow(failures.saturating_sub(1))).min(self.max_pause)
    }

    /// Starts counting the failures of a download with `received` bytes available.
    pub fn failures(&self, received: u64) -> Failures {
        Failures { policy: *self, in_a_row: 0, most: received }
    }
}

/// The failures of a request and its progress despite them.
#[derive(Debug)]
pub struct Failures {
    policy: Retry,
    in_a_row: u32,
    /// The largest length so far.
    most: u64,
}

impl Failures {
    /// Counts a failure and waits for the delay; returns the error if it is final.
    ///
    /// The count is reset if the length in `received` exceeds the largest one so far. Otherwise a server that makes
    /// every attempt start over, or is too slow, would be retried forever.
    pub fn wait(&mut self, error: HttpError, received: u64) -> Result<(), HttpError> {
        if !error.is_temporary() {
            return Err(error);
        }
        let is_slow = matches!(error, HttpError::Slow { .. });
        self.in_a_row = if received > self.most && !is_slow { 1 } else { self.in_a_row + 1 };
        self.most = self.most.max(received);
        if self.in_a_row >= self.policy.attempts {
            return Err(error);
        }
        let pause = self.pause(&error);
        std::thread::sleep(pause + jitter(pause / 4));
        Ok(())
    }

    /// The delay: as requested by the server, otherwise with exponential back-off.
    fn pause(&self, error: &HttpError) -> Duration {
        let asked = match error {
            HttpError::Status { retry_after, .. } => *retry_after,
            _ => None,
        };
        asked.map_or_else(|| self.policy.pause(self.in_a_row), |asked| asked.min(self.policy.max_pause))
    }
}

/// A random duration up to a maximum, so that clients that failed together do not retry together.
pub fn jitter(most: Duration) -> Duration {
    let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
    Duration::from_micros(RandomState::new().hash_one(0_u8).checked_rem(micros.saturating_add(1)).unwrap_or(0))
}

/// Whether a response with this status may be followed by a success.
pub fn is_temporary_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500 | 502 | 503 | 504)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLICY: Retry = Retry { attempts: 5, first_pause: Duration::ZERO, max_pause: Duration::ZERO };

    fn status(status: u16) -> HttpError {
        HttpError::Status { url: "u".into(), status, retry_after: None, challenge: None }
    }

    #[test]
    fn only_failures_that_may_pass_are_tried_again() {
        for (error, tries, is_final) in [(503, 3, false), (404, 1, true), (429, 5, true)] {
            let mut calls = 0;
            let result = POLICY.run(|| {
                calls += 1;
                if calls == 3 && !is_final { Ok(()) } else { Err(status(error)) }
            });
            assert_eq!((calls, result.is_err()), (tries, is_final), "{error}");
        }
    }

    #[test]
    fn only_more_than_ever_starts_the_count_anew() {
        let counted = |received: &[u64], slow: bool| {
            let mut failures = POLICY.failures(10);
            let error = || match slow {
                true => HttpError::Slow { url: "u".into(), bytes: 1, seconds: 1.0 },
                false => status(503),
            };
            received.iter().take_while(|received| failures.wait(error(), **received).is_ok()).count()
        };
        assert_eq!(counted(&[10; 9], false), 4);
        assert_eq!(counted(&[11, 12, 13, 14, 15, 16, 17, 18, 19], false), 9);
        assert_eq!(counted(&[11, 0, 11, 0, 11, 0, 11, 0, 11], false), 4);
        assert_eq!(counted(&[11, 12, 13, 14, 15, 16, 17, 18, 19], true), 4);
    }

    #[test]
    fn pauses_grow_unless_the_server_names_one() {
        let mut failures = Retry::default().failures(0);
        let mut pauses = Vec::new();
        for in_a_row in 1..10 {
            failures.in_a_row = in_a_row;
            pauses.push(failures.pause(&status(503)).as_millis());
        }
        assert_eq!(pauses, [250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000]);
        assert_eq!(Retry::default().pause(u32::MAX).as_secs(), 30);
        let asked = |seconds| {
            let retry_after = Some(Duration::from_secs(seconds));
            HttpError::Status { url: "u".into(), status: 429, retry_after, challenge: None }
        };
        assert_eq!([0, 7, 600].map(|seconds| failures.pause(&asked(seconds)).as_secs()), [0, 7, 30]);
    }
}

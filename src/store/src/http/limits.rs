//! Time limits: an idle timeout, a minimum throughput, and a deadline for all attempts together.
//!
//! A server that sends a byte now and then never hits the idle timeout. The throughput counts only time spent waiting
//! for the server, so that a busy host or a slow disk is not mistaken for a slow server.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::{HttpError, Retry};
use vmbake_common::hint::Hint;

/// Time limits for servers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Idle timeout.
    pub silence: Duration,
    /// The interval of waiting time over which the throughput is measured.
    pub window: Duration,
    /// Minimum throughput in bytes a second: below it, the connection counts as broken.
    pub least_rate: u64,
    /// Time limit for a document, including retries and delays.
    pub document: Duration,
    /// Time limit for an artifact.
    pub artifact: Duration,
    /// The retry policy.
    pub retry: Retry,
}

impl Default for Limits {
    /// Half a minute exceeds the usual timeouts of load balancers and proxies for their servers. At the minimum
    /// throughput, the artifacts of a kind, 650 MB, would take two days; at 30 KB a second they take six hours, and the
    /// largest document, 16 MiB, takes half an hour at 9 KB.
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(30),
            window: Duration::from_secs(60),
            least_rate: 4 << 10,
            document: Duration::from_secs(30 * 60),
            artifact: Duration::from_secs(6 * 60 * 60),
            retry: Retry::default(),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end: Instant,
    allowed: Duration,
}

impl Deadline {
    pub fn after(allowed: Duration) -> Self {
        Self { end: Instant::now() + allowed, allowed }
    }

    /// Fails if it has passed.
    pub fn check(&self, url: &str) -> Result<(), HttpError> {
        match Instant::now() < self.end {
            true => Ok(()),
            false => Err(HttpError::Deadline { url: url.to_owned(), seconds: self.allowed.as_secs_f32() }),
        }
    }
}

/// Why reading a body was aborted. It is wrapped in an [`io::Error`].
#[derive(Debug, thiserror::Error)]
enum GivenUp {
    #[error("too slow")]
    Slow { bytes: u64, seconds: f32 },
    #[error("too late")]
    Late(Duration),
}

impl Hint for GivenUp {}

/// A reader that enforces the minimum throughput and the deadline.
pub(super) struct MinThroughputReader<R> {
    inner: R,
    limits: Limits,
    deadline: Deadline,
    /// Bytes received in this interval, and the time spent waiting for them.
    bytes: u64,
    waited: Duration,
}

impl<R> MinThroughputReader<R> {
    pub(super) fn new(inner: R, limits: Limits, deadline: Deadline) -> Self {
        Self { inner, limits, deadline, bytes: 0, waited: Duration::ZERO }
    }

    fn check(&mut self) -> Result<(), GivenUp> {
        if Instant::now() >= self.deadline.end {
            return Err(GivenUp::Late(self.deadline.allowed));
        }
        if self.waited < self.limits.window {
            return Ok(());
        }
        let least = self.limits.window.as_millis().saturating_mul(self.limits.least_rate.into()) / 1000;
        if u128::from(self.bytes) < least {
            return Err(GivenUp::Slow { bytes: self.bytes, seconds: self.waited.as_secs_f32() });
        }
        (self.bytes, self.waited) = (0, Duration::ZERO);
        Ok(())
    }
}

impl<R: Read> Read for MinThroughputReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        let len = self.inner.read(buffer)?;
        self.waited += start.elapsed();
        self.bytes += len as u64;
        if len > 0 {
            self.check().map_err(io::Error::other)?;
        }
        Ok(len)
    }
}

/// The error for a body that failed after `received` bytes.
pub(crate) fn broken(url: &str, received: u64, source: io::Error) -> HttpError {
    let url = url.to_owned();
    match source.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(GivenUp::Slow { bytes, seconds }) => HttpError::Slow { url, bytes: *bytes, seconds: *seconds },
        Some(GivenUp::Late(allowed)) => HttpError::Deadline { url, seconds: allowed.as_secs_f32() },
        None => HttpError::Broken { url, received, source },
    }
}

//! How slow a server may be: silence, a least rate, and a time for all attempts together.
//!
//! A server that sends a byte now and then is never silent and never done. The rate counts only the time that was spent waiting for
//! the server, so that a busy machine or a slow disk here is not taken for a slow server.

use std::io::{self, Read};
use std::time::{Duration, Instant};

use super::{HttpError, Retry};
use vmbake_common::hint::Hint;

/// What is asked of servers.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// A server that is silent for this long is gone.
    pub silence: Duration,
    /// Waiting for a body is judged each time that it has taken this long.
    pub window: Duration,
    /// Bytes a second that must have come within it: fewer, and the connection counts as broken.
    pub least_rate: u64,
    /// The longest that a document may take, all attempts and pauses together.
    pub document: Duration,
    /// The same of an artifact.
    pub artifact: Duration,
    /// When a request that failed is made again.
    pub retry: Retry,
}

impl Default for Limits {
    /// Half a minute outlasts what load balancers and proxies wait for their own servers. The rate is that of a line on which the
    /// artifacts of a kind, 650 MB, would take two days; they fit into six hours at 30 KB a second, and the largest document, 16 MiB,
    /// into half an hour at 9 KB.
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

/// When something has to be there.
#[derive(Clone, Copy, Debug)]
pub struct Deadline {
    end: Instant,
    allowed: Duration,
}

impl Deadline {
    /// That long from now.
    pub fn after(allowed: Duration) -> Self {
        Self { end: Instant::now() + allowed, allowed }
    }

    /// Fails once it has passed.
    pub fn check(&self, url: &str) -> Result<(), HttpError> {
        match Instant::now() < self.end {
            true => Ok(()),
            false => Err(HttpError::Deadline { url: url.to_owned(), seconds: self.allowed.as_secs_f32() }),
        }
    }
}

/// Why a body was given up. It passes as the inside of an [`io::Error`].
#[derive(Debug, thiserror::Error)]
enum GivenUp {
    #[error("too slow")]
    Slow { bytes: u64, seconds: f32 },
    #[error("too late")]
    Late(Duration),
}

impl Hint for GivenUp {}

/// A body that is judged while it is read.
pub(super) struct Paced<R> {
    inner: R,
    limits: Limits,
    deadline: Deadline,
    /// Bytes that came in this window, and how long they were waited for.
    bytes: u64,
    waited: Duration,
}

impl<R> Paced<R> {
    pub(super) fn new(inner: R, limits: Limits, deadline: Deadline) -> Self {
        Self { inner, limits, deadline, bytes: 0, waited: Duration::ZERO }
    }

    fn judge(&mut self) -> Result<(), GivenUp> {
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

impl<R: Read> Read for Paced<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let start = Instant::now();
        let len = self.inner.read(buffer)?;
        self.waited += start.elapsed();
        self.bytes += len as u64;
        if len > 0 {
            self.judge().map_err(io::Error::other)?;
        }
        Ok(len)
    }
}

/// What it means that a body could not be read on after `received` bytes.
pub(crate) fn broken(url: &str, received: u64, source: io::Error) -> HttpError {
    let url = url.to_owned();
    match source.get_ref().and_then(|inner| inner.downcast_ref()) {
        Some(GivenUp::Slow { bytes, seconds }) => HttpError::Slow { url, bytes: *bytes, seconds: *seconds },
        Some(GivenUp::Late(allowed)) => HttpError::Deadline { url, seconds: allowed.as_secs_f32() },
        None => HttpError::Broken { url, received, source },
    }
}

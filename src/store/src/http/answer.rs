//! The start of an answer, whose body is still to be read.

use std::io::Read;
use std::time::Duration;

use ureq::http::{HeaderMap, HeaderName, Response, StatusCode, header};

use super::pace::{Deadline, Paced, broken};
use super::{HttpError, Limits};

/// An answer with a status of success.
#[derive(Debug)]
pub struct Answer {
    /// Where it came from, after mirrors and redirects.
    pub url: String,
    /// Its status; 2xx always.
    pub status: StatusCode,
    headers: HeaderMap,
    body: ureq::Body,
    limits: Limits,
    deadline: Deadline,
}

impl Answer {
    /// Every status but 2xx is an error.
    pub(super) fn new(
        url: String,
        response: Response<ureq::Body>,
        limits: Limits,
        deadline: Deadline,
    ) -> Result<Self, HttpError> {
        let (head, body) = response.into_parts();
        match head.status.is_success() {
            true => Ok(Self { url, status: head.status, headers: head.headers, body, limits, deadline }),
            false => Err(refused(url, head.status, &head.headers, body)),
        }
    }

    /// The body, without limit to its length: the reader counts.
    pub fn into_reader(self) -> impl Read {
        Paced::new(self.body.into_with_config().limit(u64::MAX).reader(), self.limits, self.deadline)
    }

    /// The whole body, if it has at most `limit` bytes.
    pub fn read(self, limit: u64) -> Result<Vec<u8>, HttpError> {
        let url = self.url.clone();
        let mut content = Vec::new();
        let result = self.into_reader().take(limit.saturating_add(1)).read_to_end(&mut content);
        let received = content.len() as u64;
        match result {
            Ok(_) if received > limit => Err(HttpError::TooLarge { url, limit }),
            Ok(_) => Ok(content),
            Err(source) => Err(broken(&url, received, source)),
        }
    }

    /// A header as text.
    pub fn header(&self, name: HeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What GitHub's registry says, with status 403 and no header, to whoever asks too much in too short a time.
const SECONDARY_LIMIT: &str = "secondary rate limit";
/// How long it wants to be left alone then, unless it says so.
const SECONDARY_PAUSE: Duration = Duration::from_secs(60);
/// As much of a refusal is read.
const MAX_REFUSAL: u64 = 4 << 10;

/// What a status other than 2xx means.
fn refused(url: String, status: StatusCode, headers: &HeaderMap, body: ureq::Body) -> HttpError {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(header::RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
    let is_limited = || status == StatusCode::FORBIDDEN && says(body, SECONDARY_LIMIT);
    let retry_after = retry_after.or_else(|| is_limited().then_some(SECONDARY_PAUSE));
    // A registry may offer several ways, each in a header of its own.
    let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenge = challenges.max_by_key(|value| value.to_ascii_lowercase().starts_with("bearer "));
    HttpError::Status { url, status: status.as_u16(), retry_after, challenge: challenge.map(str::to_owned) }
}

/// Whether the start of a refusal has these words.
fn says(body: ureq::Body, words: &str) -> bool {
    let mut text = Vec::new();
    let read = body.into_with_config().limit(MAX_REFUSAL).reader().read_to_end(&mut text);
    // What is longer than the limit counts as far as it was read.
    let _ = read;
    String::from_utf8_lossy(&text).contains(words)
}

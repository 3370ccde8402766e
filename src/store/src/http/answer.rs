//! The start of a response, with its body still to be read.

use std::io::Read;
use std::time::Duration;

use ureq::http::{HeaderMap, HeaderName, Response, StatusCode, header};

use super::limits::{Deadline, MinThroughputReader, broken};
use super::{HttpError, Limits};

/// A response with a 2xx status.
#[derive(Debug)]
pub struct Answer {
    /// The final URL, after mirrors and redirects.
    pub url: String,
    /// The status, always 2xx.
    pub status: StatusCode,
    headers: HeaderMap,
    body: ureq::Body,
    limits: Limits,
    deadline: Deadline,
}

impl Answer {
    /// Converts every status but 2xx to an error.
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

    /// The body, without a length limit: the reader counts.
    pub fn into_reader(self) -> impl Read {
        MinThroughputReader::new(self.body.into_with_config().limit(u64::MAX).reader(), self.limits, self.deadline)
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

/// GitHub's registry reports its secondary rate limit with status 403 and this text, without a header.
const SECONDARY_LIMIT: &str = "secondary rate limit";
/// The delay for the secondary rate limit, if the response states none.
const SECONDARY_PAUSE: Duration = Duration::from_secs(60);
/// Maximum length of an error body that is read.
const MAX_REFUSAL: u64 = 4 << 10;

/// Converts a status other than 2xx to an error.
fn refused(url: String, status: StatusCode, headers: &HeaderMap, body: ureq::Body) -> HttpError {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let retry_after = text(header::RETRY_AFTER).and_then(|value| value.parse().ok()).map(Duration::from_secs);
    let is_limited = || status == StatusCode::FORBIDDEN && says(body, SECONDARY_LIMIT);
    let retry_after = retry_after.or_else(|| is_limited().then_some(SECONDARY_PAUSE));
    // A registry may offer several schemes, each in a separate header.
    let challenges = headers.get_all(header::WWW_AUTHENTICATE).iter().filter_map(|value| value.to_str().ok());
    let challenge = challenges.max_by_key(|value| value.to_ascii_lowercase().starts_with("bearer "));
    HttpError::Status { url, status: status.as_u16(), retry_after, challenge: challenge.map(str::to_owned) }
}

/// Whether the start of an error body contains these words.
fn says(body: ureq::Body, words: &str) -> bool {
    let mut text = Vec::new();
    let read = body.into_with_config().limit(MAX_REFUSAL).reader().read_to_end(&mut text);
    // A longer text is cut at the limit.
    let _ = read;
    String::from_utf8_lossy(&text).contains(words)
}

//! Asking again: how often, and after which pause.

use std::time::Duration;

use super::HttpError;

/// How often a request is made before its failure is final.
pub const ATTEMPTS: u32 = 5;
/// Pause after the first failure; it doubles with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
/// The longest pause that a server may ask for. One that wants more will not answer soon.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Runs `request` again after temporary failures, up to [`ATTEMPTS`] times in all.
pub fn retry<T>(mut request: impl FnMut() -> Result<T, HttpError>) -> Result<T, HttpError> {
    let mut failures = 0;
    loop {
        match request() {
            Err(error) if error.is_temporary() && failures + 1 < ATTEMPTS => {
                failures += 1;
                pause(&error, failures);
            }
            result => return result,
        }
    }
}

/// Waits before the next attempt; `failures` counts from one.
pub fn pause(error: &HttpError, failures: u32) {
    let asked = match error {
        HttpError::Status { retry_after, .. } => *retry_after,
        _ => None,
    };
    let growing = FIRST_PAUSE * 2u32.saturating_pow(failures.saturating_sub(1).min(6));
    std::thread::sleep(asked.unwrap_or(growing).min(MAX_PAUSE));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_failures_that_may_pass_are_tried_again() {
        let mut calls = 0;
        let status =
            |status| HttpError::Status { url: "u".into(), status, retry_after: Some(Duration::ZERO), challenge: None };
        let result = retry(|| {
            calls += 1;
            if calls < 3 { Err(status(503)) } else { Ok(calls) }
        });
        assert_eq!(result.unwrap(), 3);
        let mut calls = 0;
        let absent = retry(|| -> Result<(), _> {
            calls += 1;
            Err(status(404))
        });
        assert!(absent.unwrap_err().is_absent());
        assert_eq!(calls, 1);
        let mut calls = 0;
        assert!(
            retry(|| -> Result<(), _> {
                calls += 1;
                Err(status(429))
            })
            .is_err()
        );
        assert_eq!(calls, ATTEMPTS);
    }
}

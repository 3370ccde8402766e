//! Identifiers and times of documents, derived from their contents.

use jiff::Timestamp;

use vmbake_common::digest::Digest;

/// A UUID of version 8 (RFC 9562, section 5.8) from a digest of the content.
pub(super) fn uuid(content: &[u8]) -> String {
    let hex = Digest::of(content).hex();
    let part = |from: usize, to: usize| hex.get(from..to).unwrap_or_default();
    // Version and variant bits are fixed.
    format!("{}-{}-8{}-8{}-{}", part(0, 8), part(8, 12), part(12, 15), part(15, 18), part(18, 30))
}

/// An RFC 3339 time in whole seconds of UTC. Times before 1970 or after 9999, as in corrupt images, become 1970.
pub(super) fn time(secs: i64) -> String {
    Timestamp::from_second(secs.max(0)).unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_and_times_have_their_form() {
        assert_eq!(uuid(b""), "e3b0c442-98fc-81c1-849a-fbf4c8996fb9");
        assert_eq!(time(1_789_200_000), "2026-09-12T08:00:00Z");
        for odd in [i64::MIN, -1, i64::MAX, 253_402_300_800] {
            assert_eq!(time(odd), "1970-01-01T00:00:00Z");
        }
    }
}

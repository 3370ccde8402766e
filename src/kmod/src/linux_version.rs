//! The order of kernel versions in Debian's linux-version(1): numbers by value, other text by bytes, pre-releases first.

use std::cmp::Ordering;

/// Compares two versions as `uname -r` prints them.
pub fn compare(left: &[u8], right: &[u8]) -> Ordering {
    let (mut left, mut right) = (left, right);
    loop {
        let (a, b) = (part(&mut left), part(&mut right));
        // A pre-release comes before anything else, including the end.
        let order = is_pre_release(b).cmp(&is_pre_release(a)).then_with(|| match (number(a), number(b)) {
            (Some(a), Some(b)) => a.cmp(&b),
            _ => a.cmp(b),
        });
        if order.is_ne() || (a.is_empty() && b.is_empty()) {
            return order;
        }
    }
}

/// Takes the first part of a version: a number, or a text up to a digit, or to a hyphen after its first character. Empty at the end.
fn part<'a>(version: &mut &'a [u8]) -> &'a [u8] {
    let is_number = version.first().is_some_and(u8::is_ascii_digit);
    let skipped = usize::from(version.first() == Some(&b'-'));
    let rest = version[skipped..].iter();
    let len = skipped
        + rest
            .take_while(|byte| if is_number { byte.is_ascii_digit() } else { !byte.is_ascii_digit() && **byte != b'-' })
            .count();
    let (part, rest) = version.split_at(len);
    *version = rest;
    part
}

fn is_pre_release(part: &[u8]) -> bool {
    matches!(part, b"-rc" | b"-trunk")
}

/// A number of any length, as its length and digits.
fn number(part: &[u8]) -> Option<(usize, &[u8])> {
    part.first().filter(|first| first.is_ascii_digit())?;
    let digits = &part[part.iter().take_while(|digit| **digit == b'0').count()..];
    Some((digits.len(), digits))
}

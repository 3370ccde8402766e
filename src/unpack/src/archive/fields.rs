//! Numbers in the headers of tar archives (POSIX.1-2001, ustar; GNU tar manual, "Extensions"): octal digits, or base 256, big-endian, with
//! the first byte 0x80, or 0xff for negative numbers.
//!
//! Stricter than most programs: characters that only some programs skip make a number invalid, and numbers are not truncated.

use std::ops::Range;

/// Where the numbers stand in a header.
pub(super) const MODE: Range<usize> = 100..108;
pub(super) const UID: Range<usize> = 108..116;
pub(super) const GID: Range<usize> = 116..124;
pub(super) const SIZE: Range<usize> = 124..136;
pub(super) const MTIME: Range<usize> = 136..148;
pub(super) const MAJOR: Range<usize> = 329..337;
pub(super) const MINOR: Range<usize> = 337..345;

/// The number in a field; `None` where there is none, or one of more than 64 bits.
pub(super) fn number(field: &[u8]) -> Option<i64> {
    match field {
        [0x80, digits @ ..] => base_256(0, digits),
        [0xff, digits @ ..] => base_256(-1, digits),
        _ => octal(field),
    }
}

fn base_256(sign: i64, digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(sign, |value, digit| value.checked_mul(256)?.checked_add(i64::from(*digit)))
}

/// Digits after blanks, up to a blank, a NUL or the end of the field.
fn octal(field: &[u8]) -> Option<i64> {
    let start = field.iter().position(|byte| *byte != b' ')?;
    let digits = field[start..].iter().take_while(|byte| matches!(byte, b'0'..=b'7'));
    let end = start + digits.count();
    let ends = field.get(end).is_none_or(|byte| matches!(byte, 0 | b' '));
    if start == end || !ends {
        return None;
    }
    field[start..end].iter().try_fold(0i64, |value, digit| value.checked_mul(8)?.checked_add(i64::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_gnu_tar_reads_them() {
        let cases: [(&[u8], Option<i64>); 17] = [
            (b"0000644\0", Some(0o644)),
            (b"77777777", Some(0o77_777_777)),
            (b"   644 \0", Some(0o644)),
            (b"644\0junk", Some(0o644)),
            (b"644 9\0\0\0", Some(0o644)),
            (b"\x80\0\0\0\0\0\x01\0", Some(256)),
            (b"\xff\xff\xff\xff\xff\xff\xff\xfe", Some(-2)),
            (b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff", Some(i64::MAX)),
            (b"\x80\0\0\x01\0\0\0\0\0\0\0\x01", None),
            (b"\x80\0\0\0\x80\0\0\0\0\0\0\0", None),
            (b"\x81\0\0\0\0\0\0\0", None),
            (b"+7\0\0\0\0\0\0", None),
            (b"-1\0\0\0\0\0\0", None),
            (b"0x1ff\0\0\0", None),
            (b"\t644\0\0\0\0", None),
            (b"        ", None),
            (b"\0\0\0\0\0\0\0\0", None),
        ];
        for (field, expected) in cases {
            assert_eq!(number(field), expected, "{field:?}");
        }
    }
}

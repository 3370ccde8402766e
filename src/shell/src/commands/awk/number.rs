//! Numbers as awk reads and writes them: decimal ones, as f64.

/// The number that a text begins with, and its length.
pub(super) fn prefix(text: &[u8]) -> Option<(f64, usize)> {
    let digits =
        |from: usize| text.get(from..).unwrap_or_default().iter().take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = usize::from(matches!(text.first(), Some(b'+' | b'-')));
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        at += if whole + fraction > 0 { fraction + 1 } else { 0 };
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'+' | b'-')));
        let exponent = digits(at + 1 + sign);
        at += if exponent > 0 { 1 + sign + exponent } else { 0 };
    }
    let value = std::str::from_utf8(&text[..at]).ok()?.parse().ok()?;
    Some((value, at))
}

fn blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | 11 | 12 | b'\r')
}

fn trim(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !blank(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !blank(*byte)).map_or(start, |at| at + 1);
    &text[start..end]
}

/// What a text is as a number: of its first bytes. `None` where awks do not agree: hexadecimal numbers, `inf`, `nan`.
pub(super) fn value(text: &[u8]) -> Option<f64> {
    let text = trim(text);
    if special(text) {
        return None;
    }
    prefix(text).map_or(Some(0.0), |(value, _)| value.is_finite().then_some(value))
}

/// The value of input that looks like a number, `Ok(None)` if it does not, and an error where awks do not agree.
pub(super) fn numeric(text: &[u8]) -> Result<Option<f64>, ()> {
    let text = trim(text);
    if special(text) {
        let unsigned = text.strip_prefix(b"+").or_else(|| text.strip_prefix(b"-")).unwrap_or(text).to_ascii_lowercase();
        let hexadecimal = unsigned.starts_with(b"0x");
        let number = matches!(&unsigned[..], b"inf" | b"infinity" | b"nan") || unsigned.starts_with(b"nan(");
        let digits = unsigned.iter().skip(2).all(|byte| byte.is_ascii_hexdigit() || b".p+-".contains(byte));
        return if number || (hexadecimal && digits) { Err(()) } else { Ok(None) };
    }
    match prefix(text) {
        Some((value, len)) if len == text.len() => {
            if value.is_finite() {
                Ok(Some(value))
            } else {
                Err(())
            }
        }
        _ => Ok(None),
    }
}

/// Whether strtod(3) would find more in a text than digits.
fn special(text: &[u8]) -> bool {
    let unsigned = text.strip_prefix(b"+").or_else(|| text.strip_prefix(b"-")).unwrap_or(text);
    match unsigned {
        [b'0', b'x' | b'X', digit, ..] => digit.is_ascii_hexdigit() || *digit == b'.',
        [a, b, c, ..] => matches!(&[*a, *b, *c].map(|byte| byte.to_ascii_lowercase()), b"inf" | b"nan"),
        _ => false,
    }
}

/// The integer next to a number, towards zero. `None` beyond those of 32 bits, which mawk of Debian 12 writes in another way.
pub(super) fn integer(value: f64) -> Option<i64> {
    if value.abs() >= 2_147_483_648.0 || value.is_nan() {
        return None;
    }
    format!("{:.0}", value.trunc()).parse().ok()
}

/// A length or a count, which [`Limits`](crate::Limits) keep below those of 32 bits.
pub(super) fn count(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// A number below `base` to the power of a whole number.
pub(super) fn power(base: f64, exponent: i64) -> f64 {
    let mut result = 1.0;
    let mut square = base;
    let mut left = exponent.unsigned_abs();
    while left > 0 {
        if left % 2 == 1 {
            result *= square;
        }
        square *= square;
        left /= 2;
    }
    if exponent < 0 { 1.0 / result } else { result }
}

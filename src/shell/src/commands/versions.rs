//! Version sort as in GNU `ls -v`: numbers by value, hidden names first, file extensions last.

use std::cmp::Ordering;

/// Compares two names of files.
pub(super) fn compare(one: &[u8], other: &[u8]) -> Ordering {
    let rank = |name: &[u8]| match name {
        b"" => 0,
        b"." => 1,
        b".." => 2,
        [b'.', ..] => 3,
        _ => 4,
    };
    let (rank, hidden) = (rank(one).cmp(&rank(other)), rank(one) == 3);
    let skip = usize::from(hidden && rank.is_eq());
    let (one, other) = (one.get(skip..).unwrap_or_default(), other.get(skip..).unwrap_or_default());
    rank.then_with(|| parts(stem(one), stem(other))).then_with(|| parts(one, other))
}

/// A name without its endings: each is a dot, then a letter or `~`, then letters, digits and `~`.
fn stem(name: &[u8]) -> &[u8] {
    let mut end = name.len();
    while let Some(dot) = name[..end].iter().rposition(|byte| *byte == b'.') {
        let ending = &name[dot + 1..end];
        let starts = ending.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'~');
        if dot == 0 || !starts || !ending.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'~') {
            break;
        }
        end = dot;
    }
    &name[..end]
}

/// The order of a byte that is not a digit: `~` before the end, the end before letters, letters before the others.
fn place(byte: Option<&u8>) -> u16 {
    match byte {
        Some(b'~') => 0,
        None => 1,
        Some(byte) if byte.is_ascii_digit() => 2,
        Some(byte) if byte.is_ascii_alphabetic() => u16::from(*byte) + 3,
        Some(byte) => u16::from(*byte) + 0x200,
    }
}

/// Compares other characters than digits byte by byte, and numbers by value, in turn.
fn parts(mut one: &[u8], mut other: &[u8]) -> Ordering {
    let digit = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_digit);
    while !one.is_empty() || !other.is_empty() {
        if digit(one.first()) && digit(other.first()) {
            let (number, rest) = number(one);
            let (second, second_rest) = self::number(other);
            let order = number.len().cmp(&second.len()).then_with(|| number.cmp(second));
            if order.is_ne() {
                return order;
            }
            (one, other) = (rest, second_rest);
            continue;
        }
        let order = place(one.first()).cmp(&place(other.first()));
        if order.is_ne() {
            return order;
        }
        (one, other) = (one.get(1..).unwrap_or_default(), other.get(1..).unwrap_or_default());
    }
    Ordering::Equal
}

/// The digits at the start, without leading zeros, and the rest.
fn number(text: &[u8]) -> (&[u8], &[u8]) {
    let end = text.iter().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let zeros = digits.iter().take_while(|byte| **byte == b'0').count();
    (&digits[zeros..], rest)
}

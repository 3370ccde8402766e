//! `tr`.

use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::host::Question;
use crate::pattern::in_class;
use crate::shell::Shell;

/// Maximum number of bytes of one `[c*n]`.
const MAX_REPEAT: usize = 1 << 16;

/// `[c*n]`, or `[c*]` without a count.
struct Repeat {
    byte: u8,
    count: Option<usize>,
    end: usize,
}

fn repeat(shell: &Shell<'_>, text: &[u8], at: usize) -> Run<Option<Repeat>> {
    if text[at] != b'[' || at + 1 == text.len() {
        return Ok(None);
    }
    let (byte, star) = member(text, at + 1);
    let rest = text.get(star + 1..).unwrap_or_default();
    let is_repeat = text.get(star) == Some(&b'*');
    let Some(len) = rest.iter().position(|byte| *byte == b']').filter(|_| is_repeat) else { return Ok(None) };
    let digits = std::str::from_utf8(&rest[..len]).unwrap_or("-");
    let radix = if digits.starts_with('0') { 8 } else { 10 };
    let count = match digits {
        "" => 0,
        digits => match usize::from_str_radix(digits, radix) {
            Ok(count) if count <= MAX_REPEAT && !digits.starts_with('+') => count,
            _ => return shell.unsupported(text),
        },
    };
    Ok(Some(Repeat { byte, count: Some(count).filter(|count| *count > 0), end: star + len + 2 }))
}

/// The bytes of a set in their order; `[c*]` fills it up to the length `fill`.
fn set(shell: &Shell<'_>, text: &[u8], fill: Option<usize>) -> Run<Vec<u8>> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut at = 0;
    while at < text.len() {
        if text[at..].starts_with(b"[:") {
            let rest = &text[at + 2..];
            if let Some(len) = rest.windows(2).position(|window| window == b":]") {
                let class = &rest[..len];
                if in_class(class, 0).is_none() {
                    return shell.unsupported(class);
                }
                bytes.extend((0..=u8::MAX).filter(|byte| in_class(class, *byte) == Some(true)));
                at += len + 4;
                continue;
            }
        }
        if text[at..].starts_with(b"[=") {
            return shell.unsupported(text);
        }
        if let Some(repeat) = repeat(shell, text, at)? {
            let count = match repeat.count {
                Some(count) => count,
                None => match fill {
                    Some(len) => len.saturating_sub(bytes.len() + set(shell, &text[repeat.end..], None)?.len()),
                    None => return shell.unsupported(b"[c*] without a count in this operand"),
                },
            };
            bytes.resize(bytes.len() + count, repeat.byte);
            at = repeat.end;
            continue;
        }
        let (low, next) = member(text, at);
        at = next;
        let mut high = low;
        if text.get(at) == Some(&b'-') && at + 1 < text.len() {
            (high, at) = member(text, at + 1);
            if high < low {
                return shell.unsupported(text);
            }
        }
        bytes.extend(low..=high);
    }
    Ok(bytes)
}

/// A byte, perhaps escaped, and the place behind it.
fn member(text: &[u8], at: usize) -> (u8, usize) {
    if text[at] != b'\\' || at + 1 == text.len() {
        return (text[at], at + 1);
    }
    let escaped = text[at + 1];
    let plain = match escaped {
        b'n' => b'\n',
        b't' => b'\t',
        b'r' => b'\r',
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        b'0'..=b'7' => {
            let digits: Vec<u8> =
                text[at + 1..].iter().copied().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).collect();
            let value = digits.iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
            return (value.to_le_bytes()[0], at + 1 + digits.len());
        }
        other => other,
    };
    (plain, at + 2)
}

pub(super) fn tr(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] =
        &[("delete", b'd'), ("squeeze-repeats", b's'), ("complement", b'c'), ("truncate-set1", b't')];
    let options = parse(shell, args, &Accepted { letters: b"dscCt", long, strict: true })?;
    let (deletes, squeezes) = (options.has(b'd'), options.has(b's'));
    let needed = if deletes != squeezes { 1 } else { 2 };
    let most = if deletes && !squeezes { 1 } else { 2 };
    let Some(first) = options.operands.first().filter(|_| (needed..=most).contains(&options.operands.len())) else {
        return super::complain(shell, "tr", b"missing or extra operand");
    };
    let mut from = set(shell, first, None)?;
    if options.has(b'c') || options.has(b'C') {
        from = (0..=u8::MAX).filter(|byte| !from.contains(byte)).collect();
    }
    let second = match options.operands.get(1) {
        Some(text) => Some(set(shell, text, (!deletes).then_some(from.len()))?),
        None => None,
    };
    if let Some(to) = second.as_ref().filter(|_| options.has(b't')) {
        from.truncate(to.len());
    }
    let mut table: Vec<Option<u8>> = (0..=u8::MAX).map(Some).collect();
    if deletes {
        from.iter().for_each(|byte| table[usize::from(*byte)] = None);
    } else if let Some(to) = &second {
        let Some(last) = to.last() else { return shell.unsupported(b"an empty set") };
        for (at, byte) in from.iter().enumerate() {
            table[usize::from(*byte)] = Some(*to.get(at).unwrap_or(last));
        }
    }
    let squeezed = if squeezes { second.unwrap_or(from) } else { Vec::new() };
    if shell.input_is_dir() {
        return super::complain(shell, "tr", b"read error: Is a directory");
    }
    let input = shell.read_all(0)?;
    shell.ask(Question::Value(&input))?;
    let mut out: Vec<u8> = Vec::with_capacity(input.len());
    for byte in input.iter().filter_map(|byte| table[usize::from(*byte)]) {
        if out.last() != Some(&byte) || !squeezed.contains(&byte) {
            out.push(byte);
        }
    }
    shell.out(&out)?;
    Ok(0)
}

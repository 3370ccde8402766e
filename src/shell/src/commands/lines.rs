//! `cut`, `sort` and `uniq`.

use std::cmp::Ordering;

use super::options::{Accepted, Options, parse};
use super::{count, inputs, split_lines, versions};
use crate::eval::Run;
use crate::shell::Shell;

/// Lines without their newlines.
fn bare_lines(text: &[u8]) -> Vec<&[u8]> {
    split_lines(text).map(|line| line.strip_suffix(b"\n").unwrap_or(line)).collect()
}

/// `1,3-5,7-`: pairs counted from 1.
fn ranges(shell: &Shell<'_>, text: &[u8]) -> Run<Vec<(usize, usize)>> {
    let mut ranges = Vec::new();
    for item in text.split(|byte| *byte == b',') {
        let range = match item.iter().position(|byte| *byte == b'-') {
            None => {
                let at = count(shell, item)?;
                (at, at)
            }
            Some(at) => {
                let low = if at == 0 { 1 } else { count(shell, &item[..at])? };
                let high = if at + 1 == item.len() { usize::MAX } else { count(shell, &item[at + 1..])? };
                (low, high)
            }
        };
        if range.0 == 0 || range.1 < range.0 || item == b"-" {
            return shell.unsupported(&[b"the list ", text].concat());
        }
        ranges.push(range);
    }
    Ok(ranges)
}

pub(super) fn cut(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("delimiter=", b'd'),
        ("fields=", b'f'),
        ("bytes=", b'b'),
        ("characters=", b'c'),
        ("only-delimited", b's'),
        ("output-delimiter=", b'O'),
        ("complement", b'C'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"d:f:b:c:s", long, strict: false })?;
    let list = [b'f', b'b', b'c'].into_iter().find_map(|letter| Some((letter, options.value(letter)?)));
    let Some((letter, list)) = list else {
        return super::complain(shell, "cut", b"you must specify a list of bytes, characters, or fields");
    };
    let ranges = ranges(shell, list)?;
    let delimiter = match options.value(b'd') {
        None => b'\t',
        Some([byte]) => *byte,
        Some(other) => return shell.unsupported(&[b"the delimiter ", other].concat()),
    };
    let joint = options.value(b'O').map_or(vec![delimiter], <[u8]>::to_vec);
    let complement = options.has(b'C');
    let wanted = |at: usize| ranges.iter().any(|(low, high)| (*low..=*high).contains(&at)) != complement;
    let (contents, failed) = inputs(shell, "cut", &options.operands)?;
    for (_, content) in contents {
        for line in bare_lines(&content) {
            shell.spend(line.len().saturating_mul(ranges.len()) + 1)?;
            let chosen: Vec<u8> = if letter == b'f' {
                if !line.contains(&delimiter) {
                    if !options.has(b's') {
                        shell.out(&[line, b"\n"].concat())?;
                    }
                    continue;
                }
                let fields: Vec<&[u8]> = line.split(|byte| *byte == delimiter).collect();
                let chosen: Vec<&[u8]> =
                    fields.iter().enumerate().filter(|(at, _)| wanted(at + 1)).map(|(_, field)| *field).collect();
                chosen.join(&joint[..])
            } else {
                line.iter().enumerate().filter(|(at, _)| wanted(at + 1)).map(|(_, byte)| *byte).collect()
            };
            shell.out(&[&chosen[..], b"\n"].concat())?;
        }
    }
    Ok(u8::from(failed))
}

/// One key of `sort`.
struct Key {
    start: usize,
    end: usize,
    numeric: bool,
    reverse: bool,
    /// Options of its own replace those of all keys.
    own: bool,
}

fn key(shell: &Shell<'_>, text: &[u8]) -> Run<Key> {
    let letters = text.iter().rposition(|byte| byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let (place, flags) = text.split_at(letters);
    if !flags.iter().all(|flag| matches!(flag, b'n' | b'r')) {
        return shell.unsupported(&[b"-k ", text].concat());
    }
    let (start, end) = match place.iter().position(|byte| *byte == b',') {
        Some(at) => (count(shell, &place[..at])?, count(shell, &place[at + 1..])?),
        None => (count(shell, place)?, usize::MAX),
    };
    if start == 0 || end < start {
        return shell.unsupported(&[b"-k ", text].concat());
    }
    let (numeric, reverse) = (flags.contains(&b'n'), flags.contains(&b'r'));
    Ok(Key { start, end, numeric, reverse, own: !flags.is_empty() })
}

/// The part of a line that a key means: fields from one to another, with the blanks before them.
fn key_of<'l>(line: &'l [u8], key: &Key, separator: Option<u8>) -> &'l [u8] {
    let mut starts = vec![0];
    let mut ends = Vec::new();
    for (at, byte) in line.iter().enumerate() {
        match separator {
            Some(separator) if *byte == separator => {
                ends.push(at);
                starts.push(at + 1);
            }
            None if matches!(byte, b' ' | b'\t') && at > 0 && !matches!(line[at - 1], b' ' | b'\t') => {
                ends.push(at);
                starts.push(at);
            }
            _ => {}
        }
    }
    ends.push(line.len());
    let Some(start) = starts.get(key.start - 1) else { return b"" };
    let end = ends.get(key.end.saturating_sub(1)).copied().unwrap_or(line.len());
    &line[*start..end]
}

/// A number at the start of a text, as `sort -n` compares it: sign, digits before and behind the point.
fn numeric(left: &[u8], right: &[u8]) -> Ordering {
    let parts = |text: &[u8]| -> (bool, Vec<u8>, Vec<u8>) {
        let text = text.trim_ascii_start();
        let (negative, text) = text.strip_prefix(b"-").map_or((false, text), |rest| (true, rest));
        let whole = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let fraction: Vec<u8> = match text.get(whole) {
            Some(b'.') => text[whole + 1..].iter().copied().take_while(u8::is_ascii_digit).collect(),
            _ => Vec::new(),
        };
        let digits: Vec<u8> = text[..whole].iter().copied().skip_while(|byte| *byte == b'0').collect();
        let kept = fraction.iter().rposition(|byte| *byte != b'0').map_or(0, |at| at + 1);
        let fraction = fraction[..kept].to_vec();
        (negative && !(digits.is_empty() && fraction.is_empty()), digits, fraction)
    };
    let (left, right) = (parts(left), parts(right));
    let size = (left.1.len(), &left.1, &left.2).cmp(&(right.1.len(), &right.1, &right.2));
    match (left.0, right.0) {
        (false, false) => size,
        (true, true) => size.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

fn compare(options: &Options, keys: &[Key], left: &[u8], right: &[u8]) -> Ordering {
    let separator = options.value(b't').and_then(|text| text.first().copied());
    let (all_numeric, all_reverse) = (options.has(b'n'), options.has(b'r'));
    let by = |numbers: bool, reverse: bool, left: &[u8], right: &[u8]| {
        let order = match numbers {
            true => numeric(left, right),
            false if options.has(b'V') => versions::compare(left, right),
            false => left.cmp(right),
        };
        if reverse { order.reverse() } else { order }
    };
    for key in keys {
        let (numbers, reverse) = if key.own { (key.numeric, key.reverse) } else { (all_numeric, all_reverse) };
        let order = by(numbers, reverse, key_of(left, key, separator), key_of(right, key, separator));
        if order.is_ne() {
            return order;
        }
    }
    if keys.is_empty() { by(all_numeric, all_reverse, left, right) } else { Ordering::Equal }
}

pub(super) fn sort(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("unique", b'u'),
        ("numeric-sort", b'n'),
        ("version-sort", b'V'),
        ("reverse", b'r'),
        ("stable", b's'),
        ("key=", b'k'),
        ("output=", b'o'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"unrsVk:t:o:", long, strict: false })?;
    if options.value(b't').is_some_and(|text| text.len() != 1) {
        return shell.unsupported(b"a separator of more than one byte");
    }
    if options.has(b'V') && (options.has(b'n') || options.has(b'k')) {
        return shell.unsupported(b"-V with another order, or with keys");
    }
    let mut keys = Vec::new();
    for (_, value) in options.iter().filter(|(letter, _)| *letter == b'k') {
        keys.push(key(shell, value)?);
    }
    let (contents, failed) = inputs(shell, "sort", &options.operands)?;
    if failed {
        return Ok(2);
    }
    let mut lines: Vec<&[u8]> = contents.iter().flat_map(|(_, content)| bare_lines(content)).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    shell.spend(bytes.saturating_mul(usize::BITS as usize / 4))?;
    let fallback = !options.has(b'u') && !options.has(b's');
    let reverse = options.has(b'r');
    lines.sort_by(|left, right| {
        let order = compare(&options, &keys, left, right);
        let whole = if reverse { right.cmp(left) } else { left.cmp(right) };
        if order.is_eq() && fallback { whole } else { order }
    });
    if options.has(b'u') {
        lines.dedup_by(|right, left| compare(&options, &keys, left, right).is_eq());
    }
    let text: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    match options.value(b'o') {
        None => shell.out(&text)?,
        Some(path) => {
            let path = path.to_vec();
            if let Err(error) = shell.write_path(&path, text)? {
                super::complain(
                    shell,
                    "sort",
                    &[b"open failed: ", &path[..], b": ", error.text().as_bytes()].concat(),
                )?;
                return Ok(2);
            }
        }
    }
    Ok(0)
}

pub(super) fn uniq(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"cdu", long: &[("count", b'c')], strict: false })?;
    if options.operands.len() > 1 {
        return shell.unsupported(b"an output file");
    }
    let (contents, failed) = inputs(shell, "uniq", &options.operands)?;
    for (_, content) in contents {
        let mut groups: Vec<(&[u8], usize)> = Vec::new();
        for line in bare_lines(&content) {
            match groups.last_mut() {
                Some((last, count)) if *last == line => *count += 1,
                _ => groups.push((line, 1)),
            }
        }
        for (line, count) in groups {
            if (options.has(b'd') && count == 1) || (options.has(b'u') && count > 1) {
                continue;
            }
            let prefix = if options.has(b'c') { format!("{count:>7} ") } else { String::new() };
            shell.out(&[prefix.as_bytes(), line, b"\n"].concat())?;
        }
    }
    Ok(u8::from(failed))
}

//! `sort`.

use std::cmp::Ordering;

use super::lines::bare_lines;
use super::options::{Accepted, Options, parse};
use super::{complain, inputs, versions};
use crate::eval::Run;
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"bCcdfhik:no:rst:uV",
    long: &[
        ("ignore-leading-blanks", b'b'),
        ("check", b'c'),
        ("dictionary-order", b'd'),
        ("ignore-case", b'f'),
        ("human-numeric-sort", b'h'),
        ("ignore-nonprinting", b'i'),
        ("key=", b'k'),
        ("numeric-sort", b'n'),
        ("output=", b'o'),
        ("reverse", b'r'),
        ("stable", b's'),
        ("field-separator=", b't'),
        ("unique", b'u'),
        ("version-sort", b'V'),
    ],
    strict: false,
};

/// One key: a part of each line, and how it is compared.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Key {
    /// Fields and characters before the part.
    start: (usize, usize),
    /// Fields before the last one, and the characters of that; 0 are all. `None`: to the end of the line.
    end: Option<(usize, usize)>,
    order: Order,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Order {
    skip_start: bool,
    skip_end: bool,
    dictionary: bool,
    printable: bool,
    fold: bool,
    numeric: bool,
    human: bool,
    version: bool,
    reverse: bool,
}

impl Order {
    fn set(&mut self, letter: u8, at_end: bool) -> bool {
        match letter {
            b'b' if at_end => self.skip_end = true,
            b'b' => self.skip_start = true,
            b'd' => self.dictionary = true,
            b'i' => self.printable = true,
            b'f' => self.fold = true,
            b'n' => self.numeric = true,
            b'h' => self.human = true,
            b'V' => self.version = true,
            b'r' => self.reverse = true,
            _ => return false,
        }
        true
    }

    /// Whether orders exclude each other.
    fn is_ambiguous(&self) -> bool {
        let kinds = [self.numeric, self.human, self.version];
        let text = self.dictionary || self.printable;
        kinds.into_iter().filter(|kind| *kind).count() > 1 || (text && kinds.contains(&true))
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let order = if self.numeric {
            numeric(left, right)
        } else if self.human {
            unit(left).cmp(&unit(right)).then_with(|| numeric(left, right))
        } else if self.version {
            versions::compare(left, right)
        } else {
            self.text(left).cmp(self.text(right))
        };
        if self.reverse { order.reverse() } else { order }
    }

    /// The bytes that are compared.
    fn text<'l>(&self, text: &'l [u8]) -> impl Iterator<Item = u8> + 'l {
        let (dictionary, printable, fold) = (self.dictionary, self.printable, self.fold);
        text.iter()
            .copied()
            .filter(move |byte| !dictionary || byte.is_ascii_alphanumeric() || is_blank(*byte))
            .filter(move |byte| !printable || (b' '..=b'~').contains(byte))
            .map(move |byte| if fold { byte.to_ascii_uppercase() } else { byte })
    }
}

fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n')
}

/// `F[.C][OPTIONS][,F[.C][OPTIONS]]`; `None` where it is invalid.
fn key(text: &[u8]) -> Option<Key> {
    let mut order = Order::default();
    let mut position = |text: &[u8], at_end: bool| -> Option<(usize, Option<usize>)> {
        let end = text.iter().position(|byte| byte.is_ascii_alphabetic()).unwrap_or(text.len());
        if !text[end..].iter().all(|letter| order.set(*letter, at_end)) {
            return None;
        }
        let number = |text: &[u8]| crate::accounts::number(text).and_then(|number| usize::try_from(number).ok());
        match text[..end].iter().position(|byte| *byte == b'.') {
            Some(at) => Some((number(&text[..at])?, Some(number(&text[at + 1..end])?))),
            None => Some((number(&text[..end])?, None)),
        }
    };
    let comma = text.iter().position(|byte| *byte == b',');
    let (field, byte) = position(&text[..comma.unwrap_or(text.len())], false)?;
    let start = (field.checked_sub(1)?, byte.unwrap_or(1).checked_sub(1)?);
    let end = match comma {
        Some(at) => {
            let (field, byte) = position(&text[at + 1..], true)?;
            Some((field.checked_sub(1)?, byte.unwrap_or(0)))
        }
        None => None,
    };
    Some(Key { start, end, order })
}

impl Key {
    /// The place behind so many fields. `keeps` leaves the separator behind the last one.
    fn skip(line: &[u8], fields: usize, separator: Option<u8>, keeps: bool) -> usize {
        let mut at = 0;
        let mut left = fields;
        while at < line.len() && left > 0 {
            left -= 1;
            match separator {
                Some(separator) => {
                    at += line[at..].iter().take_while(|byte| **byte != separator).count();
                    at += usize::from(at < line.len() && (left > 0 || !keeps));
                }
                None => {
                    at += line[at..].iter().take_while(|byte| is_blank(**byte)).count();
                    at += line[at..].iter().take_while(|byte| !is_blank(**byte)).count();
                }
            }
        }
        at
    }

    /// The part of a line that is compared.
    fn part<'l>(&self, line: &'l [u8], separator: Option<u8>) -> &'l [u8] {
        let blanks = |at: usize| line[at..].iter().take_while(|byte| is_blank(**byte)).count();
        let mut start = Self::skip(line, self.start.0, separator, false);
        if self.order.skip_start {
            start += blanks(start);
        }
        let start = start.saturating_add(self.start.1).min(line.len());
        let end = match self.end {
            None => line.len(),
            Some((fields, 0)) => Self::skip(line, fields.saturating_add(1), separator, true),
            Some((fields, bytes)) => {
                let mut end = Self::skip(line, fields, separator, false);
                if self.order.skip_end {
                    end += blanks(end);
                }
                end.saturating_add(bytes).min(line.len())
            }
        };
        &line[start..end.max(start)]
    }
}

/// A number at the start of a text: whether it is negative, its digits before and behind the point.
fn parts(text: &[u8]) -> (bool, Vec<u8>, Vec<u8>) {
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    let text = &text[blanks..];
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
}

/// Compares as `sort -n` does.
fn numeric(left: &[u8], right: &[u8]) -> Ordering {
    let (left, right) = (parts(left), parts(right));
    let size = (left.1.len(), &left.1, &left.2).cmp(&(right.1.len(), &right.1, &right.2));
    match (left.0, right.0) {
        (false, false) => size,
        (true, true) => size.reverse(),
        (true, false) => Ordering::Less,
        (false, true) => Ordering::Greater,
    }
}

/// The unit of a number of `-h`, with its sign; 0 for zero.
fn unit(text: &[u8]) -> i8 {
    let (negative, digits, fraction) = parts(text);
    let blanks = text.iter().take_while(|byte| is_blank(**byte)).count();
    let rest = text[blanks..].iter().copied().skip_while(|byte| *byte == b'-');
    let suffix = { rest }.find(|byte| !byte.is_ascii_digit() && *byte != b'.').unwrap_or_default();
    let unit = match suffix {
        b'k' | b'K' => 1,
        b'M' => 2,
        b'G' => 3,
        b'T' => 4,
        b'P' => 5,
        b'E' => 6,
        b'Z' => 7,
        b'Y' => 8,
        _ => 0,
    };
    match (digits.is_empty() && fraction.is_empty(), negative) {
        (true, _) => 0,
        (false, true) => -unit,
        (false, false) => unit,
    }
}

/// How lines are compared.
struct Sorting {
    keys: Vec<Key>,
    separator: Option<u8>,
    unique: bool,
    /// Equal lines keep their order.
    stable: bool,
    reverse: bool,
}

impl Sorting {
    fn by_keys(&self, left: &[u8], right: &[u8]) -> Ordering {
        let orders = self
            .keys
            .iter()
            .map(|key| key.order.compare(key.part(left, self.separator), key.part(right, self.separator)));
        orders.into_iter().find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn compare(&self, left: &[u8], right: &[u8]) -> Ordering {
        let order = self.by_keys(left, right);
        if order.is_ne() || self.stable || self.unique {
            return order;
        }
        if self.reverse { right.cmp(left) } else { left.cmp(right) }
    }
}

/// What the options say; `None` where they are invalid, which was written.
fn sorting(shell: &mut Shell<'_>, options: &Options) -> Run<Option<Sorting>> {
    let separator = match options.value(b't') {
        None => None,
        Some([byte]) => Some(*byte),
        Some(b"\\0") => Some(0),
        Some(_) => return complain(shell, "sort", b"the separator is empty or too long").map(|_| None),
    };
    let mut global = Order::default();
    for (letter, _) in options.iter() {
        global.set(letter, false);
    }
    global.skip_end = global.skip_start;
    let mut keys = Vec::new();
    for (_, text) in options.iter().filter(|(letter, _)| *letter == b'k') {
        let Some(mut key) = key(text) else {
            if text.iter().any(|byte| b"gMR".contains(byte)) {
                return shell.unsupported(&[b"-k ", text].concat());
            }
            return complain(shell, "sort", &[b"invalid key ", text].concat()).map(|_| None);
        };
        if key.order == Order::default() {
            key.order = global.clone();
        }
        keys.push(key);
    }
    if keys.is_empty() {
        keys.push(Key { start: (0, 0), end: None, order: global.clone() });
    }
    if keys.iter().any(|key| key.order.is_ambiguous()) {
        return complain(shell, "sort", b"options are incompatible").map(|_| None);
    }
    let (unique, stable, reverse) = (options.has(b'u'), options.has(b's'), global.reverse);
    Ok(Some(Sorting { keys, separator, unique, stable, reverse }))
}

pub(super) fn sort(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &OPTIONS)?;
    let Some(sorting) = sorting(shell, &options)? else { return Ok(2) };
    let checks = options.has(b'c') || options.has(b'C');
    if checks && options.operands.len() > 1 {
        return complain(shell, "sort", b"extra operand").map(|_| 2);
    }
    let (contents, failed) = inputs(shell, "sort", &options.operands)?;
    if failed {
        return Ok(2);
    }
    let mut lines: Vec<&[u8]> = contents.iter().flat_map(|(_, content)| bare_lines(content)).collect();
    let bytes: usize = lines.iter().map(|line| line.len() + 1).sum();
    shell.spend(bytes.saturating_mul(usize::BITS as usize / 4))?;
    if checks {
        let fits = |pair: &[&[u8]]| match sorting.compare(pair[0], pair[1]) {
            Ordering::Less => true,
            Ordering::Equal => !sorting.unique,
            Ordering::Greater => false,
        };
        return if lines.windows(2).all(fits) { Ok(0) } else { complain(shell, "sort", b"disorder") };
    }
    lines.sort_by(|left, right| sorting.compare(left, right));
    if sorting.unique {
        lines.dedup_by(|right, left| sorting.by_keys(left, right).is_eq());
    }
    let text: Vec<u8> = lines.iter().flat_map(|line| [line, &b"\n"[..]].concat()).collect();
    match options.value(b'o') {
        None => shell.out(&text)?,
        Some(path) => {
            if let Err(error) = shell.write_path(path, text)? {
                complain(shell, "sort", &[b"open failed: ", path, b": ", error.text().as_bytes()].concat())?;
                return Ok(2);
            }
        }
    }
    Ok(0)
}

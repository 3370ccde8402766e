//! `cut`, `uniq` and `tac`.

use super::options::{Accepted, parse};
use super::{complain, count, inputs, split_lines};
use crate::eval::Run;
use crate::files::Follow;
use crate::shell::Shell;

/// Lines without their newlines.
pub(super) fn bare_lines(text: &[u8]) -> Vec<&[u8]> {
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
        return complain(shell, "cut", b"you must specify a list of bytes, characters, or fields");
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

pub(super) fn uniq(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("count", b'c'),
        ("repeated", b'd'),
        ("unique", b'u'),
        ("ignore-case", b'i'),
        ("skip-fields=", b'f'),
        ("skip-chars=", b's'),
        ("check-chars=", b'w'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"cduif:s:w:", long, strict: false })?;
    let number = |letter: u8| options.value(letter).map(|text| count(shell, text)).transpose();
    let (fields, chars) = (number(b'f')?.unwrap_or(0), number(b's')?.unwrap_or(0));
    let width = number(b'w')?.unwrap_or(usize::MAX);
    if options.operands.len() > 2 {
        return complain(shell, "uniq", b"extra operand");
    }
    let (contents, failed) = inputs(shell, "uniq", &options.operands[..options.operands.len().min(1)])?;
    if failed {
        // A directory can be opened, and then the output is made.
        if let [input, output] = &options.operands[..]
            && shell.stat(input, Follow::Yes).is_ok_and(|node| node.is_dir())
        {
            let _ = shell.write_path(output, Vec::new())?;
        }
        return Ok(1);
    }
    let key = |line: &[u8]| {
        let mut rest = line;
        for _ in 0..fields.min(line.len()) {
            let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
            let word = rest[blanks..].iter().take_while(|byte| !matches!(byte, b' ' | b'\t')).count();
            rest = &rest[blanks + word..];
        }
        let rest = &rest[chars.min(rest.len())..];
        let key = &rest[..width.min(rest.len())];
        if options.has(b'i') { key.to_ascii_uppercase() } else { key.to_vec() }
    };
    let mut out = Vec::new();
    for (_, content) in &contents {
        shell.spend(content.len())?;
        let mut groups: Vec<(&[u8], Vec<u8>, usize)> = Vec::new();
        for line in bare_lines(content) {
            let own = key(line);
            match groups.last_mut() {
                Some((_, last, count)) if *last == own => *count += 1,
                _ => groups.push((line, own, 1)),
            }
        }
        for (line, _, count) in groups {
            if (options.has(b'd') && count == 1) || (options.has(b'u') && count > 1) {
                continue;
            }
            let prefix = if options.has(b'c') { format!("{count:>7} ") } else { String::new() };
            out.extend([prefix.as_bytes(), line, b"\n"].concat());
        }
    }
    match options.operands.get(1).filter(|path| *path != b"-") {
        None => shell.out(&out)?,
        Some(path) => {
            if let Err(error) = shell.write_path(path, out)? {
                return complain(shell, "uniq", &[&path[..], b": ", error.text().as_bytes()].concat());
            }
        }
    }
    Ok(0)
}

/// `tac`: a last line without newline stays without one.
pub(super) fn tac(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"", long: &[], strict: false })?;
    let (contents, failed) = inputs(shell, "tac", &options.operands)?;
    for (_, content) in contents {
        let lines: Vec<&[u8]> = split_lines(&content).collect();
        let text: Vec<u8> = lines.into_iter().rev().flatten().copied().collect();
        shell.out(&text)?;
    }
    Ok(u8::from(failed))
}

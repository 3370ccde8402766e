//! `cat`, `head`, `tail`, `wc`, `tee` and `cmp`.

use super::options::{Accepted, parse};
use super::{complain, count, inputs, split_lines};
use crate::eval::Run;
use crate::files::Follow;
use crate::shell::Shell;

pub(super) fn cat(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"u", long: &[], strict: false })?;
    let (contents, failed) = inputs(shell, "cat", &options.operands)?;
    for (_, content) in contents {
        shell.out(&content)?;
    }
    Ok(u8::from(failed))
}

/// `-5` as `-n5`: the old form of `head` and `tail`.
fn modern(args: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut args = args.to_vec();
    if let Some(first) = args.first_mut()
        && first.len() > 1
        && first[0] == b'-'
        && first[1..].iter().all(u8::is_ascii_digit)
    {
        first.insert(1, b'n');
    }
    args
}

/// What is printed of each file: lines or bytes, from the start or from the end.
struct Part {
    bytes: bool,
    number: usize,
    /// All but the last ones (`head -n -5`), or from there on (`tail -n +5`).
    other: bool,
}

fn part(shell: &Shell<'_>, options: &super::options::Options, sign: u8) -> Run<Part> {
    let found = options.iter().rev().find(|(letter, _)| matches!(letter, b'n' | b'c'));
    let Some((letter, value)) = found else { return Ok(Part { bytes: false, number: 10, other: false }) };
    let other = value.first() == Some(&sign);
    let digits = if other || matches!(value.first(), Some(b'-')) { &value[1..] } else { value };
    Ok(Part { bytes: letter == b'c', number: count(shell, digits)?, other })
}

const PART_OPTIONS: Accepted = Accepted {
    letters: b"n:c:qv",
    long: &[("lines=", b'n'), ("bytes=", b'c'), ("quiet", b'q'), ("verbose", b'v')],
    strict: false,
};

/// The end of the first `number` pieces.
fn end_of(text: &[u8], part: &Part, number: usize) -> usize {
    if part.bytes { number.min(text.len()) } else { split_lines(text).take(number).map(<[u8]>::len).sum() }
}

fn pieces(text: &[u8], part: &Part) -> usize {
    if part.bytes { text.len() } else { split_lines(text).count() }
}

pub(super) fn head(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, &modern(args), &PART_OPTIONS)?;
    let part = part(shell, &options, b'-')?;
    parts(shell, "head", &options, &part, |text, part| {
        let number = if part.other { pieces(text, part).saturating_sub(part.number) } else { part.number };
        (0, end_of(text, part, number))
    })
}

pub(super) fn tail(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, &modern(args), &PART_OPTIONS)?;
    let part = part(shell, &options, b'+')?;
    parts(shell, "tail", &options, &part, |text, part| {
        let all = pieces(text, part);
        let skipped = if part.other { part.number.saturating_sub(1) } else { all.saturating_sub(part.number) };
        (end_of(text, part, skipped), text.len())
    })
}

fn parts(
    shell: &mut Shell<'_>,
    program: &str,
    options: &super::options::Options,
    part: &Part,
    range: fn(&[u8], &Part) -> (usize, usize),
) -> Run<u8> {
    let (contents, failed) = inputs(shell, program, &options.operands)?;
    let headers = (options.operands.len() > 1 || options.has(b'v')) && !options.has(b'q');
    for (at, (name, content)) in contents.iter().enumerate() {
        if headers {
            let blank: &[u8] = if at > 0 { b"\n" } else { b"" };
            let name: &[u8] = if name == b"-" { b"standard input" } else { name };
            shell.out(&[blank, b"==> ", name, b" <==\n"].concat())?;
        }
        let (start, end) = range(content, part);
        shell.out(&content[start..end])?;
    }
    Ok(u8::from(failed))
}

pub(super) fn wc(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("lines", b'l'), ("words", b'w'), ("bytes", b'c'), ("chars", b'm')];
    let options = parse(shell, args, &Accepted { letters: b"lwcm", long, strict: false })?;
    let (contents, failed) = inputs(shell, "wc", &options.operands)?;
    let all = options.iter().next().is_none();
    let wanted = [(b'l', 0), (b'w', 1), (b'm', 2), (b'c', 2)]
        .into_iter()
        .filter(|(letter, _)| options.has(*letter) || (all && *letter != b'm'));
    let wanted: Vec<usize> = wanted.map(|(_, at)| at).collect();
    let counts = |text: &[u8]| {
        let words = text.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).count();
        [text.iter().filter(|byte| **byte == b'\n').count(), words, text.len()]
    };
    let mut rows: Vec<([usize; 3], Vec<u8>)> =
        contents.iter().map(|(name, text)| (counts(text), name.clone())).collect();
    if options.operands.len() > 1 {
        let sum = |at: usize| rows.iter().map(|(row, _)| row[at]).sum();
        rows.push(([sum(0), sum(1), sum(2)], b"total".to_vec()));
    }
    // Numbers have the width of the size of all files, and of standard input seven.
    let total: usize = contents.iter().map(|(_, text)| text.len()).sum();
    let standard = contents.iter().any(|(name, _)| name == b"-");
    let width = match (rows.len() == 1 && wanted.len() == 1, standard) {
        (true, _) => 1,
        (false, true) => 7,
        (false, false) => total.to_string().len(),
    };
    for (row, name) in &rows {
        let numbers: Vec<String> = wanted.iter().map(|at| format!("{:>width$}", row[*at])).collect();
        let mut line = numbers.join(" ").into_bytes();
        if !options.operands.is_empty() {
            line = [&line[..], b" ", name].concat();
        }
        shell.out(&[&line[..], b"\n"].concat())?;
    }
    Ok(u8::from(failed))
}

pub(super) fn tee(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"a", long: &[("append", b'a')], strict: false })?;
    let input = shell.read_all(0)?;
    let mut status = 0;
    for operand in &options.operands {
        let mut content = Vec::new();
        if options.has(b'a') {
            content = shell.read_file(operand)?.unwrap_or_default();
        }
        content.extend_from_slice(&input);
        if let Err(error) = shell.write_path(operand, content)? {
            status = complain(shell, "tee", &[&operand[..], b": ", error.text().as_bytes()].concat())?;
        }
    }
    shell.out(&input)?;
    Ok(status)
}

/// `diff -q`, which only says whether two files differ.
pub(super) fn diff(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"q", long: &[("brief", b'q')], strict: false })?;
    let [left, right] = &options.operands[..] else {
        complain(shell, "diff", b"two operands are needed")?;
        return Ok(2);
    };
    let is_dir = |path: &Vec<u8>| shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_dir());
    if is_dir(left) || is_dir(right) {
        return shell.unsupported(b"diff of directories");
    }
    let (contents, failed) = inputs(shell, "diff", &[left.clone(), right.clone()])?;
    match &contents[..] {
        [(_, first), (_, second)] if !failed && first == second => Ok(0),
        [_, _] if !failed && !options.has(b'q') => shell.unsupported(b"telling how files differ"),
        [_, _] if !failed => {
            shell.out(&[b"Files ", &left[..], b" and ", right, b" differ\n"].concat())?;
            Ok(1)
        }
        _ => Ok(2),
    }
}

pub(super) fn cmp(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options =
        parse(shell, args, &Accepted { letters: b"s", long: &[("quiet", b's'), ("silent", b's')], strict: false })?;
    let [left, right] = &options.operands[..] else {
        return match &options.operands[..] {
            [] => {
                complain(shell, "cmp", b"missing operand")?;
                Ok(2)
            }
            _ => shell.unsupported(b"cmp with standard input or with offsets"),
        };
    };
    let (contents, failed) = inputs(shell, "cmp", &[left.clone(), right.clone()])?;
    let [(_, first), (_, second)] = &contents[..] else { return Ok(2) };
    if failed {
        return Ok(2);
    }
    if first == second {
        return Ok(0);
    }
    if !options.has(b's') {
        return shell.unsupported(b"telling where files differ");
    }
    Ok(1)
}

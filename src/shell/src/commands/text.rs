//! `cat`, `head`, `tail`, `wc`, `tee` and `cmp`.

use super::options::{Accepted, parse};
use super::{complain, complain_exactly, count, inputs, split_lines};
use crate::eval::Run;
use crate::files::Follow;
use crate::host::Question;
use crate::shell::Shell;

pub(super) fn cat(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    if shell.descriptor(1).is_none() {
        return shell.unsupported(b"a closed standard output");
    }
    let long: &[(&str, u8)] = &[
        ("show-all", b'A'),
        ("number-nonblank", b'b'),
        ("show-ends", b'E'),
        ("number", b'n'),
        ("squeeze-blank", b's'),
        ("show-tabs", b'T'),
        ("show-nonprinting", b'v'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"AbeEnstTuv", long, strict: false })?;
    let (mut contents, mut failed) = inputs(shell, "cat", &options.operands)?;
    failed |= drop_own_output(shell, &mut contents)?;
    let plain = options.iter().all(|(letter, _)| letter == b'u');
    let text: Vec<u8> = contents.into_iter().flat_map(|(_, content)| content).collect();
    if !plain {
        shell.ask(Question::Value(&text))?;
    }
    let text = if plain { text } else { shown(&options, &text) };
    shell.out(&text)?;
    Ok(u8::from(failed))
}

/// Leaves out inputs that are the file which standard output is written to. Says whether there are any.
fn drop_own_output(shell: &mut Shell<'_>, contents: &mut Vec<super::Input>) -> Run<bool> {
    let (mut written, mut found) = (false, false);
    let mut kept = Vec::new();
    for (name, content) in std::mem::take(contents) {
        let path = if name == b"-" { shell.input_path(0) } else { Some(shell.path(&name)) };
        match path.and_then(|path| shell.own_output_file(&path)) {
            Some((at, append)) if written || !content.is_empty() => {
                if !append && !written && at == 0 {
                    // Some versions of cat copy it onto itself.
                    return shell.unsupported(b"a file as input and output");
                }
                found = true;
                complain_exactly(shell, "cat", &[&name[..], b": input file is output file"].concat())?;
            }
            _ => {
                written |= !content.is_empty();
                kept.push((name, content));
            }
        }
    }
    *contents = kept;
    Ok(found)
}

/// A text as the options of `cat` show it.
fn shown(options: &super::options::Options, text: &[u8]) -> Vec<u8> {
    let any = |letters: &[u8]| letters.iter().any(|letter| options.has(*letter));
    let (ends, tabs, codes) = (any(b"AeE"), any(b"AtT"), any(b"Aetv"));
    let (mut out, mut number, mut blank) = (Vec::new(), 0_usize, false);
    for line in split_lines(text) {
        let is_blank = line == b"\n";
        if options.has(b's') && is_blank && blank {
            continue;
        }
        blank = is_blank;
        if (options.has(b'b') && !is_blank) || (options.has(b'n') && !options.has(b'b')) {
            number += 1;
            out.extend(format!("{number:>6}\t").into_bytes());
        }
        let whole = line.strip_suffix(b"\n");
        let content = whole.unwrap_or(line);
        for (at, byte) in content.iter().enumerate() {
            let is_last = whole.is_some() && at + 1 == content.len();
            match byte {
                b'\t' if tabs => out.extend(b"^I"),
                b'\r' if ends && !codes && is_last => out.extend(b"^M"),
                byte if codes && *byte != b'\t' => out.extend(visible(*byte)),
                byte => out.push(*byte),
            }
        }
        if whole.is_some() {
            out.extend(if ends { &b"$\n"[..] } else { b"\n" });
        }
    }
    out
}

/// A byte as `cat -v` shows it.
fn visible(byte: u8) -> Vec<u8> {
    let (prefix, low): (&[u8], u8) = if byte >= 0x80 { (b"M-", byte & 0x7f) } else { (b"", byte) };
    match low {
        0x7f => [prefix, b"^?"].concat(),
        0..0x20 => [prefix, &[b'^', low + 0x40]].concat(),
        _ => [prefix, &[low]].concat(),
    }
}

/// `-5` as `-n5`, and `+5` of `tail` as `-n+5`: the old forms, which `tail` takes with one operand at most.
fn modern(args: &[Vec<u8>], tail: bool) -> Vec<Vec<u8>> {
    let mut args = args.to_vec();
    let old = match &args[..] {
        _ if !tail => true,
        [_] => true,
        [_, operand] if !operand.starts_with(b"-") || operand == b"-" => true,
        [_, end] | [_, end, _] => end == b"--",
        _ => false,
    };
    let digits = |text: &[u8]| !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    if let Some(first) = args.first_mut().filter(|_| old) {
        match first.split_first() {
            Some((b'+', rest)) if tail && digits(rest) => *first = [b"-n+", rest].concat(),
            Some((b'-', rest)) if digits(rest) => *first = [b"-n", rest].concat(),
            _ => {}
        }
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
    letters: b"n:c:qv0123456789",
    long: &[("lines=", b'n'), ("bytes=", b'c'), ("quiet", b'q'), ("silent", b'q'), ("verbose", b'v')],
    strict: false,
};

/// The end of the first `number` pieces.
fn end_of(text: &[u8], part: &Part, number: usize) -> usize {
    if part.bytes { number.min(text.len()) } else { split_lines(text).take(number).map(<[u8]>::len).sum() }
}

fn pieces(text: &[u8], part: &Part) -> usize {
    if part.bytes { text.len() } else { split_lines(text).count() }
}

/// Whether the first argument is a number with letters behind it, such as `-5c`.
fn has_old_letters(args: &[Vec<u8>]) -> bool {
    let first = args.first().map(Vec::as_slice).unwrap_or_default();
    let rest = first.strip_prefix(b"-").or_else(|| first.strip_prefix(b"+")).unwrap_or_default();
    rest.first().is_some_and(u8::is_ascii_digit) && !rest.iter().all(u8::is_ascii_digit)
}

pub(super) fn head(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    if has_old_letters(args) {
        return shell.unsupported(&args[0]);
    }
    let options = parse(shell, &modern(args, false), &PART_OPTIONS)?;
    if options.iter().any(|(letter, _)| letter.is_ascii_digit()) {
        return complain(shell, "head", b"invalid trailing option");
    }
    let part = part(shell, &options, b'-')?;
    if part.number == 0
        && !part.other
        && (options.operands.is_empty() || options.operands == [b"-"])
        && options.iter().all(|(letter, _)| letter != b'v')
    {
        return Ok(0);
    }
    parts(shell, "head", &options, &part, |text, part| {
        let number = if part.other { pieces(text, part).saturating_sub(part.number) } else { part.number };
        (0, end_of(text, part, number))
    })
}

pub(super) fn tail(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    if has_old_letters(args) {
        return shell.unsupported(&args[0]);
    }
    let options = parse(shell, &modern(args, true), &PART_OPTIONS)?;
    if options.iter().any(|(letter, _)| letter.is_ascii_digit()) {
        return complain(shell, "tail", b"option used in invalid context");
    }
    let part = part(shell, &options, b'+')?;
    // Without anything to print, no file is looked at.
    if part.number == 0 && !part.other {
        return Ok(0);
    }
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
    let standard = [b"-".to_vec()];
    let operands = if options.operands.is_empty() { &standard[..] } else { &options.operands };
    let last = options.iter().rev().find(|(letter, _)| matches!(letter, b'q' | b'v'));
    let headers = last.map_or(operands.len() > 1, |(letter, _)| letter == b'v');
    let (mut failed, mut first) = (false, true);
    for operand in operands {
        let is_dir = match &operand[..] {
            b"-" => shell.input_is_dir(),
            path => shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_dir()),
        };
        let (contents, wrong) = match is_dir {
            true => (vec![(operand.clone(), Vec::new())], false),
            false => inputs(shell, program, std::slice::from_ref(operand))?,
        };
        failed |= wrong;
        for (name, content) in contents {
            if headers {
                let blank: &[u8] = if first { b"" } else { b"\n" };
                let name: &[u8] = if name == b"-" { b"standard input" } else { &name };
                shell.out(&[blank, b"==> ", name, b" <==\n"].concat())?;
                first = false;
            }
            let (start, end) = range(&content, part);
            shell.out(&content[start..end])?;
            if operand == b"-" && program == "head" {
                // The first bytes are read as such, and not one buffer after the other.
                shell.give_back(content.len() - end, part.bytes && !part.other);
            }
        }
        // A directory can be opened, but not read.
        if is_dir && (part.other || part.number > 0) {
            failed = true;
            complain(shell, program, &[b"error reading '", &operand[..], b"': Is a directory"].concat())?;
        }
    }
    Ok(u8::from(failed))
}

pub(super) fn wc(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] =
        &[("lines", b'l'), ("words", b'w'), ("bytes", b'c'), ("chars", b'm'), ("max-line-length", b'L')];
    let options = parse(shell, args, &Accepted { letters: b"lwcmL", long, strict: false })?;
    let all = options.iter().next().is_none();
    let columns = [(b'l', 0), (b'w', 1), (b'm', 2), (b'c', 2), (b'L', 3)].into_iter();
    let wanted: Vec<usize> = columns
        .filter(|(letter, _)| options.has(*letter) || (all && !matches!(letter, b'm' | b'L')))
        .map(|(_, at)| at)
        .collect();
    let standard = [b"-".to_vec()];
    let operands = if options.operands.is_empty() { &standard[..] } else { &options.operands };
    let width = width(shell, operands, wanted.len());
    let mut rows: Vec<([usize; 4], Vec<u8>)> = Vec::new();
    let mut status = 0;
    for operand in operands {
        if operand != b"-" && shell.stat(operand, Follow::Yes).is_ok_and(|node| node.is_dir()) {
            status = complain(shell, "wc", &[&operand[..], b": Is a directory"].concat())?;
            rows.push(([0; 4], operand.clone()));
            continue;
        }
        let (contents, failed) = inputs(shell, "wc", std::slice::from_ref(operand))?;
        // Bytes of a file are counted by its size: some releases leave standard input where it is.
        if operand == b"-" && wanted == [2] && shell.input_path(0).is_some() {
            shell.lose_place();
        }
        status |= u8::from(failed);
        for (name, text) in contents {
            let plain = |byte: &u8| (b' '..=b'~').contains(byte) || byte.is_ascii_whitespace() || *byte == 0x0b;
            if (wanted.contains(&1) || wanted.contains(&3)) && !text.iter().all(plain) {
                return shell.unsupported(b"words or columns of a text with bytes that are not printable");
            }
            rows.push((counts(&text), name));
        }
    }
    if options.operands.len() > 1 {
        let sum = |at: usize| rows.iter().map(|(row, _)| row[at]).sum();
        let longest = rows.iter().map(|(row, _)| row[3]).max().unwrap_or(0);
        rows.push(([sum(0), sum(1), sum(2), longest], b"total".to_vec()));
    }
    for (row, name) in &rows {
        let numbers: Vec<String> = wanted.iter().map(|at| format!("{:>width$}", row[*at])).collect();
        let mut line = numbers.join(" ").into_bytes();
        if !options.operands.is_empty() {
            line = [&line[..], b" ", name].concat();
        }
        shell.out(&[&line[..], b"\n"].concat())?;
    }
    Ok(status)
}

/// Lines, words, bytes, and the width of the longest line.
fn counts(text: &[u8]) -> [usize; 4] {
    let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let words = text.split(is_space).filter(|word| !word.is_empty()).count();
    let (mut column, mut longest) = (0_usize, 0);
    for byte in text {
        match byte {
            b'\n' | b'\r' | 12 => column = 0,
            b'\t' => column = (column / 8 + 1) * 8,
            0x0b => {}
            _ => column += 1,
        }
        longest = longest.max(column);
    }
    [text.iter().filter(|byte| **byte == b'\n').count(), words, text.len(), longest]
}

/// The width of numbers: that of the size of all files, at least seven if one is not regular.
fn width(shell: &Shell<'_>, operands: &[Vec<u8>], columns: usize) -> usize {
    let found: Vec<_> = operands
        .iter()
        .map(|operand| match &operand[..] {
            b"-" => Ok(shell.input_path(0).and_then(|path| Some(shell.stat(&path, Follow::Yes).ok()?.size))),
            path => shell.stat(path, Follow::Yes).map(|node| node.is_file().then_some(node.size)),
        })
        .collect();
    if operands.len() == 1 && columns == 1 {
        return 1;
    }
    let total: u64 = found.iter().filter_map(|size| size.ok().flatten()).sum();
    let least = if found.contains(&Ok(None)) { 7 } else { 1 };
    total.to_string().len().max(least)
}

pub(super) fn tee(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"a", long: &[("append", b'a')], strict: false })?;
    let append = options.has(b'a');
    for operand in options.operands.iter().filter(|_| !append) {
        if let Ok(node) = shell.destination(operand) {
            shell.refuse_race(node.id)?;
        }
    }
    let input = shell.read_all(0)?;
    let mut status = 0;
    let mut opened = Vec::new();
    for operand in &options.operands {
        let is_there = append && shell.read_file(operand)?.is_ok();
        let made = if is_there { Ok(()) } else { shell.write_path(operand, Vec::new())? };
        match made {
            Ok(()) => opened.push(operand),
            Err(error) => {
                status = complain(shell, "tee", &[&operand[..], b": ", error.text().as_bytes()].concat())?;
            }
        }
    }
    shell.out(&input)?;
    // Without input, a file that is appended to stays as it is.
    for operand in opened.into_iter().filter(|_| !append || !input.is_empty()) {
        // Standard output may be the same file.
        let mut content = shell.read_file(operand)?.unwrap_or_default();
        let start = if append { content.len() } else { 0 };
        let end = content.len().min(start.saturating_add(input.len()));
        content.splice(start..end, input.iter().copied());
        let _ = shell.write_path(operand, content)?;
    }
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

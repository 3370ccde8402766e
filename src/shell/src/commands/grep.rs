//! `grep`.

use super::options::{Accepted, Options, parse};
use super::regex::{Expression, Syntax};
use super::{complain, count, inputs, split_lines};
use crate::eval::Run;
use crate::files::Follow;
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"EFGchiHlLnoqrsvwxe:f:m:az",
    long: &[
        ("extended-regexp", b'E'),
        ("fixed-strings", b'F'),
        ("count", b'c'),
        ("no-filename", b'h'),
        ("ignore-case", b'i'),
        ("files-with-matches", b'l'),
        ("line-number", b'n'),
        ("only-matching", b'o'),
        ("quiet", b'q'),
        ("silent", b'q'),
        ("no-messages", b's'),
        ("invert-match", b'v'),
        ("word-regexp", b'w'),
        ("line-regexp", b'x'),
        ("regexp=", b'e'),
        ("file=", b'f'),
        ("max-count=", b'm'),
        ("text", b'a'),
    ],
    strict: false,
};

pub(super) fn grep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    run(shell, args, Syntax::Basic)
}

pub(super) fn egrep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    run(shell, args, Syntax::Extended)
}

pub(super) fn fgrep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    run(shell, args, Syntax::Fixed)
}

fn run(shell: &mut Shell<'_>, args: &[Vec<u8>], default: Syntax) -> Run<u8> {
    let mut options = parse(shell, args, &OPTIONS)?;
    if let Some(unknown) = [b'r', b'z', b'L'].into_iter().find(|letter| options.has(*letter)) {
        return shell.unsupported(&[b'-', unknown]);
    }
    let Some(patterns) = patterns(shell, &mut options)? else { return Ok(2) };
    let syntax = options.iter().rev().find_map(|(letter, _)| match letter {
        b'E' => Some(Syntax::Extended),
        b'F' => Some(Syntax::Fixed),
        b'G' => Some(Syntax::Basic),
        _ => None,
    });
    let mut expressions = Vec::new();
    for pattern in patterns {
        expressions.push(Expression::new(shell, &pattern, syntax.unwrap_or(default), options.has(b'i'))?);
    }
    let named = (options.operands.len() > 1 || options.has(b'H')) && !options.has(b'h');
    let (contents, failed) = if options.has(b's') {
        let readable: Vec<Vec<u8>> = options.operands.iter().filter(|path| readable(shell, path)).cloned().collect();
        let failed = readable.len() < options.operands.len();
        if readable.is_empty() && failed { (Vec::new(), true) } else { (inputs(shell, "grep", &readable)?.0, failed) }
    } else {
        inputs(shell, "grep", &options.operands)?
    };
    let mut found = false;
    for (name, content) in contents {
        found |= search(shell, &options, &expressions, &name, &content, named)?;
        if found && options.has(b'q') {
            return Ok(0);
        }
    }
    Ok(if failed { 2 } else { u8::from(!found) })
}

fn readable(shell: &Shell<'_>, path: &[u8]) -> bool {
    path == b"-" || path == b"/dev/null" || shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_file())
}

/// The patterns: of `-e`, of `-f`, or the first operand. `None` where their file cannot be read, which was told.
fn patterns(shell: &mut Shell<'_>, options: &mut Options) -> Run<Option<Vec<Vec<u8>>>> {
    let mut texts: Vec<Vec<u8>> =
        options.iter().filter(|(letter, _)| *letter == b'e').map(|(_, text)| text.to_vec()).collect();
    let files: Vec<Vec<u8>> =
        options.iter().filter(|(letter, _)| *letter == b'f').map(|(_, path)| path.to_vec()).collect();
    let mut patterns: Vec<Vec<u8>> = Vec::new();
    for path in &files {
        let (contents, failed) = inputs(shell, "grep", std::slice::from_ref(path))?;
        if failed {
            return Ok(None);
        }
        for line in contents.iter().flat_map(|(_, content)| split_lines(content)) {
            patterns.push(line.strip_suffix(b"\n").unwrap_or(line).to_vec());
        }
    }
    if texts.is_empty() && files.is_empty() {
        if options.operands.is_empty() {
            complain(shell, "grep", b"no pattern")?;
            return Ok(None);
        }
        texts.push(options.operands.remove(0));
    }
    patterns.extend(texts.iter().flat_map(|text| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec)));
    Ok(Some(patterns))
}

/// Searches one content. Says whether a line was selected.
fn search(
    shell: &mut Shell<'_>,
    options: &Options,
    expressions: &[Expression],
    name: &[u8],
    content: &[u8],
    named: bool,
) -> Run<bool> {
    let most = options.value(b'm').map(|text| count(shell, text)).transpose()?.unwrap_or(usize::MAX);
    let binary = content.contains(&0) && !options.has(b'a');
    let prefix = if named { [name, b":"].concat() } else { Vec::new() };
    let mut selected = 0;
    for (at, line) in split_lines(content).enumerate() {
        if selected >= most {
            break;
        }
        let line = line.strip_suffix(b"\n").unwrap_or(line);
        let places = matches(shell, options, expressions, line)?;
        if places.is_empty() != options.has(b'v') {
            continue;
        }
        selected += 1;
        if options.has(b'q') {
            return Ok(true);
        }
        if options.has(b'l') {
            shell.out(&[name, b"\n"].concat())?;
            return Ok(true);
        }
        if options.has(b'c') {
            continue;
        }
        if binary {
            return shell.unsupported(b"a binary file");
        }
        let number = if options.has(b'n') { format!("{}:", at + 1) } else { String::new() };
        let line_prefix = [&prefix[..], number.as_bytes()].concat();
        if !options.has(b'o') {
            shell.out(&[&line_prefix[..], line, b"\n"].concat())?;
        } else if !options.has(b'v') {
            for (start, end) in places.iter().filter(|(start, end)| start < end) {
                shell.out(&[&line_prefix[..], &line[*start..*end], b"\n"].concat())?;
            }
        }
    }
    if options.has(b'c') {
        shell.out(&[&prefix[..], selected.to_string().as_bytes(), b"\n"].concat())?;
    }
    Ok(selected > 0)
}

/// Places of the line that match: all with `-o`, else one is enough.
fn matches(
    shell: &mut Shell<'_>,
    options: &Options,
    expressions: &[Expression],
    line: &[u8],
) -> Run<Vec<(usize, usize)>> {
    let exact = options.has(b'x') || options.has(b'w');
    if !exact && !options.has(b'o') {
        for expression in expressions {
            if expression.is_match(shell, line)? {
                return Ok(vec![(0, line.len())]);
            }
        }
        return Ok(Vec::new());
    }
    let mut places = Vec::new();
    let mut from = 0;
    while from <= line.len() {
        let mut best: Option<(usize, usize)> = None;
        for expression in expressions {
            if let Some(found) = place(shell, options, expression, line, from)? {
                let better = best.is_none_or(|(start, end)| found.0 < start || (found.0 == start && found.1 > end));
                best = if better { Some(found) } else { best };
            }
        }
        let Some((start, end)) = best else { break };
        places.push((start, end));
        if !options.has(b'o') {
            break;
        }
        from = if end > start { end } else { end + 1 };
    }
    Ok(places)
}

/// The first match from a place on that `-x` and `-w` take.
fn place(
    shell: &mut Shell<'_>,
    options: &Options,
    expression: &Expression,
    line: &[u8],
    from: usize,
) -> Run<Option<(usize, usize)>> {
    let word = |at: Option<&u8>| at.is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_');
    let mut from = from;
    while from <= line.len() {
        let Some(places) = expression.find(shell, line, from)? else { return Ok(None) };
        let Some(Some((start, end))) = places.first().copied() else { return Ok(None) };
        let fits = if options.has(b'x') {
            start == 0 && end == line.len()
        } else {
            !options.has(b'w') || !(start.checked_sub(1).is_some_and(|at| word(line.get(at))) || word(line.get(end)))
        };
        if fits {
            return Ok(Some((start, end)));
        }
        from = start + 1;
    }
    Ok(None)
}

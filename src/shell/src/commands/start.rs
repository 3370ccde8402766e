//! Programs that run others: `nice`, `ionice`, `sh`, `xargs`; and `which`, which only finds them.

use super::count;
use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::host::Question;
use crate::random::PID;
use crate::shell::Shell;

pub(super) fn which(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"as", long: &[], strict: true })?;
    if options.has(b'a') {
        return shell.unsupported(b"-a");
    }
    let mut status = u8::from(options.operands.is_empty());
    for name in &options.operands {
        match shell.find_program(name)? {
            Some(path) if options.has(b's') => drop(path),
            Some(path) => shell.out(&[&path[..], b"\n"].concat())?,
            None => {
                shell.ask(Question::Program(name))?;
                status = 1;
            }
        }
    }
    Ok(status)
}

/// `nice -n 10 command`
pub(super) fn nice(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("adjustment=", b'n')];
    run_operands(shell, args, &Accepted { letters: b"n:", long, strict: true })
}

/// `ionice -c 3 command`, `ionice -c 3 -p $$`
pub(super) fn ionice(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("class=", b'c'), ("classdata=", b'n'), ("ignore", b't'), ("pid=", b'p')];
    let accepted = Accepted { letters: b"c:n:tp:", long, strict: true };
    let options = parse(shell, args, &accepted)?;
    match options.value(b'p') {
        Some(PID) if options.has(b'c') && options.operands.is_empty() => Ok(0),
        Some(_) => shell.unsupported(b"the priority of another process"),
        None => run_operands(shell, args, &accepted),
    }
}

/// Runs the operands: priorities change no result.
fn run_operands(shell: &mut Shell<'_>, args: &[Vec<u8>], accepted: &Accepted) -> Run<u8> {
    let options = parse(shell, args, accepted)?;
    if options.operands.is_empty() {
        return shell.unsupported(b"the priority of the shell");
    }
    let argv = options.operands;
    shell.subshell(|shell| {
        let status = shell.invoke_in_place(&argv)?;
        shell.state.status = status;
        Ok(status)
    })
}

/// What `xargs` says of a NUL that is not a delimiter.
const NUL_WARNING: &[u8] = b"xargs: WARNING: a NUL character occurred in the input.  It cannot be passed through in the argument list.  Did you mean to use the --null option?\n";

/// `xargs` without a limit of the length of a command.
pub(super) fn xargs(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] =
        &[("null", b'0'), ("no-run-if-empty", b'r'), ("max-args=", b'n'), ("delimiter=", b'd'), ("verbose", b't')];
    let options = parse(shell, args, &Accepted { letters: b"0rtn:d:I:", long, strict: true })?;
    let input = shell.read_all(0)?;
    let read_nul = input.contains(&0);
    let delimiter = match options.value(b'd') {
        None if options.has(b'0') => Some(0),
        None => None,
        Some(text) => match crate::builtins::unescape(text, crate::builtins::Escapes::Format).0[..] {
            [byte] => Some(byte),
            _ => return shell.unsupported(text),
        },
    };
    let replaced = options.value(b'I').map(<[u8]>::to_vec);
    let mut unmatched = false;
    let items = match (delimiter, &replaced) {
        (Some(delimiter), _) => {
            let text = input.strip_suffix(&[delimiter]).unwrap_or(&input);
            let items: Vec<Vec<u8>> = text.split(|byte| *byte == delimiter).map(<[u8]>::to_vec).collect();
            if input.is_empty() { Vec::new() } else { items }
        }
        (None, lines) => {
            let (items, closed) = items(&input, lines.is_some());
            unmatched = !closed;
            items
        }
    };
    if shell.has_read_unordered() && options.operands.first().is_some_and(|name| crate::order::makes_names(name)) {
        shell.refuse_same_names(items.iter().map(Vec::as_slice))?;
    }
    // An empty item is none, unless a delimiter is given.
    if delimiter.is_none() {
        items.iter().try_for_each(|item| shell.ask(Question::Fields { text: item, is_alone: true }))?;
    }
    let command = if options.operands.is_empty() { vec![b"echo".to_vec()] } else { options.operands.clone() };
    let size = options.value(b'n').map(|text| count(shell, text)).transpose()?.unwrap_or(usize::MAX);
    let mut calls: Vec<Vec<Vec<u8>>> = Vec::new();
    match &replaced {
        Some(mark) => {
            for item in &items {
                calls.push(command.iter().map(|word| replace(word, mark, item)).collect());
            }
        }
        None => {
            let groups = items.chunks(size.clamp(1, items.len().max(1)));
            calls.extend(groups.map(|group| [&command[..], group].concat()));
            if items.is_empty() && !options.has(b'r') && !unmatched {
                calls.push(command);
            }
        }
    }
    if delimiter != Some(0) && read_nul {
        shell.err(NUL_WARNING)?;
    }
    let input = shell.descriptor(0);
    shell.set_descriptor(0, Some(crate::descriptors::Handle::Null));
    let mut status = 0;
    for mut argv in calls {
        // An argument ends at a NUL.
        for word in &mut argv {
            let len = word.iter().position(|byte| *byte == 0).unwrap_or(word.len());
            word.truncate(len);
        }
        if options.has(b't') {
            verbose(shell, &argv)?;
        }
        match shell.invoke(&argv)? {
            0 => {}
            found @ (126 | 127) => {
                status = found;
                break;
            }
            // What ends with this status ends xargs, too.
            255 => {
                let name = argv.first().map(Vec::as_slice).unwrap_or_default();
                super::complain(shell, "xargs", &[name, b": exited with status 255; aborting"].concat())?;
                status = 124;
                break;
            }
            _ => status = 123,
        }
    }
    shell.set_descriptor(0, input);
    if matches!(status, 124 | 126 | 127) {
        // It ends before it has read all, unless there was one command.
        shell.lose_place();
    }
    if unmatched && !matches!(status, 124 | 126 | 127) {
        return super::complain(shell, "xargs", b"unmatched quote");
    }
    Ok(status)
}

/// `-t`: the command on standard error. Which words are quoted depends on the version.
fn verbose(shell: &mut Shell<'_>, argv: &[Vec<u8>]) -> Run<()> {
    let plain = |word: &Vec<u8>| word.iter().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+,".contains(byte));
    if !argv.iter().all(|word| !word.is_empty() && plain(word)) {
        return shell.unsupported(b"-t with words that need quoting");
    }
    shell.err(&[&argv.join(&b' ')[..], b"\n"].concat())
}

/// A word with each mark in it replaced.
fn replace(word: &[u8], mark: &[u8], item: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.windows(mark.len().max(1)).position(|window| window == mark) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(item);
        rest = &rest[at + mark.len()..];
    }
    out.extend_from_slice(rest);
    out
}

/// Items between blanks and newlines, or of whole lines, with quotes and backslashes; and whether all quotes are closed.
fn items(input: &[u8], lines: bool) -> (Vec<Vec<u8>>, bool) {
    let mut items = Vec::new();
    let mut item: Option<Vec<u8>> = None;
    let mut bytes = input.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\n' => items.extend(item.take()),
            // Space in front of an item is left out, and only blanks end one.
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c if item.is_none() => {}
            b' ' | b'\t' if !lines => items.extend(item.take()),
            b'\\' => item.get_or_insert_default().extend(bytes.next()),
            quote @ (b'"' | b'\'') => {
                let item = item.get_or_insert_default();
                loop {
                    match bytes.next() {
                        Some(byte) if byte == quote => break,
                        Some(b'\n') | None => return (items, false),
                        Some(byte) => item.push(*byte),
                    }
                }
            }
            byte => item.get_or_insert_default().push(*byte),
        }
    }
    items.extend(item);
    (items, true)
}

/// `sleep`, which takes no time here.
pub(super) fn sleep(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let is_duration = |arg: &&Vec<u8>| {
        let digits = arg.strip_suffix(b"s").or_else(|| arg.strip_suffix(b"m")).unwrap_or(arg);
        digits.first().is_some_and(u8::is_ascii_digit)
            && digits.iter().all(|byte| byte.is_ascii_digit() || *byte == b'.')
    };
    match args.iter().find(|arg| !is_duration(arg)) {
        Some(other) => shell.unsupported(&[b"the time ", &other[..]].concat()),
        None if args.is_empty() => shell.unsupported(b"sleep without a time"),
        None => Ok(0),
    }
}

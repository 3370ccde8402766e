//! `read`.

use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::syntax::words::is_name;

/// `read [-r] [-p prompt] name…`
pub(super) fn read(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut raw = false;
    let mut at = 0;
    while let Some(option) = args.get(at).filter(|arg| arg.len() > 1 && arg.starts_with(b"-")) {
        at += 1;
        match &option[..] {
            b"-r" => raw = true,
            // A prompt is for terminals.
            b"-p" => at += 1,
            b"--" => break,
            option => return shell.unsupported(option),
        }
    }
    let names = args.get(at..).unwrap_or_default();
    if names.is_empty() {
        return Err(shell.shell_error(b"read: arg count"));
    }
    if let Some(name) = names.iter().find(|name| !is_name(name)) {
        let message = [b"read: ", &name[..], b": bad variable name"].concat();
        return Err(shell.shell_error(&message));
    }
    let (line, ended) = line(shell, raw)?;
    ask(shell, &line)?;
    shell.ask_separators()?;
    let ifs = shell.state.ifs();
    let escaped = line.iter().rev().take_while(|(_, splits)| !*splits).count();
    let before = line.len().checked_sub(escaped + 1).and_then(|at| line.get(at));
    if escaped > 0 && before.is_some_and(|(byte, _)| ifs.contains(byte)) {
        // dash may lose it.
        return shell.unsupported(b"an escaped character behind a separator at the end of a line");
    }
    let values = divide(&line, &ifs, names.len());
    for (at, name) in names.iter().enumerate() {
        shell.set(name, values.get(at).map_or(&b""[..], Vec::as_slice))?;
    }
    Ok(u8::from(!ended))
}

/// Where a line ends, and where it is divided, depends on what it is.
pub(super) fn ask(shell: &Shell<'_>, line: &[(u8, bool)]) -> Run<()> {
    let bytes: Vec<u8> = line.iter().map(|(byte, _)| *byte).collect();
    shell.require_whole(&bytes, &shell.state.ifs())?;
    shell.ask(Question::Value(&bytes))
}

/// A line: its bytes with whether they may separate, and whether it ended with a newline.
fn line(shell: &mut Shell<'_>, raw: bool) -> Run<(Vec<(u8, bool)>, bool)> {
    let mut line = Vec::new();
    while let Some(byte) = shell.read_byte(0)? {
        match byte {
            b'\\' if !raw => match shell.read_byte(0)? {
                Some(b'\n') => {}
                Some(escaped) => line.push((escaped, false)),
                None => break,
            },
            b'\n' => return Ok((line, true)),
            0 => {}
            byte => line.push((byte, true)),
        }
    }
    Ok((line, false))
}

/// Divides a line into at most `count` values; the last one takes what is left.
pub(super) fn divide(line: &[(u8, bool)], ifs: &[u8], count: usize) -> Vec<Vec<u8>> {
    let blank = |(byte, splits): &(u8, bool)| *splits && matches!(byte, b' ' | b'\t' | b'\n') && ifs.contains(byte);
    let separates = |(byte, splits): &(u8, bool)| *splits && ifs.contains(byte);
    let skip = |at: usize| at + line[at..].iter().take_while(|unit| blank(unit)).count();
    let mut values = Vec::new();
    let mut at = skip(0);
    while at < line.len() {
        let rest = &line[at..];
        let len = rest.iter().position(separates).unwrap_or(rest.len());
        if values.len() + 1 == count {
            values.push(last(rest, len, &blank, &separates));
            break;
        }
        values.push(rest[..len].iter().map(|(byte, _)| *byte).collect());
        at = skip(at + len);
        if line.get(at).is_some_and(|unit| separates(unit) && !blank(unit)) {
            at = skip(at + 1);
        }
    }
    values
}

type Test<'a> = &'a dyn Fn(&(u8, bool)) -> bool;

/// The last value: without blanks at its end, and without one other separator if nothing follows it.
fn last(rest: &[(u8, bool)], first: usize, blank: Test<'_>, separates: Test<'_>) -> Vec<u8> {
    let mut end = rest.len();
    while end > 0 && blank(&rest[end - 1]) {
        end -= 1;
    }
    let mut after = first;
    while after < end && blank(&rest[after]) {
        after += 1;
    }
    if after + 1 == end && separates(&rest[after]) {
        end = first;
    }
    rest[..end].iter().map(|(byte, _)| *byte).collect()
}

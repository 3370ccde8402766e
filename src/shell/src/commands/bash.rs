//! `bash`.

use super::complain;
use crate::eval::{Interpreter, Run};
use crate::files::Errno;
use crate::shell::Shell;

/// `bash -c text`, `bash file`, `bash -s`
pub(super) fn bash(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut interpreter = Interpreter { bash: true, ..Interpreter::default() };
    let (mut at, mut text, mut standard) = (0, false, false);
    while let Some(letters) = args.get(at).and_then(|arg| arg.strip_prefix(b"-")) {
        at += 1;
        match letters {
            b"" | b"-" => break,
            // They concern only interactive shells.
            b"-norc" | b"-noprofile" => continue,
            _ => {}
        }
        for letter in letters {
            match letter {
                b'c' => (text, interpreter.flags.argument) = (true, true),
                b's' => standard = true,
                b'o' if args.get(at).is_some_and(|name| interpreter.set_named(name).is_some()) => at += 1,
                other if interpreter.set(*other, true).is_some() => {}
                other => return shell.unsupported(&[b'-', *other]),
            }
        }
    }
    let Some(first) = args.get(at).filter(|_| text || !standard) else {
        if text {
            complain(shell, "bash", b"-c: option requires an argument")?;
            return Ok(2);
        }
        let source = shell.read_script()?;
        interpreter.flags.stdin = true;
        return shell.run_script(b"bash", &source, &args[at..], interpreter);
    };
    if text && standard {
        return shell.unsupported(b"-c with -s");
    }
    let rest = &args[at + 1..];
    if text {
        let zero = rest.first().map_or(&b"bash"[..], Vec::as_slice);
        return shell.run_script(zero, first, rest.get(1..).unwrap_or_default(), interpreter);
    }
    match shell.read_file(first)? {
        Ok(source) => shell.run_script(first, &source, rest, interpreter),
        Err(error) => {
            complain(shell, "bash", &[&first[..], b": ", error.text().as_bytes()].concat())?;
            Ok(if error == Errno::Eisdir { 126 } else { 127 })
        }
    }
}

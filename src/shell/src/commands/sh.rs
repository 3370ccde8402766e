//! `sh`, called as a program.

use super::complain;
use crate::ErrorKind;
use crate::error::show;
use crate::eval::{Interpreter, Run};
use crate::files::Errno;
use crate::shell::Shell;
use crate::syntax::reader::Reader;
use crate::syntax::{Parser, SyntaxError};

/// Options of dash that change more than how commands run.
const OTHERS: &[u8] = b"bEIVilmopv";

/// How `sh` is called.
#[derive(Default)]
struct Called {
    by: Interpreter,
    /// `-c`: the first operand is the script.
    text: bool,
    /// `-s`: the script is standard input.
    standard: bool,
    /// `-n`: the script is parsed, and does not run.
    parses: bool,
}

/// `sh -c text`, `sh file`, `sh -s`
pub(super) fn sh(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut called = Called::default();
    let mut operands = args;
    while let Some((arg, rest)) = operands.split_first() {
        let (on, letters) = match arg.split_first() {
            Some((b'-', letters)) => (true, letters),
            Some((b'+', letters)) => (false, letters),
            _ => break,
        };
        operands = rest;
        if on && matches!(letters, b"" | b"-") {
            break;
        }
        for letter in letters {
            match letter {
                b'c' => called.text = on,
                b's' => called.standard = on,
                b'n' => called.parses = on,
                letter if called.by.set(*letter, on).is_some() => {}
                letter if OTHERS.contains(letter) => return shell.unsupported(&[b'-', *letter]),
                letter => return ends(shell, &[b"Illegal option -", &[*letter][..]].concat()),
            }
        }
    }
    match (operands.split_first(), called.text) {
        (None, true) => ends(shell, b"-c requires an argument"),
        (Some((text, rest)), true) => {
            let name = rest.first().cloned().unwrap_or_else(|| own_name(shell));
            run(shell, &called, &name, text, rest.get(1..).unwrap_or_default())
        }
        (Some((file, rest)), false) if !called.standard => match shell.read_file(file)? {
            Ok(source) => run(shell, &called, file, &source, rest),
            // Its first read fails, and the script ends there.
            Err(Errno::Eisdir) => Ok(0),
            Err(_) => ends(shell, &[b"cannot open ", &file[..], b": No such file"].concat()),
        },
        _ => {
            let (source, name) = (shell.read_script()?, own_name(shell));
            called.by.flags.stdin = true;
            run(shell, &called, &name, &source, operands)
        }
    }
}

/// The name that the script calls it by.
fn own_name(shell: &Shell<'_>) -> Vec<u8> {
    let name =
        shell.command.first().filter(|name| matches!(name.rsplit(|byte| *byte == b'/').next(), Some(b"sh" | b"dash")));
    name.cloned().unwrap_or_else(|| b"sh".to_vec())
}

fn ends(shell: &mut Shell<'_>, message: &[u8]) -> Run<u8> {
    complain(shell, "sh", &[b"0: ", message].concat())?;
    Ok(2)
}

fn run(shell: &mut Shell<'_>, called: &Called, name: &[u8], source: &[u8], args: &[Vec<u8>]) -> Run<u8> {
    if !called.parses {
        return shell.run_script(name, source, args, called.by);
    }
    shell.spend(source.len())?;
    let mut reader = Reader::new(source, 1, 0, called.by.language());
    loop {
        match Parser::new(&mut reader).line() {
            Ok(None) => return Ok(0),
            Ok(Some(_)) => {}
            Err(SyntaxError::Unexpected { line, reason }) => {
                let place = format!(": {line}: Syntax error: {reason}\n");
                shell.err(&[name, place.as_bytes()].concat())?;
                return Ok(2);
            }
            Err(SyntaxError::Unsupported { what, .. }) => return Err(shell.fatal(ErrorKind::Unsupported { what })),
            Err(SyntaxError::TooDeep { line }) => {
                let what = format!("syntax nested too deeply in {}, line {line},", show(name));
                return Err(shell.fatal(ErrorKind::Unsupported { what }));
            }
        }
    }
}

//! `awk`: the language of POSIX as implemented by mawk, in the C locale. Functions of the program, `getline`, redirections and pipes are
//! refused, and so is everything that mawk of Debian 12, mawk of Debian 13 and gawk do differently: integers of more than 32 bits,
//! intervals, hexadecimal numbers, division by zero. Its steps are counted in bytes of work.

mod syntax;
mod tokens;
mod number;
mod parser;
mod actions;
mod expressions;
mod value;
mod patterns;
mod format;
mod machine;
mod record;
mod evaluate;
mod functions;
mod order;
mod statements;

use machine::{FS, Lvalue, Machine};
use record::{Input, Operand};
use syntax::Program;
use value::Value;

use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::shell::Shell;

pub(super) fn awk(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"F:f:v:", long: &[], strict: true })?;
    if shell.descriptor(1).is_none() || shell.descriptor(2).is_none() {
        return shell.unsupported(b"a closed standard output or standard error");
    }
    let mut operands = options.operands.iter();
    let text = match options.value(b'f') {
        Some(path) if options.iter().filter(|(letter, _)| *letter == b'f').count() == 1 => {
            let (mut contents, failed) = super::inputs(shell, "awk", &[path.to_vec()])?;
            match contents.pop() {
                Some((_, text)) if !failed => text,
                _ => return Ok(2),
            }
        }
        Some(_) => return shell.unsupported(b"several programs of awk"),
        None => match operands.next() {
            Some(text) => text.clone(),
            None => return shell.unsupported(b"awk without a program"),
        },
    };
    shell.spend_size(text.len(), text.len())?;
    let program = parser::parse(shell, &text)?;
    let mut input = Input::default();
    for operand in operands {
        input.operands.push_back(match assignment(operand) {
            Some((name, value)) => assigned(shell, &program, name, value)?,
            None => Operand::File(operand.clone()),
        });
    }
    let mut machine = Machine::new(shell, &program, input)?;
    for (letter, value) in options.iter() {
        match letter {
            b'F' => {
                let separator = separator(machine.shell, value)?;
                machine.set(&Lvalue::Variable(FS), Value::input(&separator))?;
            }
            b'v' => {
                let Some((name, value)) = assignment(value) else { return machine.shell.unsupported(value) };
                if let Operand::Assignment(Some(place), value) = assigned(machine.shell, &program, name, value)? {
                    machine.set(&Lvalue::Variable(place), Value::input(&value))?;
                }
            }
            _ => {}
        }
    }
    machine.run(&program)?;
    Ok(machine.status)
}

/// The name and the value of `name=value`.
fn assignment(operand: &[u8]) -> Option<(&[u8], &[u8])> {
    let at = operand.iter().position(|byte| *byte == b'=')?;
    let (name, value) = (&operand[..at], &operand[at + 1..]);
    let valid = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let named = name.first().is_some_and(|first| !first.is_ascii_digit()) && name.iter().all(valid);
    named.then_some((name, value))
}

/// An assignment of the command line. A variable that the program does not name has no place.
fn assigned(shell: &Shell<'_>, program: &Program, name: &[u8], value: &[u8]) -> Run<Operand> {
    let place = program.scalars.iter().position(|found| found == name);
    match tokens::unescape(value) {
        Ok(value) => Ok(Operand::Assignment(place, value)),
        Err(why) => shell.unsupported(&[why.as_bytes(), b": ", value].concat()),
    }
}

/// The separator of `-F`. `t` is a tab to other awks.
fn separator(shell: &Shell<'_>, value: &[u8]) -> Run<Vec<u8>> {
    match (value, tokens::unescape(value)) {
        ([b'\\', byte], _) if byte.is_ascii_punctuation() => Ok(vec![*byte]),
        ([] | [b't'], _) | (_, Err(_)) => shell.unsupported(&[b"-F ", value].concat()),
        (_, Ok(value)) => Ok(value),
    }
}

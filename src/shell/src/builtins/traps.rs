//! `trap` of bash: EXIT, ERR, RETURN, and signals, which never arrive.

use std::rc::Rc;

use super::trap::NAMES;
use crate::eval::Run;
use crate::expand::quoting;
use crate::host::Question;
use crate::shell::Shell;

/// What a trap waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Condition {
    Number(u8),
    Error,
    Return,
}

/// `trap`
pub(super) fn trap(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut args = args;
    match args.first().map(Vec::as_slice) {
        Some(b"--") => args = &args[1..],
        Some(b"-p") => return show(shell, &args[1..]),
        Some(option) if option.len() > 1 && option.starts_with(b"-") => return shell.unsupported(option),
        _ => {}
    }
    let Some((first, rest)) = args.split_first() else { return show(shell, &[]) };
    let resets = first == b"-" || rest.is_empty() || super::integer(first).is_some_and(|number| number >= 0);
    let conditions = if resets && first != b"-" { args } else { rest };
    if conditions.is_empty() {
        shell.complain(b"trap: usage: trap [-lp] [[arg] signal_spec ...]")?;
        return Ok(if first == b"-" { 0 } else { 2 });
    }
    let mut status = 0;
    for name in conditions {
        match condition(shell, name)? {
            Some(condition) => set(shell, condition, if resets { None } else { Some(first) })?,
            None => {
                shell.complain(&[b"trap: ", &name[..], b": invalid signal specification"].concat())?;
                status = 1;
            }
        }
    }
    Ok(status)
}

fn set(shell: &mut Shell<'_>, condition: Condition, action: Option<&Vec<u8>>) -> Run<()> {
    // bash loses it where a program is the last command of the substitution.
    let is_in_function = shell.state.bash.substitution.is_some_and(|before| shell.state.functions_running > before);
    if is_in_function && action.is_some() && condition == Condition::Number(super::EXIT) {
        return shell.unsupported(b"a trap for EXIT in a function of a command substitution");
    }
    match condition {
        Condition::Number(number) => {
            let traps = Rc::make_mut(&mut shell.state.traps);
            match action {
                Some(action) => drop(traps.insert(number, action.clone())),
                None => drop(traps.remove(&number)),
            }
        }
        Condition::Error => shell.state.bash.error_trap = action.cloned().map(Rc::new),
        Condition::Return => shell.state.bash.return_trap = action.cloned().map(Rc::new),
    }
    Ok(())
}

fn condition(shell: &Shell<'_>, text: &[u8]) -> Run<Option<Condition>> {
    if text.eq_ignore_ascii_case(b"ERR") {
        return Ok(Some(Condition::Error));
    }
    if text.eq_ignore_ascii_case(b"RETURN") {
        return Ok(Some(Condition::Return));
    }
    if text.eq_ignore_ascii_case(b"DEBUG") {
        return shell.unsupported(b"trap DEBUG");
    }
    let signal = match text.get(..3) {
        Some(start) if start.eq_ignore_ascii_case(b"SIG") => &text[3..],
        _ => text,
    };
    Ok(super::trap::condition(shell, signal)?.map(Condition::Number))
}

/// `trap -p`, and `trap` alone.
fn show(shell: &mut Shell<'_>, names: &[Vec<u8>]) -> Run<u8> {
    if shell.state.bash.subshells > 0 {
        return shell.unsupported(b"a list of traps in a subshell");
    }
    let mut status = 0;
    let mut wanted = Vec::new();
    for name in names {
        match condition(shell, name)? {
            Some(condition) => wanted.push(condition),
            None => {
                shell.complain(&[b"trap: ", &name[..], b": invalid signal specification"].concat())?;
                status = 1;
            }
        }
    }
    if names.is_empty() {
        wanted.extend(shell.state.traps.keys().map(|number| Condition::Number(*number)));
        wanted.extend([Condition::Error, Condition::Return]);
    }
    for condition in wanted {
        let (action, name) = match condition {
            Condition::Number(number) => {
                let name = NAMES.get(usize::from(number)).copied().unwrap_or_default();
                let prefix = if number == super::EXIT { "" } else { "SIG" };
                (shell.state.traps.get(&number).cloned(), format!("{prefix}{name}"))
            }
            Condition::Error => (shell.state.bash.error_trap.as_deref().cloned(), "ERR".to_owned()),
            Condition::Return => (shell.state.bash.return_trap.as_deref().cloned(), "RETURN".to_owned()),
        };
        if let Some(action) = action {
            shell.ask(Question::Value(&action))?;
            shell.out(&[b"trap -- ", &quoting::single(&action)[..], b" ", name.as_bytes(), b"\n"].concat())?;
        }
    }
    Ok(status)
}

//! `trap`: signals never arrive, so only the action for EXIT runs. Actions are stored by the numbers of their conditions, 0 for EXIT.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;

/// Conditions by their numbers, as Linux has them.
pub(super) const NAMES: [&str; 32] = [
    "EXIT", "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
    "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH",
    "IO", "PWR", "SYS",
];

/// The number of the shell's end among the conditions.
pub(crate) const EXIT: u8 = 0;

/// `trap`
pub(super) fn trap(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let args = match args.first() {
        Some(arg) if arg == b"--" => &args[1..],
        Some(option) if option.len() > 1 && option.starts_with(b"-") => {
            return Err(shell.shell_error(&[b"trap: Illegal option ", &option[..2]].concat()));
        }
        _ => args,
    };
    let Some((first, rest)) = args.split_first() else { return list(shell) };
    let resets = rest.is_empty() || super::number(first).is_some();
    let (action, conditions) = if resets { (None, args) } else { (Some(first), rest) };
    for name in conditions {
        let Some(condition) = condition(shell, name)? else {
            shell.err(&[b"trap: ", &name[..], b": bad trap\n"].concat())?;
            return Ok(1);
        };
        let traps = Rc::make_mut(&mut shell.state.traps);
        match action.filter(|action| action != &b"-") {
            Some(action) => traps.insert(condition, action.clone()),
            None => traps.remove(&condition),
        };
    }
    Ok(0)
}

fn list(shell: &mut Shell<'_>) -> Run<u8> {
    for (condition, action) in shell.state.traps.clone().iter() {
        let name = NAMES.get(usize::from(*condition)).copied().unwrap_or_default();
        shell.out(&[b"trap -- ", &quoted(action)[..], b" ", name.as_bytes(), b"\n"].concat())?;
    }
    Ok(0)
}

/// The number of a signal, or of the end.
pub(super) fn condition(shell: &Shell<'_>, text: &[u8]) -> Run<Option<u8>> {
    if let Some(number) = super::number(text) {
        return match u8::try_from(number) {
            Ok(number) if usize::from(number) < NAMES.len() => Ok(Some(number)),
            Ok(32..=64) => shell.unsupported(b"a signal above 31"),
            _ => Ok(None),
        };
    }
    if text.get(..2).is_some_and(|start| start.eq_ignore_ascii_case(b"RT")) {
        return shell.unsupported(b"a signal above 31");
    }
    let found = NAMES.iter().position(|name| text.eq_ignore_ascii_case(name.as_bytes()));
    Ok(found.and_then(|at| u8::try_from(at).ok()))
}

/// A text in quotes, as dash writes it for a shell to read.
pub(super) fn quoted(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text;
    loop {
        let len = rest.iter().position(|byte| *byte == b'\'').unwrap_or(rest.len());
        out.extend([b"'", &rest[..len], b"'"].concat());
        rest = &rest[len..];
        let quotes = rest.iter().take_while(|byte| **byte == b'\'').count();
        if quotes > 0 {
            out.extend([b"\"", &rest[..quotes], b"\""].concat());
        }
        rest = &rest[quotes..];
        if rest.is_empty() {
            return out;
        }
    }
}

/// Takes the traps of a new subshell away, but not that conditions are ignored.
pub(crate) fn clear(shell: &mut Shell<'_>) {
    Rc::make_mut(&mut shell.state.traps).retain(|_, action| action.is_empty());
}

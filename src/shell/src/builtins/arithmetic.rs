//! `let` of bash.

use crate::eval::Run;
use crate::shell::Shell;

/// `let expression…`: fails if the last one is 0.
pub(super) fn assign(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let args = if args.first().is_some_and(|arg| arg == b"--") { &args[1..] } else { args };
    if args.is_empty() {
        shell.complain(b"let: expression expected")?;
        return Ok(1);
    }
    let mut value = 0;
    for arg in args {
        match shell.try_evaluate(arg)? {
            Some(found) => value = found,
            None => return Ok(1),
        }
    }
    Ok(u8::from(value == 0))
}

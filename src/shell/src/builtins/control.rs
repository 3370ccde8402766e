//! Builtins that control the flow of a script.

use std::rc::Rc;

use crate::error::show;
use crate::eval::{Run, Stop};
use crate::files::Follow;
use crate::shell::{PATH, Shell};

/// A status or count among the operands.
fn number(shell: &mut Shell<'_>, text: &[u8]) -> Run<u32> {
    match super::number(text) {
        Some(number) => Ok(number),
        None => Err(shell.shell_error(&[b"Illegal number: ", text].concat())),
    }
}

/// A status that `$?` has. Inside of the shell dash keeps larger ones than programs can end with.
fn status(shell: &mut Shell<'_>, text: &[u8]) -> Run<u8> {
    let status = number(shell, text)?;
    match u8::try_from(status) {
        Ok(status) => Ok(status),
        Err(_) => shell.unsupported(b"a status above 255"),
    }
}

/// `exit`: in the trap of the end, the status stays the one before the trap.
pub(super) fn exit(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    shell.state.status = match args.first() {
        None => shell.state.leaving.unwrap_or(shell.state.status),
        Some(text) if shell.state.traps.contains_key(&super::EXIT) => status(shell, text)?,
        Some(text) => number(shell, text)?.to_le_bytes()[0],
    };
    Err(Stop::Exit)
}

/// `return`
pub(super) fn leave_function(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    if let Some(text) = args.first() {
        shell.state.status = status(shell, text)?;
    }
    // To `set -e` of dash, the builtin itself has failed.
    if shell.state.flags.end_on_failure() && shell.state.status != 0 && !tested && !shell.state.language.is_bash() {
        return Err(Stop::Exit);
    }
    Err(Stop::Return)
}

/// How many loops `break` and `continue` mean: no more than there are.
fn loops(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u32> {
    let count = match args.first() {
        None => 1,
        Some(text) => number(shell, text)?,
    };
    if count == 0 {
        return Err(shell.shell_error(b"Illegal number: 0"));
    }
    Ok(count.min(shell.state.loops))
}

/// `break`
pub(super) fn leave(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let count = loops(shell, args)?;
    if count == 0 { Ok(0) } else { Err(Stop::Break(count)) }
}

/// `continue`
pub(super) fn leave_round(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let count = loops(shell, args)?;
    if count == 0 { Ok(0) } else { Err(Stop::Continue(count)) }
}

/// `eval`
pub(super) fn eval(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    shell.budget.enter_call().map_err(|kind| shell.fatal(kind))?;
    let result = shell.eval_text(&args.join(&b' '), tested);
    shell.state.bash.unwinds = false;
    shell.budget.calls -= 1;
    result
}

/// `exec`: its redirections stay; a command replaces the shell.
pub(super) fn exec(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if args.is_empty() {
        return Ok(0);
    }
    let place = shell.search(&args[0], None)?;
    // Its exit status is that of the script.
    shell.tolerated |= shell.state.caller_tolerates;
    shell.is_started = true;
    let status = shell.program_at(&place, args);
    shell.is_started = false;
    shell.state.status = status?;
    let found = place.file.is_some() || place.system_name().is_some_and(crate::commands::is_known);
    if found || !matches!(shell.state.status, 126 | 127) {
        Rc::make_mut(&mut shell.state.traps).clear();
    }
    Err(Stop::Exit)
}

/// `.`: the caller may know the file; else it is read from the tree.
pub(super) fn dot(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let args = if args.first().is_some_and(|arg| arg == b"--") { &args[1..] } else { args };
    let Some(file) = args.first() else { return Ok(0) };
    let found = if file.contains(&b'/') {
        Some(shell.path(file))
    } else {
        let path = shell.state.get(b"PATH").unwrap_or(PATH);
        let mut places = path.split(|byte| *byte == b':').map(|dir| [dir, b"/", file].concat());
        places.find(|path| shell.exists(path))
    };
    if let Some(path) = &found
        && let Some(status) = shell.ask_caller(path, &args[1..], None, true)?
    {
        return Ok(status);
    }
    let content = match &found {
        // A directory is opened, and reads as empty.
        Some(path) if shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_dir()) => Some(Vec::new()),
        Some(path) => shell.read_file(path)?.ok(),
        None => None,
    };
    let Some(content) = content else {
        return Err(shell.shell_error(&[b".: cannot open ", &file[..], b": No such file"].concat()));
    };
    shell.budget.enter_call().map_err(|kind| shell.fatal(kind))?;
    let name = show(file).into();
    let (script, line) = (std::mem::replace(&mut shell.state.script, name), shell.state.line);
    shell.state.status = 0;
    let loops = shell.state.loops;
    let result = shell.eval_source(&content);
    if let Err(Stop::Fatal(error)) = result {
        return Err(Stop::Fatal(error));
    }
    (shell.state.script, shell.state.line, shell.state.loops) = (script, line, loops);
    shell.budget.calls -= 1;
    match result {
        Err(Stop::Return) => Ok(shell.state.status),
        other => other,
    }
}

//! Builtins of bash that control the flow of a script. Their errors do not end the shell.

use std::rc::Rc;

use crate::error::show;
use crate::eval::{Run, Stop};
use crate::files::{Errno, Follow};
use crate::shell::{PATH, Shell};

/// Operands behind `--`.
fn operands(args: &[Vec<u8>]) -> &[Vec<u8>] {
    match args.first() {
        Some(first) if first == b"--" => &args[1..],
        _ => args,
    }
}

/// The status of `exit` and `return`; `Err` where an operand is not a number.
fn status(shell: &mut Shell<'_>, name: &str, args: &[Vec<u8>]) -> Run<Result<Option<u8>, ()>> {
    let args = operands(args);
    let Some(text) = args.first() else { return Ok(Ok(None)) };
    let Some(number) = super::integer(text) else {
        shell.complain(&[name.as_bytes(), b": ", text, b": numeric argument required"].concat())?;
        return Ok(Err(()));
    };
    if args.len() > 1 {
        let before = shell.state.status;
        if shell.state.bash.subshells > 0 && (before > 1 || shell.state.bash.end_runs) {
            return shell
                .unsupported(b"too many arguments in a subshell, after a command that failed or in a trap for EXIT");
        }
        let stop = shell.discard(&[name.as_bytes(), b": too many arguments"].concat());
        shell.state.status = before.max(1);
        return Err(stop.through_texts());
    }
    Ok(Ok(Some(number.to_le_bytes()[0])))
}

/// `exit`
pub(super) fn exit(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    shell.state.status = match status(shell, "exit", args)? {
        Ok(None) => shell.state.leaving.unwrap_or(shell.state.status),
        Ok(Some(status)) => status,
        Err(()) => 2,
    };
    shell.state.bash.exiting = true;
    Err(Stop::Exit)
}

/// `return`
pub(super) fn leave_function(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let status = status(shell, "return", args)?;
    if shell.state.functions_running == 0 && shell.state.bash.end_runs {
        // It depends on whether a sourced file has ended.
        return shell.unsupported(b"in a trap for EXIT, outside of functions");
    }
    if shell.state.functions_running == 0 && shell.state.bash.sourcing == 0 {
        shell.complain_exactly(b"return: can only `return' from a function or sourced script")?;
        return Ok(2);
    }
    shell.state.bash.returned = Some(match status {
        // That of the command before the trap, unless a function or pipeline in it changes what bash remembers.
        Ok(None) if shell.state.bash.trap_running.is_some() => {
            return shell.unsupported(b"without a status in a trap for ERR or RETURN");
        }
        Ok(None) => shell.state.leaving.unwrap_or(shell.state.status),
        Ok(Some(status)) => status,
        Err(()) => 2,
    });
    shell.state.bash.returned_from = Some(shell.state.descriptors.clone());
    Err(Stop::Return)
}

/// How many loops `break` and `continue` end; 0 outside of loops.
fn loops(shell: &mut Shell<'_>, name: &str, args: &[Vec<u8>]) -> Run<u32> {
    if shell.state.loops == 0 {
        let text = b": only meaningful in a `for', `while', or `until' loop";
        shell.complain_exactly(&[name.as_bytes(), &text[..]].concat())?;
        return Ok(0);
    }
    match operands(args) {
        [] => Ok(1),
        [text] => match super::integer(text).and_then(|count| u32::try_from(count).ok()).filter(|count| *count > 0) {
            Some(count) => Ok(count.min(shell.state.loops)),
            None => shell.unsupported(b"a count that is not a positive number"),
        },
        _ => shell.unsupported(b"more than one count"),
    }
}

/// `break`
pub(super) fn leave(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let count = loops(shell, "break", args)?;
    if count == 0 { Ok(0) } else { Err(Stop::Break(count)) }
}

/// `continue`
pub(super) fn leave_round(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let count = loops(shell, "continue", args)?;
    if count == 0 { Ok(0) } else { Err(Stop::Continue(count)) }
}

/// `eval`
pub(super) fn eval(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    if args.first().is_some_and(|arg| arg == b"--help") {
        return shell.unsupported(b"--help");
    }
    if args.first().is_some_and(|arg| arg.len() > 1 && arg.starts_with(b"-") && arg != b"--") {
        shell.complain(b"eval: invalid option")?;
        return Ok(2);
    }
    let lost = shell.state.bash.lines_lost;
    // bash counts the lines of the text from the end of this command.
    let spans = shell.state.bash.spans_lines || args.iter().any(|arg| arg.contains(&b'\n'));
    shell.state.bash.lines_lost |= spans;
    let result = super::control::eval(shell, operands(args), tested);
    shell.state.bash.lines_lost = lost;
    result
}

/// `exec`: a command that cannot run ends the shell, too.
pub(super) fn exec(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    let args = operands(args);
    match args.first() {
        Some(option) if option.starts_with(b"-") => shell.unsupported(option),
        _ => super::control::exec(shell, args, tested),
    }
}

/// `.` and `source`: `PATH` and then the working directory are searched; a missing file is a failure.
pub(super) fn source(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    let args = operands(args);
    let Some((file, operands)) = args.split_first() else {
        shell.complain(b"source: filename argument required")?;
        return Ok(2);
    };
    if file.starts_with(b"-") && file.len() > 1 {
        return shell.unsupported(file);
    }
    let path = found(shell, file);
    if let Some(status) = shell.ask_caller(&path, operands, None, true)? {
        return Ok(status);
    }
    let content = match shell.stat(&path, Follow::Yes) {
        Ok(node) if node.is_dir() => Err(Errno::Eisdir),
        _ => shell.read_file(&path)?,
    };
    match content {
        Ok(content) => run_source(shell, file, &content, operands, tested),
        Err(error) => {
            shell.complain_exactly(&[&file[..], b": ", error.text().as_bytes()].concat())?;
            shell.returned(Ok(1))
        }
    }
}

/// The path of a file to source.
fn found(shell: &Shell<'_>, file: &[u8]) -> Vec<u8> {
    if file.contains(&b'/') {
        return shell.path(file);
    }
    let path = shell.state.get(b"PATH").unwrap_or(PATH);
    let mut places = path.split(|byte| *byte == b':').map(|dir| match dir {
        b"" => file.to_vec(),
        dir => [dir, b"/", file].concat(),
    });
    let in_path = places.find(|path| shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_file()));
    shell.path(&in_path.unwrap_or_else(|| file.to_vec()))
}

fn run_source(shell: &mut Shell<'_>, file: &[u8], content: &[u8], operands: &[Vec<u8>], tested: bool) -> Run<u8> {
    shell.budget.enter_call().map_err(|kind| shell.fatal(kind))?;
    let script = std::mem::replace(&mut shell.state.script, show(file).into());
    let (line, command_line) = (shell.state.line, shell.state.command_line);
    let error_line = shell.state.bash.error_line;
    let params = shell.state.params.clone();
    let params_set = std::mem::take(&mut shell.state.bash.params_set);
    if !operands.is_empty() {
        shell.state.params = Rc::new(operands.to_vec());
    }
    let frame = crate::state::Frame { function: b"source".to_vec(), source: shell.state.script.clone(), line };
    Rc::make_mut(&mut shell.state.bash.frames).push(frame);
    shell.state.bash.sourcing += 1;
    let result = shell.eval_bash(content, false, tested);
    shell.state.bash.unwinds = false;
    if let Err(Stop::Fatal(error)) = result {
        return Err(Stop::Fatal(error));
    }
    if matches!(result, Err(Stop::Exit)) && shell.state.bash.exiting {
        return result;
    }
    shell.state.bash.sourcing -= 1;
    Rc::make_mut(&mut shell.state.bash.frames).pop();
    shell.state.script = script;
    (shell.state.line, shell.state.command_line) = (line, command_line);
    shell.state.bash.error_line = error_line;
    shell.budget.calls -= 1;
    let result = shell.returned(result);
    // `set --` in a file that was given operands changes those of the script.
    if !operands.is_empty() && !shell.state.bash.params_set {
        shell.state.params = params;
    }
    shell.state.bash.params_set |= params_set;
    result
}

/// `cd`: what is not a directory to change to is a failure.
pub(super) fn cd(shell: &mut Shell<'_>, args: &[Vec<u8>], tested: bool) -> Run<u8> {
    let is_option = |arg: &&Vec<u8>| arg.len() > 1 && arg.starts_with(b"-");
    let options = args.iter().take_while(is_option).count();
    let problem = match &args[options..] {
        [_, _, ..] => Some("too many arguments"),
        [] if shell.state.get(b"HOME").is_none() => Some("HOME not set"),
        [back] if back == b"-" => match shell.state.get(b"OLDPWD") {
            None => Some("OLDPWD not set"),
            Some(b"") => return shell.unsupported(b"cd - with an empty OLDPWD"),
            Some(_) => None,
        },
        _ => None,
    };
    match problem {
        Some(problem) => {
            shell.complain(&[b"cd: ", problem.as_bytes()].concat())?;
            Ok(1)
        }
        None => super::directory::cd(shell, args, tested),
    }
}

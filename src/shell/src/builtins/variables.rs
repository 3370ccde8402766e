//! Builtins that change variables and parameters.

use std::rc::Rc;

use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::state::Variable;
use crate::syntax::words::is_name;

/// Variables that dash always has: one that was exported is still exported after `unset`, when it has a value again.
const OWN: [&[u8]; 8] = [b"IFS", b"MAIL", b"MAILPATH", b"OPTIND", b"PATH", b"PS1", b"PS2", b"PS4"];

/// `name` or `name=value`, divided; another name is an error of the shell.
fn divide(shell: &mut Shell<'_>, arg: &[u8]) -> Run<(Vec<u8>, Option<Vec<u8>>)> {
    let at = arg.iter().position(|byte| *byte == b'=');
    let (name, value) = at.map_or((arg, None), |at| (&arg[..at], Some(arg[at + 1..].to_vec())));
    if !is_name(name) {
        return Err(shell.shell_error(&[name, b": bad variable name"].concat()));
    }
    Ok((name.to_vec(), value))
}

/// The operands; `None` where the variables are to be listed.
fn operands<'a>(shell: &Shell<'_>, args: &'a [Vec<u8>]) -> Run<Option<&'a [Vec<u8>]>> {
    let operands = match args.first().map(Vec::as_slice) {
        Some(b"-p") => return Ok(None),
        Some(b"--") => &args[1..],
        Some(option) if option.starts_with(b"-") => return shell.unsupported(option),
        _ => args,
    };
    Ok(Some(operands).filter(|operands| !operands.is_empty()))
}

/// Prints variables as commands that make them, in the order of their names.
fn list(shell: &mut Shell<'_>, word: &[u8], is_listed: fn(&Variable) -> bool) -> Run<u8> {
    let variables = shell.state.variables.clone();
    for (name, variable) in variables.iter().filter(|(_, variable)| is_listed(variable)) {
        if matches!(&name[..], b"LINENO" | b"PPID") {
            return shell.unsupported(b"a list of variables with LINENO or PPID");
        }
        let mut line = [word, b" ", name].concat();
        if let Some(value) = &variable.value {
            shell.ask(Question::Value(value))?;
            line.push(b'=');
            line.extend(super::trap::quoted(value));
        }
        line.push(b'\n');
        shell.out(&line)?;
    }
    Ok(0)
}

/// `export`
pub(super) fn export(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let Some(operands) = operands(shell, args)? else {
        shell.ask(Question::Environment(b""))?;
        return list(shell, b"export", |variable| variable.exported);
    };
    for arg in operands {
        let (name, value) = divide(shell, arg)?;
        match value {
            Some(value) => shell.change(&name, Some(value), true)?,
            None => Rc::make_mut(&mut shell.state.variables).entry(name).or_default().exported = true,
        }
    }
    Ok(0)
}

/// `readonly`
pub(super) fn readonly(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let Some(operands) = operands(shell, args)? else {
        return list(shell, b"readonly", |variable| variable.readonly);
    };
    for arg in operands {
        let (name, value) = divide(shell, arg)?;
        if let Some(value) = value {
            shell.change(&name, Some(value), false)?;
        }
        Rc::make_mut(&mut shell.state.variables).entry(name).or_default().readonly = true;
    }
    Ok(0)
}

/// `local`: the variable keeps its value until it is set, as below dash; bash unsets it.
pub(super) fn local(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if shell.state.functions_running == 0 {
        return Err(shell.shell_error(b"local: not in a function"));
    }
    for arg in args {
        if arg == b"-" && !shell.state.language.is_bash() {
            shell.save_flags();
            continue;
        }
        if arg.starts_with(b"-") && shell.state.language.is_bash() {
            return shell.unsupported(arg);
        }
        let (name, value) = divide(shell, arg)?;
        shell.save_in_scope(&name);
        match value {
            Some(value) => shell.set(&name, &value)?,
            None if shell.state.language.is_bash() => shell.change(&name, None, false)?,
            None => {}
        }
    }
    Ok(0)
}

/// `shift`
pub(super) fn shift(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    if args.len() > 1 && shell.state.language.is_bash() {
        return shell.unsupported(b"more than one operand");
    }
    let count = match args.first() {
        None => 1,
        Some(text) => match super::number(text) {
            Some(count) => usize::try_from(count).unwrap_or(usize::MAX),
            None => return Err(shell.shell_error(&[b"Illegal number: ", &text[..]].concat())),
        },
    };
    if count > shell.state.params.len() {
        return Err(shell.shell_error(b"shift: can't shift that many"));
    }
    shell.spend(shell.state.params.len() * 8)?;
    Rc::make_mut(&mut shell.state.params).drain(..count);
    shell.restart_options();
    Ok(0)
}

/// `unset`
pub(super) fn unset(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut functions = false;
    for (at, arg) in args.iter().enumerate() {
        match &arg[..] {
            b"-v" if at == 0 => {}
            b"-f" if at == 0 => functions = true,
            name if functions => {
                Rc::make_mut(&mut shell.state.functions).remove(name);
            }
            option if option.starts_with(b"-") => return shell.unsupported(option),
            name => {
                let (name, _) = divide(shell, name)?;
                if name == b"OPTIND" && !shell.state.language.is_bash() {
                    return shell.unsupported(b"unset OPTIND");
                }
                if shell.state.variables.get(&name).is_some_and(|found| found.readonly) {
                    return Err(shell.shell_error(&[&name[..], b": is read only"].concat()));
                }
                Rc::make_mut(&mut shell.state.inherited).remove(&name);
                let variables = Rc::make_mut(&mut shell.state.variables);
                match variables.get_mut(&name).filter(|found| found.exported && OWN.contains(&&name[..])) {
                    Some(found) => found.value = None,
                    None => drop(variables.remove(&name)),
                }
            }
        }
    }
    Ok(0)
}

//! `unset` of bash.

use std::rc::Rc;

use crate::eval::Run;
use crate::shell::Shell;
use crate::syntax::words::is_name;
use crate::variables::divide_reference;

/// `unset [-f] [-v] [-n] name…`
pub(super) fn unset(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (mut functions, mut variables, mut references) = (false, false, false);
    let mut at = 0;
    while let Some(arg) = args.get(at).filter(|arg| arg.len() > 1 && arg.starts_with(b"-")) {
        at += 1;
        if arg == b"--" {
            break;
        }
        for letter in &arg[1..] {
            match letter {
                b'f' => functions = true,
                b'v' => variables = true,
                b'n' => references = true,
                letter => {
                    shell.complain(&[b"unset: -", &[*letter][..], b": invalid option"].concat())?;
                    return Ok(2);
                }
            }
        }
    }
    if functions && variables {
        shell.complain(b"unset: cannot simultaneously unset a function and a variable")?;
        return Ok(1);
    }
    let mut status = 0;
    for name in &args[at..] {
        shell.step()?;
        let done = if functions { remove_function(shell, name) } else { one(shell, name, variables, references)? };
        status |= u8::from(!done);
    }
    Ok(status)
}

fn remove_function(shell: &mut Shell<'_>, name: &[u8]) -> bool {
    Rc::make_mut(&mut shell.state.functions).remove(name);
    true
}

/// Unsets a variable or element, or without one of that name a function.
fn one(shell: &mut Shell<'_>, text: &[u8], only_variables: bool, references: bool) -> Run<bool> {
    let Some((name, subscript)) = divide_reference(text) else {
        if !only_variables {
            return Ok(remove_function(shell, text));
        }
        shell.complain(&[b"unset: `", text, b"': not a valid identifier"].concat())?;
        return Ok(false);
    };
    if let Some(subscript) = subscript {
        let subscript = shell.given_subscript(subscript)?;
        return shell.unset_element(name, &subscript);
    }
    if !shell.state.variables.contains_key(name) && !only_variables && shell.state.functions.contains_key(name) {
        return Ok(remove_function(shell, name));
    }
    let is_reference = |name| shell.state.variables.get(name).is_some_and(|found| found.attributes.nameref);
    if references && !is_reference(name) {
        return Ok(true);
    }
    let target = match shell.state.referred(name) {
        Some(target) if !references => target.to_vec(),
        _ => name.to_vec(),
    };
    if !is_name(&target) {
        return shell.unsupported(b"a reference to an element");
    }
    shell.unset_variable(&target)
}

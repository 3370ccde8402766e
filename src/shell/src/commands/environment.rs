//! `env`.

use std::rc::Rc;

use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;
use crate::state::Attributes;

/// The search path of execvp(3) if `PATH` is not set.
const DEFAULT_PATH: &[u8] = b"/bin:/usr/bin";

/// Names with values, in the order of the environment.
type Variables = Vec<(Vec<u8>, Vec<u8>)>;

/// `env [-i] [-u name] [name=value]… [command]`
pub(super) fn env(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("unset=", b'u'), ("ignore-environment", b'i')];
    let options = parse(shell, args, &Accepted { letters: b"iu:", long, strict: true })?;
    let mut operands = &options.operands[..];
    let mut empty = options.has(b'i');
    if let Some((_, rest)) = operands.split_first().filter(|(first, _)| *first == b"-") {
        (empty, operands) = (true, rest);
    }
    let removed: Vec<&[u8]> = options.iter().filter(|(letter, _)| *letter == b'u').map(|(_, name)| name).collect();
    let mut given = Variables::new();
    while let Some((first, rest)) = operands.split_first()
        && let Some(at) = first.iter().position(|byte| *byte == b'=')
    {
        put(&mut given, &first[..at], &first[at + 1..]);
        operands = rest;
    }
    if !operands.is_empty() {
        return run(shell, operands, empty, &removed, given);
    }
    if !empty {
        shell.ask(Question::Environment(b""))?;
    }
    let mut variables = if empty { Variables::new() } else { ordered(shell)? };
    variables.retain(|(name, _)| !removed.contains(&&name[..]));
    given.into_iter().for_each(|(name, value)| put(&mut variables, &name, &value));
    let lines = variables.iter().map(|(name, value)| [&name[..], b"=", value, b"\n"].concat());
    shell.out(&lines.collect::<Vec<_>>().concat())?;
    Ok(0)
}

/// As putenv(3).
fn put(variables: &mut Variables, name: &[u8], value: &[u8]) {
    match variables.iter_mut().find(|(found, _)| found == name) {
        Some((_, old)) => *old = value.to_vec(),
        None => variables.push((name.to_vec(), value.to_vec())),
    }
}

/// Runs a command with the changed environment.
fn run(shell: &mut Shell<'_>, argv: &[Vec<u8>], empty: bool, removed: &[&[u8]], given: Variables) -> Run<u8> {
    let exported = shell.state.exported().into_keys().filter(|_| empty);
    let removed: Vec<Vec<u8>> = removed.iter().map(|name| name.to_vec()).chain(exported).collect();
    let argv = argv.to_vec();
    shell.subshell(|shell| {
        // Programs know no attributes of variables.
        for name in removed.iter().chain(given.iter().map(|(name, _)| name)) {
            if let Some(found) = Rc::make_mut(&mut shell.state.variables).get_mut(name) {
                (found.readonly, found.attributes) = (false, Attributes::default());
            }
        }
        for name in removed {
            shell.change(&name, None, false)?;
        }
        if shell.state.get(b"PATH").is_none() {
            shell.change(b"PATH", Some(DEFAULT_PATH.to_vec()), false)?;
            if let Some(path) = Rc::make_mut(&mut shell.state.variables).get_mut(&b"PATH"[..]) {
                path.exported = false;
            }
        }
        for (name, value) in given {
            shell.change(&name, Some(value), true)?;
        }
        let status = shell.invoke_in_place(&argv)?;
        shell.state.status = status;
        Ok(status)
    })
}

/// The environment, in the order in which dash passes it to programs: that of its hash table, the newest variable of a bucket last.
fn ordered(shell: &Shell<'_>) -> Run<Variables> {
    const BUCKETS: usize = 39;
    if shell.state.language.is_bash() {
        return shell.unsupported(b"a list of variables");
    }
    let bucket = |name: &[u8]| {
        let first = name.first().map_or(0, |byte| usize::from(*byte) << 4);
        name.iter().fold(first, |sum, byte| sum + usize::from(*byte)) % BUCKETS
    };
    let mut variables: Vec<(usize, bool, Vec<u8>, Vec<u8>)> = Vec::new();
    for (name, value) in shell.state.exported() {
        if matches!(&name[..], b"LINENO" | b"PPID") {
            return shell.unsupported(b"a list of variables with LINENO or PPID");
        }
        let made = !shell.state.inherited.contains(&name);
        variables.push((bucket(&name), made, name, value));
    }
    variables.sort();
    // The order of two in a bucket depends on when each was created.
    if variables.windows(2).any(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        return shell.unsupported(b"a list of variables");
    }
    Ok(variables.into_iter().map(|(_, _, name, value)| (name, value)).collect())
}

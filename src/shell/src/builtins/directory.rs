//! `cd`, `pwd` and `umask`.

use std::rc::Rc;

use crate::commands::{mode, real_path};
use crate::eval::Run;
use crate::files::{Errno, Follow};
use crate::host::Question;
use crate::shell::{Shell, below};

/// A path without `.`, `..` and empty names, by its text.
pub(crate) fn normalize(path: &[u8]) -> Vec<u8> {
    let mut names: Vec<&[u8]> = Vec::new();
    for name in path.split(|byte| *byte == b'/') {
        match name {
            b"" | b"." => {}
            b".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    [b"/", &names.join(&b'/')[..]].concat()
}

/// The path that `cd` goes to without a look at the tree: as [`normalize`], but two slashes at the beginning stay two.
fn logical(path: &[u8]) -> Vec<u8> {
    let normal = normalize(path);
    let double = path.starts_with(b"//") && path.get(2) != Some(&b'/');
    if double { [b"/", &normal[..]].concat() } else { normal }
}

/// The options `-L` and `-P` and what follows them.
fn physical<'a>(shell: &mut Shell<'_>, name: &str, args: &'a [Vec<u8>]) -> Run<(bool, &'a [Vec<u8>])> {
    let mut physical = false;
    for (at, arg) in args.iter().enumerate() {
        match arg.split_first() {
            Some((b'-', b"-")) => return Ok((physical, &args[at + 1..])),
            Some((b'-', letters)) if !letters.is_empty() => {
                for letter in letters {
                    match letter {
                        b'L' | b'P' => physical = *letter == b'P',
                        other => {
                            let message = [name.as_bytes(), b": Illegal option -", &[*other]].concat();
                            return Err(shell.shell_error(&message));
                        }
                    }
                }
            }
            _ => return Ok((physical, &args[at..])),
        }
    }
    Ok((physical, &[]))
}

/// Whether `CDPATH` is not asked for a directory: `/…`, `.`, `..`, `./…`, `../…`.
fn is_fixed(target: &[u8]) -> bool {
    let rest = target.strip_prefix(b"..").or_else(|| target.strip_prefix(b"."));
    target.starts_with(b"/") || rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// Whether bash resolves the path lexically: each component before a `..` and the result must be directories. Otherwise the path is used as it is.
fn is_passable(shell: &Shell<'_>, path: &[u8], by_text: &[u8]) -> bool {
    let is_directory = |path: &[u8]| shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_dir());
    let mut left =
        (0..path.len()).filter(|at| path[*at..].starts_with(b"/..") && matches!(path.get(at + 3), None | Some(b'/')));
    // A removed working directory still has a parent.
    let removed = !is_directory(&shell.state.cwd);
    removed || (left.all(|at| is_directory(&logical(&path[..at]))) && is_directory(by_text))
}

/// `cd`
pub(super) fn cd(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (physical, operands) = physical(shell, "cd", args)?;
    let variable = |name: &[u8]| shell.state.get(name).unwrap_or_default().to_vec();
    let bash = shell.state.language.is_bash();
    let returns = operands.first().is_some_and(|operand| operand == b"-");
    let mut prints = returns;
    let target = match operands.first() {
        Some(_) if returns => variable(b"OLDPWD"),
        Some(operand) => operand.clone(),
        None => variable(b"HOME"),
    };
    shell.ask(Question::Value(&target))?;
    if operands.is_empty() && bash && shell.state.get(b"HOME").is_none() {
        shell.complain(b"cd: HOME not set")?;
        return Ok(1);
    }
    // bash looks for operands only, dash also for `HOME` and `OLDPWD`.
    let searches = !is_fixed(&target) && !(bash && (returns || operands.is_empty()));
    let found = if searches { in_search_path(shell, &target) } else { None };
    if physical && bash && target.is_empty() && found.is_none() {
        shell.complain_exactly(&[b"cd: : ", Errno::Enoent.text().as_bytes()].concat())?;
        return Ok(1);
    }
    prints |= found.as_ref().is_some_and(|(_, is_named)| *is_named);
    let place = match found {
        Some((place, _)) => place,
        None if target.is_empty() => b".".to_vec(),
        None => target.clone(),
    };
    let mut path = shell.path(&place);
    let mut physical = physical;
    if !physical {
        let by_text = logical(&path);
        physical = bash && !is_passable(shell, &path, &by_text);
        if !physical {
            path = by_text;
        }
    }
    if !shell.stat(&path, Follow::Yes).is_ok_and(|node| node.is_dir()) {
        if bash {
            let reason = shell.stat(&path, Follow::Yes).err().unwrap_or(Errno::Enotdir);
            shell.complain_exactly(&[b"cd: ", &target[..], b": ", reason.text().as_bytes()].concat())?;
            return Ok(1);
        }
        return Err(shell.shell_error(&[b"cd: can't cd to ", &target[..]].concat()));
    }
    if physical {
        path = real_path(shell, &path).unwrap_or(path);
    }
    let readonly = |name: &[u8]| shell.state.variables.get(name).is_some_and(|found| found.readonly);
    if readonly(b"PWD") || readonly(b"OLDPWD") {
        return shell.unsupported(b"cd with PWD or OLDPWD read-only");
    }
    let old = shell.state.cwd.to_vec();
    shell.state.cwd = Rc::new(path.clone());
    shell.moved();
    shell.change(b"OLDPWD", Some(old), true)?;
    shell.change(b"PWD", Some(path.clone()), true)?;
    if prints {
        let shown = if bash && returns { &target } else { &path };
        shell.out(&[&shown[..], b"\n"].concat())?;
    }
    Ok(0)
}

/// The directory that `CDPATH` has for a target, and whether the entry that has it names one.
fn in_search_path(shell: &Shell<'_>, target: &[u8]) -> Option<(Vec<u8>, bool)> {
    let bash = shell.state.language.is_bash();
    let target = if target.is_empty() { b"." } else { target };
    let mut places = shell.state.get(b"CDPATH")?.split(|byte| *byte == b':').map(|dir| {
        let place = match dir {
            b"" => target.to_vec(),
            dir if bash => below(dir, target),
            dir => [dir, b"/", target].concat(),
        };
        (place, !dir.is_empty())
    });
    places.find(|(place, _)| shell.stat(place, Follow::Yes).is_ok_and(|node| node.is_dir()))
}

/// `pwd`
pub(super) fn pwd(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (physical, _) = physical(shell, "pwd", args)?;
    let mut path = shell.state.cwd.to_vec();
    if physical {
        path = real_path(shell, &path).unwrap_or(path);
    }
    shell.out(&[&path[..], b"\n"].concat())?;
    Ok(0)
}

/// `umask`
pub(super) fn umask(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut symbolic = false;
    let mut operands = args;
    while let Some((option, rest)) = operands.split_first().filter(|(arg, _)| arg.len() > 1 && arg.starts_with(b"-")) {
        operands = rest;
        match &option[1..] {
            b"-" => break,
            letters if letters.iter().all(|letter| *letter == b'S') => symbolic = true,
            letters => {
                let letter = letters.iter().copied().find(|letter| *letter != b'S').unwrap_or_default();
                return Err(shell.shell_error(&[b"umask: Illegal option -", &[letter][..]].concat()));
            }
        }
    }
    let Some(text) = operands.first() else {
        let line = if symbolic { shown(!shell.state.umask) } else { format!("{:04o}\n", shell.state.umask) };
        shell.out(line.as_bytes())?;
        return Ok(0);
    };
    if text.first().is_some_and(u8::is_ascii_digit) {
        let octal = text.iter().try_fold(0_u16, |mask, digit| match digit {
            b'0'..=b'7' => Some((mask << 3 | u16::from(digit - b'0')) & 0o777),
            _ => None,
        });
        let Some(mask) = octal else {
            return Err(shell.shell_error(&[b"umask: Illegal number: ", &text[..]].concat()));
        };
        shell.state.umask = mask;
        return Ok(0);
    }
    let plain = text.iter().all(|byte| b"ugoa=+-rwx,".contains(byte));
    let clauses = text.split(|byte| *byte == b',');
    if !plain || !clauses.into_iter().all(|clause| matches!(clause.first(), Some(b'u' | b'g' | b'o' | b'a'))) {
        return shell.unsupported(text);
    }
    match mode(text, !shell.state.umask & 0o777) {
        Some(allowed) => shell.state.umask = !allowed & 0o777,
        None => return shell.unsupported(text),
    }
    Ok(0)
}

/// What `umask -S` prints.
fn shown(allowed: u16) -> String {
    let class = |name: char, bits: u16| {
        let letters = [(4, 'r'), (2, 'w'), (1, 'x')].into_iter().filter(|(bit, _)| bits & bit != 0);
        format!("{name}={}", letters.map(|(_, letter)| letter).collect::<String>())
    };
    format!("{},{},{}\n", class('u', allowed >> 6), class('g', allowed >> 3), class('o', allowed))
}

//! `cd`, `pwd` and `umask`.

use std::rc::Rc;

use crate::eval::Run;
use crate::files::Follow;
use crate::shell::Shell;

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

/// `cd`
pub(super) fn cd(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut args = args;
    let mut physical = false;
    while let Some(option) = args.first().filter(|arg| arg.len() > 1 && arg.starts_with(b"-")) {
        match &option[..] {
            b"-P" => physical = true,
            b"-L" => physical = false,
            b"--" => {
                args = &args[1..];
                break;
            }
            option => return shell.unsupported(option),
        }
        args = &args[1..];
    }
    let back = args.first().is_some_and(|arg| arg == b"-");
    let target = match args.first() {
        Some(_) if back => shell.state.get(b"OLDPWD").unwrap_or(b"/").to_vec(),
        Some(dir) => dir.clone(),
        None => shell.state.get(b"HOME").unwrap_or_default().to_vec(),
    };
    if target.is_empty() {
        return Ok(0);
    }
    let mut path = normalize(&shell.path(&target));
    if !shell.stat(&target, Follow::Yes).is_ok_and(|node| node.is_dir()) {
        shell.complain(&[b"cd: can't cd to ", &target[..]].concat())?;
        return Ok(2);
    }
    if physical {
        path = crate::commands::real_path(shell, &path).unwrap_or(path);
    }
    let old = shell.state.cwd.to_vec();
    shell.set(b"OLDPWD", &old)?;
    shell.set(b"PWD", &path)?;
    shell.state.cwd = Rc::new(path.clone());
    if back {
        shell.out(&[&path[..], b"\n"].concat())?;
    }
    Ok(0)
}

/// `pwd`
pub(super) fn pwd(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut path = shell.state.cwd.to_vec();
    match args.first().map(Vec::as_slice) {
        Some(b"-P") => path = crate::commands::real_path(shell, &path).unwrap_or(path),
        Some(option) if option != b"-L" => return shell.unsupported(option),
        _ => {}
    }
    shell.out(&[&path[..], b"\n"].concat())?;
    Ok(0)
}

/// `umask`
pub(super) fn umask(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let Some(text) = args.first() else {
        let line = format!("{:04o}\n", shell.state.umask);
        shell.out(line.as_bytes())?;
        return Ok(0);
    };
    let mask = std::str::from_utf8(text).ok().and_then(|text| u16::from_str_radix(text, 8).ok());
    match mask.filter(|mask| *mask <= 0o777) {
        Some(mask) => shell.state.umask = mask,
        None => return shell.unsupported(text),
    }
    Ok(0)
}

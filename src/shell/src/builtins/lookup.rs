//! `command -v` and `type`: resolve a command name.

use std::rc::Rc;

use crate::eval::Run;
use crate::host::Question;
use crate::shell::{PATH, Shell};

const RESERVED: [&[u8]; 16] = [
    b"!", b"{", b"}", b"case", b"do", b"done", b"elif", b"else", b"esac", b"fi", b"for", b"if", b"in", b"then",
    b"until", b"while",
];

/// The meaning of a command name.
enum Meaning {
    Reserved,
    Function,
    Special,
    Builtin,
    /// A program of the tree. The flag says that the shell remembers it.
    Program(Vec<u8>, bool),
}

fn meaning(shell: &mut Shell<'_>, name: &[u8], by_default: bool) -> Run<Option<Meaning>> {
    if shell.state.aliases.contains_key(name) {
        return shell.unsupported(b"showing an alias");
    }
    if RESERVED.contains(&name) {
        return Ok(Some(Meaning::Reserved));
    }
    if shell.state.functions.contains_key(name) {
        return Ok(Some(Meaning::Function));
    }
    if super::special(name).is_some() {
        return Ok(Some(Meaning::Special));
    }
    if super::regular(name).is_some() {
        return Ok(Some(Meaning::Builtin));
    }
    if name.contains(&b'/') && !shell.state.language.is_bash() {
        return Ok(shell.exists(name).then(|| Meaning::Program(name.to_vec(), false)));
    }
    let hashed = shell.state.hashed.contains_key(name);
    let place = if by_default { shell.search(name, Some(PATH))? } else { shell.place(name)? };
    if place.file.is_none() {
        shell.refuse_denied(name, Some(PATH).filter(|_| by_default))?;
    }
    Ok(place.file.map(|file| Meaning::Program(file, hashed)))
}

/// `command -v`, `command -V`; where it runs a command, it was taken off before.
pub(super) fn command(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (mut long, mut shows, mut by_default) = (false, false, false);
    let mut names = args;
    while let Some((option, rest)) = names.split_first().filter(|(arg, _)| arg.len() > 1 && arg.starts_with(b"-")) {
        names = rest;
        if option == b"--" {
            break;
        }
        for letter in &option[1..] {
            match letter {
                b'p' => by_default = true,
                b'v' => shows = true,
                b'V' => (long, shows) = (true, true),
                other => return Err(shell.shell_error(&[b"command: Illegal option -", &[*other][..]].concat())),
            }
        }
    }
    // dash looks at the first name only.
    let Some(name) = names.first() else { return Ok(0) };
    if !shows || (names.len() > 1 && shell.state.language.is_bash()) {
        return shell.unsupported(&args.join(&b' '));
    }
    if long {
        return describe(shell, name, by_default);
    }
    match meaning(shell, name, by_default)? {
        Some(Meaning::Program(path, _)) => shell.out(&[&path[..], b"\n"].concat()).map(|()| 0),
        Some(_) => shell.out(&[&name[..], b"\n"].concat()).map(|()| 0),
        None => {
            shell.ask(Question::Program(name))?;
            Ok(127)
        }
    }
}

/// `type`
pub(super) fn type_of(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let mut status = 0;
    for name in args {
        status |= describe(shell, name, false)?;
    }
    Ok(status)
}

fn describe(shell: &mut Shell<'_>, name: &[u8], by_default: bool) -> Run<u8> {
    let (text, status) = match meaning(shell, name, by_default)? {
        Some(Meaning::Reserved) => (b" is a shell keyword".to_vec(), 0),
        Some(Meaning::Function) => (b" is a shell function".to_vec(), 0),
        Some(Meaning::Special) => (b" is a special shell builtin".to_vec(), 0),
        Some(Meaning::Builtin) => (b" is a shell builtin".to_vec(), 0),
        Some(Meaning::Program(path, true)) => ([b" is a tracked alias for ", &path[..]].concat(), 0),
        Some(Meaning::Program(path, false)) => ([b" is ", &path[..]].concat(), 0),
        None => {
            shell.ask(Question::Program(name))?;
            (b": not found".to_vec(), 127)
        }
    };
    shell.out(&[name, &text, b"\n"].concat())?;
    Ok(status)
}

/// `hash`
pub(super) fn hash(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let names = match args.split_first() {
        None if shell.state.hashed.is_empty() => args,
        None => return shell.unsupported(b"a list of remembered programs"),
        Some((option, names)) if option == b"-r" && names.is_empty() => {
            shell.state.hashed = Rc::default();
            names
        }
        Some((option, _)) if option.len() > 1 && option.starts_with(b"-") => return shell.unsupported(option),
        Some(_) => args,
    };
    let mut status = 0;
    for name in names.iter().filter(|name| !name.contains(&b'/')) {
        let internal = shell.state.functions.contains_key(name)
            || super::special(name).is_some()
            || super::regular(name).is_some();
        if internal {
            continue;
        }
        Rc::make_mut(&mut shell.state.hashed).remove(name);
        let place = shell.place(name)?;
        if place.file.is_none() && !place.system_name().is_some_and(crate::commands::is_known) {
            shell.ask(Question::Program(name))?;
            shell.complain(&[b"hash: ", &name[..], b": not found"].concat())?;
            status = 1;
        }
    }
    Ok(status)
}

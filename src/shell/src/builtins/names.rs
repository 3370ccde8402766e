//! `type`, `command -v`, `alias` and `hash` of bash.

use std::rc::Rc;

use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;

const RESERVED: [&[u8]; 22] = [
    b"!",
    b"[[",
    b"]]",
    b"case",
    b"coproc",
    b"do",
    b"done",
    b"elif",
    b"else",
    b"esac",
    b"fi",
    b"for",
    b"function",
    b"if",
    b"in",
    b"select",
    b"then",
    b"time",
    b"until",
    b"while",
    b"{",
    b"}",
];

/// The meaning of a command name.
enum Meaning {
    Keyword,
    Function,
    Builtin,
    File(Vec<u8>),
}

impl Meaning {
    fn kind(&self) -> &'static [u8] {
        match self {
            Self::Keyword => b"keyword",
            Self::Function => b"function",
            Self::Builtin => b"builtin",
            Self::File(_) => b"file",
        }
    }
}

fn meaning(shell: &Shell<'_>, name: &[u8]) -> Run<Option<Meaning>> {
    Ok(if RESERVED.contains(&name) {
        Some(Meaning::Keyword)
    } else if shell.state.functions.contains_key(name) {
        Some(Meaning::Function)
    } else if super::any_of_bash(name).is_some() {
        Some(Meaning::Builtin)
    } else {
        shell.find_program(name)?.map(Meaning::File)
    })
}

/// The one letter that is an option, and the operands.
fn option<'a>(shell: &Shell<'_>, args: &'a [Vec<u8>], letters: &[u8]) -> Run<(u8, &'a [Vec<u8>])> {
    match args.first().map(Vec::as_slice) {
        Some(b"--") => Ok((0, &args[1..])),
        Some([b'-', letter]) if letters.contains(letter) => Ok((*letter, &args[1..])),
        Some(option) if option.len() > 1 && option.starts_with(b"-") => shell.unsupported(option),
        _ => Ok((0, args)),
    }
}

/// `type [-t | -p | -P] name…`
pub(super) fn type_of(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (option, names) = option(shell, args, b"tpP")?;
    let mut status = 0;
    for name in names {
        let found = match option {
            b'P' => shell.find_program(name)?.map(Meaning::File),
            _ => meaning(shell, name)?,
        };
        let Some(found) = found else {
            shell.ask(Question::Program(name))?;
            if option == 0 {
                shell.complain_exactly(&[b"type: ", &name[..], b": not found"].concat())?;
            }
            status = 1;
            continue;
        };
        let text = match (option, &found) {
            (b't', found) => found.kind().to_vec(),
            (b'p' | b'P', Meaning::File(path)) => path.clone(),
            (b'p' | b'P', _) => continue,
            (_, found) => described(shell, name, found)?,
        };
        shell.out(&[&text[..], b"\n"].concat())?;
    }
    Ok(status)
}

fn described(shell: &Shell<'_>, name: &[u8], meaning: &Meaning) -> Run<Vec<u8>> {
    Ok(match meaning {
        Meaning::Keyword => [name, b" is a shell keyword"].concat(),
        Meaning::Function => return shell.unsupported(b"showing a function"),
        Meaning::Builtin => [name, b" is a shell builtin"].concat(),
        Meaning::File(path) => [name, b" is ", path].concat(),
    })
}

/// `command -v` and `-V`; where it runs a command, it was taken off before.
pub(super) fn command(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (option, names) = option(shell, args, b"vVp")?;
    if option == 0 || option == b'p' {
        return Ok(0);
    }
    let mut status = 1;
    for name in names {
        let Some(found) = meaning(shell, name)? else {
            shell.ask(Question::Program(name))?;
            if option == b'V' {
                shell.complain_exactly(&[b"command: ", &name[..], b": not found"].concat())?;
            }
            continue;
        };
        status = 0;
        let text = match (&found, option) {
            (found, b'V') => described(shell, name, found)?,
            (Meaning::File(path), _) => path.clone(),
            _ => name.clone(),
        };
        shell.out(&[&text[..], b"\n"].concat())?;
    }
    Ok(status)
}

/// `alias name=value`: scripts of bash do not expand aliases without `shopt -s expand_aliases`, so only the names are kept.
pub(super) fn alias(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (_, args) = option(shell, args, b"")?;
    for arg in args {
        let Some(at) = arg.iter().position(|byte| *byte == b'=').filter(|at| *at > 0) else {
            return shell.unsupported(b"showing an alias");
        };
        if shell.state.bash.shopt("expand_aliases") {
            return shell.unsupported(b"an alias that scripts expand");
        }
        Rc::make_mut(&mut shell.state.bash.aliases).insert(arg[..at].to_vec());
    }
    if args.is_empty() { shell.unsupported(b"showing aliases") } else { Ok(0) }
}

/// `unalias [-a] name…`
pub(super) fn unalias(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (option, names) = option(shell, args, b"a")?;
    let aliases = Rc::make_mut(&mut shell.state.bash.aliases);
    if option == b'a' {
        aliases.clear();
        return Ok(0);
    }
    let missing: Vec<&Vec<u8>> = names.iter().filter(|name| !aliases.remove(*name)).collect();
    for name in &missing {
        shell.complain(&[b"unalias: ", &name[..], b": not found"].concat())?;
    }
    Ok(u8::from(!missing.is_empty()))
}

/// `hash`: paths of programs are looked up each time.
pub(super) fn hash(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let (option, names) = option(shell, args, b"r")?;
    if option == 0 && names.is_empty() {
        return shell.unsupported(b"a list of programs");
    }
    let mut status = 0;
    for name in names {
        if meaning(shell, name)?.is_none() {
            shell.ask(Question::Program(name))?;
            shell.complain(&[b"hash: ", &name[..], b": not found"].concat())?;
            status = 1;
        }
    }
    Ok(status)
}

//! `command -v` and `type`: what a name stands for.

use crate::eval::Run;
use crate::host::Question;
use crate::shell::Shell;

const RESERVED: [&[u8]; 16] = [
    b"!", b"{", b"}", b"case", b"do", b"done", b"elif", b"else", b"esac", b"fi", b"for", b"if", b"in", b"then",
    b"until", b"while",
];

/// What `command -v` prints.
fn shown(shell: &Shell<'_>, name: &[u8]) -> Option<Vec<u8>> {
    let internal = RESERVED.contains(&name)
        || shell.state.functions.contains_key(name)
        || super::special(name).is_some()
        || super::regular(name).is_some();
    if internal { Some(name.to_vec()) } else { shell.find_program(name) }
}

/// `command -v`; where it runs a command, it was taken off before.
pub(super) fn command(shell: &mut Shell<'_>, args: &[Vec<u8>], _tested: bool) -> Run<u8> {
    let Some((option, names)) = args.split_first() else { return Ok(0) };
    if option != b"-v" {
        return if names.is_empty() { Ok(0) } else { shell.unsupported(option) };
    }
    // dash looks at the first name only.
    let Some(name) = names.first() else { return Ok(0) };
    if shell.state.aliases.contains_key(name) {
        return shell.unsupported(b"showing an alias");
    }
    match shown(shell, name) {
        Some(text) => shell.out(&[&text[..], b"\n"].concat()).map(|()| 0),
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
        if shell.state.aliases.contains_key(name) {
            return shell.unsupported(b"showing an alias");
        }
        let text: Vec<u8> = if RESERVED.contains(&&name[..]) {
            b" is a shell keyword".to_vec()
        } else if shell.state.functions.contains_key(name) {
            b" is a shell function".to_vec()
        } else if super::special(name).is_some() {
            b" is a special shell builtin".to_vec()
        } else if super::regular(name).is_some() {
            b" is a shell builtin".to_vec()
        } else if let Some(path) = shell.find_program(name) {
            [b" is ", &path[..]].concat()
        } else {
            shell.ask(Question::Program(name))?;
            status = 127;
            b": not found".to_vec()
        };
        shell.out(&[&name[..], &text, b"\n"].concat())?;
    }
    Ok(status)
}

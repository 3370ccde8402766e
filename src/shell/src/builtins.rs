//! Builtins of the shell: those that need its state.

mod alias;
mod control;
mod trap;
mod variables;
mod options;
mod lookup;
mod directory;
mod read;
mod getopts;
mod print;
mod bash;
mod declare;
mod unset;
mod flow;
mod shopt;
mod traps;
mod names;
mod stack;
mod refused;
mod arithmetic;
pub(crate) mod test;

use crate::eval::Run;
use crate::shell::Shell;

pub(crate) use alias::Alias;
pub(crate) use bash::{binary as bash_binary, unary as bash_unary};
pub(crate) use directory::normalize;
pub(crate) use options::letters as flag_letters;
pub(crate) use print::{Conversion, Escapes, digits, echo_program, padded, unescape};
pub(crate) use refused::refused_operand;
pub(crate) use shopt::{is_set, letters_of_bash};
pub(crate) use trap::{EXIT, clear as clear_traps};

/// A builtin: its operands, and whether its failure is tested.
pub(crate) type Builtin = fn(&mut Shell<'_>, &[Vec<u8>], bool) -> Run<u8>;

/// Special builtins: their assignments stay, and their errors end the shell.
pub(crate) fn special(name: &[u8]) -> Option<Builtin> {
    Some(match name {
        b":" => |_, _, _| Ok(0),
        b"." => control::dot,
        b"break" => control::leave,
        b"continue" => control::leave_round,
        b"eval" => control::eval,
        b"exec" => control::exec,
        b"exit" => control::exit,
        b"return" => control::leave_function,
        b"trap" => trap::trap,
        b"export" => variables::export,
        b"readonly" => variables::readonly,
        b"local" => variables::local,
        b"shift" => variables::shift,
        b"unset" => variables::unset,
        b"set" => options::set,
        b"times" => |shell, _, _| Err(shell.fatal(crate::ErrorKind::Clock { what: "times".to_owned() })),
        _ => return None,
    })
}

/// The others.
pub(crate) fn regular(name: &[u8]) -> Option<Builtin> {
    Some(match name {
        b"true" => |_, _, _| Ok(0),
        b"false" => |_, _, _| Ok(1),
        b"echo" => print::echo,
        b"printf" => print::printf,
        b"test" => test::test,
        b"[" => test::bracket,
        b"read" => read::read,
        b"getopts" => getopts::getopts,
        b"cd" | b"chdir" => directory::cd,
        b"pwd" => directory::pwd,
        b"umask" => directory::umask,
        b"command" => lookup::command,
        b"type" => lookup::type_of,
        b"hash" => lookup::hash,
        b"kill" | b"ulimit" | b"wait" | b"jobs" | b"fg" | b"bg" => {
            |shell, _, _| Err(shell.fatal(crate::ErrorKind::Machine { what: "processes and their limits".to_owned() }))
        }
        b"alias" => alias::alias,
        b"unalias" => |shell, _, _| shell.unsupported(b"an alias that ends"),
        _ => return None,
    })
}

/// Builtins that differ in bash scripts. None of them is special there.
pub(crate) fn of_bash(name: &[u8]) -> Option<Builtin> {
    Some(match name {
        b"declare" | b"typeset" => declare::declare,
        b"local" => declare::local,
        b"export" => declare::export,
        b"readonly" => declare::readonly,
        b"unset" => unset::unset,
        b"let" => arithmetic::assign,
        b"echo" => bash::echo,
        b"printf" => bash::printf,
        b"read" => bash::read,
        b"mapfile" | b"readarray" => bash::mapfile,
        b"getopts" => bash::getopts,
        b"test" => bash::test,
        b"[" => bash::bracket,
        _ => return None,
    })
}

/// The builtin of that name in a script of bash.
pub(crate) fn any_of_bash(name: &[u8]) -> Option<Builtin> {
    let builtin: Option<Builtin> = Some(match name {
        b"." | b"source" => flow::source,
        b"break" => flow::leave,
        b"continue" => flow::leave_round,
        b"eval" => flow::eval,
        b"exec" => flow::exec,
        b"exit" => flow::exit,
        b"return" => flow::leave_function,
        b"set" => shopt::set,
        b"shopt" => shopt::shopt,
        b"trap" => traps::trap,
        b"type" => names::type_of,
        b"command" => names::command,
        b"builtin" => |_, _, _| Ok(0),
        b"alias" => names::alias,
        b"unalias" => names::unalias,
        b"hash" => names::hash,
        b"cd" => flow::cd,
        b"umask" => |shell, args, tested| match args.first() {
            Some(option) if option == b"-p" => shell.unsupported(option),
            _ => directory::umask(shell, args, tested),
        },
        b"pushd" => stack::pushd,
        b"popd" => stack::popd,
        b"dirs" => stack::dirs,
        b"caller" => stack::caller,
        // No command runs in the background.
        b"wait" | b"jobs" => |shell, args, _| if args.is_empty() { Ok(0) } else { shell.unsupported(b"operands") },
        b"ulimit" => |shell, args, tested| match args {
            [option, limit] if option == b"-c" && limit == b"0" => Ok(0),
            _ => regular(b"ulimit").map_or(Ok(1), |builtin| builtin(shell, args, tested)),
        },
        b"bind" | b"compgen" | b"complete" | b"compopt" | b"disown" | b"enable" | b"fc" | b"history" | b"logout"
        | b"suspend" => |shell, _, _| shell.unsupported(b"this builtin of bash"),
        _ => return of_bash(name).or_else(|| special(name)).or_else(|| regular(name)),
    });
    builtin
}

/// A decimal number as dash reads it: blanks around it and a sign are allowed.
pub(crate) fn integer(text: &[u8]) -> Option<i64> {
    let blank = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0b;
    let start = text.iter().position(|byte| !blank(byte))?;
    let end = text.iter().rposition(|byte| !blank(byte))? + 1;
    std::str::from_utf8(&text[start..end]).ok()?.parse().ok()
}

/// A count, status or signal among operands.
pub(crate) fn number(text: &[u8]) -> Option<u32> {
    integer(text).and_then(|number| u32::try_from(number).ok()).filter(|number| *number <= i32::MAX.cast_unsigned())
}

/// How many words `command` and its options are, if it runs a command.
pub(crate) fn command_prefix(words: &[Vec<u8>]) -> usize {
    if words.first().is_none_or(|name| name != b"command") {
        return 0;
    }
    let mut at = 1;
    while let Some(word) = words.get(at) {
        match &word[..] {
            b"-p" => at += 1,
            b"--" => {
                at += 1;
                break;
            }
            option if option.starts_with(b"-") => return 0,
            _ => break,
        }
    }
    if at < words.len() { at } else { 0 }
}

//! Programs whose results do not depend on the order of their input or operands.

use super::Reader;

/// Programs that write nothing but what their operands name, each of those by itself; or nothing at all.
const INDEPENDENT: [&[u8]; 36] = [
    b"basename",
    b"cat",
    b"chgrp",
    b"chmod",
    b"chown",
    b"cmp",
    b"cp",
    b"cut",
    b"dirname",
    b"echo",
    b"egrep",
    b"expr",
    b"false",
    b"fgrep",
    b"grep",
    b"head",
    b"install",
    b"ln",
    b"ls",
    b"md5sum",
    b"mkdir",
    b"mv",
    b"printf",
    b"readlink",
    b"realpath",
    b"rm",
    b"rmdir",
    b"sed",
    b"sha256sum",
    b"sort",
    b"stat",
    b"tail",
    b"test",
    b"touch",
    b"tr",
    b"true",
];

/// Whether a program that runs for several files has the same effects in any order. What it writes has an order.
pub(crate) fn is_independent(name: &[u8]) -> bool {
    INDEPENDENT.contains(&name) || matches!(name, b"[" | b"wc")
}

/// Whether a program may give several files the same name.
pub(crate) fn makes_names(name: &[u8]) -> bool {
    matches!(name, b"cp" | b"mv" | b"ln" | b"install")
}

/// How a program takes its input.
pub(crate) fn reader(name: &[u8], args: &[Vec<u8>]) -> Reader {
    let options = || args.iter().filter(|arg| arg.len() > 1 && arg.starts_with(b"-"));
    let letters = |letters: &[u8]| {
        options().any(|option| option.starts_with(b"--") || option.iter().any(|byte| letters.contains(byte)))
    };
    match name {
        b"wc" => Reader::Forgets,
        b"sort" if letters(b"u") && !options().all(|option| option.iter().all(|byte| b"-urz".contains(byte))) => {
            Reader::Depends
        }
        b"sort" if !letters(b"scm") => Reader::Forgets,
        b"grep" | b"egrep" | b"fgrep" if letters(b"mnbABCf0123456789") => Reader::Depends,
        b"grep" | b"egrep" | b"fgrep" if letters(b"qc") => Reader::Forgets,
        b"grep" | b"egrep" | b"fgrep" | b"cut" => Reader::Keeps,
        b"cat" if args.is_empty() => Reader::Keeps,
        b"tr" if !letters(b"s") => Reader::Keeps,
        b"sed" if is_substitution(args) => Reader::Keeps,
        b"xargs" => match command_of_xargs(args) {
            None => Reader::Keeps,
            Some(name) if is_independent(name) => Reader::Keeps,
            Some(_) => Reader::Depends,
        },
        _ => Reader::Depends,
    }
}

/// The name of the command that `xargs` runs.
fn command_of_xargs(args: &[Vec<u8>]) -> Option<&[u8]> {
    let mut takes_value = false;
    let mut is_option = |arg: &[u8]| {
        let is_option = takes_value || (arg.len() > 1 && arg.starts_with(b"-"));
        takes_value = !takes_value && matches!(arg, b"-n" | b"-I" | b"-d" | b"--max-args" | b"--delimiter");
        is_option
    };
    args.iter().map(Vec::as_slice).find(|arg| !is_option(arg))
}

/// Whether a script of sed is one substitution, in every line.
fn is_substitution(args: &[Vec<u8>]) -> bool {
    let script = match args {
        [script] => script,
        [option, script] if matches!(&option[..], b"-e" | b"-r" | b"-E") => script,
        _ => return false,
    };
    let [b's', delimiter, rest @ ..] = &script[..] else { return false };
    let flags = rest.iter().rposition(|byte| byte == delimiter).map_or(rest, |at| &rest[at + 1..]);
    let is_plain = !rest.iter().any(|byte| matches!(byte, b';' | b'\n' | b'}'));
    delimiter.is_ascii_punctuation() && is_plain && flags.iter().all(|byte| matches!(byte, b'g' | b'I' | b'i'))
}

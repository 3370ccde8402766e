//! Programs implemented as functions on the tree: those of GNU coreutils, findutils, grep and sed that maintainer scripts use, in the C
//! locale. An unknown option is an error; none is ignored.

mod options;
pub(crate) mod regex;
mod paths;
mod text;
mod lines;
mod sort;
mod translate;
mod tsort;
mod awk;
mod grep;
mod sed;
mod make;
mod temporary;
mod targets;
mod backups;
mod copy;
mod rename;
mod links;
mod list;
mod remove;
mod install;
mod attributes;
mod owners;
mod modes;
mod status;
mod versions;
mod find;
mod getopt;
mod expressions;
mod identity;
mod machine;
mod sh;
mod start;
mod environment;
mod bash;
mod digests;

use crate::eval::Run;
use crate::files::Errno;
use crate::host::Question;
use crate::shell::Shell;

pub(crate) use list::is_narrow_reader;
pub(crate) use paths::{bare, known_path, last_name, real_path};

/// The permissions that a symbolic mode makes of `old`.
pub(crate) fn mode(text: &[u8], old: u16) -> Option<u16> {
    modes::parse(text, old, false, 0)
}

/// What programs write at once, at least, in bytes.
pub(crate) const OUTPUT_BUFFER: usize = 1 << 10;

/// Operands, paths, fields.
type Words = Vec<Vec<u8>>;

/// The name of an input, and its content.
type Input = (Vec<u8>, Vec<u8>);

/// A program: its operands.
pub(crate) type Utility = fn(&mut Shell<'_>, &[Vec<u8>]) -> Run<u8>;

/// Whether the interpreter has a program of that name.
pub(crate) fn is_known(name: &[u8]) -> bool {
    find(name).is_some() || matches!(name, b"echo" | b"printf" | b"test" | b"[" | b"true" | b"false" | b"pwd")
}

/// The function of that name.
pub(crate) fn find(name: &[u8]) -> Option<Utility> {
    Some(match name {
        b"awk" | b"mawk" => awk::awk,
        b"basename" => paths::basename,
        b"cat" => text::cat,
        b"chgrp" => owners::chgrp,
        b"chmod" => attributes::chmod,
        b"chown" => owners::chown,
        b"cmp" => text::cmp,
        b"cp" => copy::cp,
        b"cut" => lines::cut,
        b"date" => machine::date,
        b"df" => machine::df,
        b"diff" => text::diff,
        b"dirname" => paths::dirname,
        b"egrep" => grep::egrep,
        b"env" => environment::env,
        b"expr" => expressions::expr,
        b"fgrep" => grep::fgrep,
        b"find" => find::find,
        b"getopt" => getopt::getopt,
        b"grep" => grep::grep,
        b"head" => text::head,
        b"id" => identity::id,
        b"ionice" => start::ionice,
        b"install" => install::install,
        b"ln" => links::ln,
        b"ls" => list::ls,
        b"md5sum" => digests::md5sum,
        b"mkdir" => make::mkdir,
        b"mktemp" => temporary::mktemp,
        b"mv" => rename::mv,
        b"nice" => start::nice,
        b"readlink" => paths::readlink,
        b"realpath" => paths::realpath,
        b"rm" => remove::rm,
        b"rmdir" => remove::rmdir,
        b"unlink" => remove::unlink,
        b"sed" => sed::sed,
        b"seq" => expressions::seq,
        b"sh" | b"dash" => sh::sh,
        b"bash" => bash::bash,
        b"sha256sum" => digests::sha256sum,
        b"sleep" => start::sleep,
        b"sort" => sort::sort,
        b"stat" => status::stat,
        b"sync" => |_, _| Ok(0),
        b"tac" => lines::tac,
        b"tail" => text::tail,
        b"tee" => text::tee,
        b"tempfile" => temporary::tempfile,
        b"touch" => make::touch,
        b"tr" => translate::tr,
        b"tsort" => tsort::tsort,
        b"uname" => machine::uname,
        b"uniq" => lines::uniq,
        b"wc" => text::wc,
        b"which" => start::which,
        b"whoami" => identity::whoami,
        b"xargs" => start::xargs,
        _ => return None,
    })
}

/// The status of a program that could not write its messages; `None` if it does not look whether it could.
pub(crate) fn without_errors(name: &[u8]) -> Option<u8> {
    match name {
        b"awk" | b"mawk" | b"sed" | b"sh" | b"dash" | b"bash" | b"which" | b"tempfile" => None,
        b"cmp" | b"diff" | b"egrep" | b"fgrep" | b"grep" | b"ls" | b"sort" | b"test" | b"[" => Some(2),
        b"expr" | b"getopt" => Some(3),
        b"env" | b"nice" => Some(125),
        _ => Some(1),
    }
}

/// Writes a message of a program: what it could not do. Its text may be another there, which a file or value would keep.
fn complain(shell: &mut Shell<'_>, program: &str, message: &[u8]) -> Run<u8> {
    if shell.is_captured(2) && shell.writes_errors() {
        let what = [b"a file or value with a message such as: ", program.as_bytes(), b": ", message].concat();
        return shell.unsupported(&what);
    }
    complain_exactly(shell, program, message)
}

/// Writes a message that has the text of the program.
fn complain_exactly(shell: &mut Shell<'_>, program: &str, message: &[u8]) -> Run<u8> {
    shell.err(&[program.as_bytes(), b": ", message, b"\n"].concat())?;
    Ok(1)
}

/// Writes that a program could not do something with a path, and why.
fn cannot(shell: &mut Shell<'_>, program: &str, what: &str, path: &[u8], error: Errno) -> Run<u8> {
    let message = [b"cannot ", what.as_bytes(), b" '", path, b"': ", error.text().as_bytes()].concat();
    complain_exactly(shell, program, &message)
}

/// A path of a name in a directory.
fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let slash: &[u8] = if dir.ends_with(b"/") { b"" } else { b"/" };
    [dir, slash, name].concat()
}

/// A name in quotes, as messages of coreutils show it.
fn quoted(shell: &Shell<'_>, name: &[u8]) -> Run<Vec<u8>> {
    match name.iter().all(|byte| (b' '..=b'~').contains(byte) && *byte != b'\'') {
        true => Ok([b"'", name, b"'"].concat()),
        false => shell.unsupported(&[b"quoting the name ", name].concat()),
    }
}

/// Writes that an operand could not be read. Programs have different texts, which a file or value would keep.
fn complain_of_input(shell: &mut Shell<'_>, program: &str, operand: &[u8], error: Errno) -> Run<()> {
    let is_plain = operand.iter().all(|byte| byte.is_ascii_alphanumeric() || b"%+,-./@_".contains(byte));
    let is_exact = match program {
        "cat" | "cut" | "wc" => is_plain && !operand.is_empty(),
        "grep" => !operand.is_empty(),
        _ => false,
    };
    let message = [operand, &b": "[..], error.text().as_bytes()].concat();
    if shell.is_captured(2) && !is_exact {
        let what = [b"a file or value with a message such as: ", program.as_bytes(), b": ", &message].concat();
        return shell.unsupported(&what);
    }
    if shell.is_captured(2) {
        shell.ask(Question::Value(operand))?;
    }
    complain_exactly(shell, program, &message)?;
    Ok(())
}

/// The content of each operand, standard input for `-` and without operands. The flag says whether one could not be read, which was told.
fn inputs(shell: &mut Shell<'_>, program: &str, operands: &[Vec<u8>]) -> Run<(Vec<Input>, bool)> {
    let standard = [b"-".to_vec()];
    let mut contents = Vec::new();
    let mut failed = false;
    for operand in if operands.is_empty() { &standard[..] } else { operands } {
        if operand == b"-" && shell.input_is_dir() {
            complain(shell, program, b"-: Is a directory")?;
            failed = true;
            continue;
        }
        if operand == b"-" {
            let content = shell.read_all(0)?;
            if !matches!(program, "cat" | "tee") {
                shell.ask(Question::Value(&content))?;
            }
            contents.push((operand.clone(), content));
            continue;
        }
        match shell.read_file(operand)? {
            Ok(content) => {
                // Programs that read by and by see what they write by then.
                let is_long = content.len() >= OUTPUT_BUFFER && !matches!(program, "cat" | "grep" | "sort" | "tac");
                if is_long && shell.own_output_file(&shell.path(operand)).is_some() {
                    return shell.unsupported(b"a file as input and output");
                }
                if !matches!(program, "cat" | "tee") {
                    shell.ask(Question::Value(&content))?;
                }
                contents.push((operand.clone(), content));
            }
            Err(error) => {
                complain_of_input(shell, program, operand, error)?;
                failed = true;
            }
        }
    }
    Ok((contents, failed))
}

/// Lines with their newlines; the last one may have none.
fn split_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split_inclusive(|byte| *byte == b'\n')
}

/// A number of an option.
fn count(shell: &Shell<'_>, text: &[u8]) -> Run<usize> {
    match crate::accounts::number(text) {
        Some(number) => Ok(usize::try_from(number).unwrap_or(usize::MAX)),
        None => shell.unsupported(&[b"the number ", text].concat()),
    }
}

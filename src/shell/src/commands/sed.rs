//! `sed`: the commands that maintainer scripts use.

mod script;
mod patterns;
mod substitution;
mod program;

use super::options::{Accepted, parse};
use super::{Words, complain, inputs};
use crate::eval::Run;
use crate::files::Follow;
use crate::host::Question;
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"nrEse:f:i",
    long: &[
        ("quiet", b'n'),
        ("silent", b'n'),
        ("regexp-extended", b'E'),
        ("separate", b's'),
        ("expression=", b'e'),
        ("file=", b'f'),
        ("in-place", b'i'),
    ],
    strict: false,
};

pub(super) fn sed(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let (args, suffix) = in_place_suffix(shell, args)?;
    let mut options = parse(shell, &args, &OPTIONS)?;
    let mut source: Vec<Vec<u8>> = Vec::new();
    for (letter, value) in options.iter() {
        match letter {
            b'e' => source.push(value.to_vec()),
            b'f' => {
                let (contents, failed) = inputs(shell, "sed", &[value.to_vec()])?;
                if failed {
                    return Ok(1);
                }
                source.extend(contents.into_iter().map(|(_, text)| text.strip_suffix(b"\n").unwrap_or(&text).to_vec()));
            }
            _ => {}
        }
    }
    if source.is_empty() {
        if options.operands.is_empty() {
            return complain(shell, "sed", b"no script");
        }
        source.push(options.operands.remove(0));
    }
    let extended = options.has(b'E') || options.has(b'r');
    let commands = script::parse(shell, &source.join(&b'\n'), extended)?;
    let quiet = options.has(b'n');
    if !options.has(b'i') {
        let (contents, failed) = inputs(shell, "sed", &options.operands)?;
        let texts: Vec<Vec<u8>> = contents.into_iter().map(|(_, text)| text).collect();
        let groups = if options.has(b's') { texts } else { vec![joined(texts)] };
        for text in groups {
            let edited = program::run(shell, &commands, &text, quiet)?;
            shell.out(&edited.text)?;
            if let Some(status) = edited.status {
                return Ok(status);
            }
        }
        return Ok(if failed { 2 } else { 0 });
    }
    in_place(shell, &commands, &options.operands, suffix.as_deref(), quiet)
}

/// `-i.bak` has an argument only when it is part of the word.
fn in_place_suffix(shell: &Shell<'_>, args: &[Vec<u8>]) -> Run<(Words, Option<Vec<u8>>)> {
    let mut suffix = None;
    let mut out = Vec::new();
    for arg in args {
        match arg.strip_prefix(b"-i").or_else(|| arg.strip_prefix(b"--in-place=")) {
            Some(rest) if !rest.is_empty() => {
                if rest.contains(&b'*') || rest.contains(&b'/') {
                    return shell.unsupported(arg);
                }
                suffix = Some(rest.to_vec());
                out.push(b"-i".to_vec());
            }
            _ => out.push(arg.clone()),
        }
    }
    Ok((out, suffix))
}

/// Files one behind the other: a last line without newline gets one if another file follows.
fn joined(texts: Vec<Vec<u8>>) -> Vec<u8> {
    let mut all: Vec<u8> = Vec::new();
    for text in texts.into_iter().filter(|text| !text.is_empty()) {
        if !all.is_empty() && !all.ends_with(b"\n") {
            all.push(b'\n');
        }
        all.extend(text);
    }
    all
}

/// Replaces each file by its edited copy, a new inode with the old one's owner and mode.
fn in_place(
    shell: &mut Shell<'_>,
    commands: &[script::Command],
    operands: &[Vec<u8>],
    suffix: Option<&[u8]>,
    quiet: bool,
) -> Run<u8> {
    let mut status = 0;
    for operand in operands {
        let node = match shell.stat(operand, Follow::No) {
            Ok(node) if node.is_file() => node,
            Ok(_) if shell.stat(operand, Follow::Yes).is_ok_and(|node| node.is_file()) => {
                // A link is replaced by a file.
                match shell.stat(operand, Follow::Yes) {
                    Ok(node) => node,
                    Err(_) => continue,
                }
            }
            Ok(_) => {
                complain(shell, "sed", &[b"couldn't edit ", &operand[..], b": not a regular file"].concat())?;
                status = 4;
                continue;
            }
            Err(error) => {
                shell.ask(Question::Path(&shell.path(operand)))?;
                complain(shell, "sed", &[b"can't read ", &operand[..], b": ", error.text().as_bytes()].concat())?;
                status = 2;
                continue;
            }
        };
        let Ok(text) = shell.read_file(operand)? else { continue };
        shell.ask(Question::Value(&text))?;
        let edited = program::run(shell, commands, &text, quiet)?;
        let path = shell.path(operand);
        match suffix {
            Some(suffix) => {
                let _ = shell.files.rename(&path, &[&path[..], suffix].concat());
            }
            None => {
                let _ = shell.files.make_way(&path);
            }
        }
        if let Err(error) = shell.write_path(operand, edited.text)? {
            status = complain(shell, "sed", &[&operand[..], b": ", error.text().as_bytes()].concat())?;
            continue;
        }
        let _ = shell.files.set_owner(&path, node.uid, node.gid, Follow::Yes);
        let _ = shell.files.set_mode(&path, node.mode);
        if let Some(found) = edited.status {
            return Ok(found);
        }
    }
    Ok(status)
}

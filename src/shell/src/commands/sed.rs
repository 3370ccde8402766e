//! `sed`.

mod script;
mod patterns;
mod substitution;
mod output;
mod program;

use super::options::{Accepted, parse};
use super::{Input, Words, complain, inputs};
use crate::eval::{Run, Stop};
use crate::files::{Errno, Follow, Node};
use crate::host::Question;
use crate::shell::Shell;
use program::Machine;

const OPTIONS: Accepted = Accepted {
    letters: b"nrEsuze:f:il:",
    long: &[
        ("quiet", b'n'),
        ("silent", b'n'),
        ("regexp-extended", b'E'),
        ("separate", b's'),
        ("unbuffered", b'u'),
        ("null-data", b'z'),
        ("zero-terminated", b'z'),
        ("expression=", b'e'),
        ("file=", b'f'),
        ("in-place", b'i'),
        ("line-length=", b'l'),
        ("follow-symlinks", b'F'),
    ],
    strict: false,
};

pub(super) fn sed(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    match edit(shell, args) {
        // An invalid script, whose fault was written.
        Err(Stop::Error) => Ok(1),
        // sed fails where it cannot close its output.
        Ok(_) if shell.descriptor(1).is_none() => {
            shell.lost = false;
            Ok(4)
        }
        done => done,
    }
}

fn edit(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
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
    let mut quiet = options.has(b'n');
    if source.is_empty() {
        if options.operands.is_empty() {
            return complain(shell, "sed", b"no script");
        }
        source.push(options.operands.remove(0));
    }
    quiet |= source.first().is_some_and(|first| first == b"#n" || first.starts_with(b"#n\n"));
    let extended = options.has(b'E') || options.has(b'r');
    let width = options.value(b'l').map(|text| super::count(shell, text)).transpose()?.unwrap_or(70);
    let commands = match script::parse(shell, &source.join(&b'\n'), extended, width)? {
        Ok(commands) => commands,
        Err(status) => return Ok(status),
    };
    if script::lacks_label(&commands) {
        return complain(shell, "sed", b"can't find label").map(|_| 4);
    }
    let end = if options.has(b'z') { 0 } else { b'\n' };
    let in_place = options.has(b'i');
    let mut machine = Machine::new(&commands, quiet, end, in_place);
    // The files of `w` are there, whatever is written.
    let files: Words = machine.outputs.files.keys().cloned().collect();
    for file in &files {
        if let Err(error) = shell.write_path(file, Vec::new())? {
            complain(shell, "sed", &[b"couldn't open file ", &file[..], b": ", error.text().as_bytes()].concat())?;
            return Ok(4);
        }
    }
    if in_place {
        let follow = if options.has(b'F') { Follow::Yes } else { Follow::No };
        return self::in_place(shell, &mut machine, &options.operands, suffix.as_deref(), follow);
    }
    let separate = options.has(b's');
    streams(shell, &mut machine, &options.operands, separate)
}

/// Edits all inputs one behind the other, or each on its own.
fn streams(shell: &mut Shell<'_>, machine: &mut Machine<'_>, operands: &[Vec<u8>], separate: bool) -> Run<u8> {
    // A directory ends all where it is read.
    let is_dir = |path: &Vec<u8>| match &path[..] {
        b"-" => shell.input_is_dir(),
        path => shell.stat(path, Follow::Yes).is_ok_and(|node| node.is_dir()),
    };
    let standard = [b"-".to_vec()];
    let operands = if operands.is_empty() { &standard[..] } else { operands };
    let directory = operands.iter().position(is_dir);
    let readable = &operands[..directory.unwrap_or(operands.len())];
    let mut contents = Vec::new();
    // How many inputs precede the first one that is missing.
    let mut missing = None;
    for operand in readable {
        let (found, failed) = inputs(shell, "sed", std::slice::from_ref(operand))?;
        if failed {
            missing.get_or_insert(contents.len());
        }
        contents.extend(found);
    }
    let groups: Vec<Vec<Input>> =
        if separate { contents.into_iter().map(|input| vec![input]).collect() } else { vec![contents] };
    for (number, group) in groups.into_iter().enumerate() {
        let status = machine.run(shell, group)?;
        let text = machine.outputs.edited.written();
        shell.out(&text)?;
        if let Some(status) = status {
            let current = number + machine.current_file();
            if operands.get(current).is_some_and(|operand| operand == b"-") {
                shell.give_back(machine.unread(), false);
            }
            let status = if missing.is_some_and(|missing| missing <= current) { 2 } else { status };
            return files(shell, machine).map(|()| status);
        }
    }
    files(shell, machine)?;
    if directory.is_some() {
        complain(shell, "sed", b"read error: Is a directory")?;
        return Ok(4);
    }
    Ok(if missing.is_some() { 2 } else { 0 })
}

/// Writes the files of `w`.
fn files(shell: &mut Shell<'_>, machine: &mut Machine<'_>) -> Run<()> {
    if let Some(standard) = &mut machine.standard {
        let text = standard.take();
        shell.out(&text)?;
    }
    for (file, mut output) in std::mem::take(&mut machine.outputs.files) {
        let text = output.take();
        if !text.is_empty()
            && let Err(error) = shell.write_path(&file, text)?
        {
            complain(shell, "sed", &[&file[..], b": ", error.text().as_bytes()].concat())?;
        }
    }
    Ok(())
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

/// Edits files in their places.
fn in_place(
    shell: &mut Shell<'_>,
    machine: &mut Machine<'_>,
    operands: &[Vec<u8>],
    suffix: Option<&[u8]>,
    follow: Follow,
) -> Run<u8> {
    if operands.is_empty() {
        return complain(shell, "sed", b"no input files").map(|_| 4);
    }
    let mut status = 0;
    for operand in operands {
        let node = match shell.stat(operand, Follow::Yes) {
            Ok(node) if node.is_file() => node,
            Ok(_) => {
                complain(shell, "sed", &[b"couldn't edit ", &operand[..], b": not a regular file"].concat())?;
                files(shell, machine)?;
                return Ok(4);
            }
            Err(_) if follow == Follow::Yes && shell.stat(operand, Follow::No).is_ok() => {
                return shell.unsupported(b"--follow-symlinks of a link that leads nowhere");
            }
            Err(error) if follow == Follow::Yes => {
                complain(
                    shell,
                    "sed",
                    &[b"couldn't readlink ", &operand[..], b": ", error.text().as_bytes()].concat(),
                )?;
                files(shell, machine)?;
                return Ok(4);
            }
            Err(error) => {
                complain(shell, "sed", &[b"can't read ", &operand[..], b": ", error.text().as_bytes()].concat())?;
                status = status.max(2);
                continue;
            }
        };
        let Ok(text) = shell.read_file(operand)? else { continue };
        shell.ask(Question::Value(&text))?;
        let quit = machine.run(shell, vec![(operand.clone(), text)])?;
        let path = match follow {
            Follow::Yes => super::real_path(shell, operand).unwrap_or_else(|| shell.path(operand)),
            Follow::No => shell.path(operand),
        };
        let text = machine.outputs.edited.take();
        if let Err(error) = replace(shell, &path, text, &node, suffix)? {
            status = complain(shell, "sed", &[&operand[..], b": ", error.text().as_bytes()].concat())?;
            continue;
        }
        if let Some(found) = quit {
            files(shell, machine)?;
            // A file that is missing counts for more.
            return Ok(if status == 2 { status } else { found });
        }
    }
    files(shell, machine)?;
    Ok(status)
}

/// Replaces a file by its edited copy, a new inode with the old one's owner and mode. A link is replaced by a file.
fn replace(
    shell: &mut Shell<'_>,
    path: &[u8],
    text: Vec<u8>,
    node: &Node,
    suffix: Option<&[u8]>,
) -> Run<Result<(), Errno>> {
    match suffix {
        Some(suffix) => {
            let _ = shell.rename(path, &[path, suffix].concat())?;
        }
        None => {
            let _ = shell.files.make_way(path);
        }
    }
    if let Err(error) = shell.write_path(path, text)? {
        return Ok(Err(error));
    }
    let _ = shell.files.inherit(path, node);
    Ok(Ok(()))
}

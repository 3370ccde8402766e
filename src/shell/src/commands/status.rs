//! `stat` and `ls`, as far as scripts read what they print.

use super::options::{Accepted, parse};
use super::{cannot, versions};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node, NodeKind};
use crate::shell::Shell;

pub(super) fn stat(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("format=", b'c'), ("printf=", b'p'), ("dereference", b'L')];
    let options = parse(shell, args, &Accepted { letters: b"c:L", long, strict: false })?;
    let (format, newline) = match (options.value(b'c'), options.value(b'p')) {
        (Some(format), _) => (format.to_vec(), true),
        (None, Some(format)) => (crate::builtins::unescape(format, crate::builtins::Escapes::Format).0, false),
        (None, None) if options.operands.is_empty() => return super::complain(shell, "stat", b"missing operand"),
        (None, None) => return shell.unsupported(b"stat without a format"),
    };
    if options.operands.is_empty() {
        return super::complain(shell, "stat", b"missing operand");
    }
    let mut status = 0;
    for operand in &options.operands {
        let follow = if options.has(b'L') { Follow::Yes } else { Follow::No };
        match shell.stat(operand, follow) {
            Ok(node) => {
                let mut line = formatted(shell, &format, operand, &node)?;
                if newline {
                    line.push(b'\n');
                }
                shell.out(&line)?;
            }
            Err(error) => status = cannot(shell, "stat", "statx", operand, error)?,
        }
    }
    Ok(status)
}

fn formatted(shell: &Shell<'_>, format: &[u8], operand: &[u8], node: &Node) -> Run<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = format.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let text = match bytes.next() {
            Some(b'%') => b"%".to_vec(),
            Some(b'a') => format!("{:o}", node.mode).into_bytes(),
            Some(b'A') => letters(node).into_bytes(),
            Some(b'u') => node.uid.to_string().into_bytes(),
            Some(b'g') => node.gid.to_string().into_bytes(),
            Some(b'U') => shell.commands.user_name(&*shell.files, node.uid).unwrap_or(b"UNKNOWN".to_vec()),
            Some(b'G') => shell.commands.group_name(&*shell.files, node.gid).unwrap_or(b"UNKNOWN".to_vec()),
            Some(b's') if !node.is_dir() => node.size.to_string().into_bytes(),
            Some(b'n') => operand.to_vec(),
            Some(b'Y') => node.mtime.0.to_string().into_bytes(),
            Some(b'F') => kind(node).as_bytes().to_vec(),
            Some(letter) => return shell.unsupported(&[b'%', *letter]),
            None => b"%".to_vec(),
        };
        out.extend(text);
    }
    Ok(out)
}

fn kind(node: &Node) -> &'static str {
    match node.kind {
        NodeKind::Directory => "directory",
        NodeKind::File if node.size == 0 => "regular empty file",
        NodeKind::File => "regular file",
        NodeKind::Symlink => "symbolic link",
        NodeKind::CharDevice => "character special file",
        NodeKind::BlockDevice => "block special file",
        NodeKind::Fifo => "fifo",
        NodeKind::Socket => "socket",
    }
}

/// `-rwxr-xr-x`
fn letters(node: &Node) -> String {
    let first = match node.kind {
        NodeKind::Directory => 'd',
        NodeKind::File => '-',
        NodeKind::Symlink => 'l',
        NodeKind::CharDevice => 'c',
        NodeKind::BlockDevice => 'b',
        NodeKind::Fifo => 'p',
        NodeKind::Socket => 's',
    };
    format!("{first}{}", permissions(node.mode))
}

/// `rwxr-xr-x`
pub(super) fn permissions(mode: u16) -> String {
    let mut text = String::new();
    for (shift, special, letter) in [(6, 0o4000, 's'), (3, 0o2000, 's'), (0, 0o1000, 't')] {
        let bits = mode >> shift;
        text.push(if bits & 4 != 0 { 'r' } else { '-' });
        text.push(if bits & 2 != 0 { 'w' } else { '-' });
        text.push(match (mode & special != 0, bits & 1 != 0) {
            (true, true) => letter,
            (true, false) => letter.to_ascii_uppercase(),
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

/// Names only: the columns of `-l` have a date.
pub(super) fn ls(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(
        shell,
        args,
        &Accepted { letters: b"1Aadv", long: &[("all", b'a'), ("almost-all", b'A')], strict: false },
    )?;
    let operands = if options.operands.is_empty() { vec![b".".to_vec()] } else { options.operands.clone() };
    let mut status = 0;
    let (mut plain, mut directories) = (Vec::new(), Vec::new());
    for operand in operands {
        let found = if options.has(b'd') { shell.stat(&operand, Follow::No) } else { followed(shell, &operand) };
        match found {
            Ok(node) if node.is_dir() && !options.has(b'd') => directories.push(operand),
            Ok(_) => plain.push(operand),
            Err(error) => {
                cannot(shell, "ls", "access", &operand, error)?;
                status = 2;
            }
        }
    }
    let order = |names: &mut Vec<Vec<u8>>| match options.has(b'v') {
        true => names.sort_by(|one, other| versions::compare(one, other).then_with(|| one.cmp(other))),
        false => names.sort(),
    };
    order(&mut plain);
    order(&mut directories);
    let last = options.iter().rev().find(|(letter, _)| matches!(letter, b'a' | b'A'));
    let (hidden, dots) = (last.is_some(), last.is_some_and(|(letter, _)| letter == b'a'));
    let titled = directories.len() + plain.len() > 1 || status > 0;
    let mut first = plain.is_empty();
    for name in plain {
        shell.out(&[&name[..], b"\n"].concat())?;
    }
    for directory in directories {
        if titled {
            let blank: &[u8] = if first { b"" } else { b"\n" };
            shell.out(&[blank, &directory, b":\n"].concat())?;
        }
        first = false;
        let mut names = shell.files.list(&shell.path(&directory)).unwrap_or_default();
        if dots {
            names.extend([b".".to_vec(), b"..".to_vec()]);
        }
        order(&mut names);
        for name in names.iter().filter(|name| hidden || !name.starts_with(b".")) {
            shell.out(&[&name[..], b"\n"].concat())?;
        }
    }
    Ok(status)
}

/// What is at a path, or the link itself if what it leads to is missing.
pub(super) fn followed(shell: &Shell<'_>, path: &[u8]) -> Result<Node, Errno> {
    match shell.stat(path, Follow::Yes) {
        Err(Errno::Enoent) => shell.stat(path, Follow::No),
        found => found,
    }
}

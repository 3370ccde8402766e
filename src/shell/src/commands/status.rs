//! `stat`, and the long format of `ls`, as far as scripts parse it.

use vmbake_disk::tree::permissions;

use super::cannot;
use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::files::{Aspect, Follow, Node, NodeKind};
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
        if operand == b"-" {
            return shell.unsupported(b"stat of standard input");
        }
        let follow = if options.has(b'L') { Follow::Yes } else { Follow::No };
        match shell.stat(operand, follow) {
            Ok(node) => {
                let mut line = formatted(shell, &format, (operand, follow), &node)?;
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

fn formatted(shell: &Shell<'_>, format: &[u8], (operand, follow): (&[u8], Follow), node: &Node) -> Run<Vec<u8>> {
    let inspect = |property| shell.inspect(operand, follow, property);
    let mut out = Vec::new();
    let mut bytes = format.iter();
    while let Some(byte) = bytes.next() {
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let field = bytes.next();
        match field {
            Some(b'a') => inspect(Aspect::Mode),
            Some(b'A' | b'f') => [Aspect::Kind, Aspect::Mode].into_iter().for_each(inspect),
            Some(b's') => {
                shell.require_size(operand)?;
                inspect(Aspect::Size);
            }
            Some(b'Y') => inspect(Aspect::Time),
            Some(b'F') => [Aspect::Kind, Aspect::Size].into_iter().for_each(inspect),
            _ => {}
        }
        let text = match field {
            Some(b'%') => b"%".to_vec(),
            Some(b'a') => format!("{:o}", node.mode).into_bytes(),
            Some(b'A') => letters(node).into_bytes(),
            Some(b'h') => super::find::links(shell, operand, node).to_string().into_bytes(),
            Some(b'f') => format!("{:x}", kind_bits(node) | u32::from(node.mode)).into_bytes(),
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

/// The bits of st_mode that state what a file is.
fn kind_bits(node: &Node) -> u32 {
    match node.kind {
        NodeKind::Fifo => 0o010_000,
        NodeKind::CharDevice => 0o020_000,
        NodeKind::Directory => 0o040_000,
        NodeKind::BlockDevice => 0o060_000,
        NodeKind::File => 0o100_000,
        NodeKind::Symlink => 0o120_000,
        NodeKind::Socket => 0o140_000,
    }
}

/// `-rwxr-xr-x`
pub(super) fn letters(node: &Node) -> String {
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

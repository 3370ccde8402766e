//! Formats of `find -printf`.

use super::Entry;
use crate::commands::paths::{bare, last_name};
use crate::commands::status::letters;
use crate::eval::Run;
use crate::files::{Aspect, Follow, NodeKind};
use crate::shell::Shell;

/// A piece of what `-printf` prints.
pub(super) enum Piece {
    Text(Vec<u8>),
    /// `%p`, by its letter.
    Field(u8),
}

/// The fields that are known.
const FIELDS: &[u8] = b"pfhPHmMugUGsyldn";

/// Parses a format. `\c` ends it.
pub(super) fn parse(shell: &Shell<'_>, text: &[u8]) -> Run<Vec<Piece>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        at += 1;
        let next = text.get(at).copied();
        match (byte, next) {
            (b'%', Some(b'%')) => pieces.push(Piece::Text(b"%".to_vec())),
            (b'%', Some(letter)) if FIELDS.contains(&letter) => pieces.push(Piece::Field(letter)),
            (b'\\', Some(b'c')) => return Ok(pieces),
            (b'\\', Some(digit @ b'0'..=b'7')) => {
                let digits = text[at..].iter().take(3).take_while(|digit| (b'0'..=b'7').contains(digit)).count();
                let value =
                    text[at..at + digits].iter().fold(0_u32, |value, digit| value * 8 + u32::from(digit - b'0'));
                if digit > b'3' && digits == 3 {
                    return shell.unsupported(&[b"-printf ", text].concat());
                }
                pieces.push(Piece::Text(vec![value.to_le_bytes()[0]]));
                at += digits - 1;
            }
            (b'\\', Some(letter)) => {
                let Some(byte) = escaped(letter) else { return shell.unsupported(&[b"-printf ", text].concat()) };
                pieces.push(Piece::Text(vec![byte]));
            }
            (b'%' | b'\\', None) | (b'%', Some(_)) => return shell.unsupported(&[b"-printf ", text].concat()),
            (byte, _) => {
                pieces.push(Piece::Text(vec![*byte]));
                continue;
            }
        }
        at += 1;
    }
    Ok(pieces)
}

fn escaped(letter: u8) -> Option<u8> {
    Some(match letter {
        b'a' => 7,
        b'b' => 8,
        b'f' => 12,
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'v' => 11,
        b'\\' => b'\\',
        _ => return None,
    })
}

/// The text of a field.
pub(super) fn field(shell: &Shell<'_>, entry: &Entry<'_>, letter: u8) -> Run<Vec<u8>> {
    let Entry { path, node, operand, depth } = *entry;
    let number = |number: u32| number.to_string().into_bytes();
    let inspect = |property| shell.inspect(path, Follow::No, property);
    match letter {
        b'm' => inspect(Aspect::Mode),
        b'M' => [Aspect::Kind, Aspect::Mode].into_iter().for_each(inspect),
        b's' => inspect(Aspect::Size),
        b'y' | b'l' => inspect(Aspect::Kind),
        _ => {}
    }
    Ok(match letter {
        b'f' | b'h' if path.len() > 1 && bare(path) != path => {
            return shell.unsupported(b"the name of a path with a slash at its end");
        }
        b'h' if path.starts_with(b"/") && depth == 0 => return shell.unsupported(b"%h of an absolute operand"),
        b'p' => path.to_vec(),
        b'f' => last_name(path).to_vec(),
        b'h' => match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => path[..at].to_vec(),
            None => b".".to_vec(),
        },
        b'P' => {
            let rest = &path[operand.len().min(path.len())..];
            rest.strip_prefix(b"/").unwrap_or(rest).to_vec()
        }
        b'H' => operand.to_vec(),
        b'm' => format!("{:o}", node.mode).into_bytes(),
        b'M' => letters(&node).into_bytes(),
        b'u' => shell.commands.user_name(&*shell.files, node.uid).unwrap_or(number(node.uid)),
        b'g' => shell.commands.group_name(&*shell.files, node.gid).unwrap_or(number(node.gid)),
        b'U' => number(node.uid),
        b'G' => number(node.gid),
        b's' if node.is_dir() => return shell.unsupported(b"the size of a directory"),
        b's' => node.size.to_string().into_bytes(),
        b'y' => vec![kind(node.kind)],
        b'l' if node.is_symlink() => shell.files.read_link(&shell.path(path)).unwrap_or_default(),
        b'l' => Vec::new(),
        b'n' if node.is_dir() => return shell.unsupported(b"the links of a directory"),
        b'n' => super::links(shell, path, &node).to_string().into_bytes(),
        _ => depth.to_string().into_bytes(),
    })
}

fn kind(kind: NodeKind) -> u8 {
    match kind {
        NodeKind::File => b'f',
        NodeKind::Directory => b'd',
        NodeKind::Symlink => b'l',
        NodeKind::Fifo => b'p',
        NodeKind::Socket => b's',
        NodeKind::CharDevice => b'c',
        NodeKind::BlockDevice => b'b',
    }
}

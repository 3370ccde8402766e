//! Whole bash scripts: parsed and checked for unsupported syntax before the first command runs.

use super::reader::Reader;
use super::{Language, Node, Parser, Simple, SyntaxError, check};

/// The commands of a script, by the lines in which bash reads them.
pub(crate) struct Commands {
    pub(crate) nodes: Vec<Node>,
    /// The last line of each.
    pub(crate) ends: Vec<u32>,
    /// False if an unconditional `exit` or `exec` follows: the rest is not parsed and may be anything, such as an archive.
    pub(crate) whole: bool,
}

/// Parses and checks a script.
pub(crate) fn script(source: &[u8], extglob: bool) -> Result<Commands, SyntaxError> {
    nested(source, extglob, 0)
}

/// A text inside of so many others.
pub(super) fn nested(source: &[u8], extglob: bool, texts: u32) -> Result<Commands, SyntaxError> {
    let mut reader = Reader::new(source, 1, 0, Language::Bash);
    reader.extglob = extglob;
    let (mut nodes, mut last_lines) = (Vec::new(), Vec::new());
    let mut whole = true;
    while let Some(node) = Parser::new(&mut reader).line()? {
        let ends = leaves(&node);
        if let Some(on) = sets_extglob(&node) {
            reader.extglob = on;
        }
        nodes.push(node);
        let behind_newline = reader.at.checked_sub(1).and_then(|at| source.get(at)) == Some(&b'\n');
        last_lines.push(reader.line - u32::from(behind_newline));
        if ends {
            whole = false;
            break;
        }
    }
    check::check(&nodes, texts)?;
    Ok(Commands { nodes, ends: last_lines, whole })
}

/// Whether nothing after this line runs.
fn leaves(node: &Node) -> bool {
    match node {
        Node::Sequence(nodes) => nodes.iter().any(leaves),
        Node::Simple(simple) => match simple.words.first().and_then(|word| word.literal()) {
            Some(b"exit") => true,
            Some(b"exec") => simple.words.len() > 1,
            _ => false,
        },
        _ => false,
    }
}

/// The value that a line gives `extglob`, which changes how the next lines are read.
fn sets_extglob(node: &Node) -> Option<bool> {
    match node {
        Node::Sequence(nodes) => nodes.iter().rev().find_map(sets_extglob),
        Node::Simple(simple) => changes_extglob(simple),
        _ => None,
    }
}

/// The value that `shopt` gives `extglob`.
pub(super) fn changes_extglob(simple: &Simple) -> Option<bool> {
    let words: Option<Vec<&[u8]>> = simple.words.iter().map(|word| word.literal()).collect();
    let [b"shopt", option, names @ ..] = &words?[..] else { return None };
    let on = match *option {
        b"-s" => true,
        b"-u" => false,
        _ => return None,
    };
    names.contains(&&b"extglob"[..]).then_some(on)
}

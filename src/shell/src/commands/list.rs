//! `ls`.

use super::options::{Accepted, Options, parse};
use super::{Words, cannot, join, versions};
use crate::eval::Run;
use crate::files::{Aspect, Errno, Follow, Node, NodeKind};
use crate::shell::Shell;
use crate::syntax::{Descriptor, Part, Simple, Word};

/// Deepest directories that `-R` lists.
const MAX_DEPTH: usize = 200;

/// Only some columns of `-l` are known: dates and the sizes of directories are not.
const OPTIONS: Accepted = Accepted {
    letters: b"1AadFLlpRrv",
    long: &[("all", b'a'), ("almost-all", b'A'), ("directory", b'd'), ("recursive", b'R'), ("reverse", b'r')],
    strict: false,
};

/// What is at a path, or the link itself if what it leads to is missing.
pub(super) fn followed(shell: &Shell<'_>, path: &[u8]) -> Result<Node, Errno> {
    match shell.stat(path, Follow::Yes) {
        Err(Errno::Enoent) => shell.stat(path, Follow::No),
        found => found,
    }
}

pub(super) fn ls(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &OPTIONS)?;
    let is_narrow =
        shell.narrow_output == Some(shell.state.bash.subshells) && !shell.state.functions.contains_key(&b"ls"[..]);
    if options.has(b'l') && !is_narrow {
        return shell.unsupported(b"-l");
    }
    let last = |letters: &[u8]| {
        let found = options.iter().rev().find(|(letter, _)| letters.contains(letter));
        found.map(|(letter, _)| letter)
    };
    let listing = Listing { options: &options, hidden: last(b"aA"), marks: last(b"Fp") };
    let operands = if options.operands.is_empty() { vec![b".".to_vec()] } else { options.operands.clone() };
    let mut status = 0;
    let (mut plain, mut directories) = (Vec::new(), Vec::new());
    for operand in operands {
        match listing.look(shell, &operand) {
            Ok(node) if node.is_dir() && !options.has(b'd') => directories.push(operand),
            Ok(node) => plain.push((operand, node)),
            Err(error) => {
                cannot(shell, "ls", "access", &operand, error)?;
                status = 2;
            }
        }
    }
    plain.sort_by(|one, other| listing.compare(&one.0, &other.0));
    directories.sort_by(|one, other| listing.compare(one, other));
    let titled = directories.len() + plain.len() > 1 || status > 0 || options.has(b'R');
    let mut first = plain.is_empty();
    for (name, node) in &plain {
        listing.line(shell, name, name, node)?;
    }
    let mut todo: Vec<(Vec<u8>, usize)> = directories.into_iter().rev().map(|directory| (directory, 0)).collect();
    while let Some((directory, depth)) = todo.pop() {
        shell.step()?;
        if depth > MAX_DEPTH {
            return shell.unsupported(b"so deep a tree");
        }
        if titled {
            let blank: &[u8] = if first { b"" } else { b"\n" };
            shell.out(&[blank, &directory, b":\n"].concat())?;
        }
        first = false;
        let below = listing.directory(shell, &directory)?;
        todo.extend(below.into_iter().rev().map(|name| (join(&directory, &name), depth + 1)));
    }
    Ok(status)
}

struct Listing<'o> {
    options: &'o Options,
    /// `-a` or `-A`
    hidden: Option<u8>,
    /// `-F` or `-p`
    marks: Option<u8>,
}

impl Listing<'_> {
    /// What an operand is: a link to a directory is followed, unless it is shown as a link.
    fn look(&self, shell: &Shell<'_>, operand: &[u8]) -> Result<Node, Errno> {
        if self.options.has(b'L') {
            return shell.stat(operand, Follow::Yes);
        }
        if self.options.has(b'd') || self.options.has(b'l') || self.marks == Some(b'F') {
            return shell.stat(operand, Follow::No);
        }
        match followed(shell, operand)? {
            node if node.is_dir() => Ok(node),
            _ => shell.stat(operand, Follow::No),
        }
    }

    fn compare(&self, one: &[u8], other: &[u8]) -> std::cmp::Ordering {
        let order = match self.options.has(b'v') {
            true => versions::compare(one, other).then_with(|| one.cmp(other)),
            false => one.cmp(other),
        };
        if self.options.has(b'r') { order.reverse() } else { order }
    }

    fn line(&self, shell: &mut Shell<'_>, name: &[u8], path: &[u8], node: &Node) -> Run<()> {
        if self.marks.is_some() {
            shell.inspect(path, Follow::No, Aspect::Kind);
        }
        if self.marks == Some(b'F') {
            shell.inspect(path, Follow::Yes, Aspect::Mode);
        }
        let mark: &[u8] = match (self.marks, node.kind) {
            (Some(_), NodeKind::Directory) => b"/",
            (Some(b'F'), NodeKind::Symlink) => b"@",
            (Some(b'F'), NodeKind::Fifo) => b"|",
            (Some(b'F'), NodeKind::Socket) => b"=",
            (Some(b'F'), NodeKind::File) if node.mode & 0o111 != 0 => b"*",
            _ => b"",
        };
        if self.options.has(b'l') {
            return long_line(shell, node);
        }
        shell.out(&[name, mark, b"\n"].concat())
    }

    /// Lists one directory. Gives the directories in it for `-R`.
    fn directory(&self, shell: &mut Shell<'_>, directory: &[u8]) -> Run<Words> {
        if self.options.has(b'l') {
            return shell.unsupported(b"-l of a directory");
        }
        let mut names = shell.files.list(&shell.path(directory)).unwrap_or_default();
        if self.hidden == Some(b'a') {
            names.extend([b".".to_vec(), b"..".to_vec()]);
        }
        names.sort_by(|one, other| self.compare(one, other));
        names.retain(|name| self.hidden.is_some() || !name.starts_with(b"."));
        let mut ordered = names.clone();
        ordered.sort();
        shell.require_order(&ordered)?;
        let mut below = Vec::new();
        for name in names {
            let path = join(directory, &name);
            let found = if self.options.has(b'L') { followed(shell, &path) } else { shell.stat(&path, Follow::No) };
            let Ok(node) = found else { return shell.unsupported(b"-L with a loop of links") };
            if self.options.has(b'L') && self.marks.is_some() && node.is_symlink() {
                return shell.unsupported(b"-L with a link to a missing file");
            }
            self.line(shell, &name, &path, &node)?;
            if self.options.has(b'R') && node.is_dir() && !matches!(&name[..], b"." | b"..") {
                if self.options.has(b'L') {
                    return shell.unsupported(b"-L with -R");
                }
                below.push(name);
            }
        }
        Ok(below)
    }
}

/// A line of `-l` for a command that reads only the mode, the owner or the group.
fn long_line(shell: &mut Shell<'_>, node: &Node) -> Run<()> {
    let user = shell.commands.user_name(&*shell.files, node.uid).unwrap_or_else(|| node.uid.to_string().into());
    let group = shell.commands.group_name(&*shell.files, node.gid).unwrap_or_else(|| node.gid.to_string().into());
    shell.out(&[super::status::letters(node).as_bytes(), b" ? ", &user, b" ", &group, b" ?\n"].concat())
}

/// Whether a command reads only the known columns of `ls -l`: mode, owner and group.
pub(crate) fn is_narrow_reader(command: &Simple) -> bool {
    let only_errors = command.redirects.iter().all(|redirect| redirect.fd == Descriptor::Number(2));
    if !only_errors || !command.assignments.is_empty() {
        return false;
    }
    let Some(words) = command.words.iter().map(text).collect::<Option<Vec<Vec<u8>>>>() else { return false };
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    match &words[..] {
        [b"cut", columns] => is_mode(columns),
        [b"cut", b"-c" | b"-b", range] => is_mode(&[b"-c".as_slice(), range].concat()),
        [b"cut", b"-d ", b"-f1"] | [b"cut", b"-d", b" ", b"-f1"] | [b"cut", b"-d", b" ", b"-f", b"1"] => true,
        [b"awk", program] => {
            let program: Vec<u8> = program.iter().copied().filter(|byte| *byte != b' ').collect();
            matches!(&program[..], b"{print$1}" | b"{print$3}" | b"{print$4}" | b"{print$3\":\"$4}")
        }
        _ => false,
    }
}

/// `-c1-10` and parts of it.
fn is_mode(columns: &[u8]) -> bool {
    let Some(range) = columns.strip_prefix(b"-c").or_else(|| columns.strip_prefix(b"-b")) else { return false };
    let mut ends = range.split(|byte| *byte == b'-');
    ends.all(|end| std::str::from_utf8(end).is_ok_and(|end| end.parse::<u8>().is_ok_and(|end| (1..=10).contains(&end))))
}

/// The text of a word without expansions.
fn text(word: &Word) -> Option<Vec<u8>> {
    let literal = |part: &Part| match part {
        Part::Literal(bytes) | Part::Quoted(bytes) => Some(bytes.clone()),
        _ => None,
    };
    Some(word.parts.iter().map(literal).collect::<Option<Vec<_>>>()?.concat())
}

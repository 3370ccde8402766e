//! `find`: the tests and actions that scripts use. Directories are listed in the order of their names' bytes; the order of a real file
//! system is another one, which scripts must not depend on.

mod parse;

use super::Words;
use super::paths::last_name;
use super::regex::Expression;
use super::status::followed;
use crate::eval::Run;
use crate::files::{Errno, Follow, Node, NodeKind};
use crate::pattern::Pattern;
use crate::shell::Shell;

/// A test or action.
enum Test {
    And(Vec<Test>),
    Or(Vec<Test>),
    Not(Box<Test>),
    Name(Pattern),
    Path(Pattern),
    /// `-regex`, of the whole path.
    Regex(Expression),
    Kind(Vec<NodeKind>),
    /// `-perm`: the sign, and the bits.
    Mode(u8, u16),
    User(u32),
    Group(u32),
    /// `-nouser`, `-nogroup`
    Unowned(bool),
    Empty,
    Newer((i64, u32)),
    Size(u8, u64),
    Prune,
    Delete,
    Print(u8),
    Format(Vec<Piece>),
    Exec(Vec<Vec<u8>>),
    /// `-exec … +`, by its number.
    Collect(usize),
}

/// A piece of what `-printf` prints.
enum Piece {
    Text(Vec<u8>),
    /// `%p`
    Path,
    /// `%f`
    Name,
}

struct Search<'s, 'h> {
    shell: &'s mut Shell<'h>,
    collected: Vec<(Words, Words)>,
    acts: bool,
    depth_first: bool,
    least: usize,
    most: usize,
    follow: Follow,
    /// The directories that are gone through, for loops of links.
    above: Vec<u64>,
    status: u8,
}

pub(super) fn find(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut search = Search {
        shell,
        collected: Vec::new(),
        acts: false,
        depth_first: false,
        least: 0,
        most: usize::MAX,
        follow: Follow::No,
        above: Vec::new(),
        status: 0,
    };
    let mut follow_operands = Follow::No;
    let mut args = args;
    while let Some((first, rest)) = args.split_first() {
        match &first[..] {
            b"-H" => follow_operands = Follow::Yes,
            b"-L" => search.follow = Follow::Yes,
            b"-P" => {}
            _ => break,
        }
        args = rest;
    }
    let is_path = |arg: &Vec<u8>| !arg.starts_with(b"-") && !matches!(&arg[..], b"(" | b"!");
    let paths = args.iter().take_while(|arg| is_path(arg)).count();
    let mut rest = &args[paths..];
    let test = search.either(&mut rest, 0)?;
    if let Some(arg) = rest.first() {
        return search.shell.unsupported(arg);
    }
    if search.follow == Follow::Yes {
        follow_operands = Follow::Yes;
    }
    let standard = [b".".to_vec()];
    for path in if paths == 0 { &standard[..] } else { &args[..paths] } {
        match search.look(path, follow_operands) {
            Ok(node) => search.visit(path, node, &test, 0)?,
            Err(error) => search.fail(path, error.text())?,
        }
    }
    for (command, found) in std::mem::take(&mut search.collected) {
        if !found.is_empty() && search.shell.invoke(&[command, found].concat())? != 0 {
            search.status = 1;
        }
    }
    Ok(search.status)
}

impl Search<'_, '_> {
    fn look(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        match follow {
            Follow::Yes => followed(self.shell, path),
            Follow::No => self.shell.stat(path, Follow::No),
        }
    }

    fn fail(&mut self, path: &[u8], reason: &str) -> Run<()> {
        let message = ["‘".as_bytes(), path, "’: ".as_bytes(), reason.as_bytes()].concat();
        self.status = super::complain(self.shell, "find", &message)?;
        Ok(())
    }

    fn visit(&mut self, path: &[u8], node: Node, test: &Test, depth: usize) -> Run<()> {
        self.shell.step()?;
        if depth > 200 {
            return self.shell.unsupported(b"so deep a tree");
        }
        let mut pruned = false;
        if !self.depth_first && depth >= self.least {
            self.apply(path, node, test, &mut pruned)?;
        }
        if node.is_dir() && depth < self.most && !pruned {
            self.above.push(node.id);
            let names = self.shell.files.list(&self.shell.path(path)).unwrap_or_default();
            for name in names {
                let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
                let below = [path, slash, &name].concat();
                match self.look(&below, self.follow) {
                    Ok(node) if node.is_dir() && self.above.contains(&node.id) => {
                        self.fail(&below, "File system loop detected")?;
                    }
                    Ok(node) => self.visit(&below, node, test, depth + 1)?,
                    Err(Errno::Eloop) => self.fail(&below, Errno::Eloop.text())?,
                    Err(_) => {}
                }
            }
            self.above.pop();
        }
        if self.depth_first && depth >= self.least {
            self.apply(path, node, test, &mut pruned)?;
        }
        Ok(())
    }

    fn apply(&mut self, path: &[u8], node: Node, test: &Test, pruned: &mut bool) -> Run<()> {
        let hit = self.holds(path, &node, test, pruned)?;
        if hit && !self.acts {
            self.shell.out(&[path, b"\n"].concat())?;
        }
        Ok(())
    }

    fn holds(&mut self, path: &[u8], node: &Node, test: &Test, pruned: &mut bool) -> Run<bool> {
        Ok(match test {
            Test::And(tests) => {
                for test in tests {
                    if !self.holds(path, node, test, pruned)? {
                        return Ok(false);
                    }
                }
                true
            }
            Test::Or(tests) => {
                for test in tests {
                    if self.holds(path, node, test, pruned)? {
                        return Ok(true);
                    }
                }
                false
            }
            Test::Not(inner) => !self.holds(path, node, inner, pruned)?,
            Test::Name(pattern) => pattern.matches(last_name(path)),
            Test::Path(pattern) => pattern.matches(path),
            Test::Regex(expression) => expression.is_match(self.shell, path)?,
            Test::Kind(kinds) => kinds.contains(&node.kind),
            Test::Mode(b'-', mode) => node.mode & mode == *mode,
            Test::Mode(b'/', mode) => *mode == 0 || node.mode & mode != 0,
            Test::Mode(_, mode) => node.mode == *mode,
            Test::User(id) => node.uid == *id,
            Test::Group(id) => node.gid == *id,
            Test::Unowned(true) => self.shell.commands.user_name(&*self.shell.files, node.uid).is_none(),
            Test::Unowned(false) => self.shell.commands.group_name(&*self.shell.files, node.gid).is_none(),
            Test::Empty => match node.is_dir() {
                true => self.shell.files.list(&self.shell.path(path)).is_ok_and(|names| names.is_empty()),
                false => node.is_file() && node.size == 0,
            },
            Test::Newer(mtime) => node.mtime > *mtime,
            Test::Size(_, _) if node.is_dir() => return self.shell.unsupported(b"the size of a directory"),
            Test::Size(b'+', size) => node.size > *size,
            Test::Size(b'-', size) => node.size < *size,
            Test::Size(_, size) => node.size == *size,
            Test::Prune => {
                *pruned = true;
                true
            }
            Test::Print(end) => {
                self.shell.out(&[path, &[*end][..]].concat())?;
                true
            }
            Test::Format(pieces) => {
                let texts = pieces.iter().map(|piece| match piece {
                    Piece::Text(text) => &text[..],
                    Piece::Path => path,
                    Piece::Name => last_name(path),
                });
                let text: Vec<u8> = texts.collect::<Vec<_>>().concat();
                self.shell.out(&text)?;
                true
            }
            Test::Delete => {
                let absolute = self.shell.path(path);
                match self.shell.files.remove(&absolute) {
                    Ok(()) => true,
                    Err(error) => {
                        self.status = super::cannot(self.shell, "find", "delete", path, error)?;
                        false
                    }
                }
            }
            Test::Exec(command) => {
                let argv: Vec<Vec<u8>> = command.iter().map(|word| replaced(word, path)).collect();
                self.shell.invoke(&argv)? == 0
            }
            Test::Collect(number) => {
                if let Some((_, found)) = self.collected.get_mut(*number) {
                    found.push(path.to_vec());
                }
                true
            }
        })
    }
}

/// A word of a command with the path in place of each `{}`.
fn replaced(word: &[u8], path: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = word;
    while let Some(at) = rest.windows(2).position(|window| window == b"{}") {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(path);
        rest = &rest[at + 2..];
    }
    out.extend_from_slice(rest);
    out
}

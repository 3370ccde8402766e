//! `find`: the tests and actions that scripts use. Entries are listed in the byte order of their names; results that depend on the order of
//! a real file system are refused.

mod evaluate;
mod format;
mod parse;

use std::collections::BTreeMap;

use super::Words;
use super::list::followed;
use super::paths::last_name;
use super::regex::Expression;
use crate::eval::{Run, Stop};
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
    /// `-iname` and `-ipath`: of the name or the path in small letters.
    SmallName(Pattern),
    SmallPath(Pattern),
    /// `-lname`: of the target of a link, perhaps in small letters.
    Target(Pattern, bool),
    /// `-regex`, of the whole path.
    Regex(Expression),
    Kind(Vec<NodeKind>),
    /// `-xtype`: of what a link leads to, or with `-L` of the link.
    OtherKind(Vec<NodeKind>),
    /// `-perm`: the sign, and the bits.
    Mode(u8, u16),
    User(Amount),
    Group(Amount),
    /// `-links`
    Links(Amount),
    /// `-samefile`, by its inode.
    Same(u64),
    /// `-nouser`, `-nogroup`
    Unowned(bool),
    Empty,
    /// `-newer` and its like: later than a time, which may be that of an inode.
    Newer((i64, u32), Option<u64>),
    /// `-size`, in units of so many bytes, rounded up.
    Size(Amount, u64),
    Prune,
    Delete,
    Quit,
    Print(u8),
    Format(Vec<format::Piece>),
    Exec(Words),
    /// `-execdir … ;`
    ExecIn(Words),
    /// `-exec … +`, by its number.
    Collect(usize),
    /// `-execdir … +`
    CollectByDirectory(Words),
}

/// A number with a sign: more than, less than, or just so many.
#[derive(Clone, Copy)]
struct Amount {
    sign: u8,
    number: u64,
}

impl Amount {
    fn fits(self, found: u64) -> bool {
        match self.sign {
            b'+' => found > self.number,
            b'-' => found < self.number,
            _ => found == self.number,
        }
    }
}

/// What is tested.
#[derive(Clone, Copy)]
struct Entry<'e> {
    path: &'e [u8],
    node: Node,
    /// The operand below which it is, and how deep.
    operand: &'e [u8],
    depth: usize,
}

struct Search<'s, 'h> {
    shell: &'s mut Shell<'h>,
    collected: Vec<(Words, Words)>,
    /// The names that a command gets in a directory.
    collected_in: BTreeMap<(Words, Vec<u8>), Words>,
    acts: bool,
    depth_first: bool,
    /// What the expression has: `-depth`, `-prune` and `-delete`.
    asks_depth: bool,
    prunes: bool,
    deletes: bool,
    quits: bool,
    syntax: parse::RegexSyntax,
    least: usize,
    most: usize,
    follow: Follow,
    follow_operands: Follow,
    /// The directories that are gone through, for loops of links.
    above: Vec<u64>,
    /// Results so far, and whether two of them might come in the other order.
    results: u64,
    is_unordered: bool,
    /// The commands that ran for entries, with the last names of those.
    ran: Vec<(Vec<u8>, Vec<u8>)>,
    status: u8,
}

pub(super) fn find(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let mut search = Search {
        shell,
        collected: Vec::new(),
        collected_in: BTreeMap::new(),
        acts: false,
        depth_first: false,
        asks_depth: false,
        prunes: false,
        deletes: false,
        quits: false,
        syntax: parse::RegexSyntax::Emacs,
        least: 0,
        most: usize::MAX,
        follow: Follow::No,
        follow_operands: Follow::No,
        above: Vec::new(),
        results: 0,
        is_unordered: false,
        ran: Vec::new(),
        status: 0,
    };
    let writes = search.shell.writes();
    let done = search.run(args).and_then(|status| search.check_order(writes).map(|()| status));
    match done {
        // A wrong expression, whose fault was written.
        Err(Stop::Error) => Ok(1),
        done => done,
    }
}

impl Search<'_, '_> {
    fn run(&mut self, args: &[Vec<u8>]) -> Run<u8> {
        let mut args = args;
        while let Some((first, rest)) = args.split_first() {
            (self.follow_operands, self.follow) = match &first[..] {
                b"-H" => (Follow::Yes, Follow::No),
                b"-L" => (Follow::Yes, Follow::Yes),
                b"-P" => (Follow::No, Follow::No),
                _ => break,
            };
            args = rest;
        }
        let is_path = |arg: &Vec<u8>| arg == b"-" || !arg.starts_with(b"-") && !matches!(&arg[..], b"(" | b"!");
        let paths = args.iter().take_while(|arg| is_path(arg)).count();
        let mut rest = &args[paths..];
        let test = if rest.is_empty() { Test::And(Vec::new()) } else { self.either(&mut rest, 0)? };
        if let Some(arg) = rest.first() {
            return self.wrong(&[b"unexpected ", &arg[..]].concat());
        }
        if self.follow == Follow::Yes {
            self.follow_operands = Follow::Yes;
        }
        if self.deletes && self.prunes && !self.asks_depth {
            return self.wrong(b"-delete turns on -depth, with which -prune does nothing");
        }
        let standard = [b".".to_vec()];
        for path in if paths == 0 { &standard[..] } else { &args[..paths] } {
            match self.look(path, self.follow_operands) {
                Ok(node) => self.visit(Entry { path, node, operand: path, depth: 0 }, &test)?,
                Err(error) => self.fail(path, error.text())?,
            }
        }
        for (command, found) in std::mem::take(&mut self.collected) {
            if !found.is_empty() && self.shell.invoke(&[command, found].concat())? != 0 {
                self.status = 1;
            }
        }
        for ((command, directory), names) in std::mem::take(&mut self.collected_in) {
            if self.invoke_in(&directory, &[command, names].concat())? != 0 {
                self.status = 1;
            }
        }
        Ok(self.status)
    }

    /// Refuses what depends on the order of the entries.
    fn check_order(&mut self, writes: u64) -> Run<()> {
        if !self.is_unordered {
            return Ok(());
        }
        if self.ran.iter().any(|(name, _)| !crate::order::is_independent(last_name(name))) {
            return self.shell.unknown_order();
        }
        let named = self.ran.iter().filter(|(name, _)| crate::order::makes_names(last_name(name)));
        self.shell.refuse_same_names(named.map(|(_, path)| &path[..]))?;
        if self.shell.writes() > writes { self.shell.mark_output() } else { Ok(()) }
    }

    /// Notes a command that runs for an entry.
    fn note_command(&mut self, command: &Words, path: &[u8]) {
        self.results += 1;
        if let Some(name) = command.first() {
            self.ran.push((name.clone(), path.to_vec()));
        }
    }

    fn look(&self, path: &[u8], follow: Follow) -> Result<Node, Errno> {
        match follow {
            Follow::Yes => followed(self.shell, path),
            Follow::No => self.shell.stat(path, Follow::No),
        }
    }

    fn fail(&mut self, path: &[u8], reason: &str) -> Run<()> {
        let message = [b"'", path, b"': ", reason.as_bytes()].concat();
        self.status = super::complain_exactly(self.shell, "find", &message)?;
        Ok(())
    }

    fn visit(&mut self, entry: Entry<'_>, test: &Test) -> Run<()> {
        let Entry { node, depth, .. } = entry;
        self.shell.step()?;
        if depth > 200 {
            return self.shell.unsupported(b"so deep a tree");
        }
        let mut pruned = false;
        if !self.depth_first && depth >= self.least {
            self.apply(&entry, test, &mut pruned)?;
        }
        if node.is_dir() && depth < self.most && !pruned {
            self.above.push(node.id);
            self.descend(&entry, test)?;
            self.above.pop();
        }
        if self.depth_first && depth >= self.least {
            self.apply(&entry, test, &mut pruned)?;
        }
        Ok(())
    }

    /// Visits what a directory contains. An action on the directory may have removed it.
    fn descend(&mut self, entry: &Entry<'_>, test: &Test) -> Run<()> {
        let Entry { path, node, operand, depth } = *entry;
        let names = match self.shell.files.list(&self.shell.path(path)) {
            Ok(_) if self.look(path, Follow::Yes).is_ok_and(|now| now.id != node.id) => {
                return self.shell.unsupported(b"an action that replaces a directory");
            }
            Ok(names) => names,
            Err(error) => return self.fail(path, error.text()),
        };
        let mut with_results = 0;
        for name in names {
            let before = self.results;
            let slash: &[u8] = if path.ends_with(b"/") { b"" } else { b"/" };
            let below = [path, slash, &name].concat();
            match self.look(&below, self.follow) {
                Ok(node) if node.is_dir() && self.above.contains(&node.id) => {
                    self.fail(&below, "File system loop detected")?;
                }
                Ok(node) => self.visit(Entry { path: &below, node, operand, depth: depth + 1 }, test)?,
                Err(error) => self.fail(&below, error.text())?,
            }
            with_results += usize::from(self.results > before);
        }
        self.is_unordered |= with_results > 1;
        Ok(())
    }

    fn apply(&mut self, entry: &Entry<'_>, test: &Test, pruned: &mut bool) -> Run<()> {
        if self.quits {
            // In another order, this entry might have come first.
            self.is_unordered |= self.would_act(entry, test)?;
            return Ok(());
        }
        let hit = self.holds(entry, test, pruned)?;
        if hit && !self.acts {
            self.results += 1;
            self.shell.out(&[entry.path, b"\n"].concat())?;
        }
        Ok(())
    }
}

/// The number of names of a file, or of a directory as ext4 counts them.
pub(in crate::commands) fn links(shell: &Shell<'_>, path: &[u8], node: &Node) -> u64 {
    let path = match node.is_symlink() {
        true => shell.path(path),
        false => super::real_path(shell, path).unwrap_or_else(|| shell.path(path)),
    };
    if !node.is_dir() {
        return shell.files.link_count(&path).unwrap_or(1);
    }
    let is_dir = |name: &Vec<u8>| {
        shell.files.lookup(&[&path[..], b"/", name].concat(), Follow::No).is_ok_and(|node| node.is_dir())
    };
    let below = shell.files.list(&path).unwrap_or_default().iter().filter(|name| is_dir(name)).count();
    below.saturating_add(2) as u64
}

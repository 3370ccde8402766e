//! Operands of `cp`, `mv`, `ln` and `install`: sources and destinations.

use std::collections::BTreeSet;

use super::options::Options;
use super::paths::{bare, last_name};
use super::{Words, complain, join};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node};
use crate::shell::Shell;

/// Sources, and the file or directory that they go to.
pub(super) struct Targets {
    pub(super) sources: Words,
    pub(super) target: Vec<u8>,
    /// Whether the target is a directory to put them into.
    pub(super) into: bool,
}

impl Targets {
    /// Where a source goes.
    pub(super) fn place(&self, source: &[u8]) -> Vec<u8> {
        if !self.into {
            return self.target.clone();
        }
        match last_name(source) {
            b".." => join(&self.target, b""),
            name => join(&self.target, name),
        }
    }
}

/// Divides the operands: `-t` names a directory, and `-T` takes the target for a file. `is_dir` decides whether the last operand is a
/// directory. `None` where they do not fit, which was written.
pub(super) fn targets(
    shell: &mut Shell<'_>,
    program: &str,
    options: &Options,
    is_dir: impl Fn(&Shell<'_>, &[u8]) -> bool,
) -> Run<Option<Targets>> {
    if options.iter().filter(|(letter, _)| *letter == b't').count() > 1 {
        complain(shell, program, b"multiple target directories specified")?;
        return Ok(None);
    }
    let mut sources = options.operands.clone();
    let (named, file) = (options.value(b't').map(<[u8]>::to_vec), options.has(b'T'));
    let target = if named.is_some() { named.clone() } else { sources.pop() };
    let Some(target) = target.filter(|_| !sources.is_empty()) else {
        complain(shell, program, b"missing file operand")?;
        return Ok(None);
    };
    if file && (named.is_some() || sources.len() > 1) {
        complain(shell, program, b"extra operand, or --target-directory with --no-target-directory")?;
        return Ok(None);
    }
    let into = !file && is_dir(shell, &target);
    if !into && (named.is_some() || sources.len() > 1 || target.ends_with(b"/")) {
        // The command fails unless a directory is there: a tree that does not know says so.
        let _ = shell.stat(&target, Follow::Yes);
    }
    if !into && (named.is_some() || sources.len() > 1) {
        complain(shell, program, &[b"target '", &target[..], b"': Not a directory"].concat())?;
        return Ok(None);
    }
    Ok(Some(Targets { sources, target, into }))
}

/// What is at a name that a program replaces whatever it is, links not followed.
pub(super) fn occupant(shell: &Shell<'_>, place: &[u8]) -> Result<Node, Errno> {
    match shell.destination(place) {
        Err(Errno::Enoent) if !shell.files.dangles(&shell.path(place)) => Err(Errno::Enoent),
        Ok(_) | Err(Errno::Enoent | Errno::Eloop | Errno::Enotdir) => shell.stat(place, Follow::No),
        Err(error) => Err(error),
    }
}

/// A directory, without links, and a name in it.
pub(super) type Entry = (Vec<u8>, Vec<u8>);

/// Where a path is.
pub(super) fn entry(shell: &Shell<'_>, path: &[u8]) -> Option<Entry> {
    let path = shell.path(path);
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(0, |at| at + 1);
    let start = path[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    super::real_path(shell, &path[..start]).map(|dir| (dir, path[start..end].to_vec()))
}

/// Whether two paths name one directory entry, as `same_name` of gnulib compares them: a link to a directory is not that directory.
pub(super) fn same_entry(shell: &Shell<'_>, one: &[u8], other: &[u8]) -> bool {
    let parts = |path: &[u8]| {
        let path = bare(path);
        let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
        let above = if start == 0 { &b"."[..] } else { bare(&path[..start]) };
        shell.stat(above, Follow::No).ok().map(|node| (node.id, path[start..].to_vec()))
    };
    parts(one).is_some_and(|found| Some(found) == parts(other))
}

/// What one run of a program has made already, which it does not replace.
#[derive(Debug, Default)]
pub(super) struct Created(BTreeSet<(Vec<u8>, u64)>);

impl Created {
    pub(super) fn add(&mut self, shell: &Shell<'_>, place: &[u8]) {
        if let Ok(node) = shell.stat(place, Follow::No) {
            self.0.insert((place.to_vec(), node.id));
        }
    }

    pub(super) fn has(&self, place: &[u8], node: &Node) -> bool {
        self.0.contains(&(place.to_vec(), node.id))
    }
}

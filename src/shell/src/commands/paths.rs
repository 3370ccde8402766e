//! `basename`, `dirname`, `readlink` and `realpath`.

use super::options::{Accepted, parse};
use crate::eval::Run;
use crate::files::{Errno, Files, Follow};
use crate::shell::Shell;

/// As MAXSYMLINKS of Linux.
const MAX_LINKS: usize = 40;

/// Links that GNU programs follow before they look for loops.
const CERTAIN_LINKS: usize = 20;

/// Most links that a path without links is searched through.
const MAX_TARGETS: usize = 1000;

/// What of a path must exist.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Exists {
    All,
    AllButLast,
    Nothing,
}

/// A path without links, `.` and `..`; all of it must exist.
pub(crate) fn real_path(shell: &Shell<'_>, path: &[u8]) -> Option<Vec<u8>> {
    canonical(shell, path, Exists::All)
}

/// A path without links, `.` and `..`; nothing of it need exist.
pub(super) fn missing_path(shell: &Shell<'_>, path: &[u8]) -> Option<Vec<u8>> {
    canonical(shell, path, Exists::Nothing)
}

/// A path without `.`, `..` and the links that a tree shows, which is not asked for more.
pub(crate) fn known_path(files: &dyn Files, path: &[u8]) -> Vec<u8> {
    let (mut todo, mut done, mut links) = (names(path), Vec::new(), 0);
    while let Some(name) = todo.pop() {
        if name == b".." {
            done.pop();
            continue;
        }
        done.push(name);
        let link = files.known_link(&[b"/", &done.join(&b'/')[..]].concat());
        let Some(target) = link.filter(|_| links < MAX_LINKS) else { continue };
        links += 1;
        match target.starts_with(b"/") {
            true => done.clear(),
            false => drop(done.pop()),
        }
        todo.extend(names(&target));
    }
    [b"/", &done.join(&b'/')[..]].concat()
}

/// As `canonicalize_file_name` of GNU programs: what follows a name, also in the target of a link, decides what the name must be.
fn canonical(shell: &Shell<'_>, path: &[u8], exists: Exists) -> Option<Vec<u8>> {
    if path.is_empty() {
        return None;
    }
    let mut rest = shell.path(path);
    let mut done: Vec<Vec<u8>> = Vec::new();
    let mut links = 0;
    let mut seen = std::collections::BTreeSet::new();
    while let Some(start) = rest.iter().position(|byte| *byte != b'/') {
        let end = rest[start..].iter().position(|byte| *byte == b'/').map_or(rest.len(), |len| start + len);
        let (name, after) = (rest[start..end].to_vec(), rest[end..].to_vec());
        let parent = [b"/", &done.join(&b'/')[..]].concat();
        rest = after;
        match &name[..] {
            b"." => continue,
            b".." => {
                done.pop();
                continue;
            }
            _ => done.push(name.clone()),
        }
        let current = [b"/", &done.join(&b'/')[..]].concat();
        match shell.files.lookup(&current, Follow::No) {
            Ok(node) if node.is_symlink() => {
                links += 1;
                // From then on a link that was seen with the same rest is an error, or taken for a missing name.
                if links > CERTAIN_LINKS && !seen.insert((parent, name, rest.clone())) {
                    if exists == Exists::Nothing {
                        continue;
                    }
                    return None;
                }
                if links > MAX_TARGETS {
                    return None;
                }
                let target = shell.files.read_link(&current).ok()?;
                if target.starts_with(b"/") {
                    done.clear();
                } else {
                    done.pop();
                }
                rest = [target, rest].concat();
            }
            Ok(node) if !node.is_dir() && needs_directory(&rest) && exists != Exists::Nothing => return None,
            Ok(_) => {}
            Err(_) if exists == Exists::Nothing => {}
            Err(Errno::Enoent) if exists == Exists::AllButLast && rest.iter().all(|byte| *byte == b'/') => {}
            Err(_) => return None,
        }
    }
    Some([b"/", &done.join(&b'/')[..]].concat())
}

/// Whether a path before this rest must be a directory: the rest ends in slashes, or has `..`, or `.` at its end.
fn needs_directory(rest: &[u8]) -> bool {
    let mut names = rest.split(|byte| *byte == b'/').skip(1).filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        match name {
            b".." => return true,
            b"." if names.peek().is_none() && !rest.ends_with(b"/") => return true,
            b"." => {}
            _ => return false,
        }
    }
    rest.starts_with(b"/")
}

/// The names of a path, the last one first.
fn names(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b".")).rev().map(<[u8]>::to_vec).collect()
}

/// A path without `.`, `..` and slashes that say nothing; links stay as they are.
fn stripped(shell: &Shell<'_>, operand: &[u8], exists: Exists) -> Option<Vec<u8>> {
    let mut left: Vec<Vec<u8>> = Vec::new();
    for name in names(&shell.path(operand)).into_iter().rev() {
        if name == b".." {
            left.pop();
        } else {
            left.push(name);
        }
    }
    let path = |names: &[Vec<u8>]| [&b"/"[..], &names.join(&b'/')].concat();
    let found = shell.stat(&path(&left), Follow::Yes);
    let there = match exists {
        Exists::Nothing => true,
        // The last component may be missing, but not below a file.
        Exists::AllButLast => !matches!(found, Err(Errno::Enotdir)),
        Exists::All => found.is_ok(),
    };
    let file = operand.ends_with(b"/") && found.is_ok_and(|node| !node.is_dir());
    let passes = exists == Exists::Nothing || (!file && dots_leave_directories(shell, operand));
    (there && passes && !operand.is_empty()).then(|| path(&left))
}

/// Whether the path before each `..`, and before a `.` at its end, is a directory.
fn dots_leave_directories(shell: &Shell<'_>, operand: &[u8]) -> bool {
    let is_directory = |path: &[u8]| {
        let path = crate::builtins::normalize(&shell.path(path));
        shell.stat(&path, Follow::Yes).is_ok_and(|node| node.is_dir())
    };
    let mut starts = (1..operand.len()).filter(|at| {
        let rest = &operand[*at..];
        let name = rest.split(|byte| *byte == b'/').next().unwrap_or_default();
        let ends = || rest.split(|byte| *byte == b'/').all(|name| matches!(name, b"" | b"."));
        operand[at - 1] == b'/' && (name == b".." || (name == b"." && ends()))
    });
    starts.all(|at| is_directory(&operand[..at]))
}

pub(super) fn readlink(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("canonicalize", b'f'),
        ("canonicalize-existing", b'e'),
        ("canonicalize-missing", b'm'),
        ("no-newline", b'n'),
        ("quiet", b'q'),
        ("silent", b'q'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"femnqsv", long, strict: false })?;
    let mode = mode(&options);
    let mut status = 0;
    let one_line = options.has(b'n') && options.operands.len() == 1;
    if options.has(b'n') && options.operands.len() > 1 {
        super::complain(shell, "readlink", b"ignoring --no-newline with multiple arguments")?;
    }
    for operand in &options.operands {
        let found = match mode {
            Some(exists) => canonical(shell, operand, exists),
            None => shell.files.read_link(&shell.path(operand)).ok().filter(|_| !operand.is_empty()),
        };
        match found {
            Some(mut path) => {
                if !one_line {
                    path.push(b'\n');
                }
                shell.out(&path)?;
            }
            None => status = 1,
        }
    }
    Ok(if options.operands.is_empty() { 1 } else { status })
}

fn mode(options: &super::options::Options) -> Option<Exists> {
    options.iter().rev().find_map(|(letter, _)| match letter {
        b'f' => Some(Exists::AllButLast),
        b'e' => Some(Exists::All),
        b'm' => Some(Exists::Nothing),
        _ => None,
    })
}

pub(super) fn realpath(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("canonicalize-existing", b'e'),
        ("canonicalize-missing", b'm'),
        ("no-symlinks", b's'),
        ("quiet", b'q'),
        ("strip", b's'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"emqs", long, strict: false })?;
    let mode = mode(&options).unwrap_or(Exists::AllButLast);
    if options.operands.is_empty() {
        return super::complain(shell, "realpath", b"missing operand");
    }
    let found = if options.has(b's') { stripped } else { canonical };
    let mut status = 0;
    for operand in &options.operands {
        match found(shell, operand, mode) {
            Some(path) => shell.out(&[&path[..], b"\n"].concat())?,
            None => {
                status = 1;
                if !options.has(b'q') {
                    let message = [&operand[..], b": No such file or directory"].concat();
                    super::complain(shell, "realpath", &message)?;
                }
            }
        }
    }
    Ok(status)
}

/// A path without slashes at its end, and the part before its last name.
fn divide(path: &[u8]) -> (&[u8], &[u8]) {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |at| at + 1);
    let path = &path[..end];
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    if path == b"/" { (b"/", b"/") } else { (&path[..start], &path[start..]) }
}

/// A path without slashes at its end.
pub(crate) fn bare(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |at| at + 1);
    &path[..end]
}

/// The last name of a path.
pub(crate) fn last_name(path: &[u8]) -> &[u8] {
    divide(path).1
}

pub(super) fn basename(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[("multiple", b'a'), ("suffix=", b's')];
    let options = parse(shell, args, &Accepted { letters: b"as:", long, strict: true })?;
    let many = options.has(b'a') || options.has(b's');
    let (operands, suffix) = match &options.operands[..] {
        operands if many && !operands.is_empty() => (operands, options.value(b's').unwrap_or_default().to_vec()),
        [path] => (std::slice::from_ref(path), Vec::new()),
        [path, suffix] => (std::slice::from_ref(path), suffix.clone()),
        _ if shell.is_captured(2) => return shell.unsupported(b"a file or value with a message about operands"),
        _ => return super::complain(shell, "basename", b"wrong number of operands"),
    };
    for path in operands {
        let name = last_name(path);
        let short = name.strip_suffix(&suffix[..]).filter(|short| !short.is_empty()).unwrap_or(name);
        shell.out(&[short, b"\n"].concat())?;
    }
    Ok(0)
}

pub(super) fn dirname(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"z", long: &[("zero", b'z')], strict: false })?;
    if options.operands.is_empty() {
        return super::complain(shell, "dirname", b"missing operand");
    }
    let end_of_name = if options.has(b'z') { b"\0" } else { b"\n" };
    for path in &options.operands {
        let (dir, _) = divide(path);
        let end = dir.iter().rposition(|byte| *byte != b'/').map_or(dir.len().min(1), |at| at + 1);
        let dir = if dir.is_empty() { b"." } else { &dir[..end] };
        shell.out(&[dir, &end_of_name[..]].concat())?;
    }
    Ok(0)
}

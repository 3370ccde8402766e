//! `cp` and `mv`.

use super::options::{Accepted, Options, parse};
use super::paths::last_name;
use super::{Words, cannot, complain};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node, NodeKind};
use crate::shell::Shell;

/// What a copy keeps and does.
#[derive(Debug, Clone, Copy)]
struct Copying {
    recursive: bool,
    follow: Follow,
    mode: bool,
    owner: bool,
    time: bool,
    no_clobber: bool,
    replace: bool,
    update: bool,
    verbose: bool,
    hard: bool,
    symbolic: bool,
}

/// Deepest directories that are copied.
const MAX_DEPTH: u32 = 100;

fn copying(shell: &Shell<'_>, options: &Options) -> Run<Copying> {
    let archive = options.has(b'a');
    let mut copying = Copying {
        recursive: archive || options.has(b'r') || options.has(b'R'),
        follow: Follow::Yes,
        mode: archive || options.has(b'p'),
        owner: archive || options.has(b'p'),
        time: archive || options.has(b'p'),
        no_clobber: options.has(b'n'),
        replace: options.has(b'D'),
        update: options.has(b'u'),
        verbose: options.has(b'v'),
        hard: options.has(b'l'),
        symbolic: options.has(b's'),
    };
    if copying.recursive {
        copying.follow = Follow::No;
    }
    for (letter, value) in options.iter() {
        match letter {
            b'd' | b'P' => copying.follow = Follow::No,
            b'L' => copying.follow = Follow::Yes,
            b'K' => {
                for attribute in value.split(|byte| *byte == b',') {
                    match attribute {
                        b"mode" => copying.mode = true,
                        b"ownership" => copying.owner = true,
                        b"timestamps" => copying.time = true,
                        b"all" => (copying.mode, copying.owner, copying.time) = (true, true, true),
                        other => return shell.unsupported(&[b"--preserve=", other].concat()),
                    }
                }
            }
            _ => {}
        }
    }
    Ok(copying)
}

/// The operands but the last one, and whether that is a directory to copy into.
fn targets(shell: &mut Shell<'_>, program: &str, options: &Options) -> Run<Option<(Words, Vec<u8>, bool)>> {
    let mut sources = options.operands.clone();
    let target = match options.value(b't') {
        Some(dir) => Some(dir.to_vec()),
        None => sources.pop(),
    };
    let Some(target) = target.filter(|_| !sources.is_empty()) else {
        complain(shell, program, b"missing file operand")?;
        return Ok(None);
    };
    let directory = !options.has(b'T') && shell.destination(&target).is_ok_and(|node| node.is_dir());
    let must = sources.len() > 1 || options.value(b't').is_some() || (target.ends_with(b"/") && program == "cp");
    if must && !directory && !(target.ends_with(b"/") && sources.len() == 1 && options.has(b'r')) {
        complain(shell, program, &[b"target '", &target[..], b"': Not a directory"].concat())?;
        return Ok(None);
    }
    Ok(Some((sources, target, directory)))
}

const LONG: &[(&str, u8)] = &[
    ("archive", b'a'),
    ("force", b'f'),
    ("no-clobber", b'n'),
    ("no-dereference", b'P'),
    ("dereference", b'L'),
    ("recursive", b'r'),
    ("update", b'u'),
    ("verbose", b'v'),
    ("remove-destination", b'D'),
    ("no-target-directory", b'T'),
    ("target-directory=", b't'),
    ("preserve=", b'K'),
    ("link", b'l'),
    ("symbolic-link", b's'),
];

pub(super) fn cp(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let args: Vec<Vec<u8>> =
        args.iter().map(|arg| if arg == b"--preserve" { b"-p".to_vec() } else { arg.clone() }).collect();
    let options = parse(shell, &args, &Accepted { letters: b"afnPLrRuvpTt:dlsZ", long: LONG, strict: false })?;
    let copying = copying(shell, &options)?;
    let Some((sources, target, directory)) = targets(shell, "cp", &options)? else { return Ok(1) };
    let mut status = 0;
    for source in &sources {
        let place = if directory { [&target[..], b"/", last_name(source)].concat() } else { target.clone() };
        status |= copy(shell, source, &place, copying, 0)?;
    }
    Ok(status)
}

fn copy(shell: &mut Shell<'_>, source: &[u8], place: &[u8], copying: Copying, depth: u32) -> Run<u8> {
    shell.step()?;
    let node = match shell.stat(source, copying.follow) {
        Ok(node) => node,
        Err(error) => return cannot(shell, "cp", "stat", source, error),
    };
    let (from, to) = (shell.path(source), shell.path(place));
    shell.note(&to, b"");
    let depends = copying.no_clobber || copying.update || node.is_dir() || copying.follow == Follow::No;
    let old = if depends { shell.stat(place, copying.follow) } else { shell.destination(place) };
    if copying.no_clobber && shell.stat(place, Follow::No).is_ok() && !node.is_dir() {
        return Ok(0);
    }
    if copying.update && old.is_ok_and(|old| old.mtime >= node.mtime) && !node.is_dir() {
        return Ok(0);
    }
    if node.is_dir() {
        return copy_directory(shell, source, place, node, copying, depth);
    }
    if old.is_ok_and(|old| old.is_dir()) {
        return complain(shell, "cp", &[b"cannot overwrite directory '", place, b"' with non-directory"].concat());
    }
    if old.is_ok_and(|old| old.id == node.id) {
        return complain(shell, "cp", &[b"'", source, b"' and '", place, b"' are the same file"].concat());
    }
    let keeps_links = copying.replace || node.is_symlink() || copying.hard || copying.symbolic;
    if keeps_links && shell.stat(place, Follow::No).is_ok() {
        let _ = shell.files.remove(&to);
    }
    let umask = shell.state.umask;
    let limit = shell.budget.limits.size_bytes;
    let done = match node.kind {
        _ if copying.hard => shell.files.hard_link(&from, &to),
        _ if copying.symbolic => shell.files.symlink(source, &to),
        NodeKind::File => {
            shell.spend(256)?;
            shell.files.copy(&from, &to, node.mode & 0o777 & !umask, limit)
        }
        NodeKind::Symlink => shell.files.read_link(&from).and_then(|target| shell.files.symlink(&target, &to)),
        _ if from == b"/dev/null" => shell.write_path(place, Vec::new())?,
        _ => return shell.unsupported(&[b"copying the device ", source].concat()),
    };
    match done.and_then(|()| keep(shell, &to, &node, copying)) {
        Ok(()) if copying.verbose => {
            shell.out(&[b"'", source, b"' -> '", place, b"'\n"].concat())?;
            Ok(0)
        }
        Ok(()) => Ok(0),
        Err(error) => cannot(shell, "cp", "create regular file", place, error),
    }
}

/// Gives a copy what it keeps of its source.
fn keep(shell: &mut Shell<'_>, to: &[u8], node: &Node, copying: Copying) -> Result<(), Errno> {
    if copying.owner {
        shell.files.set_owner(to, node.uid, node.gid, Follow::No)?;
    }
    if copying.mode && !node.is_symlink() {
        shell.files.set_mode(to, node.mode)?;
    }
    if copying.time {
        shell.files.set_mtime(to, Some(node.mtime))?;
    }
    Ok(())
}

fn copy_directory(
    shell: &mut Shell<'_>,
    source: &[u8],
    place: &[u8],
    node: Node,
    copying: Copying,
    depth: u32,
) -> Run<u8> {
    if !copying.recursive {
        return complain(shell, "cp", &[b"-r not specified; omitting directory '", source, b"'"].concat());
    }
    let (from, to) = (shell.path(source), shell.path(place));
    let inside = |path: &[u8]| super::real_path(shell, path).map(|path| [&path[..], b"/"].concat());
    if depth >= MAX_DEPTH || inside(&to).zip(inside(&from)).is_some_and(|(to, from)| to.starts_with(&from)) {
        return complain(
            shell,
            "cp",
            &[b"cannot copy a directory, '", source, b"', into itself, '", place, b"'"].concat(),
        );
    }
    let names = match shell.files.list(&from) {
        Ok(names) => names,
        Err(error) => return cannot(shell, "cp", "access", source, error),
    };
    let fresh = shell.stat(place, Follow::Yes).is_err();
    if fresh && let Err(error) = shell.files.create_dir(&to, node.mode & !shell.state.umask) {
        return cannot(shell, "cp", "create directory", place, error);
    }
    let mut status = 0;
    for name in names {
        let (source, place) = ([source, b"/", &name].concat(), [place, b"/", &name].concat());
        status |= copy(shell, &source, &place, copying, depth + 1)?;
    }
    let _ = keep(shell, &to, &node, copying);
    Ok(status)
}

pub(super) fn mv(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &Accepted { letters: b"fnuvTt:Z", long: LONG, strict: false })?;
    let Some((sources, target, directory)) = targets(shell, "mv", &options)? else { return Ok(1) };
    let mut status = 0;
    for source in &sources {
        let place = if directory { [&target[..], b"/", last_name(source)].concat() } else { target.clone() };
        status |= move_one(shell, source, &place, &options)?;
    }
    Ok(status)
}

fn move_one(shell: &mut Shell<'_>, source: &[u8], place: &[u8], options: &Options) -> Run<u8> {
    let node = match shell.stat(source, Follow::No) {
        Ok(node) => node,
        Err(error) => return cannot(shell, "mv", "stat", source, error),
    };
    let depends = options.has(b'n') || options.has(b'u') || node.is_dir();
    let old = if depends { shell.stat(place, Follow::No) } else { shell.destination(place) };
    if (options.has(b'n') && old.is_ok()) || (options.has(b'u') && old.is_ok_and(|old| old.mtime >= node.mtime)) {
        return Ok(0);
    }
    if old.is_ok_and(|old| old.id == node.id) {
        return complain(shell, "mv", &[b"'", source, b"' and '", place, b"' are the same file"].concat());
    }
    let (from, to) = (shell.path(source), shell.path(place));
    shell.note(&to, b"");
    match shell.files.rename(&from, &to) {
        Ok(()) if options.has(b'v') => {
            shell.out(&[b"renamed '", source, b"' -> '", place, b"'\n"].concat())?;
            Ok(0)
        }
        Ok(()) => Ok(0),
        Err(error) => {
            let message = [b"cannot move '", source, b"' to '", place, b"': ", error.text().as_bytes()].concat();
            complain(shell, "mv", &message)
        }
    }
}

/// What `install` needs of a copy: the content alone.
pub(super) fn content(shell: &mut Shell<'_>, source: &[u8], place: &[u8], mode: u16) -> Result<(), Errno> {
    let (from, to) = (shell.path(source), shell.path(place));
    shell.note(&to, b"");
    match shell.files.make_way(&to) {
        Ok(()) | Err(Errno::Eisdir) => {}
        Err(error) => return Err(error),
    }
    if from == b"/dev/null" {
        return shell.files.write(&to, Vec::new(), mode);
    }
    let limit = shell.budget.limits.size_bytes;
    shell.files.copy(&from, &to, mode, limit)
}

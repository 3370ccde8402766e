//! `install`.

use super::options::{Accepted, parse};
use super::paths::last_name;
use super::{cannot, complain, copy, make, modes, owners};
use crate::eval::Run;
use crate::files::Follow;
use crate::shell::Shell;

pub(super) fn install(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let long: &[(&str, u8)] = &[
        ("directory", b'd'),
        ("mode=", b'm'),
        ("owner=", b'o'),
        ("group=", b'g'),
        ("target-directory=", b't'),
        ("no-target-directory", b'T'),
        ("preserve-timestamps", b'p'),
        ("verbose", b'v'),
    ];
    let options = parse(shell, args, &Accepted { letters: b"cdDm:o:g:t:TpvZ", long, strict: false })?;
    let directory = options.has(b'd');
    let (mode, decided) = match options.value(b'm').map(modes::Mode::new) {
        None => (0o755, 0o7777),
        Some(Some(mode)) => mode.apply_with_bits(0, directory, 0),
        Some(None) => return complain(shell, "install", b"invalid mode"),
    };
    let mut owner = (None, None);
    for (letter, value) in options.iter() {
        let (found, what) = match letter {
            b'o' => (owners::user(shell, value), &b"invalid user: '"[..]),
            b'g' => (owners::group(shell, value), &b"invalid group: '"[..]),
            _ => continue,
        };
        let Some(id) = found else { return complain(shell, "install", &[what, value, b"'"].concat()) };
        if letter == b'o' { owner.0 = Some(id) } else { owner.1 = Some(id) }
    }
    let decided = if directory { decided } else { 0o7777 };
    let settings = Settings { mode, decided, owner, verbose: options.has(b'v') };
    if options.operands.is_empty() {
        return complain(shell, "install", b"missing file operand");
    }
    if options.has(b'd') {
        return directories(shell, &options.operands, &settings);
    }
    let mut sources = options.operands.clone();
    let target = match options.value(b't') {
        Some(dir) => Some(dir.to_vec()),
        None => sources.pop(),
    };
    let Some(target) = target.filter(|_| !sources.is_empty()) else {
        return complain(shell, "install", b"missing file operand");
    };
    if options.has(b'D') {
        let path = shell.path(&target);
        let end = path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let parent = if options.value(b't').is_some() { &path[..] } else { &path[..end] };
        if let Err(error) = make::parents(shell, parent, 0o755, 0o755, false) {
            return cannot(shell, "install", "create directory", parent, error);
        }
    }
    let directory = !options.has(b'T') && shell.destination(&target).is_ok_and(|node| node.is_dir());
    if (sources.len() > 1 || options.value(b't').is_some()) && !directory {
        return complain(shell, "install", &[b"target '", &target[..], b"' is not a directory"].concat());
    }
    let mut status = 0;
    for source in &sources {
        let place = if directory { [&target[..], b"/", last_name(source)].concat() } else { target.clone() };
        status |= file(shell, source, &place, &settings, options.has(b'p'))?;
    }
    Ok(status)
}

struct Settings {
    mode: u16,
    /// The bits that the mode decides; others of a directory stay.
    decided: u16,
    owner: (Option<u32>, Option<u32>),
    verbose: bool,
}

fn file(shell: &mut Shell<'_>, source: &[u8], place: &[u8], settings: &Settings, keep_time: bool) -> Run<u8> {
    let node = match shell.stat(source, Follow::Yes) {
        Ok(node) if node.is_dir() => {
            return complain(shell, "install", &[b"omitting directory '", source, b"'"].concat());
        }
        Ok(node) => node,
        Err(error) => return cannot(shell, "install", "stat", source, error),
    };
    shell.spend(256)?;
    let done = copy::content(shell, source, place, 0o600);
    let path = shell.path(place);
    let done = done.and_then(|()| apply(shell, &path, settings));
    if keep_time && done.is_ok() {
        let _ = shell.files.set_mtime(&path, Some(node.mtime));
    }
    match done {
        Ok(()) if settings.verbose => {
            shell.out(&[b"'", source, b"' -> '", place, b"'\n"].concat())?;
            Ok(0)
        }
        Ok(()) => Ok(0),
        Err(error) => cannot(shell, "install", "create regular file", place, error),
    }
}

fn apply(shell: &mut Shell<'_>, path: &[u8], settings: &Settings) -> Result<(), crate::files::Errno> {
    let node = shell.files.lookup(path, Follow::Yes)?;
    let (uid, gid) = (settings.owner.0.unwrap_or(node.uid), settings.owner.1.unwrap_or(node.gid));
    shell.files.set_owner(path, uid, gid, Follow::Yes)?;
    let node = shell.files.lookup(path, Follow::Yes)?;
    shell.files.set_mode(path, settings.mode | (node.mode & !settings.decided))
}

fn directories(shell: &mut Shell<'_>, operands: &[Vec<u8>], settings: &Settings) -> Run<u8> {
    let mut status = 0;
    for operand in operands {
        let path = shell.path(operand);
        shell.note(&path, b"");
        // Directories on the way have 0755, whatever the mode and the umask are.
        let made = make::parents(shell, operand, 0o755, 0o755, false);
        let done = made.and_then(|_| apply(shell, &path, settings));
        if let Err(error) = done {
            status = cannot(shell, "install", "create directory", operand, error)?;
        }
    }
    Ok(status)
}

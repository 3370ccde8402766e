//! `install`.

use super::backups::{Backups, backups};
use super::copy::{self, Dereference, Replaced, SameFile, same_file};
use super::options::{Accepted, Options, parse};
use super::targets::{Created, Targets, occupant, targets};
use super::{cannot, complain, complain_exactly, make, modes, owners, paths, quoted};
use crate::eval::Run;
use crate::files::{Errno, Follow, Node};
use crate::shell::Shell;

const OPTIONS: Accepted = Accepted {
    letters: b"bcdDg:m:o:pS:t:TvZ",
    long: &[
        ("backup?", b'B'),
        ("directory", b'd'),
        ("group=", b'g'),
        ("mode=", b'm'),
        ("no-target-directory", b'T'),
        ("owner=", b'o'),
        ("preserve-timestamps", b'p'),
        ("suffix=", b'S'),
        ("target-directory=", b't'),
        ("verbose", b'v'),
    ],
    strict: false,
};

struct Settings {
    mode: u16,
    /// The bits that the mode decides; others of a directory stay.
    decided: u16,
    owner: owners::Owner,
    time: bool,
    verbose: bool,
    backups: Backups,
}

pub(super) fn install(shell: &mut Shell<'_>, args: &[Vec<u8>]) -> Run<u8> {
    let options = parse(shell, args, &OPTIONS)?;
    let Some(backups) = backups(shell, "install", &options)? else { return Ok(1) };
    let Some(settings) = settings(shell, &options, backups)? else { return Ok(1) };
    if options.operands.is_empty() {
        return complain(shell, "install", b"missing file operand");
    }
    if options.has(b'd') {
        return directories(shell, &options.operands, &settings);
    }
    // The directory of the first path is made, and an empty operand adds no name to it.
    if options.has(b'D')
        && options.operands.first().is_some_and(|operand| !operand.is_empty())
        && let Some(dir) = options.value(b't')
        && let Err(error) = parents(shell, dir, 0o755, settings.verbose)?
    {
        return cannot(shell, "install", "create directory", dir, error);
    }
    let is_dir = |shell: &Shell<'_>, path: &[u8]| shell.destination(path).is_ok_and(|node| node.is_dir());
    let Some(targets) = targets(shell, "install", &options, is_dir)? else { return Ok(1) };
    if options.has(b'D') && !targets.into {
        let path = paths::bare(&targets.target);
        let dir = &path[..path.len() - paths::last_name(path).len()];
        if let Err(error) = parents(shell, dir, 0o755, settings.verbose)? {
            return cannot(shell, "install", "create directory", dir, error);
        }
    }
    files(shell, &targets, &settings)
}

fn settings(shell: &mut Shell<'_>, options: &Options, backups: Backups) -> Run<Option<Settings>> {
    let directory = options.has(b'd');
    let (mode, decided) = match options.value(b'm').map(modes::Mode::new) {
        None => (0o755, 0o7777),
        Some(Some(mode)) => mode.apply_with_bits(0, directory, 0),
        Some(None) => return complain(shell, "install", b"invalid mode").map(|_| None),
    };
    let mut owner = (None, None);
    for (letter, value) in options.iter() {
        let (found, what) = match letter {
            b'o' => (owners::user(shell, value), &b"invalid user: '"[..]),
            b'g' => (owners::group(shell, value), &b"invalid group: '"[..]),
            _ => continue,
        };
        let Some(id) = found else {
            return complain(shell, "install", &[what, value, b"'"].concat()).map(|_| None);
        };
        if letter == b'o' { owner.0 = Some(id) } else { owner.1 = Some(id) }
    }
    let decided = if directory { decided } else { 0o7777 };
    let (time, verbose) = (options.has(b'p'), options.has(b'v'));
    Ok(Some(Settings { mode, decided, owner, time, verbose, backups }))
}

/// Makes a directory, and those above it with 0755, whatever the umask is.
fn parents(shell: &mut Shell<'_>, dir: &[u8], mode: u16, verbose: bool) -> Run<Result<(), Errno>> {
    let mut made = Vec::new();
    let done = make::parents(shell, dir, mode, 0o755, verbose.then_some(&mut made));
    for dir in made {
        let name = quoted(shell, paths::bare(&dir))?;
        shell.out(&[b"install: creating directory ", &name[..], b"\n"].concat())?;
    }
    Ok(done)
}

fn directories(shell: &mut Shell<'_>, operands: &[Vec<u8>], settings: &Settings) -> Run<u8> {
    let mut status = 0;
    for operand in operands {
        let path = shell.path(operand);
        shell.note(&path, b"");
        let made = if operand.is_empty() {
            Err(Errno::Enoent)
        } else {
            parents(shell, operand, settings.mode, settings.verbose)?
        };
        if let Err(error) = made.and_then(|()| apply(shell, &path, settings)) {
            status = cannot(shell, "install", "create directory", operand, error)?;
        }
    }
    Ok(status)
}

fn apply(shell: &mut Shell<'_>, path: &[u8], settings: &Settings) -> Result<(), Errno> {
    if settings.owner != (None, None) {
        owners::set(shell, path, settings.owner, Follow::Yes)?;
    }
    let node = shell.files.lookup(path, Follow::Yes)?;
    shell.files.set_mode(path, settings.mode | (node.mode & !settings.decided))
}

fn files(shell: &mut Shell<'_>, targets: &Targets, settings: &Settings) -> Run<u8> {
    let mut created = Created::default();
    let mut status = 0;
    for source in &targets.sources {
        let place = targets.place(source);
        status |= file(shell, source, &place, settings, &created)?;
        if targets.sources.len() > 1 {
            created.add(shell, &place);
        }
    }
    Ok(status)
}

fn file(shell: &mut Shell<'_>, source: &[u8], place: &[u8], settings: &Settings, created: &Created) -> Run<u8> {
    let node = match shell.stat(source, Follow::Yes) {
        Ok(node) if node.is_dir() => {
            return complain_exactly(shell, "install", &[b"omitting directory '", source, b"'"].concat());
        }
        Ok(node) => node,
        Err(error) => return cannot(shell, "install", "stat", source, error),
    };
    let path = shell.path(place);
    shell.note(&path, b"");
    let backup = match occupant(shell, place) {
        Ok(old) => match replace(shell, (source, &node), (place, &old), settings, created)? {
            Ok(name) => name,
            Err(status) => return Ok(status),
        },
        // A tree that is not complete may have it all the same.
        Err(Errno::Enoent) => shell.files.make_way(&path).ok().and(None),
        Err(error) => return cannot(shell, "install", "stat", place, error),
    };
    if settings.verbose {
        let mut line = [&quoted(shell, source)?[..], b" -> ", &quoted(shell, place)?].concat();
        if let Some(backup) = backup {
            line.extend([b" (backup: ", &quoted(shell, &backup)?[..], b")"].concat());
        }
        shell.out(&[&line[..], b"\n"].concat())?;
    }
    shell.spend(256)?;
    let mut done = copy::content(shell, source, place, 0o600).and_then(|()| apply(shell, &path, settings));
    if settings.time {
        done = done.and_then(|()| shell.files.set_mtime(&path, Some(node.mtime)));
    }
    match done {
        Ok(()) => Ok(0),
        Err(error) => cannot(shell, "install", "create regular file", place, error),
    }
}

/// Takes away what is there: gives the name of its backup, or the status if it stays.
fn replace(
    shell: &mut Shell<'_>,
    (source, node): (&[u8], &Node),
    (place, old): (&[u8], &Node),
    settings: &Settings,
    created: &Created,
) -> Run<Result<Option<Vec<u8>>, u8>> {
    let backs_up = settings.backups.are_made();
    let replaced = Replaced {
        dereference: Dereference::Always,
        moves: false,
        hard: false,
        symbolic: false,
        backs_up,
        removes: true,
    };
    let fail = |shell: &mut Shell<'_>, parts: &[&[u8]]| complain_exactly(shell, "install", &parts.concat()).map(Err);
    if same_file(shell, (source, node), (place, old), &replaced) == SameFile::Yes {
        return fail(shell, &[b"'", source, b"' and '", place, b"' are the same file"]);
    }
    if old.is_dir() {
        return fail(shell, &[b"cannot overwrite directory '", place, b"' with non-directory"]);
    }
    if created.has(place, old) {
        return fail(shell, &[b"will not overwrite just-created '", place, b"' with '", source, b"'"]);
    }
    if backs_up && settings.backups.destroys(shell, place, source, node.id) {
        return fail(shell, &[b"backing up '", place, b"' might destroy source"]);
    }
    let path = shell.path(place);
    let gone = match backs_up {
        true => settings.backups.make(shell, place)?.map(Some),
        false => shell.files.make_way(&path).map(|()| None),
    };
    match gone {
        Ok(name) => {
            if settings.verbose && name.is_none() {
                let place = quoted(shell, place)?;
                shell.out(&[b"removed ", &place[..], b"\n"].concat())?;
            }
            Ok(Ok(name))
        }
        Err(error) => cannot(shell, "install", "remove", place, error).map(Err),
    }
}

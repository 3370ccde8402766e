//! Tests of the file system below a root: links, owners, atomic writes and dry runs.

use super::*;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixListener;

use tempfile::TempDir;

use crate::changes;

/// A tree, its root, and the user of this test, who owns created files.
fn tree(dry_run: bool) -> (TempDir, Root, Owner) {
    let tree = tempfile::tempdir().unwrap();
    fs::create_dir(tree.path().join("d")).unwrap();
    let own = Owner { mode: 0o640, uid: uid(tree.path()), gid: gid(tree.path()) };
    let root = Root::open(tree.path(), dry_run).unwrap();
    (tree, root, own)
}

fn uid(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().uid()
}

fn gid(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().gid()
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

/// Metadata that distinguish a rewritten file from one changed in place.
fn identity(path: &Path) -> (u64, i64, i64) {
    let found = fs::symlink_metadata(path).unwrap();
    (found.ino(), found.mtime(), found.mtime_nsec())
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Whether this test can change owners. CI must run it so.
fn privileged(own: &Owner) -> bool {
    assert!(own.uid == 0 || std::env::var_os("CI").is_none(), "the tests of owners need root");
    own.uid == 0
}

fn mkfifo(path: &Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

fn found(error: Error) -> String {
    match error {
        Error::Refused { found, .. } => found,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_written_once() {
    let (tree, root, own) = tree(false);
    let path = tree.path().join("d/x");
    assert_eq!(root.read("/d/x", 9).unwrap(), None);
    assert!(root.write("/d/x", b"one", &own).unwrap());
    assert_eq!((fs::read(&path).unwrap().as_slice(), mode(&path)), (&b"one"[..], 0o640));
    let before = identity(&path);
    assert!(!root.write("/d/x", b"one", &own).unwrap());
    assert_eq!(identity(&path), before);
    let private = Owner { mode: 0o600, ..own };
    assert!(root.write("/d/x", b"one", &private).unwrap());
    assert_eq!((identity(&path), mode(&path)), (before, 0o600), "only the mode is corrected");
    assert!(root.write("/d/x", b"two", &private).unwrap());
    assert_eq!(root.read("/d/x", 3).unwrap().unwrap(), b"two");
    assert_eq!(names(&tree.path().join("d")), ["x"]);
    assert!(root.remove("/d/x").unwrap() && !root.remove("/d/x").unwrap());
    let name = |number: u32| if number == 0 { "root".to_owned() } else { number.to_string() };
    let by = format!("{}:{}", name(own.uid), name(own.gid));
    assert_eq!(
        changes::lines(&root),
        [
            format!("write /d/x (0640 {by})"),
            format!("change /d/x (0600 {by})"),
            format!("write /d/x (0600 {by})"),
            "remove /d/x".into()
        ]
    );
}

#[test]
fn set_user_bits_survive_the_change_of_owner() {
    let (tree, root, own) = tree(false);
    if !privileged(&own) {
        return;
    }
    let setuid = Owner { mode: 0o4755, uid: 12, gid: 34 };
    root.write("/d/x", b"", &setuid).unwrap();
    assert_eq!(root.find("/d/x").unwrap().unwrap().mode, 0o4755);
    fs::write(tree.path().join("d/y"), "").unwrap();
    fs::set_permissions(tree.path().join("d/y"), fs::Permissions::from_mode(0o666)).unwrap();
    assert!(root.permit("/d/y", &setuid, false).unwrap());
    assert!(root.find("/d/y").unwrap().unwrap().has(&setuid));
}

#[test]
fn what_a_killed_run_left_is_removed_even_if_nothing_is_written() {
    let (tree, root, own) = tree(false);
    let left = tree.path().join("d/.x.vmbake");
    for write in [true, false] {
        fs::write(&left, "half").unwrap();
        assert_eq!(root.write("/d/x", b"whole", &own).unwrap(), write);
        assert!(!left.exists());
    }
    fs::write(&left, "half").unwrap();
    assert!(root.remove("/d/x").unwrap());
    assert!(names(&tree.path().join("d")).is_empty());
    fs::create_dir(&left).unwrap();
    assert_eq!(found(root.write("/d/x", b"", &own).unwrap_err()), "a directory");
}

#[test]
fn links_are_not_followed_in_any_component() {
    let (tree, root, own) = tree(false);
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), tree.path().join("link")).unwrap();
    symlink(outside.path().join("secret"), tree.path().join("d/secret")).unwrap();
    symlink("nowhere", tree.path().join("d/hanging")).unwrap();
    symlink("../link", tree.path().join("d/link")).unwrap();
    let link = "a symbolic link";
    for path in ["/link/secret", "/d/link/secret", "/d/secret", "/d/hanging"] {
        assert_eq!(found(root.read(path, 99).unwrap_err()), link, "{path}");
        assert_eq!(found(root.write(path, b"", &own).unwrap_err()), link, "{path}");
        assert_eq!(found(root.permit(path, &own, true).unwrap_err()), link, "{path}");
        assert_eq!(found(root.directory(path, &own).unwrap_err()), link, "{path}");
        assert_eq!(found(root.list(path).unwrap_err()), link, "{path}");
        assert_eq!(found(root.remove_directory(path).unwrap_err()), link, "{path}");
    }
    assert_eq!(found(root.find("/link/secret").unwrap_err()), link);
    assert_eq!(root.find("/link").unwrap().unwrap().kind, Kind::Symlink);
    assert!(root.remove("/d/secret").unwrap(), "the link itself goes");
    assert_eq!(fs::read_to_string(outside.path().join("secret")).unwrap(), "secret");
    for path in ["", "/", "d/x", "/d/../d/x", "/d/./x", "/d//x", "/d/x/", "/d/\0"] {
        assert!(found(root.find(path).unwrap_err()).starts_with('"'), "{path:?}");
    }
}

#[test]
fn special_files_and_directories_are_no_files() {
    let (tree, root, own) = tree(false);
    mkfifo(&tree.path().join("fifo"));
    let _socket = UnixListener::bind(tree.path().join("socket")).unwrap();
    for (path, kind) in [("/fifo", "a special file"), ("/socket", "a socket"), ("/d", "a directory")] {
        assert_eq!(found(root.read(path, 9).unwrap_err()), kind);
        assert_eq!(found(root.write(path, b"", &own).unwrap_err()), kind);
    }
    assert_eq!(found(root.permit("/fifo", &own, false).unwrap_err()), "a special file");
    assert_eq!(found(root.remove("/d").unwrap_err()), "a directory");
    assert_eq!(found(root.directory("/fifo", &own).unwrap_err()), "a special file");
    assert_eq!(found(root.write("/fifo/x", b"", &own).unwrap_err()), "a special file");
    assert!(root.permit("/socket", &own, false).unwrap());
    assert_eq!(mode(&tree.path().join("socket")), 0o640);
    assert!(root.remove("/fifo").unwrap());
    // A device: not even opened.
    let system = Root::open(Path::new("/"), false).unwrap();
    assert_eq!(found(system.read("/dev/null", 9).unwrap_err()), "a special file");
    assert!(system.is_system() && !root.is_system());
    assert!(!system.read("/proc/version", 999).unwrap().unwrap().is_empty(), "a file without a length");
    assert!(matches!(system.read("/proc/version", 4), Err(Error::TooLarge { limit: 4, .. })));
}

#[test]
fn no_more_than_the_limit_is_read() {
    let (tree, root, _) = tree(false);
    fs::write(tree.path().join("x"), "12345").unwrap();
    assert_eq!(root.read("/x", 5).unwrap().unwrap(), b"12345");
    let message = root.read("/x", 4).unwrap_err().to_string();
    assert!(message.ends_with("/x: refused: expected at most 4 bytes, found more"), "{message}");
}

#[test]
fn in_a_directory_of_others_files_with_several_names_are_neither_read_nor_given_away() {
    let (tree, root, own) = tree(false);
    let (secret, linked) = (tree.path().join("secret"), tree.path().join("d/x"));
    fs::write(&secret, "secret").unwrap();
    fs::hard_link(&secret, &linked).unwrap();
    fs::set_permissions(tree.path().join("d"), fs::Permissions::from_mode(0o777)).unwrap();
    let private = mode(&secret);
    let given = Owner { mode: 0o604, ..own };
    assert_eq!(found(root.read("/d/x", 9).unwrap_err()), "a file with several hard links");
    assert_eq!(found(root.permit("/d/x", &given, false).unwrap_err()), "a file with several hard links");
    assert!(root.write("/d/x", b"secret", &given).unwrap());
    assert_eq!((mode(&secret), mode(&linked)), (private, 0o604), "the name gets a new file");
    assert_eq!(root.read("/d/x", 9).unwrap().unwrap(), b"secret");
    if own.uid == 0 {
        fs::set_permissions(tree.path().join("d"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::hard_link(&secret, tree.path().join("d/y")).unwrap();
        assert_eq!(root.read("/d/y", 9).unwrap().unwrap(), b"secret", "packages have such files");
    }
}

#[test]
fn a_file_that_another_user_could_have_open_is_written_anew() {
    let (tree, root, own) = tree(false);
    if !privileged(&own) {
        return;
    }
    let path = tree.path().join("d/x");
    for (uid, mode, same) in [(12, 0o600, false), (34, 0o600, true), (0, 0o600, true), (0, 0o660, false)] {
        fs::write(&path, "text").unwrap();
        chown(&path, Some(uid), Some(uid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let held = fs::File::open(&path).unwrap();
        assert!(root.write("/d/x", b"text", &Owner { mode: 0o640, uid: 34, gid: 56 }).unwrap());
        assert_eq!(held.metadata().unwrap().ino() == identity(&path).0, same, "{uid} {mode:o}");
        assert!(root.find("/d/x").unwrap().unwrap().has(&Owner { mode: 0o640, uid: 34, gid: 56 }));
    }
}

#[test]
fn directories_are_made_corrected_and_removed_when_empty() {
    let (tree, root, own) = tree(false);
    let private = Owner { mode: 0o700, ..own };
    assert!(root.directory("/d/e", &own).unwrap() && !root.directory("/d/e", &own).unwrap());
    assert!(root.directory("/d/e", &private).unwrap());
    assert_eq!(mode(&tree.path().join("d/e")), 0o700);
    let missing = root.directory("/none/e", &own).unwrap_err();
    assert!(matches!(missing, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound));
    assert!(matches!(root.write("/none/e", b"", &own), Err(Error::Io { .. })));
    assert!(!root.remove_directory("/d").unwrap(), "it is not empty");
    assert!(root.remove_directory("/d/e").unwrap() && !root.remove_directory("/d/e").unwrap());
    root.write("/d/x", b"", &own).unwrap();
    assert_eq!(found(root.remove_directory("/d/x").unwrap_err()), "a regular file");
}

#[test]
fn lists_are_sorted_and_raw() {
    use std::os::unix::ffi::OsStrExt;
    let (tree, root, _) = tree(false);
    for name in [&b"b"[..], b"a", b"\xff"] {
        fs::write(tree.path().join("d").join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    symlink("a", tree.path().join("d/c")).unwrap();
    let listed = root.list("/d").unwrap();
    let found: Vec<_> = listed.iter().map(|entry| (entry.name.as_bytes(), entry.found.kind)).collect();
    assert_eq!(found, [(&b"a"[..], Kind::File), (b"b", Kind::File), (b"c", Kind::Symlink), (b"\xff", Kind::File)]);
    assert_eq!(listed[0].found, root.find("/d/a").unwrap().unwrap());
    assert!(root.list("/none/d").unwrap().is_empty());
}

#[test]
fn a_failed_write_leaves_the_old_file_and_no_other() {
    let (tree, root, own) = tree(false);
    let path = tree.path().join("d/x");
    root.write("/d/x", b"old", &own).unwrap();
    // The name is short enough, but that of the temporary file is too long.
    let long = format!("/d/{}", "x".repeat(250));
    assert!(matches!(root.write(&long, b"new", &own), Err(Error::Io { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"old");
    assert_eq!(names(&tree.path().join("d")), ["x"]);
}

#[test]
fn the_lock_is_of_one_run() {
    let (tree, root, _) = tree(false);
    let lock = root.lock().unwrap();
    let state = tree.path().join("var/lib/vmbake");
    assert_eq!((mode(&state), mode(&tree.path().join("var")) & 0o700), (0o700, 0o700));
    let other = File::open(&state).unwrap();
    assert!(other.try_lock().is_err());
    drop(lock);
    other.try_lock().unwrap();
    other.unlock().unwrap();
    fs::set_permissions(&state, fs::Permissions::from_mode(0o755)).unwrap();
    drop(root.lock().unwrap());
    assert_eq!(mode(&state), 0o700);
    fs::remove_dir(&state).unwrap();
    symlink("/tmp", &state).unwrap();
    assert_eq!(found(root.lock().unwrap_err()), "a symbolic link");
    assert_eq!(found(Root::open(tree.path(), true).unwrap().lock().unwrap_err()), "a symbolic link");
}

/// Another process owns the directory, and replaces its contents as fast as it can. A bug can go undetected by chance;
/// a failure is always a bug.
#[test]
fn what_is_swapped_meanwhile_leads_nowhere() {
    // In memory: on a disk, every sync would wait for the other thread's renames.
    let (tree, outside) = (tempfile::tempdir_in("/dev/shm").unwrap(), tempfile::tempdir_in("/dev/shm").unwrap());
    fs::create_dir(tree.path().join("d")).unwrap();
    let root = Root::open(tree.path(), false).unwrap();
    let own = Owner { mode: 0o600, uid: uid(tree.path()), gid: gid(tree.path()) };
    let secret = outside.path().join("x");
    fs::write(&secret, "secret").unwrap();
    let before = (identity(&secret), mode(&secret), mode(outside.path()));
    let d = tree.path().join("d");
    fs::create_dir(d.join("real")).unwrap();
    symlink(outside.path(), d.join("away")).unwrap();
    symlink(&secret, d.join("link")).unwrap();
    mkfifo(&d.join("fifo"));
    let done = std::sync::atomic::AtomicBool::new(false);
    let swap = |one: &Path, other: &Path| {
        rustix::fs::renameat_with(rustix::fs::CWD, one, rustix::fs::CWD, other, rustix::fs::RenameFlags::EXCHANGE)
    };
    let (read, wrote, leaked) = std::thread::scope(|scope| {
        scope.spawn(|| {
            fs::write(d.join("file"), "own").unwrap();
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                swap(&d.join("real"), &d.join("away")).unwrap();
                for other in ["link", "fifo"] {
                    // Either can be missing by now, or the fifo renamed.
                    let _ = swap(&d.join("file"), &d.join(other));
                }
            }
        });
        let (mut read, mut wrote, mut leaked) = (0, 0, false);
        for round in 0..1000_u32 {
            let owner = Owner { mode: if round % 2 == 0 { 0o600 } else { 0o640 }, ..own };
            for path in ["/d/real/x", "/d/file"] {
                if let Ok(Some(content)) = root.read(path, 99) {
                    read += 1;
                    leaked |= content == b"secret";
                }
                let _ = root.permit(path, &owner, true);
                wrote += usize::from(root.write(path, round.to_string().as_bytes(), &owner).unwrap_or(false));
            }
            let _ = root.directory("/d/real", &Owner { mode: 0o700, ..own });
            let _ = root.list("/d/real");
            let _ = root.remove("/d/real/x");
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        (read, wrote, leaked)
    });
    assert!(!leaked);
    assert!(read > 0 && wrote > 0, "{read} {wrote}: nothing was tried");
    assert_eq!((identity(&secret), mode(&secret), mode(outside.path())), before);
    assert_eq!((fs::read(&secret).unwrap(), names(outside.path())), (b"secret".to_vec(), vec!["x".to_owned()]));
}

/// A dry run reports and reads the same as a real run.
#[test]
fn a_dry_run_changes_nothing_and_tells_the_same() {
    let run = |dry_run: bool| {
        let (tree, root, own) = tree(dry_run);
        let private = Owner { mode: 0o600, ..own };
        // An ordinary user needs search permission.
        let (open, closed) = (Owner { mode: 0o750, ..own }, Owner { mode: 0o700, ..own });
        for name in ["same", "other", "gone", "kept"] {
            let path = tree.path().join("d").join(name);
            fs::write(&path, "1").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        }
        symlink("d", tree.path().join("link")).unwrap();
        let before = (names(tree.path()), names(&tree.path().join("d")));
        let _lock = root.lock().unwrap();
        let mut told = vec![
            root.write("/d/same", b"1", &own).unwrap(),
            root.write("/d/same", b"1", &private).unwrap(),
            root.write("/d/same", b"1", &private).unwrap(),
            root.write("/d/other", b"22", &own).unwrap(),
            root.permit("/d/other", &private, false).unwrap(),
            root.permit("/d/kept", &private, false).unwrap(),
            root.permit("/d/none", &private, true).unwrap(),
            root.remove("/d/gone").unwrap(),
            root.remove("/d/gone").unwrap(),
            root.directory("/d/e", &open).unwrap(),
            root.directory("/d/e/f", &open).unwrap(),
            root.write("/d/e/f/x", b"x", &own).unwrap(),
            root.remove_directory("/d/e").unwrap(),
            root.remove("/d/e/f/x").unwrap(),
            root.remove_directory("/d/e/f").unwrap(),
            root.directory("/d/e", &closed).unwrap(),
            root.write("/d/gone", b"new", &own).unwrap(),
        ];
        told.push(root.remove("/d/e").is_err());
        told.push(root.write("/link/x", b"", &own).is_err());
        told.push(root.write("/d/e/f/x", b"", &own).is_err());
        told.push(root.directory("/d/e/f/x", &own).is_err());
        told.push(root.permit("/d/none", &own, false).is_err());
        told.push(root.remove_directory("/d/gone").is_err());
        let listed: Vec<_> = root
            .list("/d")
            .unwrap()
            .into_iter()
            .map(|entry| (entry.name, entry.found.kind, entry.found.mode))
            .collect();
        let read: Vec<_> =
            ["/d/same", "/d/other", "/d/gone", "/d/kept", "/d/e/f/x"].map(|path| root.read(path, 99).unwrap()).to_vec();
        assert!(matches!(root.read("/d/other", 1), Err(Error::TooLarge { .. })));
        if dry_run {
            assert_eq!(before, (names(tree.path()), names(&tree.path().join("d"))));
            assert_eq!(fs::read(tree.path().join("d/other")).unwrap(), b"1");
            assert_eq!(mode(&tree.path().join("d/kept")), 0o640);
        }
        (told, listed, read, changes::lines(&root))
    };
    let real = run(false);
    assert_eq!(real.3.len(), 12, "{:?}", real.3);
    assert_eq!(run(true), real);
}

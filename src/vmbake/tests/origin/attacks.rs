//! Changes by others on the same machine: they are ignored or refused, and never get into an image as something that was
//! proven.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use vmbake_bake::{BakeError, BakeRequest};
use vmbake_common::digest::Digest;
use vmbake_fetch::verify::VerifyError;
use vmbake_store::store::{DecodedForm, Store, StoreError};

use super::bakery::{TOOL, bake, base_of, can_bake, pack, poison as poison_blob, qcow2_base, request};
use crate::tools::{have, skip::skip};

fn set(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

/// A process that has mapped a file, and writes to it without the system noticing when.
struct Mapping(Child);

const MAP: &str = "
import mmap, sys
file = open(sys.argv[1], 'r+b')
map = mmap.mmap(file.fileno(), 0)
at = map.find(b'/bin/sh')
map[at] = map[at]
print(flush=True)
for line in sys.stdin:
    map[at] = ord('!')
    print(flush=True)
";

impl Mapping {
    /// Maps the file and writes a byte that is there already: that sets its times.
    fn new(file: &Path) -> Self {
        let mut python = Command::new("python3");
        python.args(["-c", MAP]).arg(file).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut mapping = Self(python.spawn().unwrap());
        mapping.wait();
        mapping
    }

    fn write(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"\n").unwrap();
        self.wait();
    }

    fn wait(&mut self) {
        let mut byte = String::new();
        BufReader::with_capacity(1, self.0.stdout.as_mut().unwrap()).read_line(&mut byte).unwrap();
        assert_eq!(byte, "\n");
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_base_that_is_changed_through_a_mapping_is_refused() {
    if !can_bake() || !have(&["python3"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = base_of(dir.path());
    set(&base, 0o666);
    let first = request(dir.path(), base.clone(), "first", 2);
    let mut mapping = Mapping::new(&base);
    // Times of a file that was just written are not trusted.
    std::thread::sleep(Duration::from_secs(6));
    bake(&first).unwrap();
    let times = |path: &Path| path.metadata().map(|meta| (meta.mtime_nsec(), meta.ctime_nsec())).unwrap();
    let before = times(&base);
    mapping.write();
    if times(&base) != before {
        println!("this file system has noticed when the mapping was written to");
    }
    let second = BakeRequest { out: dir.path().join("second"), ..first };
    let error = bake(&second).unwrap_err();
    assert!(matches!(error, BakeError::Verify(VerifyError::Digest { .. })), "{error}");
}

#[test]
fn what_others_can_write_to_is_copied_and_gives_the_same_image() {
    if !can_bake() {
        return;
    }
    for make in [base_of, qcow2_base] {
        let dir = tempfile::tempdir().unwrap();
        let base = make(dir.path());
        let image = |request: &BakeRequest| fs::read(&bake(request).unwrap().outputs[0].path).unwrap();
        let request = request(dir.path(), base.clone(), "cold", 2);
        let cold = image(&request);
        set(&base, 0o666);
        assert!(image(&BakeRequest { out: dir.path().join("copied"), ..request }) == cold);
        assert_eq!(fs::read_dir(dir.path().join("store/partial")).unwrap().count(), 0);
    }
}

#[test]
fn outputs_where_others_can_replace_them_are_made_again() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = BakeRequest { force: true, ..request(dir.path(), base_of(dir.path()), "out", 2) };
    let path = bake(&request).unwrap().outputs.remove(0).path;
    let inode = || path.metadata().unwrap().ino();
    // It stays open, so that no other file gets its inode.
    let (first, before) = (File::open(&path).unwrap(), inode());
    bake(&request).unwrap();
    assert_eq!(inode(), before, "nothing has changed");
    set(&request.out, 0o777);
    bake(&request).unwrap();
    assert_ne!(inode(), before);
    drop(first);
}

#[test]
fn nothing_but_blobs_is_believed_of_a_store_below_a_folder_of_others() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let above = dir.path().join("above");
    fs::create_dir(&above).unwrap();
    let request = request(&above, qcow2_base(&above), "cold", 2);
    let cold = fs::read(&bake(&request).unwrap().outputs[0].path).unwrap();
    let tar = Digest::of(&pack());
    assert!(request.store.has_decoded(&tar, DecodedForm::Tar));
    set(&above, 0o777);
    let store = Store::open(Some(above.join("store"))).unwrap();
    assert!(
        store
            .insecure_permissions()
            .unwrap()
            .to_string()
            .ends_with("above is writable by other users: its mode is 0777")
    );
    assert!(!store.has_decoded(&tar, DecodedForm::Tar));
    let exposed = BakeRequest { store, out: above.join("exposed"), ..request.clone() };
    assert!(fs::read(&bake(&exposed).unwrap().outputs[0].path).unwrap() == cold);
    // Its blobs are hashed, and those that are not what they are called are refused.
    poison_blob(&request.store, TOOL);
    let error = bake(&BakeRequest { out: above.join("poisoned"), ..exposed }).unwrap_err();
    assert!(matches!(error, BakeError::Verify(VerifyError::Digest { .. })), "{error}");
}

#[test]
fn a_store_that_others_can_write_to_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("store");
    let store = Store::open(Some(root.clone())).unwrap();
    store.insert(b"blob").unwrap();
    let refused = |what: &str| {
        let error = Store::open(Some(root.clone())).unwrap_err();
        assert!(matches!(error, StoreError::InsecurePermissions { .. }), "{what}: {error}");
        (error.to_string(), vmbake::cli::error_report::hint(&error).unwrap())
    };
    for (folder, mode) in
        [("", 0o777), ("", 0o775), ("", 0o1777), ("blobs", 0o775), ("blobs/sha256", 0o757), ("partial", 0o777)]
    {
        let folder = if folder.is_empty() { root.clone() } else { root.join(folder) };
        set(&folder, mode);
        let (error, hint) = refused("mode");
        assert!(
            error.contains("the store is writable by other users") && error.ends_with(&format!("{mode:04o}")),
            "{error}"
        );
        assert!(hint.starts_with(&format!(
            "make it writable by its owner only: `chmod -R go-w {}`; then run `vmbake store verify",
            folder.display()
        )));
        set(&folder, 0o755);
    }
    Store::open(Some(root.clone())).unwrap();
    if !rustix::process::geteuid().is_root() {
        return skip("only root can give a folder away");
    }
    for folder in ["", "blobs/sha256"] {
        chown(root.join(folder), Some(65534), None).unwrap();
        assert!(refused(folder).0.ends_with("belongs to user 65534, not to user 0 or root"));
        chown(root.join(folder), Some(0), None).unwrap();
    }
}

/// Runs `vmbake bake` with what `request` says, after `before` in a shell; the program is `vmbake`.
fn run(request: &BakeRequest, before: &str, vmbake: &Path, user: Option<u32>) -> Output {
    let mut command = Command::new("sh");
    command.args(["-c", &format!("{before}; exec \"$@\""), "sh"]).arg(vmbake).args([
        "bake",
        "tools",
        "--os",
        "o",
        "--offline",
        "--no-builtin",
    ]);
    for (option, path) in [
        ("--manifest", request.manifest.as_path()),
        ("--sources", &request.manifest.with_file_name("sources.json")),
        ("--base", request.base.as_ref().unwrap()),
        ("--layers", &request.manifest.with_file_name("layers")),
        ("--store", request.store.root()),
        ("--out", &request.out),
    ] {
        command.arg(option).arg(path);
    }
    if let Some(user) = user {
        // Their home is not that of who runs the tests, which may be closed to them.
        command.uid(user).gid(user).env("HOME", &request.out).env_remove("XDG_CONFIG_HOME");
    }
    command.output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_store_of_somebody_else_has_nothing_but_blobs() {
    if !can_bake() {
        return;
    }
    if !rustix::process::geteuid().is_root() {
        return skip("only root can become two other users");
    }
    let dir = tempfile::tempdir().unwrap();
    set(dir.path(), 0o755);
    let vmbake = dir.path().join("vmbake");
    // Not by this process: a concurrent fork of another test would keep it open, and a file that is open for writing cannot be executed.
    assert!(Command::new("cp").arg(env!("CARGO_BIN_EXE_vmbake")).arg(&vmbake).status().unwrap().success());
    let request = request(dir.path(), qcow2_base(dir.path()), "out", 2);
    let image = fs::read(&bake(&request).unwrap().outputs[0].path).unwrap();
    let name = "tools.o.amd64.raw";
    let as_other = |out: &str| {
        let out = dir.path().join(out);
        fs::create_dir(&out).unwrap();
        chown(&out, Some(65533), None).unwrap();
        let output = run(&BakeRequest { out: out.clone(), ..request.clone() }, "umask 022", &vmbake, Some(65533));
        (out, output)
    };
    // What root has proven is believed.
    let (out, output) = as_other("root's");
    assert!(output.status.success() && fs::read(out.join(name)).unwrap() == image, "{output:?}");
    assert!(!said(&output).contains("caches of earlier bakes"), "{output:?}");

    // The owner of a store could have poisoned it.
    let give = |user: &str| {
        assert!(Command::new("chown").args(["-R", user]).arg(dir.path().join("store")).status().unwrap().success())
    };
    give("65534");
    let (out, output) = as_other("stranger's");
    assert!(output.status.success() && fs::read(out.join(name)).unwrap() == image, "{output:?}");
    assert!(said(&output).contains("caches of earlier bakes are not used: "), "{output:?}");
    assert!(said(&output).contains("belongs to user 65534, not to user 65533 or root"), "{output:?}");
    poison_blob(&request.store, TOOL);
    let (_, output) = as_other("poisoned");
    assert_eq!(output.status.code(), Some(1));
    assert!(said(&output).contains("tool has digest"), "{output:?}");

    // A base of another user is copied.
    give("0");
    request.store.insert(TOOL).unwrap();
    chown(request.base.as_ref().unwrap(), Some(65534), None).unwrap();
    let (out, output) = as_other("base");
    assert!(output.status.success() && fs::read(out.join(name)).unwrap() == image, "{output:?}");
    assert!(said(&output).contains("   copied  "), "{output:?}");
}

#[test]
fn whatever_the_umask_is_nobody_else_can_write_to_what_is_made() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = request(dir.path(), qcow2_base(dir.path()), "new/out", 2);
    let store = dir.path().join("new/store");
    let store = Store::open(Some(store)).unwrap();
    for blob in [TOOL, &pack(), super::bakery::sums().1.as_bytes()] {
        store.insert(blob).unwrap();
    }
    let request = BakeRequest { store, ..request };
    let vmbake = Path::new(env!("CARGO_BIN_EXE_vmbake"));
    let output = run(&request, "umask 000", vmbake, None);
    assert!(output.status.success(), "{output:?}");
    let found = Command::new("find").arg(dir.path().join("new")).args(["-perm", "/022"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    assert_eq!(
        fs::read_dir(request.store.root()).unwrap().count(),
        7,
        "blobs, bakes, decoded, lock, partial, seen, verdicts"
    );
    assert!(said(&run(&request, "umask 000", vmbake, None)).contains("unchanged"));
}

/// Something that is put where the store will have a file.
type Plant = (&'static str, fn(&Path, &Path));

const PLANTS: [Plant; 5] = [
    ("is a symbolic link", |at, elsewhere| symlink(elsewhere, at).unwrap()),
    ("is a named pipe", |at, _| assert!(Command::new("mkfifo").arg(at).status().unwrap().success())),
    ("is a directory", |at, _| fs::create_dir(at).unwrap()),
    ("its mode is 0666", |at, _| {
        fs::write(at, "planted").unwrap();
        set(at, 0o666);
    }),
    ("has 2 hard links", |at, elsewhere| {
        fs::write(elsewhere, "planted").unwrap();
        fs::hard_link(elsewhere, at).unwrap();
    }),
];

#[test]
fn what_somebody_has_planted_in_a_store_is_told_and_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let digest = Digest::of(b"content");
    for (number, (expected, plant)) in PLANTS.into_iter().enumerate() {
        for name in [format!("partial/{}", digest.hex()), "lock".to_owned()] {
            let root = dir.path().join(format!("{number}-{}", name.len()));
            let store = Store::open(Some(root.clone())).unwrap();
            store.insert(b"other").unwrap();
            let elsewhere = dir.path().join("elsewhere");
            plant(&root.join(&name), &elsewhere);
            let error = if name == "lock" { store.share().unwrap_err() } else { store.insert(b"content").unwrap_err() };
            let cause = std::error::Error::source(&error).unwrap().to_string();
            assert!(cause.contains(expected), "{name}: {cause}");
            assert!(
                vmbake::cli::error_report::hint(&error).is_some_and(|hint| hint.contains(root.to_str().unwrap())),
                "{name}"
            );
            let found = fs::read(&elsewhere).ok();
            assert!(found.is_none_or(|found| found == b"planted"), "{name}: written elsewhere");
            assert!(store.blob(&digest).unwrap().is_none());
            let _gone = fs::remove_file(&elsewhere);
        }
    }
}

#[test]
fn a_blob_is_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(Some(dir.path().join("store"))).unwrap();
    for (expected, plant) in &PLANTS[..3] {
        let digest = store.insert(b"content").unwrap();
        let path = store.path(&digest);
        fs::remove_file(&path).unwrap();
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, b"content").unwrap();
        plant(&path, &elsewhere);
        let error = store.blob(&digest).unwrap_err();
        assert!(std::error::Error::source(&error).unwrap().to_string().contains(expected), "{error}");
        if *expected == "is a directory" {
            fs::remove_dir(&path).unwrap();
        } else {
            let (_, corrupt) = store.verify(std::num::NonZeroUsize::MIN).unwrap();
            let removed: Vec<PathBuf> = corrupt.into_iter().map(|one| one.path).collect();
            assert_eq!(removed, [path], "{expected}");
        }
    }
}

//! Baking again to the same place: what has not changed stays, what has is the same as from nothing, and nothing that was
//! touched is believed.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use vmbake::bake::{BakeError, Request, bake};
use vmbake::progress::Progress;
use vmbake::publish::PublishError;
use vmbake_disk::image::Format;

use super::bakery::{can_bake, qcow2_base, request};

const RAW: &str = "tools.o.amd64.raw";
const QCOW2: &str = "tools.o.amd64.qcow2";
const BESIDE: [&str; 2] = ["tools.o.amd64.json", "tools.o.amd64.origin.json"];
const SUMS: &str = "SHA256SUMS";

/// A bake of both formats to `out`.
fn both(dir: &Path) -> Request {
    let base = dir.join("base.qcow2");
    let base = if base.exists() { base } else { qcow2_base(dir) };
    Request { formats: vec![Format::Raw, Format::Qcow2], ..request(dir, base, "out", 2) }
}

/// Bakes; returns what is reported.
fn run(request: &Request) -> String {
    serde_json::to_string(&bake(request, &Progress::new(true)).unwrap()).unwrap()
}

/// The files of a folder: name, inode and time of change.
fn files(folder: &Path) -> Vec<(String, u64, (i64, i64))> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let meta = entry.metadata().unwrap();
            (entry.file_name().into_string().unwrap(), meta.ino(), (meta.ctime(), meta.ctime_nsec()))
        })
        .collect();
    files.sort();
    files
}

/// Bakes the same from nothing, elsewhere, and compares every file.
fn assert_as_from_nothing(request: &Request, what: &str) {
    // Nobody has baked to that place.
    let elsewhere = tempfile::tempdir_in(request.out.parent().unwrap()).unwrap();
    let cold = Request { out: elsewhere.path().join("out"), ..clone(request) };
    run(&cold);
    let names = |folder: &Path| files(folder).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    assert_eq!(names(&request.out), names(&cold.out), "{what}");
    for name in names(&cold.out) {
        let same = fs::read(request.out.join(&name)).unwrap() == fs::read(cold.out.join(&name)).unwrap();
        assert!(same, "{what}: {name} differs");
    }
}

fn clone(request: &Request) -> Request {
    let Request { kind, os, arch, manifest, base, layers, store, size, formats, out, force, threads, .. } = request;
    Request {
        kind: kind.clone(),
        os: os.clone(),
        arch: arch.clone(),
        manifest: manifest.clone(),
        base: base.clone(),
        layers: layers.clone(),
        store: store.clone(),
        sources: vmbake::sources::Sources::load(None).unwrap(),
        client: None,
        size: *size,
        formats: formats.clone(),
        out: out.clone(),
        force: *force,
        threads: *threads,
    }
}

/// The records in the store.
fn records(request: &Request) -> Vec<PathBuf> {
    fs::read_dir(request.store.root().join("bakes")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn nothing_is_done_when_nothing_has_changed() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = both(dir.path());
    let first = run(&request);
    let before = files(&request.out);
    assert_eq!(before.len(), 5, "{before:?}");
    assert_eq!(records(&request).len(), 2);
    for force in [false, true] {
        let request = Request { force, ..both(dir.path()) };
        assert_eq!(run(&request), first, "--force {force}");
        assert_eq!(files(&request.out), before, "--force {force}");
    }
    let one = Request { formats: vec![Format::Qcow2], ..both(dir.path()) };
    assert!(
        first.contains(run(&one).split_once("outputs").unwrap().1.trim_start_matches("\":[").trim_end_matches("]}"))
    );
    assert_eq!(files(&request.out), before);

    fs::remove_file(request.out.join(SUMS)).unwrap();
    run(&request);
    assert_as_from_nothing(&request, "digests are listed again");
    let images = |files: &[(String, u64, (i64, i64))]| {
        files.iter().filter(|(name, ..)| name != SUMS).cloned().collect::<Vec<_>>()
    };
    assert_eq!(images(&files(&request.out)), images(&before));
}

#[test]
fn what_has_changed_is_baked_as_from_nothing() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    run(&both(dir.path()));
    let conf = dir.path().join("layers/tools/files/etc/tool.conf");
    let changes: [(&str, &dyn Fn(&mut Request)); 5] = [
        ("content", &|_| fs::write(&conf, "tool = 2\n").unwrap()),
        ("longer content", &|_| fs::write(&conf, "tool = 3\n".repeat(20_000)).unwrap()),
        ("content as before", &|_| fs::write(&conf, "tool = 1\n").unwrap()),
        ("size", &|request| request.size = Some(96 << 20)),
        ("one format", &|request| request.formats = vec![Format::Qcow2]),
    ];
    for (what, change) in changes {
        let mut request = both(dir.path());
        change(&mut request);
        let before = files(&request.out);
        let error = bake(&request, &Progress::new(true)).unwrap_err();
        assert!(matches!(error, BakeError::Publish(PublishError::Exists { .. })), "{what}: {error}");
        assert_eq!(files(&request.out), before, "{what}: nothing is replaced without --force");
        request.force = true;
        run(&request);
        assert_ne!(files(&request.out), before, "{what}");
        if request.formats.len() == 1 {
            fs::remove_file(request.out.join(RAW)).unwrap();
            fs::remove_file(request.out.join(SUMS)).unwrap();
            run(&request);
        }
        assert_as_from_nothing(&request, what);
    }
}

#[test]
fn what_was_touched_is_baked_again() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = Request { force: true, ..both(dir.path()) };
    run(&request);
    let open = |path: &Path| File::options().read(true).write(true).open(path).unwrap();
    let touches: [(&str, &dyn Fn(&Path)); 5] = [
        ("one byte", &|path| open(path).write_all_at(b"x", 100).unwrap()),
        ("truncated", &|path| open(path).set_len(path.metadata().unwrap().len() / 2).unwrap()),
        ("removed", &|path| fs::remove_file(path).unwrap()),
        ("copied", &|path| {
            fs::copy(path, path.with_extension("copy")).unwrap();
            fs::rename(path.with_extension("copy"), path).unwrap();
        }),
        ("times", &|path| open(path).set_modified(path.metadata().unwrap().modified().unwrap()).unwrap()),
    ];
    for (what, touch) in touches {
        for name in [RAW, QCOW2] {
            touch(&request.out.join(name));
            let touched = files(&request.out);
            run(&request);
            let inode =
                |files: &[(String, u64, (i64, i64))]| files.iter().find(|file| file.0 == name).map(|file| file.1);
            assert_ne!(inode(&files(&request.out)), inode(&touched), "{name}: {what}");
            assert_as_from_nothing(&request, &format!("{name}: {what}"));
        }
    }
    for name in BESIDE {
        fs::write(request.out.join(name), "{}").unwrap();
        run(&request);
        assert_as_from_nothing(&request, name);
    }
}

#[test]
fn a_damaged_record_is_not_believed() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = Request { force: true, ..both(dir.path()) };
    run(&request);
    let damages: [(&str, &dyn Fn(&mut Vec<u8>)); 4] = [
        ("one bit", &|bytes| bytes[40] ^= 1),
        ("a bit of the index", &|bytes| {
            let at = bytes.len() - 40;
            bytes[at] ^= 1;
        }),
        ("truncated", &|bytes| bytes.truncate(bytes.len() - 1)),
        ("empty", &Vec::clear),
    ];
    for (what, damage) in damages {
        let before = files(&request.out);
        for path in records(&request) {
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
        }
        run(&request);
        assert_ne!(files(&request.out), before, "{what}");
        assert_as_from_nothing(&request, what);
    }
}

#[test]
fn a_store_that_takes_no_records_does_not_matter() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = Request { force: true, ..both(dir.path()) };
    fs::write(request.store.root().join("bakes"), "not a folder").unwrap();
    let first = run(&request);
    let before = files(&request.out);
    assert_eq!(run(&request), first);
    assert_ne!(files(&request.out), before);
    assert_as_from_nothing(&request, "no records");
}

#[test]
fn a_bake_that_is_killed_loses_nothing() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = Request { formats: vec![Format::Qcow2], force: true, ..both(dir.path()) };
    // The system kills whoever writes more to a file than this, in blocks of 512 bytes.
    let vmbake = |limit: &str| {
        let mut command = Command::new("sh");
        let arg = |path: &Path| path.to_str().unwrap().to_owned();
        command.args([
            "-c",
            &format!("ulimit -c 0; ulimit -f {limit}; exec \"$@\""),
            "sh",
            env!("CARGO_BIN_EXE_vmbake"),
        ]);
        command.args(["bake", "tools", "--os", "o", "--offline", "--force", "--format", "qcow2"]);
        for (option, path) in [
            ("--manifest", &request.manifest),
            ("--base", request.base.as_ref().unwrap()),
            ("--layers", request.layers.as_ref().unwrap()),
            ("--store", &request.store.root().to_owned()),
            ("--out", &request.out),
        ] {
            command.args([option.to_owned(), arg(path)]);
        }
        command.output().unwrap()
    };
    let done = vmbake("unlimited");
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let before = files(&request.out);
    let conf = dir.path().join("layers/tools/files/etc/tool.conf");
    fs::write(&conf, "tool = 2\n").unwrap();
    // In the middle of the image.
    let killed = vmbake("200");
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&killed.status), Some(25), "SIGXFSZ: {killed:?}");
    assert_eq!(files(&request.out), before, "the outputs are the old ones, and nothing else is there");
    let done = vmbake("unlimited");
    assert!(done.status.success() && String::from_utf8_lossy(&done.stderr).contains("wrote"), "{done:?}");
    assert_as_from_nothing(&request, "after a kill");
    let unchanged = vmbake("unlimited");
    assert!(String::from_utf8_lossy(&unchanged.stderr).contains("unchanged"), "{unchanged:?}");
}

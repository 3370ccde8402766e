//! Baking again to the same directory: unchanged outputs stay, changed ones equal a clean bake, and modified caches are not trusted.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use vmbake_bake::{BakeError, BakeRequest, bake_all};
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;
use vmbake_disk::image::Format;
use vmbake_store::store::Store;

use super::bakery::{TOOL, bake, can_bake, pack, qcow2_base, request};

const RAW: &str = "tools.o.amd64.raw";
const QCOW2: &str = "tools.o.amd64.qcow2";
const SIDECARS: [&str; 4] =
    ["tools.o.amd64.json", "tools.o.amd64.origin.json", "tools.o.amd64.inputs.json", "tools.o.amd64.provenance.json"];
const SUMS: [&str; 2] = ["SHA256SUMS", "FSVERITYSUMS"];

/// Something that is done to a bake, and what to call it.
type Way<'a, T> = (&'static str, &'a dyn Fn(&mut T));

/// A bake of both formats to `out`.
fn both(dir: &Path) -> BakeRequest {
    let base = dir.join("base.qcow2");
    let base = if base.exists() { base } else { qcow2_base(dir) };
    BakeRequest { formats: vec![Format::Raw.into(), Format::Qcow2.into()], ..request(dir, base, "out", 2) }
}

/// Bakes; returns what is reported.
fn run(request: &BakeRequest) -> String {
    serde_json::to_string(&bake(request).unwrap()).unwrap()
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

/// A store in `root` with what was downloaded for `request` alone.
fn blobs_of(request: &BakeRequest, root: &Path) -> Store {
    let store = Store::open(Some(root.to_owned())).unwrap();
    for blob in [TOOL, &pack(), super::bakery::sums().1.as_bytes()] {
        assert!(request.store.blob(&Digest::of(blob)).unwrap().is_some());
        store.insert(blob).unwrap();
    }
    store
}

/// Bakes the same from nothing, elsewhere, and compares every file.
fn assert_as_from_nothing(request: &BakeRequest, what: &str) {
    assert_same_by(request, what, |cold| drop(run(cold)));
}

/// The same for what another program than this one bakes.
fn assert_same_by(request: &BakeRequest, what: &str, bake: impl FnOnce(&BakeRequest)) {
    // No earlier bake to that directory, or from that store.
    let elsewhere = tempfile::tempdir_in(request.out.parent().unwrap()).unwrap();
    let store = blobs_of(request, &elsewhere.path().join("store"));
    let cold = BakeRequest { out: elsewhere.path().join("out"), store, ..request.clone() };
    bake(&cold);
    let names = |folder: &Path| files(folder).into_iter().map(|(name, ..)| name).collect::<Vec<_>>();
    assert_eq!(names(&request.out), names(&cold.out), "{what}");
    for name in names(&cold.out) {
        let same = fs::read(request.out.join(&name)).unwrap() == fs::read(cold.out.join(&name)).unwrap();
        assert!(same, "{what}: {name} differs");
    }
}

/// The records in the store.
fn records(request: &BakeRequest) -> Vec<PathBuf> {
    fs::read_dir(request.store.root().join("bakes")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Bakes by the program, which the system kills when it writes more to a file than `limit`, in blocks of 512 bytes.
fn vmbake(request: &BakeRequest, limit: &str, what: &[&str]) -> Output {
    let mut command = Command::new("sh");
    let limit = format!("ulimit -c 0; ulimit -f {limit}; exec \"$@\"");
    command.args(["-c", &limit, "sh", env!("CARGO_BIN_EXE_vmbake"), "bake"]);
    command.args(["--os", "o", "--offline", "--no-builtin", "--force", "--format", "qcow2"]).args(what);
    for (option, path) in [
        ("--base", request.base.as_ref().unwrap().as_path()),
        ("--layers", &request.manifest.with_file_name("layers")),
        ("--store", request.store.root()),
        ("--sources", &request.manifest.with_file_name("sources.json")),
        ("--out", &request.out),
    ] {
        command.arg(option).arg(path);
    }
    command.output().unwrap()
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
    assert_eq!(before.len(), 10, "{before:?}");
    assert_eq!(records(&request).len(), 2);
    for force in [false, true] {
        let request = BakeRequest { force, ..both(dir.path()) };
        assert_eq!(run(&request), first, "--force {force}");
        assert_eq!(files(&request.out), before, "--force {force}");
    }
    let one = BakeRequest { formats: vec![Format::Qcow2.into()], ..both(dir.path()) };
    assert!(
        first.contains(run(&one).split_once("outputs").unwrap().1.trim_start_matches("\":[").trim_end_matches("]}"))
    );
    assert_eq!(files(&request.out), before);

    SUMS.iter().for_each(|list| fs::remove_file(request.out.join(list)).unwrap());
    run(&request);
    assert_as_from_nothing(&request, "digests are listed again");
    let images = |files: &[(String, u64, (i64, i64))]| {
        files.iter().filter(|(name, ..)| !SUMS.contains(&name.as_str())).cloned().collect::<Vec<_>>()
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
    let changes: [Way<'_, BakeRequest>; 5] = [
        ("content", &|_| fs::write(&conf, "tool = 2\n").unwrap()),
        ("longer content", &|_| fs::write(&conf, "tool = 3\n".repeat(20_000)).unwrap()),
        ("content as before", &|_| fs::write(&conf, "tool = 1\n").unwrap()),
        ("size", &|request| request.size = Some(96 << 20)),
        ("one format", &|request| request.formats = vec![Format::Qcow2.into()]),
    ];
    for (what, change) in changes {
        let mut request = both(dir.path());
        change(&mut request);
        let before = files(&request.out);
        let error = bake(&request).unwrap_err();
        assert!(matches!(error, BakeError::Publish(PublishError::Exists { .. })), "{what}: {error}");
        assert_eq!(files(&request.out), before, "{what}: nothing is replaced without --force");
        request.force = true;
        run(&request);
        assert_ne!(files(&request.out), before, "{what}");
        if request.formats.len() == 1 {
            fs::remove_file(request.out.join(RAW)).unwrap();
            SUMS.iter().for_each(|list| fs::remove_file(request.out.join(list)).unwrap());
            run(&request);
        }
        assert_as_from_nothing(&request, what);
    }
}

#[test]
fn several_are_baked_as_each_by_itself() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let one = both(dir.path());
    let renamed = dir.path().join("other.json");
    let text = fs::read_to_string(&one.manifest).unwrap();
    fs::write(&renamed, text.replace(r#""version": "dev", "kind": "tools""#, r#""version": "2", "kind": "tools""#))
        .unwrap();
    let other = BakeRequest { manifest: renamed, size: Some(96 << 20), out: dir.path().join("other"), ..one.clone() };
    let missing = BakeRequest { manifest: dir.path().join("none.json"), ..one.clone() };
    let mut reports = Vec::new();
    let all = |requests: &[BakeRequest], reports: &mut Vec<String>| {
        bake_all::<BakeError>(requests, true, |baked| {
            reports.push(serde_json::to_string(&baked).unwrap());
            Ok(())
        })
    };
    let error = all(&[one.clone(), other.clone(), missing, one.clone()], &mut reports).unwrap_err();
    assert!(matches!(error, BakeError::Manifest(_)), "{error}");
    assert_eq!(reports.len(), 2, "those before the one that cannot be baked are there");
    for request in [&one, &other] {
        assert_as_from_nothing(request, "one of several");
    }
    all(&[one, other], &mut reports).unwrap();
    assert_eq!(reports[..2], reports[2..], "nothing has changed");
}

#[test]
fn what_was_touched_is_baked_again() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = BakeRequest { force: true, ..both(dir.path()) };
    run(&request);
    let open = |path: &Path| File::options().read(true).write(true).open(path).unwrap();
    let touches: [Way<'_, PathBuf>; 5] = [
        ("one byte", &|path| open(path).write_all_at(b"x", 100).unwrap()),
        ("truncated", &|path| open(path).set_len(path.metadata().unwrap().len() / 2).unwrap()),
        ("removed", &|path| fs::remove_file(path).unwrap()),
        ("copied", &|path| {
            fs::copy(&*path, path.with_extension("copy")).unwrap();
            fs::rename(path.with_extension("copy"), path).unwrap();
        }),
        ("times", &|path| open(path).set_modified(path.metadata().unwrap().modified().unwrap()).unwrap()),
    ];
    for (what, touch) in touches {
        for name in [RAW, QCOW2] {
            touch(&mut request.out.join(name));
            let touched = files(&request.out);
            run(&request);
            let inode =
                |files: &[(String, u64, (i64, i64))]| files.iter().find(|file| file.0 == name).map(|file| file.1);
            assert_ne!(inode(&files(&request.out)), inode(&touched), "{name}: {what}");
            assert_as_from_nothing(&request, &format!("{name}: {what}"));
        }
    }
    for name in SIDECARS {
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
    let request = BakeRequest { force: true, ..both(dir.path()) };
    run(&request);
    let damages: [Way<'_, Vec<u8>>; 4] = [
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
    let request = BakeRequest { force: true, ..both(dir.path()) };
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
    let request = BakeRequest { formats: vec![Format::Qcow2.into()], force: true, ..both(dir.path()) };
    let manifest = request.manifest.to_str().unwrap();
    let by_program = |request: &BakeRequest, limit: &str| vmbake(request, limit, &["tools", "--manifest", manifest]);
    let vmbake = |limit: &str| by_program(&request, limit);
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
    assert_same_by(&request, "after a kill", |cold| assert!(by_program(cold, "unlimited").status.success()));
    let unchanged = vmbake("unlimited");
    assert!(String::from_utf8_lossy(&unchanged.stderr).contains("unchanged"), "{unchanged:?}");
}

#[test]
fn kinds_that_are_baked_by_one_command_are_as_from_nothing() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = BakeRequest { formats: vec![Format::Qcow2.into()], ..both(dir.path()) };
    // The same kind by another name, with a file more.
    let layers = request.manifest.with_file_name("layers");
    assert!(Command::new("cp").arg("-r").args([layers.join("tools"), layers.join("more")]).status().unwrap().success());
    fs::write(layers.join("more/files/etc/more.conf"), "more\n".repeat(50_000)).unwrap();
    let renamed = |path: PathBuf| fs::read_to_string(path).unwrap().replace(r#": "tools""#, r#": "more""#);
    fs::write(layers.join("more/layer.json"), renamed(layers.join("tools/layer.json"))).unwrap();
    let manifests = dir.path().join("manifests");
    fs::create_dir(&manifests).unwrap();
    fs::write(manifests.join("more.o.amd64.json"), renamed(request.manifest.clone())).unwrap();
    fs::copy(&request.manifest, manifests.join("tools.o.amd64.json")).unwrap();

    let folder = ["--manifests", manifests.to_str().unwrap()];
    let done = vmbake(&request, "unlimited", &[&["tools", "more", "tools", "--json"], &folder[..]].concat());
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let found: Vec<Value> =
        serde_json::Deserializer::from_slice(&done.stdout).into_iter().map(Result::unwrap).collect();
    let names: Vec<&str> = found.iter().map(|baked| baked["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tools.o.amd64", "more.o.amd64"], "each once");
    let alone = request.out.with_file_name("alone");
    for kind in ["tools", "more"] {
        let store = blobs_of(&request, &dir.path().join(kind));
        let alone = BakeRequest { out: alone.clone(), store, ..request.clone() };
        let done = vmbake(&alone, "unlimited", &[&[kind], &folder[..]].concat());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
    for (name, ..) in files(&alone) {
        assert!(fs::read(request.out.join(&name)).unwrap() == fs::read(alone.join(&name)).unwrap(), "{name}");
    }
    assert_eq!(files(&alone).len(), files(&request.out).len());

    let refused = vmbake(&request, "unlimited", &["tools", "more", "--manifest", "x.json"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--manifests"), "{refused:?}");
    let refused = vmbake(&request, "unlimited", &["tools", "--arch", "amd64,arm64"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("--base needs a single architecture"), "{refused:?}");
}

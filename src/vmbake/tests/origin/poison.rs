//! A poisoned store: `--no-cache` does not use it, and `store verify` repairs it.

use std::fs::{self, File};
use std::num::NonZeroUsize;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use vmbake_bake::{BakeError, BakeRequest};
use vmbake_common::digest::Digest;
use vmbake_disk::image::Format;
use vmbake_fetch::verify::VerifyError;
use vmbake_store::store::DecodedForm;

use super::bakery::{TOOL, bake, base_of, can_bake, poison as poison_blob, qcow2_base, request};

/// A text of the base, and what a poisoned one has in its place.
const TEXT: &[u8] = b"root:/root:/bin/sh";
const POISON: &[u8] = b"root:/root:/bin/sH";

fn open(path: &Path) -> File {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    File::options().read(true).write(true).open(path).unwrap()
}

/// Replaces every place of the text in a file.
fn poison(path: &Path) {
    let content = fs::read(path).unwrap();
    let places = content.windows(TEXT.len()).enumerate().filter(|(_, found)| *found == TEXT);
    let file = open(path);
    assert!(places.map(|(at, _)| file.write_all_at(POISON, at as u64).unwrap()).count() > 0);
}

/// The cache entry of an unmodified file.
fn stamp(path: &Path) -> Value {
    let meta = path.metadata().unwrap();
    json!({
        "device": meta.dev(), "inode": meta.ino(), "len": meta.len(),
        "mtime": [meta.mtime(), meta.mtime_nsec()], "ctime": [meta.ctime(), meta.ctime_nsec()],
        "boot": fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap().trim(),
    })
}

/// Writes what the store has `seen` of a file.
fn pretend_seen(request: &BakeRequest, path: &Path, digest: &Digest) {
    let meta = path.metadata().unwrap();
    let seen = request.store.root().join("seen");
    fs::create_dir_all(&seen).unwrap();
    let record = json!({ "path": path, "stamp": stamp(path), "digest": digest });
    fs::write(seen.join(format!("{:x}-{:x}", meta.dev(), meta.ino())), record.to_string()).unwrap();
}

fn records(request: &BakeRequest) -> Vec<PathBuf> {
    fs::read_dir(request.store.root().join("bakes")).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// The raw image that a bake to another place makes.
fn image(request: &BakeRequest, out: &str) -> Vec<u8> {
    let request = BakeRequest { out: request.out.with_file_name(out), ..request.clone() };
    fs::read(&bake(&request).unwrap().outputs[0].path).unwrap()
}

fn verify(request: &BakeRequest) -> usize {
    request.store.verify(NonZeroUsize::MIN).unwrap().1.len()
}

#[test]
fn decoded_forms_are_made_again() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = qcow2_base(dir.path());
    let request = request(dir.path(), base.clone(), "out", 2);
    let right = image(&request, "right");
    let form = request.store.form(&Digest::of(&fs::read(&base).unwrap()), DecodedForm::Disk);
    poison(&form);
    fs::write(format!("{}.json", form.display()), stamp(&form).to_string()).unwrap();
    assert!(image(&request, "poisoned") != right, "the owner of a store can do that");
    let uncached = BakeRequest { store: request.store.clone().without_caches(), ..request.clone() };
    assert!(image(&uncached, "uncached") == right);
    assert!(image(&request, "poisoned again") != right, "nothing was kept");
    assert_eq!(verify(&request), 0);
    assert!(image(&request, "verified") == right);
}

#[test]
fn files_are_hashed_again() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let base = base_of(dir.path());
    let request = request(dir.path(), base.clone(), "out", 2);
    let right = image(&request, "right");
    let digest = Digest::of(&fs::read(&base).unwrap());
    poison(&base);
    pretend_seen(&request, &base, &digest);
    assert!(image(&request, "poisoned") != right);
    let uncached = BakeRequest { store: request.store.clone().without_caches(), ..request.clone() };
    let refused = |request: &BakeRequest, out: &str| {
        let error = bake(&BakeRequest { out: request.out.with_file_name(out), ..request.clone() }).unwrap_err();
        assert!(matches!(error, BakeError::Verify(VerifyError::Digest { .. })), "{error}");
    };
    refused(&uncached, "uncached");
    assert_eq!(verify(&request), 0);
    refused(&request, "verified");
    // A blob as well, which goes.
    poison_blob(&request.store, TOOL);
    refused(&request, "blob");
    assert_eq!(verify(&request), 1);
    assert!(request.store.blob(&Digest::of(TOOL)).unwrap().is_none());
}

#[test]
fn records_of_bakes_go() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let formats = vec![Format::Raw.into(), Format::Qcow2.into()];
    let request = BakeRequest { formats, force: true, ..request(dir.path(), qcow2_base(dir.path()), "out", 2) };
    let report = |request: &BakeRequest| serde_json::to_value(bake(request).unwrap().outputs).unwrap();
    let right = report(&request);
    let sums = || ["SHA256SUMS", "FSVERITYSUMS"].map(|list| fs::read(request.out.join(list)).unwrap());
    let listed = sums();
    for path in records(&request) {
        let bytes = fs::read(&path).unwrap();
        let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
        let mut head: Value = serde_json::from_slice(&bytes[..end]).unwrap();
        let sum = head["image"]["checksum"].as_object_mut().unwrap();
        sum.values_mut().for_each(|digest| *digest = Digest::of(b"poison").to_string().into());
        let mut text = head.to_string().into_bytes();
        text.extend(&bytes[end..bytes.len() - 32]);
        let sum = Sha256::digest(&text);
        text.extend(sum);
        fs::write(&path, text).unwrap();
    }
    assert_ne!(report(&request), right, "the owner of a store can do that");
    let uncached = BakeRequest { store: request.store.clone().without_caches(), ..request.clone() };
    assert_eq!(report(&uncached), right);
    assert!(sums() == listed);
    assert_eq!(verify(&request), 0);
    assert_eq!(records(&request), Vec::<PathBuf>::new());
    assert_eq!(report(&request), right);
    assert!(sums() == listed);
}

#[test]
fn a_bake_without_caches_makes_the_same_and_leaves_nothing() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let formats = vec![Format::Raw.into(), Format::Qcow2.into()];
    let request = BakeRequest { formats, force: true, ..request(dir.path(), qcow2_base(dir.path()), "out", 2) };
    let files = |out: &Path| {
        let mut files: Vec<_> = fs::read_dir(out).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
            .into_iter()
            .map(|path| (path.file_name().unwrap().to_owned(), fs::read(&path).unwrap()))
            .collect::<Vec<_>>()
    };
    let uncached = BakeRequest { store: request.store.clone().without_caches(), ..request.clone() };
    bake(&uncached).unwrap();
    let cold = files(&request.out);
    assert_eq!(cold.len(), 10);
    for folder in ["seen", "decoded", "bakes"] {
        assert!(!request.store.root().join(folder).exists(), "{folder}");
    }
    let written = |path: &str| request.out.join(path).metadata().unwrap().ino();
    bake(&request).unwrap();
    bake(&request).unwrap();
    let warm = (written("tools.o.amd64.raw"), written("tools.o.amd64.qcow2"));
    assert!(files(&request.out) == cold);
    let _open = [".raw", ".qcow2"].map(|end| File::open(request.out.join(format!("tools.o.amd64{end}"))).unwrap());
    bake(&uncached).unwrap();
    assert_ne!((written("tools.o.amd64.raw"), written("tools.o.amd64.qcow2")), warm, "made again");
    assert!(files(&request.out) == cold);
}

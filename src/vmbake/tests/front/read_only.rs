//! A read-only store: only complete blobs in it are used.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use vmbake_common::digest::Digest;

use super::errors::{Home, stderr};
use crate::origin::bakery::{TOOL, request};

/// Sets the modes of everything below a folder, to which its owner alone can write if at all.
fn set(path: &Path, writable: bool) {
    let is_dir = path.is_dir();
    let mode = 0o444 | if is_dir { 0o111 } else { 0 } | if writable { 0o200 } else { 0 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    if is_dir {
        fs::read_dir(path).unwrap().for_each(|entry| set(&entry.unwrap().path(), writable));
    }
}

#[test]
fn a_complete_one_is_enough_for_fetch() {
    let home = Home::new();
    let base = home.path("base.raw");
    fs::write(&base, "no disk").unwrap();
    let request = request(&home.path("."), base, "out", 1);
    let store = request.store.root().to_owned();
    let args = [
        "fetch",
        "tools",
        "--no-builtin=layers",
        "--os",
        "o",
        "--manifest",
        "manifest.json",
        "--sources",
        "sources.json",
        "--store",
        "store",
    ];

    set(&store, false);
    let output = home.vmbake(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains(" verified  2 artifacts"), "{}", stderr(&output));
    assert!(!stderr(&output).contains("  fetched  "), "{}", stderr(&output));

    set(&store, true);
    fs::remove_file(request.store.path(&Digest::of(TOOL))).unwrap();
    set(&store, false);
    let output = home.vmbake(&args);
    let said = stderr(&output);
    assert!(output.status.code() == Some(1) && said.contains("cannot write to the store"), "{said}");
    assert!(said.contains("hint: use --store to choose a writable store"), "{said}");
    // So that it can be removed.
    set(&store, true);
}

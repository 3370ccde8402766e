//! Layers and artifacts cannot contain the files that a bake writes itself.

use std::fs;
use std::path::Path;

use vmbake::cli::error_report::hint;
use vmbake_bake::BakeRequest;
use vmbake_common::digest::Digest;
use vmbake_compose::origin::RECORD;
use vmbake_disk::tree::Tree;
use vmbake_image::inspect::open_tree;

use super::bakery::{bake, base_of, can_bake, pack, pack_of, request};
use super::image::{change, file, link};

const SHARE: &str = "/opt/podplane/share";

/// A request on a base with this link to the directory of the records.
fn on_base(dir: &Path, linked: &str) -> BakeRequest {
    let base = dir.join("linked.raw");
    change(&base_of(dir), &base, |tree: &mut Tree| {
        file(tree, &format!("{SHARE}/kept"), "");
        link(tree, linked, SHARE);
    });
    request(dir, base, "out", 1)
}

/// Replaces text in the layer `tools`.
fn edit(dir: &Path, from: &str, to: &str) {
    let path = dir.join("layers/tools/layer.json");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

/// Fails the bake with exactly this error.
fn refused(request: &BakeRequest, expected: &str) {
    let error = bake(request).unwrap_err();
    assert_eq!(error.to_string(), expected);
    assert!(hint(&error).unwrap().contains("remove the file from the layer"));
}

fn contains(path: &str, writer: &str) -> String {
    format!("{path}: {writer} contains it, but the bake writes this file itself")
}

#[test]
fn a_file_behind_a_link_is_refused() {
    if !can_bake() {
        return;
    }
    for name in ["firstboot.json", "vmconfig-installed.json", "vmbake-origin.json"] {
        let dir = tempfile::tempdir().unwrap();
        let request = on_base(dir.path(), "/shared");
        let files = dir.path().join("layers/tools/files/shared");
        fs::create_dir_all(&files).unwrap();
        fs::write(files.join(name), "{}").unwrap();
        refused(&request, &contains(&format!("{SHARE}/{name}"), "layer tools"));
        // A link counts as well, also one that leads nowhere.
        fs::remove_dir_all(dir.path().join("layers/tools/files/shared")).unwrap();
        edit(dir.path(), r#""/usr/bin/t": "tool""#, &format!(r#""/shared/{name}": "/none""#));
        refused(&request, &contains(&format!("{SHARE}/{name}"), "layer tools"));
    }
}

#[test]
fn a_file_of_an_artifact_is_refused() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = on_base(dir.path(), "/shared");
    edit(dir.path(), "/usr/bin/tool", "/shared/firstboot.json");
    refused(&request, &contains(&format!("{SHARE}/firstboot.json"), "artifact tool of layer tools"));
    edit(dir.path(), "/shared/firstboot.json", "/usr/bin/tool");

    // As a member of an archive.
    let (before, after) = (pack(), pack_of("vmbake-origin.json"));
    request.store.insert(&after).unwrap();
    let text = fs::read_to_string(&request.manifest).unwrap();
    let text = text.replace(&Digest::of(&before).to_string(), &Digest::of(&after).to_string());
    fs::write(
        &request.manifest,
        text.replace(&format!(r#""size": {}"#, before.len()), &format!(r#""size": {}"#, after.len())),
    )
    .unwrap();
    edit(dir.path(), "/opt/pack", SHARE);
    refused(&request, &contains(RECORD, "artifact pack of layer tools"));
}

#[test]
fn what_a_layer_removes_is_written_nevertheless() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = on_base(dir.path(), "/shared");
    edit(dir.path(), r#""symlinks""#, r#""remove": ["/opt/podplane/share/*", "/shared/firstboot.json"], "symlinks""#);
    bake(&request).unwrap();
    let tree = open_tree(&request.out.join("tools.o.amd64.raw"), None).unwrap();
    for path in [RECORD, "/opt/podplane/share/vmconfig-installed.json"] {
        assert!(tree.lookup(path.as_bytes()).is_some(), "{path}");
    }
}

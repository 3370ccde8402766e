//! Unusual bases: an image that vmbake baked, and one that already has a package of the manifest.

use std::fs;
use std::path::Path;

use vmbake::cli::error_report::hint;
use vmbake_bake::{BakeError, BakeRequest};
use vmbake_common::digest::Digest;
use vmbake_compose::origin::{OriginError, RECORD, Record};
use vmbake_disk::tree::{Kind, Tree};
use vmbake_image::inspect::open_tree;
use vmbake_query::explain::explain;

use super::bakery::{bake, baked, can_bake, request};
use super::image::{change, content, put, text, vmbake};
use crate::fixtures::{control, deb, file as member};

/// What a tree has, path by path, without the record of origins, and without the manifest, which pins the base.
fn paths(image: &Path) -> Vec<String> {
    let tree = open_tree(image, None).unwrap();
    let of = |path: &[u8]| match &tree.inode(tree.lookup(path).unwrap()).kind {
        Kind::File(_) => Digest::of(&tree.read(path, 64 << 20).unwrap()).hex(),
        Kind::Symlink(to) => String::from_utf8_lossy(to).into_owned(),
        other => other.name().to_owned(),
    };
    let node = |path: &[u8], inode: &vmbake_disk::tree::Inode| {
        let meta = &inode.meta;
        format!("{} {:o} {} {} {}", String::from_utf8_lossy(path), meta.mode, meta.uid, meta.gid, of(path))
    };
    let told = [RECORD, "/opt/podplane/share/vmconfig-installed.json"];
    let all = tree.walk().filter(|(path, ..)| !told.iter().any(|own| path == own.as_bytes()));
    all.map(|(path, _, inode)| node(&path, inode)).collect()
}

#[test]
fn a_baked_image_is_a_base() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let first = out.join("tools.o.amd64.raw");
    let base = dir.path().join("first.raw");
    fs::copy(&first, &base).unwrap();
    let again = |out: &str, threads| {
        let request = request(dir.path(), base.clone(), out, threads);
        bake(&request).unwrap();
        request.out.join("tools.o.amd64.raw")
    };
    let (second, third) = (again("second", 1), again("third", 2));
    assert!(fs::read(&second).unwrap() == fs::read(&third).unwrap(), "the same bytes");
    assert_eq!(paths(&second), paths(&first));

    // What the earlier bake removed was not in this base; what it brought is brought again.
    let record = |image: &Path| {
        let tree = open_tree(image, None).unwrap();
        Record::parse("r", &tree.read(RECORD.as_bytes(), 1 << 20).unwrap()).unwrap()
    };
    let (before, after) = (record(&first), record(&second));
    assert!(after.removed.is_empty() && !before.removed.is_empty());
    let gone: Vec<_> = before.paths.keys().filter(|path| !after.paths.contains_key(*path)).collect();
    // Existing directories belong to the base.
    assert_eq!(gone, ["/opt", "/opt/pack", "/opt/podplane", "/opt/podplane/bin", "/opt/podplane/share"]);
}

/// A request for another kind, whose only layer does what that of the first kind does.
fn other_kind(dir: &Path, base: std::path::PathBuf) -> BakeRequest {
    let mut request = request(dir, base, "other", 1);
    let replace = |from: &Path, to: &Path| {
        let text = fs::read_to_string(from).unwrap().replace(r#""tools""#, r#""other""#);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, text).unwrap();
    };
    replace(&request.manifest, &request.manifest);
    let layers = dir.join("layers");
    replace(&layers.join("tools/layer.json"), &layers.join("other/layer.json"));
    request.kind = "other".to_owned();
    request
}

#[test]
fn what_a_base_left_to_the_first_boot_is_not_lost() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let first = out.join("tools.o.amd64.raw");
    let error = bake(&other_kind(dir.path(), first.clone())).unwrap_err();
    assert!(matches!(&error, BakeError::Origin(OriginError::Lost { layer }) if layer == "tools"), "{error}");
    let expected = "the base was baked with layer tools, which this image lacks: packages that it deferred to the \
        first boot would be lost";
    assert_eq!(error.to_string(), expected);
    assert!(hint(&error).unwrap().contains("require tools in a layer of the kind"));

    // A record that cannot be read stops a bake as well, since losses would be unknown.
    let damaged = dir.path().join("damaged.raw");
    change(&first, &damaged, |tree| {
        let kind = content(tree, b"{}");
        put(tree, RECORD.as_bytes(), kind);
    });
    let error = bake(&other_kind(dir.path(), damaged)).unwrap_err();
    assert!(matches!(error, BakeError::Origin(OriginError::Base(_))), "{error}");
}

/// A request whose layer installs the package `dash` in `version`, with more keys.
fn with_package(dir: &Path, base: std::path::PathBuf, version: &str, keys: &str) -> BakeRequest {
    let request = request(dir, base, &format!("out-{version}"), 1);
    let control = control("dash", "").replace("Version: 1.0-1", &format!("Version: {version}"));
    let bytes = deb(&control, &[], &[member("./usr/bin/dash", "the manifest's")]);
    let digest = Digest::of(&bytes);
    let path = request.store.path(&digest);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, &bytes).unwrap();
    let edit = |path: &Path, from: &str, to: &str| {
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains(from));
        fs::write(path, text.replacen(from, to, 1)).unwrap();
    };
    let entry = format!(
        r#""dependencies": {{"shell": {{"version": "{version}", "url": "https://example.org", "type": "deb", "digest": "{digest}", "size": {}}},"#,
        bytes.len()
    );
    edit(&request.manifest, r#""dependencies": {"#, &entry);
    let layer = dir.join("layers/tools/layer.json");
    edit(&layer, r#""artifacts": {"#, &format!(r#"{keys}"artifacts": {{"shell": {{"type": "deb"}},"#));
    request
}

#[test]
fn a_package_that_the_base_has_is_recorded_as_its() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    baked(dir.path(), 1);
    let base = dir.path().join("base.raw");
    let request = with_package(dir.path(), base.clone(), "0.5.12-12", "");
    bake(&request).unwrap();
    let image = request.out.join("tools.o.amd64.raw");
    let tree = open_tree(&image, None).unwrap();
    let record = Record::parse("r", &tree.read(RECORD.as_bytes(), 1 << 20).unwrap()).unwrap();
    assert_eq!(record.artifacts.keys().collect::<Vec<_>>(), ["firstboot", "pack", "tool"]);
    let kept = &record.kept["shell"];
    assert_eq!([&kept.layer, &kept.package, &kept.version], ["tools", "dash", "0.5.12-12"]);
    assert!(!record.paths.keys().any(|path| path.contains("dash") || path.contains("dpkg")));
    assert_eq!(read(&tree, "/usr/bin/dash"), "dash");

    let told = explain(&image, None, b"/usr/bin/sh", None).unwrap();
    assert_eq!(told.kept.as_ref().map(|kept| (kept.name.as_str(), kept.layer.as_str())), Some(("shell", "tools")));
    assert!(told.layer.is_none() && told.artifact.is_none() && told.base.is_some());
    let line = "kept      artifact shell 0.5.12-12: already in the base image, not installed by layer tools\n";
    assert!(told.to_string().contains(line), "{told}");
    assert!(explain(&image, None, b"/usr/bin/tool", None).unwrap().kept.is_none());
    let json = vmbake(&["explain", "--json", image.to_str().unwrap(), "/usr/bin/tool"]);
    assert!(json.status.success() && !text(&json.stdout).contains("kept"));
}

#[test]
fn another_version_names_both_and_what_to_do() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    baked(dir.path(), 1);
    let base = dir.path().join("base.raw");
    let error = bake(&with_package(dir.path(), base.clone(), "0.6-1", "")).unwrap_err();
    assert_eq!(error.to_string(), "dash: the base has version 0.5.12-12, but the manifest pins 0.6-1");
    let hint = hint(&error).unwrap();
    assert!(hint.starts_with("to upgrade it, add to layer tools: \"upgrade\": [\"shell\"]"), "{hint}");

    let request = with_package(dir.path(), base, "0.6-1", r#""upgrade": ["shell"], "#);
    bake(&request).unwrap();
    let tree = open_tree(&request.out.join("tools.o.amd64.raw"), None).unwrap();
    let record = Record::parse("r", &tree.read(RECORD.as_bytes(), 1 << 20).unwrap()).unwrap();
    assert_eq!(read(&tree, "/usr/bin/dash"), "the manifest's");
    assert_eq!(record.paths["/usr/bin/dash"].artifact.as_deref(), Some("shell"));
    assert!(record.kept.is_empty() && read(&tree, "/var/lib/dpkg/status").contains("Version: 0.6-1\n"));
}

fn read(tree: &Tree, path: &str) -> String {
    String::from_utf8(tree.read(path.as_bytes(), 1 << 20).unwrap()).unwrap()
}

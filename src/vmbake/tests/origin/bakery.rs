//! A complete bake of a small image: a base disk, two layers, a program, an archive, and the first-boot program.

use std::fs;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use vmbake_bake::release::provenance::BuilderId;
use vmbake_bake::{BakeError, BakeRequest, Baked, bake_all};
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_disk::image::Format;
use vmbake_disk::tree::Tree;
use vmbake_embedded::program;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

use super::image::{self, TOOLS, file, link};
use crate::tools::have;

/// Required proof of the tool; the pack was pinned manually.
const SOURCES: &str = r#"{
  "archives": {},
  "systems": {"o": {"codename": "o", "kinds": ["more", "other", "tools"], "arches": ["amd64"],
    "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://example.org/base-{version}", "proof": "first-use"}}},
  "dependencies": [{"name": "tool", "kinds": ["more", "other", "tools"],
    "upstream": {"type": "binary", "version": {"pinned": "1.2"}, "url": "https://example.org/{version}", "checksums": "{url}.sha256",
      "proof": "checksum"}}]
}"#;

/// Puts something else into a blob of the store.
pub fn poison(store: &Store, blob: &[u8]) {
    let path = store.path(&Digest::of(blob));
    fs::remove_file(&path).unwrap();
    fs::write(path, vec![b'x'; blob.len()]).unwrap();
}

pub const TOOL: &[u8] = b"#!/bin/sh\necho tool\n";

/// Whether an image can be baked here. In CI it must be possible.
pub fn can_bake() -> bool {
    if program("amd64").is_err() {
        crate::tools::skip::skip("this vmbake has no first-boot program");
        return false;
    }
    have(&TOOLS)
}

/// Bakes into `dir/out-<threads>`.
pub fn baked(dir: &Path, threads: usize) -> (Baked, PathBuf) {
    let base = dir.join("base.raw");
    if !base.exists() {
        image::write_disk(&base_tree(), &base);
    }
    let request = request(dir, base, &format!("out-{threads}"), threads);
    (bake(&request).unwrap(), request.out)
}

/// Bakes one image.
pub fn bake(request: &BakeRequest) -> Result<Baked, BakeError> {
    let mut baked = Vec::new();
    bake_all::<BakeError>(std::slice::from_ref(request), true, |image| {
        baked.push(image);
        Ok(())
    })?;
    Ok(baked.remove(0))
}

/// The base alone, in `dir`.
pub fn base_of(dir: &Path) -> PathBuf {
    let base = dir.join("base.raw");
    image::write_disk(&base_tree(), &base);
    base
}

/// The same base as qcow2, in `dir`.
pub fn qcow2_base(dir: &Path) -> PathBuf {
    let (raw, qcow2) = (dir.join("base.raw"), dir.join("base.qcow2"));
    image::write_disk(&base_tree(), &raw);
    image::convert(&raw, &qcow2);
    qcow2
}

/// What to bake on a base, from a manifest, layers and a store that are written into `dir` here.
pub fn request(dir: &Path, base: PathBuf, out: &str, threads: usize) -> BakeRequest {
    let store = Store::open(Some(dir.join("store"))).unwrap();
    let (manifest, sources) = (dir.join("manifest.json"), dir.join("sources.json"));
    fs::write(&sources, SOURCES).unwrap();
    fs::write(&manifest, manifest_text(&store, &fs::read(&base).unwrap())).unwrap();
    write_layers(&dir.join("layers"));
    BakeRequest {
        kind: "tools".to_owned(),
        os: "o".to_owned(),
        arch: "amd64".to_owned(),
        manifest,
        base: Some(base),
        partition: None,
        layers: Catalog::only(dir.join("layers")),
        more: vmbake_manifest::Additions::default(),
        store,
        sources: Sources::load(&Catalog::only(sources)).unwrap(),
        anchors: Anchors::default(),
        client: None,
        size: None,
        epoch: None,
        formats: vec![Format::Raw.into()],
        compression: Qcow2Compression::default(),
        out: dir.join(out),
        force: false,
        builder: BuilderId::default(),
        threads: NonZeroUsize::new(threads).unwrap(),
    }
}

fn base_tree() -> Tree {
    let mut tree = image::empty();
    for (path, text) in [
        ("/etc/passwd", "root:x:0:0:root:/root:/bin/sh\n"),
        ("/etc/passwd-", "root:x:0:0:root:/root:/bin/sh\n"),
        ("/etc/group", "root:x:0:\n"),
        ("/etc/machine-id", ""),
        ("/usr/lib/os-release", "ID=o\n"),
        ("/usr/bin/dash", "dash"),
        (
            "/var/lib/dpkg/status",
            "Package: dash\nStatus: install ok installed\nArchitecture: amd64\nVersion: 0.5.12-12\nDescription: d\n a\n",
        ),
        ("/var/lib/dpkg/info/dash.list", "/.\n/bin\n/bin/dash\n"),
        ("/var/lib/dpkg/info/lost:amd64.list", "/.\n/usr/bin/dash\n"),
    ] {
        file(&mut tree, path, text);
    }
    link(&mut tree, "/bin", "usr/bin");
    link(&mut tree, "/settings", "etc");
    link(&mut tree, "/usr/bin/sh", "dash");
    link(&mut tree, "/etc/os-release", "../usr/lib/os-release");
    link(&mut tree, "/etc/resolv.conf", "/run/none");
    tree
}

fn write_layers(root: &Path) {
    let head = |name: &str| format!(r#"{{"name": "{name}", "version": "7", "description": "d", "os": ["o"]"#);
    let tools = r#", "artifacts": {
        "firstboot": {"type": "file", "path": "/opt/podplane/bin/firstboot", "mode": "0755"},
        "tool": {"type": "file", "path": "/usr/bin/tool", "mode": "0755"},
        "pack": {"type": "tar", "path": "/opt/pack"}},
        "symlinks": {"/usr/bin/t": "tool"}}"#;
    let hygiene = r#", "remove": ["/etc/*-"], "os_release": {"IMAGE_ID": "{kind}", "IMAGE_VERSION": "{version}"}}"#;
    for (path, text) in [
        ("tools/layer.json", head("tools") + tools),
        ("tools/files/etc/tool.conf", "tool = 1\n".to_owned()),
        ("hygiene/layer.json", head("hygiene") + hygiene),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// The checksum file that proves the tool, with its own digest.
pub fn sums() -> (Digest, String) {
    let text = format!("{}  1.2\n", Digest::of(TOOL).hex());
    (Digest::of(text.as_bytes()), text)
}

/// Puts the artifacts into the store; their manifest pins the base too.
fn manifest_text(store: &Store, base: &[u8]) -> String {
    let entry = |bytes: &[u8], kind: &str, version: &str, site: &str| {
        let (digest, size) = (Digest::of(bytes), bytes.len());
        format!(
            r#""version": "{version}", "url": "{site}{version}", "type": "{kind}", "digest": "{digest}", "size": {size}"#
        )
    };
    let pack = pack();
    let (sums_digest, sums) = sums();
    for bytes in [TOOL, &pack, sums.as_bytes()] {
        // A store may take nothing any more.
        if store.blob(&Digest::of(bytes)).unwrap().is_none() {
            store.insert(bytes).unwrap();
        }
    }
    format!(
        r#"{{"vmconfig": {{"version": "dev", "kind": "tools", "os": {{"name": "o", "arch": "amd64",
        "image": {{{}, "proof": {{"type": "local"}}}}}}, "dependencies": {{
        "tool": {{{}, "proof": {{"type": "checksum", "url": "https://example.org/1.2.sha256", "evidence": "{sums_digest}"}}}},
        "pack": {{{}}}}}, "evidence": {{"{sums_digest}": {{"url": "https://example.org/1.2.sha256", "size": {}}}}}}}}}"#,
        entry(base, "qcow2", "base-1", "local:"),
        entry(TOOL, "binary", "1.2", "https://example.org/"),
        entry(&pack, "tar.gz", "3.4", "https://example.org/"),
        sums.len()
    )
}

/// A tar archive with the file `data`.
pub fn pack() -> Vec<u8> {
    pack_of("data")
}

/// A tar archive with a file of this name.
pub fn pack_of(name: &str) -> Vec<u8> {
    let mut header = tar::Header::new_gnu();
    header.set_size(5);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_entry_type(tar::EntryType::Regular);
    let mut builder = tar::Builder::new(flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast()));
    builder.append_data(&mut header, name, &b"hello"[..]).unwrap();
    builder.into_inner().unwrap().finish().unwrap()
}

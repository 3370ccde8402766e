//! The record of a baked image, explanations by it, and modifications of either.

use std::fs;
use std::path::Path;

use vmbake_bake::incremental::published::Sidecar;
use vmbake_common::digest::Digest;
use vmbake_compose::origin::{RECORD, Record};
use vmbake_image::inspect::open_tree;
use vmbake_query::explain::{ContentOrigin, explain};

use super::bakery::{TOOL, baked, can_bake};
use super::image::{change, content, put, text, vmbake};

const MANIFEST: &str = "/opt/podplane/share/vmconfig-installed.json";

#[test]
fn a_record_is_made_inside_and_beside_the_image() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (first, out) = baked(dir.path(), 1);
    let (second, other) = baked(dir.path(), 2);
    let sidecar = fs::read(out.join("tools.o.amd64.origin.json")).unwrap();
    assert_eq!(fs::read(other.join("tools.o.amd64.origin.json")).unwrap(), sidecar);
    for baked in [&first, &second] {
        assert_eq!(baked.sidecars[&Sidecar::Origins], Digest::of(&sidecar));
    }
    let sums = fs::read_to_string(out.join("SHA256SUMS")).unwrap();
    assert!(sums.contains(&format!("{}  tools.o.amd64.origin.json\n", Digest::of(&sidecar).hex())), "{sums}");

    let tree = open_tree(&out.join("tools.o.amd64.raw"), None).unwrap();
    assert_eq!(tree.read(RECORD.as_bytes(), 1 << 20).unwrap(), sidecar);
    let inode = tree.inode(tree.resolve(RECORD.as_bytes()).unwrap());
    assert_eq!((inode.meta.mode, inode.meta.uid, inode.meta.gid), (0o644, 0, 0));

    let record = Record::parse("sidecar", &sidecar).unwrap();
    assert_eq!(record.manifest, first.sidecars[&Sidecar::Manifest]);
    assert_eq!(record.base.unwrap().version, "base-1");
    assert_eq!(record.layers.keys().collect::<Vec<_>>(), ["hygiene", "tools"]);
    assert_eq!(record.artifacts.keys().collect::<Vec<_>>(), ["firstboot", "pack", "tool"]);
    let paths: Vec<String> = record
        .paths
        .iter()
        .map(|(path, origin)| format!("{path} {} {}", origin.layer, origin.artifact.as_deref().unwrap_or("-")))
        .collect();
    assert_eq!(
        paths,
        [
            "/etc/os-release hygiene -",
            "/etc/tool.conf tools -",
            "/opt tools pack",
            "/opt/pack tools pack",
            "/opt/pack/data tools pack",
            "/opt/podplane tools firstboot",
            "/opt/podplane/bin tools firstboot",
            "/opt/podplane/bin/firstboot tools firstboot",
            "/opt/podplane/share tools -",
            "/opt/podplane/share/firstboot.json tools -",
            "/opt/podplane/share/vmbake-origin.json tools -",
            "/opt/podplane/share/vmconfig-installed.json tools -",
            "/usr/bin/t tools -",
            "/usr/bin/tool tools tool",
        ]
    );
    assert_eq!(
        record.removed.into_iter().collect::<Vec<_>>(),
        [("/etc/passwd-".to_owned(), Some("hygiene".to_owned()))]
    );
}

#[test]
fn paths_are_explained_to_the_signer() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = out.join("tools.o.amd64.raw");
    let said = |path: &str| explain(&image, None, path.as_bytes(), None).map(|found| found.to_string());
    let layer = "layer     tools 7, sha256:";
    for (path, expected) in [
        (
            "/bin/t",
            &[
                "link      /usr/bin/t -> tool, layer tools\n",
                "resolved  /usr/bin/tool\n",
                "type      regular file, 0755 root:root (0:0), 20 B\n",
                layer,
                "artifact  tool 1.2\n  from    https://example.org/1.2\n  digest  sha256:",
                "  proof   checksum file https://example.org/1.2.sha256\n",
                "content   matches the pinned digest\npackage   none\n",
            ][..],
        ),
        ("/opt/pack/data", &[layer, "artifact  pack 3.4\n", "  proof   unknown: not in the manifest"]),
        ("/etc/tool.conf", &["path      /etc/tool.conf\ntype", layer, "package   none\n"]),
        ("/etc/os-release", &["layer     hygiene 7, "]),
        ("/opt/podplane/bin/firstboot", &["proof   none: built into the vmbake", "content   matches"]),
        (RECORD, &[layer]),
        (
            "/bin/sh",
            &[
                "path      /bin/sh\nlink      /usr/bin/sh -> dash\nresolved  /usr/bin/dash\n",
                "base      base image base-1\n  from    local:base-1\n  digest  sha256:",
                "  proof   a local file\n",
                "package   dash 0.5.12-12 (amd64)\npackage   lost of unknown version (amd64)\n",
            ],
        ),
        ("/etc/resolv.conf", &["link      /etc/resolv.conf -> /run/none\ntype      symbolic link"]),
        ("/", &["path      /\ntype      directory", "package   dash"]),
    ] {
        let text = said(path).unwrap();
        expected.iter().for_each(|line| assert!(text.contains(line), "{path}: {line}: {text}"));
    }
    for (path, expected) in [
        ("/etc/passwd-/x", "/etc/passwd-/x: not in the image: layer hygiene removed it"),
        ("/settings/passwd-", "/settings/passwd-: not in the image: layer hygiene removed it"),
        ("/nothing", "/nothing: no such file or directory"),
        ("/etc/passwd/x", "/etc/passwd/x: expected a directory, found regular file"),
    ] {
        assert_eq!(said(path).unwrap_err().to_string(), expected);
    }

    let path = image.to_str().unwrap();
    let output = vmbake(&["explain", path, "/usr/bin/tool", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&json["layer"]["name"], &json["artifact"]["proof"]["type"]), (&"tools".into(), &"checksum".into()));
    assert_eq!((&json["content"], &json["recorded"]), (&"matches".into(), &true.into()));
    let absent = vmbake(&["explain", path, "/nothing"]);
    assert_eq!((absent.status.code(), text(&absent.stdout)), (Some(1), ""));
}

#[test]
fn changed_images_and_records_are_told() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = out.join("tools.o.amd64.raw");
    let tree = open_tree(&image, None).unwrap();
    let record = String::from_utf8(tree.read(RECORD.as_bytes(), 1 << 20).unwrap()).unwrap();
    let manifest = String::from_utf8(tree.read(MANIFEST.as_bytes(), 1 << 20).unwrap()).unwrap();
    let tool = String::from_utf8(TOOL.to_vec()).unwrap();
    let zeros = Digest::Sha256([0; 32]).to_string();
    let huge = format!("{record}{}", " ".repeat(32 << 20));
    let deep = "[".repeat(1 << 20);
    for (number, (path, new, expected)) in [
        ("/usr/bin/tool", tool.replace("echo", "evil"), "/usr/bin/tool: expected sha256:"),
        ("/opt/podplane/bin/firstboot", "x".to_owned(), ""),
        (
            RECORD,
            record.replace("{\"format\":1", "{\"format\":2"),
            "unsupported format 2 of the record of origins: expected 1",
        ),
        (RECORD, record.replace("\"layers\"", "\"x\":1,\"layers\""), ":1:"),
        (RECORD, record.replace("\"layers\"", " \"layers\""), "is not in the canonical form"),
        (RECORD, record.replace("{\"layer\":\"hygiene\"}", "{\"layer\":\"y\"}"), "/etc/os-release names layer y"),
        (RECORD, record[..100].to_owned(), "not a valid record"),
        (RECORD, String::new(), "not a valid record"),
        (RECORD, deep, "not a valid record"),
        (RECORD, huge, "cannot read the record of origins"),
        (RECORD, record.replace(&Digest::of(TOOL).to_string(), &zeros), "artifact tool: the record of origins has"),
        (
            RECORD,
            record.replace("\"firstboot\"", "\"firstboots\""),
            "artifact firstboots: in the record of origins, but not in the manifest",
        ),
        (MANIFEST, manifest.replace("dev", "1.0"), "the record of origins is for manifest sha256:"),
        (MANIFEST, "{}".to_owned(), "the manifest in the image is invalid"),
    ]
    .into_iter()
    .enumerate()
    {
        let changed = dir.path().join(format!("changed-{number}.raw"));
        change(&image, &changed, |tree| {
            let kind = content(tree, new.as_bytes());
            put(tree, path.as_bytes(), kind);
        });
        let result = explain(&changed, None, b"/usr/bin/tool", None);
        if expected.is_empty() {
            assert_eq!(result.unwrap().content, Some(ContentOrigin::Matches), "another file does not matter");
            let error = explain(&changed, None, path.as_bytes(), None).unwrap_err().to_string();
            assert!(error.contains("of artifact firstboot, found sha256:"), "{error}");
        } else {
            let error = result.unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}: {error}");
        }
        fs::remove_file(changed).unwrap();
    }
}

#[test]
fn a_record_beside_the_image_is_used_or_compared() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = out.join("tools.o.amd64.raw");
    let sidecar = out.join("tools.o.amd64.origin.json");
    let bare = dir.path().join("bare.raw");
    change(&image, &bare, |tree| assert!(tree.remove(RECORD.as_bytes()).unwrap()));
    let asked = |image: &Path, record| explain(image, None, b"/usr/bin/tool", record);

    let unknown = asked(&bare, None).unwrap();
    assert!((!unknown.recorded, unknown.layer.is_none(), unknown.base.is_none()) == (true, true, true));
    assert!(unknown.to_string().contains("layer     unknown: no record of origins in the image\n"));
    let named = asked(&bare, Some(&sidecar)).unwrap();
    assert_eq!((named.layer.unwrap().name, named.content), ("tools".to_owned(), Some(ContentOrigin::Matches)));

    // As in `sbom` and `verify`: the document next to an image without an embedded one.
    for end in ["origin.json", "json"] {
        fs::copy(image.with_extension(end), bare.with_extension(end)).unwrap();
    }
    let found = asked(&bare, None).unwrap();
    assert_eq!(
        (found.recorded, found.layer, found.content),
        (true, asked(&image, None).unwrap().layer, Some(ContentOrigin::Matches))
    );
    let none = dir.path().join("none.raw");
    change(&bare, &none, |tree| assert!(tree.remove(MANIFEST.as_bytes()).unwrap()));
    fs::copy(bare.with_extension("origin.json"), none.with_extension("origin.json")).unwrap();
    assert_eq!(asked(&none, None).unwrap().artifact.unwrap().version, None, "nothing pins it");
    fs::copy(bare.with_extension("json"), none.with_extension("json")).unwrap();
    assert_eq!(asked(&none, None).unwrap().artifact, asked(&image, None).unwrap().artifact);
    fs::write(none.with_extension("json"), "{}").unwrap();
    assert!(asked(&none, None).is_err(), "another file is not taken for the manifest");
    fs::write(bare.with_extension("origin.json"), "{}").unwrap();
    assert!(asked(&bare, None).unwrap_err().to_string().contains("not a valid record of origins"));

    let good = fs::read_to_string(&sidecar).unwrap();
    fs::write(&sidecar, good.replace("{\"layer\":\"hygiene\"}", "{\"layer\":\"tools\"}")).unwrap();
    let error = asked(&image, None).unwrap_err().to_string();
    assert!(
        error.ends_with("out-1/tools.o.amd64.raw") && error.contains("differs from the record of origins"),
        "{error}"
    );
    let said = vmbake(&["explain", image.to_str().unwrap(), "/etc/os-release"]);
    assert_eq!(said.status.code(), Some(1));
    assert!(text(&said.stderr).contains("use --record"), "{}", text(&said.stderr));
    let by_choice = explain(&image, None, b"/etc/os-release", Some(&sidecar)).unwrap();
    assert_eq!(by_choice.layer.unwrap().name, "tools");

    fs::write(&sidecar, "{}").unwrap();
    assert!(asked(&bare, Some(&sidecar)).unwrap_err().to_string().contains("not a valid record of origins"));
    fs::File::create(&sidecar).unwrap().set_len(1 << 40).unwrap();
    assert!(asked(&bare, Some(&sidecar)).unwrap_err().to_string().contains("larger than 33554432 bytes"));
    let missing = dir.path().join("missing.json");
    assert!(asked(&bare, Some(&missing)).unwrap_err().to_string().ends_with("cannot read the record of origins"));
}

#[test]
fn images_do_not_steer_the_terminal() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let image = out.join("tools.o.amd64.raw");
    let changed = dir.path().join("changed.raw");
    change(&image, &changed, |tree| {
        let record = String::from_utf8(tree.read(RECORD.as_bytes(), 1 << 20).unwrap()).unwrap();
        let evil = record.replace("\"version\":\"7\"", "\"version\":\"7\\u001b[2J\\nproof     mine\"");
        assert_ne!(evil, record);
        let status = "Package: p\u{1b}[2J\nStatus: install ok installed\nArchitecture: all\nVersion: 1\u{7}\n proof\n";
        for (path, text) in [
            (RECORD, evil.as_str()),
            ("/var/lib/dpkg/status", status),
            ("/var/lib/dpkg/info/p\u{1b}[2J.list", "/usr/bin/tool\n"),
        ] {
            let kind = content(tree, text.as_bytes());
            put(tree, path.as_bytes(), kind);
        }
        put(tree, b"/evil", vmbake_disk::tree::Kind::Symlink(b"etc/passwd/\x1b[2J".to_vec()));
    });
    let (old, new) = (image.to_str().unwrap(), changed.to_str().unwrap());
    for (arguments, expected) in [
        (&["explain", new, "/usr/bin/tool"][..], "layer     tools 7\\x1b[2J\\x0aproof     mine, sha256:"),
        (&["explain", new, "/usr/bin/tool"], "package   p\\x1b[2J 1\\x07\\x0a proof (all)\n"),
        (&["explain", new, "/evil"], "/etc/passwd/\\x1b[2J: "),
        (&["diff", old, new], "package p\\x1b[2J:all: none -> 1\\x07\\x0a proof\n"),
    ] {
        let output = vmbake(arguments);
        let said = [text(&output.stdout), text(&output.stderr)].concat();
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert!(!said.chars().any(|char| char.is_control() && char != '\n'), "{said:?}");
    }
}

//! Bundles on images: added with `--with` or by a kind's layers, locked, and refused on conflicts.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::shop::{Shop, document, files, layer};
use crate::requested::yard::stated;

/// Where the authorities of sigstore are.
pub const TRUST: &str = "--trust=anchors";
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../trust/sigstore-root.json");

/// A workshop with a trusted bundle and a kind `box` to bake, whose manifest is there.
pub fn shop() -> Option<Shop> {
    let shop = Shop::new()?;
    shop.yard.layer("box", "");
    shop.yard.updated();
    shop.put("anchors/sigstore-root.json", &fs::read_to_string(ROOT).unwrap());
    shop.key("acme");
    shop.packed("agent.oci", &["--key=acme.key"]);
    let (ok, said) = shop.said(&["trust", "agent.oci", "--key", "acme.pub", "--yes"]);
    assert!(ok, "{said}");
    Some(shop)
}

/// Bakes with an empty store, which must fail; nothing may be there then that was not there before. What was said.
pub fn refused(shop: &Shop, more: &[&str]) -> String {
    let (store, kept) = (shop.path("store"), shop.path("kept"));
    fs::rename(&store, &kept).unwrap();
    let before = files(&shop.path("."));
    let (ok, said) = bake(shop, more);
    assert!(!ok, "{more:?}: {said}");
    // Opening creates an empty store.
    let is_blob = |path: &Path| !path.starts_with("store") || path.starts_with("store/blobs");
    let written: Vec<_> = files(&shop.path(".")).into_iter().filter(|(path, _)| is_blob(path)).collect();
    assert!(written == before, "{more:?}: something was written: {said}");
    fs::remove_dir_all(&store).ok();
    fs::rename(&kept, &store).unwrap();
    said
}

/// Packs the bundle again, with other words in its document or its layer.
pub fn changed(shop: &Shop, out: &str, document_words: (&str, &str), layer_words: (&str, &str)) {
    let (from, to) = document_words;
    assert!(document("").contains(from), "{from}");
    shop.put("agent/bundle.json", &document("").replacen(from, to, 1));
    let (from, to) = layer_words;
    assert!(layer("").contains(from), "{from}");
    shop.put("agent/layers/acme.agent/layer.json", &layer("").replacen(from, to, 1));
    shop.packed(out, &["--key=acme.key", "--offline"]);
}

pub fn bake(shop: &Shop, more: &[&str]) -> (bool, String) {
    let args = ["bake", "box", "--os=o", "--manifests=m", "--layers=layers", "--base=base.raw", "--offline", TRUST];
    shop.yard.run(&[&args[..], &["--out=dist", "--format=raw", "--force"], more].concat())
}

#[test]
fn an_image_gets_what_a_bundle_has_from_a_store_that_had_nothing() {
    let Some(shop) = shop() else { return };
    shop.packed("agent.tar", &["--key=acme.key", "--offline"]);
    fs::remove_dir_all(shop.path("store")).unwrap();
    let (ok, said) = bake(&shop, &["--with=agent.oci"]);
    assert!(ok && said.contains("layers  settings, acme.agent, box, hygiene"), "{said}");
    assert_eq!(shop.yard.ask("cat", "/opt/tool/bin/tool"), "#!/bin/sh\n# amd64\n");
    assert_eq!(shop.yard.ask("cat", "/etc/agent/agent.conf"), "port = 1\n");
    let explained = shop.yard.ask("explain", "/opt/tool/bin/tool");
    assert!(
        explained.contains("acme.agent") && explained.contains("https://up.example/v1.0/tool-amd64.tar.gz"),
        "{explained}"
    );
    let manifest: Value = serde_json::from_slice(&fs::read(shop.path("dist/box.o.amd64.json")).unwrap()).unwrap();
    assert!(manifest["vmconfig"]["dependencies"]["acme.tool"].is_object());
    let lock: Value = serde_json::from_slice(&fs::read(shop.path("m/bundles.lock.json")).unwrap()).unwrap();
    assert_eq!(lock["bundles"]["acme.agent"]["version"], json!("1.0.0+a1"));
    assert_eq!(lock["bundles"]["acme.agent"]["signer"], json!("publisher acme"));

    // The same bytes from a tar file, and by the word of the kind.
    let image = fs::read(shop.path("dist/box.o.amd64.raw")).unwrap();
    let (ok, said) = bake(&shop, &["--with=agent.tar", "--no-cache"]);
    assert!(ok && fs::read(shop.path("dist/box.o.amd64.raw")).unwrap() == image, "{said}");
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    let (ok, said) = bake(&shop, &["--with=agent.tar"]);
    assert!(ok && said.contains("unchanged"), "{said}");
    shop.yard.layer("box", r#", "bundles": ["agent.oci"]"#);
    let (ok, said) = bake(&shop, &[]);
    assert!(ok && said.contains("layers  settings, acme.agent, box, hygiene"), "{said}");
    // Without it the image has nothing of it.
    shop.yard.layer("box", "");
    assert!(bake(&shop, &[]).0);
    assert!(shop.yard.ask("ls", "/opt/tool").contains("no such file"));
}

#[test]
fn what_was_baked_is_baked_again_and_found_the_same() {
    let Some(shop) = shop() else { return };
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    let args =
        ["verify", "image", "dist", "--rebuild", "--base=base.raw", "--layers=layers", "--layers=agent/layers", TRUST];
    let (ok, said) = shop.yard.run(&args);
    assert!(ok, "{said}");
}

#[test]
fn versions_only_rise_and_never_change() {
    let Some(shop) = shop() else { return };
    assert!(bake(&shop, &["--with=agent.oci"]).0);
    let refused = |bundle: &str, more: &[&str], expected: &str| {
        let before = fs::read(shop.path("m/bundles.lock.json")).unwrap();
        let with = format!("--with={bundle}");
        let (ok, said) = bake(&shop, &[&[with.as_str()], more].concat());
        assert!(!ok && said.contains(expected) && said.contains("hint: use --upgrade-bundles"), "{bundle}: {said}");
        assert_eq!(fs::read(shop.path("m/bundles.lock.json")).unwrap(), before);
    };
    changed(&shop, "same.oci", ("An agent.", "Another agent."), ("port = 1", "port = 2"));
    for more in [&[][..], &["--upgrade-bundles"], &["--upgrade-bundles", "--allow-downgrade"]] {
        refused("same.oci", more, "bundle acme.agent: version 1.0.0+a1 has digest sha256:");
    }
    changed(&shop, "next.oci", ("1.0.0+a1", "1.1.0"), ("port = 1", "port = 2"));
    refused("next.oci", &[], "expected the locked version 1.0.0+a1, found 1.1.0");
    changed(&shop, "far.oci", ("1.0.0+a1\"", "3.0.0\", \"upgrade\": {\"from\": \">=2\"}"), ("port = 1", "port = 3"));
    refused("far.oci", &["--upgrade-bundles"], "version 3.0.0 only replaces >=2, but the locked version is 1.0.0+a1");
    let (ok, said) = bake(&shop, &["--with=next.oci", "--upgrade-bundles"]);
    assert!(ok, "{said}");
    assert_eq!(shop.yard.ask("cat", "/etc/agent/agent.conf"), "port = 2\n");
    refused("agent.oci", &["--upgrade-bundles"], "version 1.0.0+a1 is lower than the locked version 1.1.0");
    refused("same.oci", &["--upgrade-bundles", "--allow-downgrade"], "version 1.0.0+a1 has digest sha256:");
    let (ok, said) = bake(&shop, &["--with=agent.oci", "--upgrade-bundles", "--allow-downgrade"]);
    assert!(ok, "{said}");
}

#[test]
fn nobody_gets_in_without_a_grant() {
    let Some(shop) = shop() else { return };
    fs::remove_dir_all(shop.path("store")).unwrap();
    let refused = |bundle: &str, expected: &str| {
        let (ok, said) = bake(&shop, &[&format!("--with={bundle}")]);
        assert!(!ok && said.contains(expected) && said.contains("hint: "), "{expected}: {said}");
        // No artifact of it was taken.
        assert!(!shop.path("m/bundles.lock.json").exists() && !shop.path("store/blobs/sha256").exists(), "{expected}");
    };
    shop.key("other");
    fs::rename(shop.path("store"), shop.path("none")).ok();
    let path = shop.path("trust/publishers/acme.json");
    let granted = fs::read_to_string(&path).unwrap();
    fs::write(&path, granted.replace("\"/opt/tool\"", "\"/opt/other\"")).unwrap();
    refused("agent.oci", "requests more than granted: paths /opt/tool");
    fs::write(&path, granted.replace("\"acme.\"", "\"acme.b\"")).unwrap();
    refused("agent.oci", "acme.agent does not start with \"acme.b\"");
    fs::remove_file(&path).unwrap();
    refused("agent.oci", "trust/publishers/acme.json: not found");
    fs::write(&path, &granted).unwrap();
    refused("none.oci", "none.oci: cannot read");
    refused("oci://localhost:9/acme/agent:1", "localhost:9/acme/agent:1: bundles in a registry are not supported here");
}

#[test]
fn the_settings_of_a_bundle_are_those_of_its_images() {
    let Some(shop) = shop() else { return };
    let keys = |more: &[&str]| {
        let args = ["user-data", "keys", "--kind=box", "--os=o", "--layers=layers", "--no-builtin"];
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_vmbake"));
        let output = command.args(args).args(more).current_dir(shop.path(".")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(keys(&[]), "");
    let expected = "AGENT_LEVEL: default info\nAGENT_SERVER: required\n";
    assert_eq!(keys(&["--with=agent.oci"]), expected);
    shop.yard.layer("box", r#", "bundles": ["agent.oci"]"#);
    assert_eq!(keys(&[]), expected);
}

#[test]
fn sources_of_a_bundle_serve_whatever_kind_it_comes_to() {
    let Some(shop) = shop() else { return };
    let source = r#"{"name": "acme.tool", "upstream": {"type": "tar.gz", "version": {"pinned": "1.0"}, "proof": "checksum",
        "url": "https://up.example/v{version}/tool-{arch}.tar.gz", "checksums": "https://up.example/v{version}/sums.txt"}}"#;
    shop.put("agent/sources.json", &format!(r#"{{"dependencies": [{source}]}}"#));
    let downloads = stated().replace("\"tool\":", "\"acme.tool\":");
    let artifacts = r#", "artifacts": {"acme.tool": {"type": "tar", "path": "/opt/tool", "strip": 1, "members": ["tool-1.0/bin/tool"]}}"#;
    assert!(layer("").contains(&downloads));
    shop.put("agent/layers/acme.agent/layer.json", &layer("").replacen(&downloads, artifacts, 1));
    shop.packed("sourced.oci", &["--key=acme.key"]);
    let (ok, said) = bake(&shop, &["--with=sourced.oci"]);
    assert!(ok && said.contains("1 by a checksum file of the site, not signed"), "{said}");
    assert_eq!(shop.yard.ask("cat", "/opt/tool/bin/tool"), "#!/bin/sh\n# amd64\n");
}

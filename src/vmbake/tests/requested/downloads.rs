//! Downloads of a layer by URL: pinned, verified again, installed, and bound to the layer's text.

use serde_json::{Value, json};
use vmbake_common::digest::Digest;

use crate::origin::bakery::can_bake;

use super::yard::{Yard, sha256, stated, tool};

#[test]
fn a_stated_digest_is_pinned_and_proven_and_what_it_is_of_installed() {
    let Some(yard) = Yard::new() else { return };
    let hello = Digest::of(b"#!/bin/sh\necho hello\n").hex();
    let second = format!(
        r#""hello": {{"url": "https://up.example/v{{version}}/hello", "version": "1.0", "sha256": "{hello}",
          "install": {{"type": "file", "path": "/usr/local/bin/hello", "mode": "0755"}}}}, "tool""#
    );
    yard.layer("box", &stated().replacen("\"tool\"", &second, 1));
    for arch in ["amd64", "arm64"] {
        let (ok, said) = yard.update_for(arch, &[]);
        assert!(ok && said.contains(&format!("   pinned  box.o.{arch} tool 1.0, ")), "{said}");
    }
    let (manifest, text) = (yard.manifest(), yard.text());
    let pinned = &manifest["dependencies"]["tool"];
    assert_eq!(pinned["proof"], json!({"type": "stated"}));
    assert_eq!(pinned["digest"], Value::from(format!("sha256:{}", sha256("amd64"))));
    assert_eq!(pinned["url"], Value::from("https://up.example/v1.0/tool-amd64.tar.gz"));
    let asked = &manifest["requests"]["box"]["downloads"];
    assert_eq!(asked["hello"]["proof"], json!({"stated": format!("sha256:{hello}")}));
    assert_eq!(asked["tool"]["version"], json!({"pinned": "1.0"}));

    // Nothing new changes no byte.
    for more in [&[][..], &["--refresh"], &["--only=tool"]] {
        assert!(yard.update(more).0);
        assert_eq!(yard.text(), text, "{more:?}");
    }
    let (ok, said) = yard.update(&["--check"]);
    assert!(ok && said.is_empty(), "{said}");
    let (ok, said) = yard.show();
    let expected = "    layer  box\n    from   https://up.example/v1.0/tool-amd64.tar.gz\n";
    assert!(ok && said.contains(expected), "{said}");
    assert!(said.contains("    by the digest in its layer, not signed\n"), "{said}");

    std::fs::remove_dir_all(yard.path("store")).unwrap();
    let (ok, said) = yard.fetch();
    assert!(ok && said.contains("2 by the digest in its layer, not signed"), "{said}");
    let (ok, said) = yard.bake();
    assert!(ok, "{said}");
    assert_eq!(yard.ask("cat", "/opt/tool/bin/tool"), "#!/bin/sh\n# amd64\n");
    assert!(yard.ask("ls", "/opt/tool/README").contains("no such file"), "only a member is installed");
    assert!(yard.ask("ls", "/usr/local/bin/hello").contains("rwxr-xr-x"), "{}", yard.ask("ls", "/usr/local/bin/hello"));
}

#[test]
fn explain_tells_that_the_layer_stated_the_digest() {
    if !can_bake() {
        return;
    }
    let Some(yard) = Yard::new() else { return };
    // The layer with that program gets the record of origins.
    let program =
        r#", "artifacts": {"firstboot": {"type": "file", "path": "/opt/podplane/bin/firstboot", "mode": "0755"}}"#;
    yard.layer("box", &(program.to_owned() + &stated()));
    yard.updated();
    let (ok, said) = yard.bake();
    assert!(ok, "{said}");
    let said = yard.ask("explain", "/opt/tool/bin/tool");
    assert!(said.contains("artifact  tool"), "{said}");
    assert!(said.contains("  proof   the SHA-256 stated in its layer\n"), "{said}");
}

#[test]
fn other_proofs_are_those_of_the_sources() {
    let Some(yard) = Yard::new() else { return };
    let checksums = r#""checksums": "https://up.example/v{version}/sums.txt""#;
    yard.layer("box", &tool(checksums));
    yard.updated();
    let pinned = yard.manifest()["dependencies"]["tool"].clone();
    assert_eq!(pinned["proof"]["type"], "checksum");
    assert_eq!(pinned["proof"]["url"], "https://up.example/v1.0/sums.txt");
    let (ok, said) = yard.show();
    assert!(ok && said.contains("by a checksum file of the site, not signed"), "{said}");

    // The version may come from the site, too.
    let latest = r#""version": {"text": {"url": "https://up.example/latest", "after": "v"}}"#;
    yard.layer("box", &tool(checksums).replace(r#""version": "1.0""#, latest));
    yard.updated();
    assert_eq!(yard.manifest()["dependencies"]["tool"], pinned);
    // What is pinned stays with a past date, whether or not it is named.
    for more in [&["--at=2024-06-02"][..], &["--at=2024-06-02", "--only=tool"]] {
        let (ok, said) = yard.update(more);
        assert!(ok && yard.manifest()["dependencies"]["tool"] == pinned, "{more:?}: {said}");
    }
    assert!(yard.bake().0);
}

#[test]
fn a_manifest_is_of_the_words_that_it_was_made_for() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", &stated());
    yard.updated();
    let text = yard.text();
    for (from, to) in [
        ("up.example/v", "up.example/mirror/v"),
        ("\"version\": \"1.0\"", "\"version\": \"1.1\""),
        (&sha256("amd64"), &sha256("arm64")),
        ("\"tool\": {", "\"tools\": {"),
    ] {
        yard.layer("box", &stated().replacen(from, to, 1));
        let (ok, said) = yard.bake();
        let expected = "layer box requests other downloads or container images than the manifest pins";
        assert!(!ok && said.contains(expected), "{to}: {said}");
        assert!(said.contains("hint: run `vmbake update KIND` with the --layers of the bake to pin"), "{said}");
    }
    // The path in the image is the layer's own affair.
    yard.layer("box", &stated().replace("/opt/tool", "/opt/other"));
    let (ok, said) = yard.bake();
    assert!(ok && yard.ask("cat", "/opt/other/bin/tool").starts_with("#!"), "{said}");
    // An update that cannot be leaves all as it was.
    yard.layer("box", &stated().replace("-{arch}", "-{os}").replace(&sha256("amd64"), &sha256("none")));
    let (ok, said) = yard.update(&[]);
    assert!(!ok && said.contains("404") && yard.text() == text, "{said}");
    // Removed requests are dropped, and new ones are fetched.
    yard.layer("box", &stated().replace("\"tool\": {", "\"tools\": {"));
    let (ok, said) = yard.update(&["--check"]);
    assert!(!ok && said.contains("tools  - -> 1.0"), "{said}");
    yard.updated();
    let names = |of: &Value| of.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&yard.manifest()["dependencies"]), ["tools"]);
    assert_eq!(names(&yard.manifest()["requests"]["box"]["downloads"]), ["tools"]);
    assert!(yard.bake().0);
    yard.layer("box", "");
    yard.updated();
    assert_eq!((yard.manifest().get("requests"), names(&yard.manifest()["dependencies"])), (None, vec![]));
    assert!(yard.bake().0);
}

#[test]
fn a_forged_manifest_is_refused() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", &stated());
    yard.updated();
    let good = yard.manifest();
    let other = format!("sha256:{}", sha256("arm64"));
    let states = "its source requires the SHA-256 stated in its layer";
    for (pointer, value, expected) in [
        ("/dependencies/tool/digest", json!(other), "the manifest states digest"),
        ("/dependencies/tool/url", json!("https://up.example/x"), "the manifest states URL"),
        ("/dependencies/tool/version", json!("2"), "the manifest states version 2, but the proven one is 1.0"),
        ("/dependencies/tool/proof", json!({"type": "first-use"}), states),
        ("/requests/box/downloads/tool/proof", json!({"stated": other}), "the manifest states digest"),
        ("/requests/box/downloads/tool/proof", json!("checksum"), "its source requires the first download"),
        ("/requests", json!({}), "no source defines the required proof"),
    ] {
        let mut forged = good.clone();
        *forged.pointer_mut(pointer).unwrap() = value;
        yard.forge(&forged);
        for (ok, said) in [yard.show(), yard.bake()] {
            assert!(!ok && said.contains(expected), "{pointer}: {said}");
        }
    }
    // A consistent change in both places is detected by the layer.
    let mut forged = good.clone();
    forged["dependencies"]["tool"]["digest"] = json!(other);
    forged["requests"]["box"]["downloads"]["tool"]["proof"] = json!({"stated": other});
    yard.forge(&forged);
    let (ok, said) = yard.fetch();
    assert!(!ok && said.contains(&format!("expected digest {other}, found sha256:")), "{said}");
    let (ok, said) = yard.bake();
    assert!(!ok && !yard.path("dist/box.o.amd64.raw").exists(), "{said}");
}

#[test]
fn a_layer_for_one_base_image_goes_into_no_other() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", &stated());
    yard.updated();
    let pinned = yard.manifest()["os"]["image"]["digest"].as_str().unwrap_or("none").to_owned();
    let other = format!("sha256:{}", "0".repeat(64));
    for (arch, digest, expected) in [("amd64", &other, &other[..]), ("arm64", &pinned, "none")] {
        yard.layer("box", &format!(r#", "bases": {{"{arch}": "{digest}"}}{}"#, stated()));
        let (ok, said) = yard.bake();
        let expected =
            format!("layer box requires the base image {expected} for amd64, but the manifest pins {pinned}");
        assert!(
            !ok && said.contains(&expected) && said.contains("hint: run `vmbake update KIND --image FILE`"),
            "{said}"
        );
    }
    yard.layer("box", &format!(r#", "bases": {{"amd64": "{pinned}"}}{}"#, stated()));
    let (ok, said) = yard.bake();
    assert!(ok, "{said}");
}

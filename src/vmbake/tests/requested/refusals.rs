//! Refused downloads of layers, as reported by an update.

use std::process::Command;

use super::yard::{Yard, sha256, stated, tool};

const SIGNED: &str = r#"{"name": "their", "kinds": ["other"], "upstream": {"type": "tar.gz", "version": {"pinned": "1.0"},
  "url": "https://up.example/v{version}/tool-{arch}.tar.gz", "checksums": "https://up.example/v{version}/sums.txt",
  "proof": {"sigstore": {"bundle": "{url}.b", "identity": "me@example.org", "issuer": "https://example.org"}}}}"#;

const TOOL: &str = r#"{"name": "tool", "kinds": ["box"], "upstream": {"type": "binary", "version": {"pinned": "1.0"},
  "url": "https://up.example/v{version}/hello", "proof": "first-use"}}"#;

const PAUSE: &str = r#"{"image": "registry.example/pause", "kinds": ["box"], "tag": {"pinned": "3.10"}}"#;

#[test]
fn a_file_with_another_digest_is_refused_naming_both() {
    let Some(yard) = Yard::new() else { return };
    let zeros = "0".repeat(64);
    yard.layer("box", &tool(&format!(r#""sha256": {{"amd64": "{zeros}"}}"#)));
    let (ok, said) = yard.update(&[]);
    let expected = format!("expected digest sha256:{zeros}, found sha256:{}", sha256("amd64"));
    assert!(!ok && said.contains(&expected), "{said}");
    assert!(!yard.text().contains("tool"), "{}", yard.text());
    let (ok, said) = yard.update_for("arm64", &[]);
    assert!(!ok && said.contains("layer box: download tool has no `sha256` for arm64"), "{said}");
}

#[test]
fn a_name_is_one_of_its_own() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("other", &stated());
    yard.layer("box", &(r#", "requires": ["other"]"#.to_owned() + &stated()));
    let twice = "tool is installed by the layers other and box: names of downloads must be unique";
    for (ok, said) in [yard.update(&[]), yard.update(&["--check"])] {
        assert!(!ok && said.contains(twice) && said.contains("hint: rename one of the downloads"), "{said}");
    }
    yard.layer("box", r#", "requires": ["other"], "artifacts": {"tool": {"type": "deb"}}"#);
    assert!(yard.update(&[]).1.contains(twice));
    yard.layer("box", &stated());
    yard.sources(TOOL, "");
    for more in [&[][..], &["--check"]] {
        let (ok, said) = yard.update(more);
        let expected = "box.o.amd64: download tool of layer box has the same name as an artifact in the sources";
        let hint = "hint: rename the download, or use `artifacts` to install tool of the sources";
        assert!(!ok && said.contains(expected) && said.contains(hint), "{said}");
    }
}

#[test]
fn a_download_is_no_way_around_a_signature() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", &stated());
    yard.sources(SIGNED, "");
    let (ok, said) = yard.update(&[]);
    let expected = "box.o.amd64: download tool of layer box requires a weaker proof than artifact their of the sources: a digest stated in a layer instead of a sigstore bundle by me@example.org of https://example.org";
    assert!(!ok && said.contains(expected), "{said}");
    assert!(said.contains("hint: copy `checksums` and `proof` from the artifact their"), "{said}");
    assert!(!yard.path("m").exists());
}

#[test]
fn sources_state_no_digests() {
    let Some(yard) = Yard::new() else { return };
    yard.sources(&TOOL.replace("\"first-use\"", &format!(r#"{{"stated": "sha256:{}"}}"#, "0".repeat(64))), "");
    let (ok, said) = yard.update(&[]);
    assert!(!ok && said.contains("dependencies[0] (tool): proof stated is only for downloads of layers"), "{said}");
}

#[test]
fn an_image_of_the_sources_is_not_asked_for_again() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", r#", "images": "/images", "container_images": ["registry.example/pause:3.11"]"#);
    yard.sources("", PAUSE);
    let (ok, said) = yard.update(&[]);
    let expected = "box.o.amd64: container image registry.example/pause:3.11 of layer box is listed in the sources, which choose its tag";
    let hint = "hint: remove it from `container_images`: the manifest already includes it";
    assert!(!ok && said.contains(expected) && said.contains(hint), "{said}");
}

#[test]
fn container_images_have_a_place() {
    let Some(yard) = Yard::new() else { return };
    yard.layer("box", r#", "container_images": ["registry.example/pause:3.10"]"#);
    let (ok, said) = yard.update(&[]);
    let expected = "layer box has container images, but no layer of box sets their directory with `images`";
    assert!(!ok && said.contains(expected) && said.contains("hint: require the layer container-images"), "{said}");
}

#[test]
fn missing_sources_are_named() {
    let dir = tempfile::tempdir().unwrap();
    for command in ["update", "fetch", "plan"] {
        let mut program = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        program.args([command, "node", "--os=debian-13", "--sources=none.json"]).current_dir(dir.path());
        let output = program.env("XDG_CONFIG_HOME", dir.path()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && said.starts_with("error: none.json: cannot read"), "{command}: {said}");
        assert!(said.ends_with("hint: without --sources, the built-in sources are used\n"), "{command}: {said}");
    }
}

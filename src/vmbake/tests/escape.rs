//! Untrusted names, versions and messages cannot control the terminal or forge lines of output.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use sequoia_openpgp::cert::CertBuilder;
use sequoia_openpgp::serialize::SerializeInto;

use crate::hostile::{file, serve};
use crate::tools::have;

/// Clears the screen, begins a line, sets a colour by a C1 character, and turns the direction of text.
const EVIL: &str = "a\x1b[2J\nSPOOF\r\nSPOOF \u{9b}31m\u{202e}\u{2066}\u{2028}z\x07";

fn vmbake(dir: &Path, args: &[&OsStr]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.args(args).current_dir(dir).env("XDG_CONFIG_HOME", dir).env_remove("VMBAKE_MIRRORS").output().unwrap()
}

/// Runs a command of which something from outside must be seen, escaped; returns what it printed.
fn run(dir: &Path, args: &[&str]) -> String {
    let output = vmbake(dir, &args.iter().map(OsStr::new).collect::<Vec<_>>());
    shown(args, &output)
}

fn shown(args: &[&str], output: &Output) -> String {
    let text = [&output.stdout[..], &output.stderr].map(|bytes| str::from_utf8(bytes).expect("UTF-8")).concat();
    let steers = |char: char| {
        (char.is_control() && char != '\n')
            || matches!(char, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    assert!(!text.contains(steers), "{args:?}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("SPOOF")), "{args:?}: {text}");
    assert!(text.contains("SPOOF"), "{args:?} says nothing of what it was given: {text}");
    text
}

/// A file system with such names and texts in it.
fn image(dir: &Path) -> OsString {
    let root = dir.join("root");
    let name = OsString::from_vec([EVIL.as_bytes(), b"\xff\\x41"].concat());
    let kernel = format!("boot/vmlinuz-{EVIL}");
    let release = format!("PRETTY_NAME=\"{}\"\nIMAGE_ID=SPOOF\x1b[2J\n", EVIL.replace('\n', " "));
    for (path, content) in [
        (Path::new("etc").join("os-release"), release),
        (Path::new("var/log").join(&name), "log".to_owned()),
        (kernel.into(), "kernel".to_owned()),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    symlink(&name, root.join("link")).unwrap();
    make(dir);
    name
}

/// Makes the file system of what is below `root`.
fn make(dir: &Path) {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let mut command = Command::new("mke2fs");
    command.args(["-q", "-F", "-t", "ext4", "-d", "root", "image", "8M"]).current_dir(dir).env("PATH", path);
    assert!(command.status().unwrap().success());
}

#[test]
fn images_cannot_steer_the_terminal() {
    if !have(&["mke2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let name = image(dir);
    for args in [
        &["inspect", "image"][..],
        &["inspect", "image", "--json"],
        &["lint", "image"],
        &["lint", "image", "--json"],
        &["ls", "image", "-R"],
        &["ls", "image", "-R", "--json"],
        &["explain", "image", "/link"],
        &["explain", "image", EVIL],
        &["cat", "image", EVIL],
    ] {
        run(dir, args);
    }
    fs::rename(dir.join("image"), dir.join("before")).unwrap();
    fs::write(dir.join("root/var/log").join(&name), "another log").unwrap();
    make(dir);
    run(dir, &["diff", "before", "image"]);
    run(dir, &["diff", "before", "image", "--json"]);
}

#[test]
fn every_name_that_is_listed_can_be_asked_for() {
    if !have(&["mke2fs"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let name = image(dir);
    let listed = run(dir, &["ls", "image", "/var/log", "--json"]);
    let entry: serde_json::Value = serde_json::from_str(listed.trim_end()).unwrap();
    let escaped = entry["escaped_path"].as_str().unwrap();
    assert!(escaped.ends_with("\\xff\\x5cx41"), "{escaped}");
    let args = ["cat", "image", "--escaped", escaped].map(OsStr::new);
    assert_eq!(vmbake(dir, &args).stdout, b"log");
    let raw = Path::new("/var/log").join(&name);
    assert_eq!(vmbake(dir, &["cat".as_ref(), "image".as_ref(), raw.as_ref()]).stdout, b"log");
    for command in ["ls", "explain"] {
        let text = run(dir, &[command, "image", "--escaped", escaped]);
        assert!(text.contains("\\xff\\"), "{text}");
    }
    let links = run(dir, &["ls", "image", "/", "--json"]);
    let link = links.lines().find(|line| line.contains("\"/link\"")).unwrap();
    let link: serde_json::Value = serde_json::from_str(link).unwrap();
    assert!(escaped.ends_with(link["escaped_target"].as_str().unwrap()) && link.get("escaped_path").is_none());
    let output = vmbake(dir, &["cat", "image", "--escaped", "/a\\b"].map(OsStr::new));
    assert_eq!(String::from_utf8(output.stderr).unwrap(), "error: /a\\b: expected two hexadecimal digits after \\x\n");
}

#[test]
fn manifests_cannot_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let zeros = format!("sha256:{}", "0".repeat(64));
    let entry = serde_json::json!({"version": EVIL, "url": EVIL, "type": "binary", "digest": zeros, "size": 1,
        "proof": {"type": "checksum", "url": EVIL}});
    let manifest = serde_json::json!({"vmconfig": {"version": "dev", "kind": "k", "os": {"name": "debian-13", "arch": "amd64"},
        "dependencies": {EVIL: entry}}});
    fs::write(dir.join("m"), manifest.to_string()).unwrap();
    run(dir, &["manifest", "show", "m"]);
    run(dir, &["manifest", "show", "m", "--json"]);
    run(dir, &["fetch", "k", "--manifest", "m", "--store", "store"]);
    fs::write(
        dir.join("wrong"),
        manifest.to_string().replace("\"kind\":\"k\"", &format!("\"kind\":{}", serde_json::json!(EVIL))),
    )
    .unwrap();
    run(dir, &["fetch", "k", "--manifest", "wrong", "--store", "store"]);
}

#[test]
fn layers_and_lists_cannot_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let evil = serde_json::json!(EVIL);
    let layer =
        format!(r#"{{"name": "l", "version": {evil}, "description": {evil}, "os": ["o"], "requires": [{evil}]}}"#);
    fs::create_dir_all(dir.join("layers/l")).unwrap();
    fs::write(dir.join("layers/l/layer.json"), &layer).unwrap();
    run(dir, &["layer", "check", "layers/l"]);
    run(dir, &["layer", "list", "--layers", "layers"]);
    fs::write(dir.join("layers/l/layer.json"), layer.replace(&format!(", \"requires\": [{evil}]"), "")).unwrap();
    run(dir, &["layer", "list", "--layers", "layers"]);
    run(dir, &["layer", "list", "--layers", "layers", "--json"]);
    let digest = "0".repeat(64);
    fs::write(dir.join("sums"), format!("{digest}  {}\n", EVIL.replace(['\n', '\r', '\x07', '\x1b'], " "))).unwrap();
    fs::write(dir.join(EVIL), "content").unwrap();
    run(dir, &["verify", "checksum", "--sums", "sums", EVIL]);
    fs::write(dir.join("sums"), &digest).unwrap();
    run(dir, &["verify", "checksum", "--sums", "sums", EVIL]);
}

const SOURCES: &str = r#"{"archives": {}, "systems": {"debian-13": {"codename": "trixie", "kinds": ["k"], "arches": ["amd64"],
  "image": {"type": "qcow2", "version": {"pinned": "1"}, "url": "https://up.example/image", "proof": "first-use"}}},
  "dependencies": [{"name": "a", "kinds": ["k"], "upstream": {"type": "binary", "proof": "checksum", "url": "https://up.example/a",
    "version": {"json": {"url": "https://up.example/version", "pointer": "/v"}}, "checksums": "https://up.example/sums"}}],
  "images": [], "trust": {"k.asc": {"urls": ["https://up.example/key"]}}}"#;

#[test]
fn servers_and_keys_cannot_steer_the_terminal() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let (key, _) = CertBuilder::new().add_userid(EVIL).add_signing_subkey().generate().unwrap();
    let files: BTreeMap<_, _> = BTreeMap::from([
        ("/key".to_owned(), file(key.armored().to_vec().unwrap())),
        ("/version".to_owned(), file(serde_json::json!({ "v": EVIL }).to_string())),
    ]);
    let site = serve(Duration::ZERO, files);
    let mirror = format!("https://up.example={}", site.url);
    fs::write(dir.join("sources.json"), SOURCES).unwrap();
    fs::create_dir(dir.join("trust")).unwrap();
    let common = ["--sources", "sources.json", "--trust", "trust", "--no-builtin"];
    let online = ["--mirror", &mirror, "--store", "store"];
    run(dir, &[&["trust", "update", "--yes"], &common[..], &online].concat());
    run(dir, &[&["trust", "show"], &common[..]].concat());
    run(dir, &[&["update", "k", "--only", "a"], &common[..], &online].concat());
    run(dir, &[&["update", "k", "--only", "a", "--check"], &common[..], &online].concat());

    let text =
        SOURCES.replace(r#"{"json": {"url": "https://up.example/version", "pointer": "/v"}}"#, r#"{"pinned": "1"}"#);
    fs::write(dir.join("sources.json"), text).unwrap();
    let files = BTreeMap::from([("/sums".to_owned(), file("SPOOF \u{9b}31m\u{202e}z".to_owned()))]);
    let mirror = format!("https://up.example={}", serve(Duration::ZERO, files).url);
    run(dir, &[&["update", "k", "--only", "a", "--mirror", &mirror, "--store", "store"], &common[..]].concat());
}

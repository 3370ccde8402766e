//! Several roots of layers, sources and trust anchors: equal entries are merged, others are refused unless overridden.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

mod layers;
mod sources;

fn vmbake(dir: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
    command.env("XDG_CACHE_HOME", dir.join("cache")).env("XDG_CONFIG_HOME", dir.join("config"));
    command.args(args).current_dir(dir).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

/// A folder with a root of each sort that differs from what is built in, and a manifest.
fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fs::create_dir_all(path("mine/vm")).unwrap();
    let layer = r#"{"name": "vm", "version": "1", "description": "d", "os": ["debian-13"]}"#;
    fs::write(path("mine/vm/layer.json"), layer).unwrap();
    fs::write(path("sources.json"), r#"{"trust": {"fluentbit.asc": {"urls": ["https://e.example/key"]}}}"#).unwrap();
    fs::create_dir(path("trust")).unwrap();
    fs::copy(repository().join("trust/debian-archive.asc"), path("trust/fluentbit.asc")).unwrap();
    fs::copy(repository().join("manifests/node.debian-13.amd64.json"), path("m.json")).unwrap();
    dir
}

/// An option that names a root, and why it is refused.
type Conflict = (&'static str, &'static str);

const LAYERS: Conflict = ("--layers=mine", "layers/vm: mine differs from the built-in one");
const SOURCES: Conflict = ("--sources=sources.json", "trust/fluentbit.asc: sources.json differs from the built-in one");
const TRUST: Conflict = ("--trust=trust", "trust/fluentbit.asc: trust differs from the built-in one");

#[test]
fn every_command_looks_up_alike() {
    let dir = folder();
    let prove =
        ["verify", "sigstore", "--bundle=m.json", "--certificate-identity=i", "--certificate-oidc-issuer=o", "m.json"];
    let commands: [(&[&str], &[Conflict]); 9] = [
        (&["layer", "list"], &[LAYERS]),
        (&["user-data", "keys", "--kind=node"], &[LAYERS]),
        (&["update", "node", "--only=none"], &[LAYERS, SOURCES, TRUST]),
        // What comes after the look-up fails without a network: the manifest is of another kind.
        (&["fetch", "other", "--manifest=m.json"], &[LAYERS, SOURCES, TRUST]),
        (&["bake", "node", "--offline", "--manifest=m.json", "--base=m.json"], &[LAYERS, SOURCES, TRUST]),
        (&["manifest", "show", "m.json"], &[SOURCES, TRUST]),
        (&["trust", "show"], &[SOURCES, TRUST]),
        (&["trust", "update", "--only=none"], &[SOURCES]),
        (&prove, &[TRUST]),
    ];
    for (command, sorts) in commands {
        for (option, expected) in sorts {
            let name = expected.split(':').next().unwrap();
            let refused = vmbake(dir.path(), &[command, &[option]].concat());
            let text = said(&refused);
            assert_eq!(refused.status.code(), Some(1), "{command:?} {option}: {text}");
            assert!(text.contains(&format!("error: {expected}\n")), "{command:?} {option}: {text}");
            let hint = format!("hint: use `--override {name}` to accept the entry of");
            assert!(
                text.contains(&hint) && text.contains("; use --no-builtin to leave out"),
                "{command:?} {option}: {text}"
            );

            let overriding = vmbake(dir.path(), &[command, &[option, "--override", name]].concat());
            let note = format!(" override  {name}: ");
            assert!(said(&overriding).contains(&note), "{command:?} {option}: {}", said(&overriding));
            for without in ["--no-builtin", "--no-builtin=layers,sources,trust"] {
                let alone = vmbake(dir.path(), &[command, &[option, without]].concat());
                assert!(!said(&alone).contains(name), "{command:?} {option}: {}", said(&alone));
            }
        }
    }
}

#[test]
fn what_is_overridden_is_said_beside_what_is_proven() {
    let dir = folder();
    let options = ["--sources=sources.json", "--trust=trust", "--override=trust/fluentbit.asc", "--store=store"];
    let shown = vmbake(dir.path(), &[&["manifest", "show", "m.json"], &options[..]].concat());
    let text = String::from_utf8(shown.stdout).unwrap();
    let expected = [
        "override trust/fluentbit.asc: sources.json overrides the built-in one",
        "override trust/fluentbit.asc: trust overrides the built-in one",
    ];
    assert_eq!(text.lines().take(2).collect::<Vec<_>>(), expected);
    let shown = vmbake(dir.path(), &[&["manifest", "show", "m.json", "--json"], &options[..]].concat());
    let lines: serde_json::Value = serde_json::from_slice(&shown.stdout).unwrap();
    let overridden = lines[0]["overridden"].as_array().unwrap();
    assert_eq!(overridden.len(), 2, "{overridden:?}");
    let plain = vmbake(dir.path(), &["manifest", "show", "m.json", "--json", "--store=store"]);
    assert!(!String::from_utf8(plain.stdout).unwrap().contains("overridden"));
}

#[test]
fn equal_roots_change_nothing_and_say_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let root = |name: &str| repository().join(name).to_str().unwrap().to_owned();
    let (sources, trust, layers) = (root("manifests/sources.json"), root("trust"), root("layers"));
    let manifest = root("manifests/node.debian-13.amd64.json");
    let both = ["--sources", &sources, "--trust", &trust];
    let commands: [(&[&str], &[&str]); 4] = [
        (&["layer", "list", "--json"], &["--layers", &layers, "--layers", &layers]),
        (&["user-data", "keys", "--kind", "knd"], &["--layers", &layers]),
        (&["trust", "show"], &both),
        (&["manifest", "show", &manifest, "--store", "store", "--json"], &both),
    ];
    for (command, options) in commands {
        let (plain, merged) = (vmbake(dir.path(), command), vmbake(dir.path(), &[command, options].concat()));
        assert_eq!(merged.stdout, plain.stdout, "{command:?}");
        assert_eq!(said(&merged), said(&plain), "{command:?}");
        assert_eq!(merged.status.code(), plain.status.code(), "{command:?}");
    }
}

#[test]
fn an_override_names_an_entry_by_its_sort() {
    let dir = tempfile::tempdir().unwrap();
    for wrong in ["vm", "layer/vm", "layers/", "/vm"] {
        let refused = vmbake(dir.path(), &["layer", "list", "--override", wrong]);
        assert_eq!(refused.status.code(), Some(2), "{wrong}");
        let expected = "expected TYPE/NAME, with TYPE one of archives, dependencies, images, layers, systems, trust";
        assert!(said(&refused).contains(expected), "{}", said(&refused));
    }
}

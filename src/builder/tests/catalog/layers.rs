//! Layers of several roots, and versions that are required.

use std::fs;
use std::path::Path;

use super::{said, vmbake};

/// Writes a layer whose description goes on with `rest`.
fn write(root: &Path, name: &str, version: &str, rest: &str) {
    fs::create_dir_all(root.join(name)).unwrap();
    let head = format!(r#"{{"name": "{name}", "version": "{version}", "description": "d", "os": ["debian-13"]"#);
    fs::write(root.join(name).join("layer.json"), format!("{head}{rest}}}\n")).unwrap();
}

#[test]
fn own_layers_stand_beside_the_built_in_ones() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("mine"), "own", "3", r#", "requires": ["vm@1"]"#);
    let listed = vmbake(dir.path(), &["layer", "list", "--layers", "mine"]);
    let text = String::from_utf8(listed.stdout).unwrap();
    assert!(text.contains("own 3: d\n    from mine\n    requires vm@1\n"), "{text}");
    assert!(text.contains("\nvm 1: "), "{text}");
    let keys = |more: &[&str]| vmbake(dir.path(), &[&["user-data", "keys", "--kind", "own"], more].concat());
    assert!(keys(&["--layers", "mine"]).status.success());
    assert!(said(&keys(&[])).contains("layer own does not exist; there are busybox, "));
    let alone = keys(&["--layers", "mine", "--no-builtin"]);
    assert!(said(&alone).contains("mine/own/layer.json:1:87: layer vm does not exist"), "{}", said(&alone));
    assert!(said(&keys(&["--no-builtin"])).contains("layer own does not exist; there are none"));
}

#[test]
fn another_version_than_the_required_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (required, expected) in [
        ("vm@1", None),
        ("vm@2", Some(r#"layer vm has version "1", and "2" is required"#)),
        ("vm@", Some(r#""vm@" names no version after the @"#)),
        ("@1", Some(r#"name "" "#)),
    ] {
        write(dir.path(), "own", "3", &format!(r#", "requires": ["{required}"]"#));
        let checked = vmbake(dir.path(), &["layer", "check", "own"]);
        let text = String::from_utf8(checked.stdout).unwrap();
        match expected {
            None => assert_eq!(text, ""),
            Some(expected) => assert!(text.contains(&format!("own/layer.json:1:87: {expected}")), "{text}"),
        }
        assert_eq!(checked.status.success(), expected.is_none(), "{required}");
        let listed = vmbake(dir.path(), &["layer", "list", "--layers", "."]);
        assert_eq!(listed.status.success(), expected.is_none(), "{required}: {}", said(&listed));
    }
}

#[test]
fn a_check_warns_of_what_a_bake_would_refuse() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "vm", "1", "");
    write(dir.path(), "own", "1", r#", "requires": ["vm"]"#);
    for layer in ["vm", "own"] {
        let checked = vmbake(dir.path(), &["layer", "check", layer]);
        let text = String::from_utf8(checked.stdout).unwrap();
        let expected = "differs from what is built in: a bake needs --override layers/vm";
        assert!(checked.status.success() && text.contains("warning: layers/vm: ") && text.contains(expected), "{text}");
        let quiet = vmbake(dir.path(), &["layer", "check", layer, "--override", "layers/vm"]);
        assert_eq!(String::from_utf8(quiet.stdout).unwrap(), "", "{layer}");
    }
    let refused = vmbake(dir.path(), &["layer", "list", "--layers", "."]);
    assert!(said(&refused).contains("error: layers/vm: . differs from what is built in\n"), "{}", said(&refused));
}

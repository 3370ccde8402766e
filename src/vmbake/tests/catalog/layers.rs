//! Layers of several roots, required versions and released versions.

use std::fs;
use std::path::Path;

use super::{repository, said, vmbake};

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
    assert!(said(&keys(&[])).contains("layer own does not exist: expected one of: amazon-ssm-agent, busybox, "));
    let alone = keys(&["--layers", "mine", "--no-builtin"]);
    assert!(said(&alone).contains("mine/own/layer.json:1:87: layer vm does not exist"), "{}", said(&alone));
    assert!(said(&keys(&["--no-builtin"])).contains("layer own does not exist: expected one of: none"));
}

#[test]
fn another_version_than_the_required_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    for (required, expected) in [
        ("vm@1", None),
        ("vm@2", Some(r#"layer vm has version "1", but "2" is required"#)),
        ("vm@", Some(r#""vm@" has no version after the @"#)),
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
fn a_check_stays_among_the_layers() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    fs::create_dir_all(dir.path().join("layers")).unwrap();
    write(dir.path(), "outside", "1", "}");
    for name in ["../outside", outside.to_str().unwrap()] {
        write(&dir.path().join("layers"), "own", "1", &format!(r#", "requires": ["{name}"]"#));
        let checked = vmbake(dir.path(), &["layer", "check", "layers/own"]);
        let text = String::from_utf8(checked.stdout).unwrap();
        assert!(
            text.contains(&format!("name {name:?} is invalid")),
            "{text}{}",
            String::from_utf8_lossy(&checked.stderr)
        );
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
        let expected = "differs from the built-in one: a bake needs --override layers/vm";
        assert!(checked.status.success() && text.contains("warning: layers/vm: ") && text.contains(expected), "{text}");
        let quiet = vmbake(dir.path(), &["layer", "check", layer, "--override", "layers/vm"]);
        assert_eq!(String::from_utf8(quiet.stdout).unwrap(), "", "{layer}");
    }
    let refused = vmbake(dir.path(), &["layer", "list", "--layers", "."]);
    assert!(said(&refused).contains("error: layers/vm: . differs from the built-in one\n"), "{}", said(&refused));
}

#[test]
fn a_released_version_never_changes() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "own", "1", "");
    write(root, "more", "1", r#", "requires": ["own"]"#);
    let run = |args: &[&str]| {
        let output = vmbake(root, args);
        (output.status.success(), String::from_utf8(output.stdout.clone()).unwrap() + &said(&output))
    };
    let (ok, text) = run(&["layer", "release", "own", "more"]);
    assert!(ok && text.starts_with("own 1: released, sha256:"), "{text}");
    let list = || fs::read_to_string(root.join("released.json")).unwrap();
    let first = list();
    assert!(run(&["layer", "release", "own"]).1.starts_with("own 1: already released, sha256:"));
    assert_eq!(list(), first);

    fs::create_dir(root.join("own/files")).unwrap();
    fs::write(root.join("own/files/new"), "new").unwrap();
    let expected = r#"lists version "1" as released with sha256:"#;
    for command in [&["layer", "check", "own"][..], &["layer", "list", "--layers", "."], &["layer", "release", "own"]] {
        let (ok, text) = run(command);
        assert!(!ok && text.contains("own/layer.json:1:28: ") && text.contains(expected), "{command:?}: {text}");
    }
    assert_eq!(list(), first);
    // It does not help that the other root is the one with the list.
    let elsewhere = root.join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    assert!(
        std::process::Command::new("cp")
            .arg("-r")
            .args([root.join("own"), elsewhere.join("own")])
            .status()
            .unwrap()
            .success()
    );
    fs::remove_dir_all(root.join("own")).unwrap();
    write(root, "own", "1", "");
    let (ok, text) = run(&["layer", "list", "--layers=.", "--layers=elsewhere", "--override=layers/own"]);
    assert!(!ok && text.contains(expected), "{text}");

    write(&elsewhere, "own", "2", "");
    let (ok, text) = run(&["layer", "list", "--layers=.", "--layers=elsewhere", "--override=layers/own"]);
    assert!(ok && text.contains("own 2: d\n    from elsewhere\n"), "{text}");
    write(root, "own", "2", "");
    assert!(run(&["layer", "release", "own"]).0);
    let list: serde_json::Value = serde_json::from_str(&list()).unwrap();
    assert_eq!(list["own"].as_object().unwrap().keys().collect::<Vec<_>>(), ["1", "2"]);
}

#[test]
fn a_list_of_releases_that_says_two_things_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "own", "1", "");
    let digest = format!("sha256:{}", "0".repeat(64));
    for (text, expected) in [
        ("{".to_owned(), "released.json:1:1: EOF while parsing an object"),
        (r#"{"own": {"1": "x"}}"#.to_owned(), "released.json:1:18: "),
        (format!(r#"{{"own": {{"1": "{digest}", "1": "{digest}"}}}}"#), r#"duplicate key "1""#),
        (" ".repeat((4 << 20) + 1), "released.json: has more than 4194304 bytes"),
    ] {
        fs::write(dir.path().join("released.json"), text).unwrap();
        for command in
            [&["layer", "check", "own"][..], &["layer", "list", "--layers", "."], &["layer", "release", "own"]]
        {
            let refused = vmbake(dir.path(), command);
            assert!(!refused.status.success() && said(&refused).contains(expected), "{command:?}: {}", said(&refused));
        }
    }
}

#[test]
fn a_layer_with_faults_is_not_released() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "own", "1", r#", "remove": ["a"]"#);
    let refused = vmbake(dir.path(), &["layer", "release", "own"]);
    assert!(!refused.status.success() && said(&refused).contains("path \"a\" is not absolute"), "{}", said(&refused));
    assert!(!dir.path().join("released.json").exists());
}

#[test]
fn built_in_layers_are_those_that_were_released() {
    let text = fs::read_to_string(repository().join("layers/released.json")).unwrap();
    let released: std::collections::BTreeMap<String, std::collections::BTreeMap<String, String>> =
        serde_json::from_str(&text).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let listed = vmbake(dir.path(), &["layer", "list", "--json"]);
    assert!(listed.status.success(), "{}: a layer that was released has changed", said(&listed));
    let layers: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    for name in released.keys() {
        assert!(
            layers.as_array().unwrap().iter().any(|layer| layer["name"] == **name),
            "{name} was released and is gone"
        );
    }
}

//! Packages and archives of a layer's own directory.

use std::fs;

use serde_json::Value;
use vmbake_common::digest::Digest;

use super::archive::{Workshop, file, said};
use crate::fixtures as parts;

const FILES: &str = r#", "local_files": {
    "agent": {"path": "local/agent.deb", "version": "1.0-1", "install": {"type": "deb"}},
    "data": {"path": {"amd64": "local/more/data.tar"}, "install": {"type": "tar", "path": "/opt/data"}},
    "blob": {"path": "local/blob", "install": {"type": "file", "path": "/opt/blob", "mode": "0644"}}}"#;

fn agent(text: &str) -> Vec<u8> {
    let data = [parts::dir("./"), parts::dir("./opt/"), parts::file("./opt/agent", text)];
    parts::deb(&parts::control("agent", ""), &[], &data)
}

fn workshop() -> Option<Workshop> {
    let workshop = Workshop::new()?;
    workshop.layer("web", FILES);
    fs::create_dir_all(workshop.path("layers/web/local/more")).unwrap();
    fs::write(workshop.path("layers/web/local/agent.deb"), agent("one")).unwrap();
    let tar = [parts::file("a/b", "data"), vec![0; 1024]].concat();
    fs::write(workshop.path("layers/web/local/more/data.tar"), tar).unwrap();
    fs::write(workshop.path("layers/web/local/blob"), vec![7; 2 << 20]).unwrap();
    Some(workshop)
}

fn entries(workshop: &Workshop) -> Value {
    let manifest: Value = serde_json::from_str(&workshop.manifest()).unwrap();
    manifest["vmconfig"]["dependencies"].clone()
}

#[test]
fn files_of_a_layer_are_recorded_as_local() {
    let Some(workshop) = workshop() else { return };
    let updated = workshop.update(&[]);
    assert!(updated.status.success(), "{}", said(&updated));
    let found = entries(&workshop);
    let bytes = agent("one");
    assert_eq!(found["agent"]["digest"], Digest::of(&bytes).to_string());
    assert_eq!(found["agent"]["size"], bytes.len());
    assert_eq!(found["agent"]["url"], "local:local/agent.deb");
    assert_eq!(found["agent"]["proof"]["type"], "local");
    let shown = workshop.run(&["manifest", "show", "m/web.o.amd64.json"]);
    assert!(String::from_utf8_lossy(&shown.stdout).contains("a local file"), "{}", said(&shown));

    // Another store gets what it lacks from the layer.
    fs::rename(workshop.path("store"), workshop.path("old-store")).unwrap();
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    let image = workshop.path("dist/web.o.amd64.raw");
    assert_eq!((file(&image, "/opt/agent"), file(&image, "/opt/data/a/b")), ("one".to_owned(), "data".to_owned()));
    assert_eq!(file(&image, "/opt/blob").len(), 2 << 20);
    assert!(file(&image, "/var/lib/dpkg/status").contains("Package: agent\nStatus: install ok installed\n"));
    for name in ["spdx", "cdx", "provenance"] {
        let path = workshop.path(&format!("dist/web.o.amd64.{name}.json"));
        let text = fs::read_to_string(path).unwrap();
        assert!(text.contains("agent") && !text.contains("local:"), "{name}: {text}");
    }
}

#[test]
fn a_changed_file_is_pinned_anew() {
    let Some(workshop) = workshop() else { return };
    assert!(workshop.update(&[]).status.success());
    let before = workshop.manifest();
    fs::write(workshop.path("layers/web/local/agent.deb"), agent("two")).unwrap();
    let baked = workshop.bake();
    assert!(said(&baked).contains("layer web requests other downloads"), "{}", said(&baked));
    let updated = workshop.update(&[]);
    assert!(updated.status.success() && workshop.manifest() != before, "{}", said(&updated));
    assert_eq!(entries(&workshop)["agent"]["digest"], Digest::of(&agent("two")).to_string());
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    assert_eq!(file(&workshop.path("dist/web.o.amd64.raw"), "/opt/agent"), "two");
}

#[test]
fn what_is_wrong_with_a_file_is_named() {
    let Some(workshop) = workshop() else { return };
    for (from, to, expected) in [
        ("local/agent.deb", "local/agent.dab", "\"local/agent.dab\" is not a file below local/"),
        ("local/agent.deb", "../agent.deb", "is not a file below local/"),
        ("local/blob", "local/agent.deb", "\"local/blob\" is not installed by `local_files`"),
        ("\"blob\"", "\"firstboot\"", "is reserved"),
    ] {
        workshop.layer("web", &FILES.replacen(from, to, 1));
        let updated = workshop.update(&[]);
        assert!(!updated.status.success() && said(&updated).contains(expected), "{to}: {}", said(&updated));
    }
    workshop.layer("web", &FILES.replace("amd64", "arm64"));
    let updated = workshop.update(&[]);
    assert!(said(&updated).contains("download data has no `path` for amd64"), "{}", said(&updated));
}

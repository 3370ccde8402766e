//! The provenance of an image: its contents and dependencies.

use std::fs;

use serde_json::Value;
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::provenance::BuilderId;
use vmbake_bake::{BakeError, BakeRequest};
use vmbake_common::atomic_file::PublishError;
use vmbake_common::digest::Digest;

use super::lab::{NAME, both};
use crate::origin::bakery::{bake, can_bake};

#[test]
fn the_statement_names_all_inputs_and_all_outputs() {
    if !can_bake() {
        return;
    }
    let (dir, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let request = BakeRequest { epoch: Some(7), size: Some(96 << 20), ..both(dir.path(), "out") };
    let baked = bake(&request).unwrap();
    let read = |file: &str| fs::read_to_string(request.out.join(file)).unwrap();
    let text = read(&format!("{NAME}.provenance.json"));
    assert_eq!(baked.sidecars[&Sidecar::Provenance], Digest::of(text.as_bytes()));
    assert!(read("SHA256SUMS").contains(&format!("  {NAME}.provenance.json\n")));
    assert!(!text.contains(dir.path().to_str().unwrap()), "{text}");

    let statement: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(statement["_type"], "https://in-toto.io/Statement/v1");
    assert_eq!(statement["predicateType"], "https://slsa.dev/provenance/v1");
    let listed = read("SHA256SUMS") + &read("FSVERITYSUMS").replace("sha256:", "").replace(' ', "  ");
    let mut listed: Vec<_> = listed.lines().map(str::to_owned).filter(|line| !line.contains("provenance")).collect();
    listed.sort();
    let mut subjects: Vec<_> = statement["subject"].as_array().unwrap().iter().map(subject).collect();
    subjects.sort();
    assert_eq!(subjects, listed);
    assert!(subjects.len() >= 5, "{subjects:?}");

    let inputs = read(&format!("{NAME}.inputs.json"));
    let inputs = BuildInputs::parse(NAME.as_ref(), inputs.as_bytes()).unwrap();
    let build = &statement["predicate"]["buildDefinition"];
    let parameters = r#"{"kind": "tools", "os": "o", "arch": "amd64", "size": 100663296, "formats": ["qcow2", "raw"], "source_date_epoch": 7}"#;
    assert_eq!(build["externalParameters"], serde_json::from_str::<Value>(parameters).unwrap());
    let all = build["resolvedDependencies"].as_array().unwrap();
    let digest_of = |name: &str| {
        let found: Vec<_> = all.iter().filter(|one| one["name"] == name).collect();
        assert_eq!(found.len(), 1, "{name}");
        format!("sha256:{}", found[0]["digest"]["sha256"].as_str().unwrap())
    };
    for (name, digest) in [
        ("program", inputs.program.digest),
        ("base", inputs.base.unwrap()),
        ("manifest", inputs.manifest),
        ("sources", inputs.sources),
        ("firstboot", inputs.firstboot.unwrap()),
        ("trust/sigstore-root.json", inputs.trust["sigstore-root.json"]),
        ("layer/tools", inputs.layers[0].digest),
        ("layer/hygiene", inputs.layers[1].digest),
    ] {
        assert_eq!(digest_of(name), digest.to_string(), "{name}");
    }
    let manifest: Value = serde_json::from_str(&read(&format!("{NAME}.json"))).unwrap();
    let pinned = manifest["vmconfig"]["dependencies"].as_object().unwrap();
    for (name, entry) in pinned {
        assert_eq!(digest_of(&format!("artifact/{name}")), entry["digest"], "{name}");
        let found = all.iter().find(|one| one["name"] == format!("artifact/{name}")).unwrap();
        assert_eq!((&found["uri"], &found["annotations"]["version"]), (&entry["url"], &entry["version"]));
    }
    assert_eq!(all.len(), 8 + pinned.len());
    assert_eq!(statement["predicate"]["runDetails"]["builder"]["id"], "urn:vmbake:builder");
    assert!(statement["predicate"]["runDetails"].as_object().unwrap().len() == 1, "no time, no number of a run");

    let base = elsewhere.path().join("base.raw");
    fs::copy(request.base.as_ref().unwrap(), &base).unwrap();
    let other = BakeRequest { epoch: Some(7), size: Some(96 << 20), ..both(elsewhere.path(), "o") };
    bake(&BakeRequest { threads: std::num::NonZeroUsize::MIN, ..other.clone() }).unwrap();
    assert_eq!(fs::read_to_string(other.out.join(format!("{NAME}.provenance.json"))).unwrap(), text, "elsewhere");
}

/// A subject as its line in a list.
fn subject(subject: &Value) -> String {
    let name = subject["name"].as_str().unwrap();
    let digests = subject["digest"].as_object().unwrap();
    let key = if name.ends_with(".raw") { "fsverity_sha256" } else { "sha256" };
    assert_eq!(digests.keys().collect::<Vec<_>>(), [key], "{name}");
    format!("{}  {name}", digests[key].as_str().unwrap())
}

#[test]
fn another_builder_is_a_change_of_the_statement_alone() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let request = both(dir.path(), "out");
    bake(&request).unwrap();
    let listed = || fs::read_to_string(request.out.join("SHA256SUMS")).unwrap();
    let before = listed();
    bake(&request).unwrap();
    assert_eq!(listed(), before);
    let builder: BuilderId = "https://example.org/builder".parse().unwrap();
    let other = BakeRequest { builder: builder.clone(), ..request.clone() };
    match bake(&other) {
        Err(BakeError::Publish(PublishError::Exists { .. })) => {}
        found => panic!("{found:?}"),
    }
    bake(&BakeRequest { force: true, ..other.clone() }).unwrap();
    let differ: Vec<_> = listed().lines().filter(|line| !before.contains(line)).map(str::to_owned).collect();
    assert!(differ.len() == 1 && differ[0].ends_with(".provenance.json"), "{differ:?}");
    let text = fs::read_to_string(request.out.join(format!("{NAME}.provenance.json"))).unwrap();
    assert!(text.contains(&format!("\"id\": \"{builder}\"")), "{text}");
    bake(&other).unwrap_or_else(|error| panic!("it is there already: {error}"));
}

#[test]
fn a_builder_is_a_uri() {
    for good in ["urn:a:b", "https://example.org/a?b=c#d", "mailto:a@example.org"] {
        assert_eq!(good.parse::<BuilderId>().unwrap().to_string(), good);
    }
    for wrong in ["", "builder", ":a", "https:", "1a:b", "a:b c", "a:b\"", "a:b\n", "ä:b", "a:ä"] {
        let error = wrong.parse::<BuilderId>().unwrap_err();
        assert!(error.to_string().contains("invalid builder ID"), "{error}");
    }
}

//! Sources from several files: merging, and refusal of weaker requirements.

use std::path::Path;

use serde_json::{Value, json};
use vmbake_common::catalog::{Catalog, Override};
use vmbake_pin::sources::{Sources, SourcesError};

use super::repository;

/// Signed, listed and unsigned artifacts, two archives and a system.
fn first() -> Value {
    let file = |name: &str| format!("https://g.example/{{version}}/{name}");
    let artifact =
        |name: &str, kinds: Value, upstream: Value| json!({"name": name, "kinds": kinds, "upstream": upstream});
    let binary = |name: &str, proof: Value| {
        json!({"type": "binary", "version": {"github": "o/x"}, "url": file(name), "checksums": "{url}.sha256", "proof": proof,
            "program": {"package": "x.example/x", "version": "v{version}"}})
    };
    let archive = |suite: &str| json!({"url": "https://d.example/debian", "suite": suite, "component": "main", "keyring": "k.asc", "max_age_days": 14});
    let mut main = archive("{codename}");
    main["also"] = json!(["updates"]);
    let sigstore = json!({"sigstore": {"bundle": "{url}.bundle", "identity": "https://x.example/{version}", "issuer": "https://i.example",
        "predicate_type": "https://slsa.dev/provenance/v1"}});
    let cosign = json!({"cosign": {"signature": "{url}.sig", "certificate": "{url}.cert", "identity": "me@x.example",
        "issuer": "https://i.example", "log": "https://log.example"}});
    json!({
        "archives": {"main": main, "updates": archive("{codename}-updates")},
        "systems": {"os": {"codename": "c", "kinds": ["box"], "arches": ["amd64"], "image": {"type": "qcow2",
            "version": {"pinned": "1"}, "url": "https://i.example/{version}", "checksums": "{url}.sums", "proof": "checksum"}}},
        "dependencies": [
            artifact("bundled", json!(["box"]), binary("bundled", sigstore)),
            artifact("signed", json!(["box"]), binary("signed", cosign)),
            artifact("listed", json!(["box"]), binary("listed", json!("checksum"))),
            artifact("packed", json!(["box"]), json!({"type": "deb", "version": {"apt": {"archive": "main", "package": "p"}}, "proof": "apt"})),
        ],
        "images": [{"image": "r.example/pause", "kinds": ["box"], "tag": {"pinned": "1"}}],
        "trust": {"k.asc": {"urls": ["https://d.example/key"]}},
    })
}

/// Loads `one` and then `two`, whose files are so named, with these overrides.
fn load(one: &Value, two: &Value, overrides: &[&str]) -> Result<Sources, SourcesError> {
    let dir = tempfile::tempdir().unwrap();
    let paths = [("one.json", one), ("two.json", two)].map(|(name, value)| {
        let path = dir.path().join(name);
        std::fs::write(&path, value.to_string()).unwrap();
        path
    });
    Sources::load(&Catalog::new(false, paths).overriding(overrides.iter().map(|name| (*name).to_owned())))
}

/// The one artifact of the first file of that name, with a change.
fn changed(name: &str, change: impl Fn(&mut Value)) -> Value {
    let all = first();
    let mut found = all["dependencies"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    change(&mut found);
    json!({"dependencies": [found]})
}

/// A change of the upstream of an artifact: a pointer and its new value, or none.
fn upstream(name: &str, changes: &[(&str, Value)]) -> Value {
    changed(name, |artifact| set(&mut artifact["upstream"], changes))
}

/// A change of an archive.
fn archive(changes: &[(&str, Value)]) -> Value {
    let mut archive = first()["archives"]["main"].clone();
    set(&mut archive, changes);
    json!({"archives": {"main": archive}})
}

fn set(value: &mut Value, changes: &[(&str, Value)]) {
    for (pointer, new) in changes {
        let (parent, key): (&str, &str) = pointer.rsplit_once('/').unwrap_or(("", *pointer));
        let parent = if parent.is_empty() { &mut *value } else { value.pointer_mut(&format!("/{parent}")).unwrap() };
        match new {
            Value::Null => drop(parent.as_object_mut().unwrap().remove(key).unwrap()),
            new => parent[key] = new.clone(),
        }
    }
}

#[test]
fn the_built_in_file_again_is_the_same() {
    let built_in = Sources::load(&Catalog::built_in()).unwrap();
    let again = Catalog::built_in().with(repository().join("manifests/sources.json"));
    let again = Sources::load(&again).unwrap();
    assert_eq!((again.digest(), again.targets()), (built_in.digest(), built_in.targets()));
    assert!(again.overridden().is_empty());
    // Other bytes that say the same.
    let same = load(&first(), &first(), &[]).unwrap();
    let mut spaced = first();
    spaced["images"] = json!([]);
    let merged = load(&first(), &spaced, &[]).unwrap();
    assert_eq!(same.targets(), merged.targets());
    assert!(merged.overridden().is_empty() && same.digest() != merged.digest());
    let target = &merged.targets()[0];
    assert_eq!(merged.dependencies(target).count(), 4);
}

#[test]
fn a_file_needs_no_more_than_what_it_adds() {
    let own = json!({
        "systems": {"os": {"kinds": ["mine"]}},
        "dependencies": [{"name": "own", "kinds": ["mine"], "upstream":
            {"type": "deb", "version": {"apt": {"archive": "main", "package": "own"}}, "proof": "apt"}}],
    });
    let merged = load(&first(), &own, &[]).unwrap();
    let names: Vec<String> = merged.targets().iter().map(|target| target.name()).collect();
    assert_eq!(names, ["box.os.amd64", "mine.os.amd64"]);
    let mine = merged.targets().remove(1);
    assert_eq!(merged.system(&mine).unwrap().codename, "c");
    assert_eq!(merged.dependencies(&mine).map(|source| source.name.as_str()).collect::<Vec<_>>(), ["own"]);
    for (lacks, expected) in [
        (json!({"systems": {"other": {"kinds": ["mine"]}}}), "two.json: systems.other: codename is missing"),
        (json!({"systems": {"other": {"codename": "o"}}}), "two.json: systems.other: arches is missing"),
        (
            json!({"systems": {"other": {"codename": "o", "arches": ["amd64"]}}}),
            "two.json: systems.other: image is missing",
        ),
    ] {
        let error = load(&first(), &lacks, &[]).unwrap_err().to_string();
        assert!(error.ends_with(expected), "{error}");
    }
}

/// Artifacts of a second file that demand less than the first one does, the entry that is refused, and why.
fn weaker_artifacts() -> Vec<(Value, &'static str, String)> {
    const BUNDLED: &str =
        "a sigstore bundle with a https://slsa.dev/provenance/v1 by https://x.example/{version} of https://i.example";
    const LOGGED: &str = "a signature by me@x.example of https://i.example in the log https://log.example";
    let elsewhere = |key: &str, value: Value| {
        changed("bundled", |artifact| {
            set(&mut artifact["upstream"], &[("proof", json!("checksum"))]);
            set(artifact, &[(key, value.clone())]);
        })
    };
    let checksum = format!("a checksum file instead of {BUNDLED}");
    let mut cases = vec![
        // The same file for another kind, and under another name.
        (elsewhere("kinds", json!(["mine"])), "dependencies/bundled", checksum.clone()),
        (elsewhere("name", json!("renamed")), "dependencies/renamed", checksum),
    ];
    let unlisted = [("proof", json!("first-use")), ("checksums", Value::Null)];
    cases.push((
        upstream("listed", &unlisted),
        "dependencies/listed",
        "the first download instead of a checksum file".to_owned(),
    ));
    cases.push((
        upstream("bundled", &unlisted),
        "dependencies/bundled",
        format!("the first download instead of {BUNDLED}"),
    ));
    for (pointer, value, from, to) in [
        ("proof/sigstore/identity", json!("you"), "https://x.example/{version}", "you"),
        ("proof/sigstore/issuer", json!("you"), "of https://i.example", "of you"),
        ("proof/sigstore/predicate_type", Value::Null, " with a https://slsa.dev/provenance/v1", ""),
        ("proof", json!("checksum"), BUNDLED, "a checksum file"),
    ] {
        let expected = format!("{} instead of {BUNDLED}", BUNDLED.replace(from, to));
        cases.push((upstream("bundled", &[(pointer, value)]), "dependencies/bundled", expected));
    }
    for (key, value, from, to) in [
        ("identity", json!("you"), "me@x.example", "you"),
        ("issuer", json!("you"), "of https://i.example", "of you"),
        ("log", json!("https://own.example"), "https://log.example", "https://own.example"),
        ("without_log", json!(true), " in the log", " optionally in the log"),
    ] {
        let expected = format!("{} instead of {LOGGED}", LOGGED.replace(from, to));
        cases.push((upstream("signed", &[(&format!("proof/cosign/{key}"), value)]), "dependencies/signed", expected));
    }
    for (pointer, value, expected) in [
        ("program", Value::Null, "any program instead of x.example/x"),
        ("program/version", Value::Null, "no version check of the program x.example/x"),
        ("program/package", json!("y"), "the program y instead of x.example/x"),
    ] {
        cases.push((upstream("bundled", &[(pointer, value)]), "dependencies/bundled", expected.to_owned()));
    }
    let mut of_own = upstream("packed", &[("version/apt/archive", json!("own"))]);
    of_own["archives"]["own"] = own_archive();
    let expected = "the signed index of archive own instead of the signed index of archive main";
    cases.push((of_own, "dependencies/packed", expected.to_owned()));
    cases
}

fn own_archive() -> Value {
    json!({"url": "https://own.example", "suite": "s", "component": "main", "keyring": "own.asc"})
}

/// Archives and systems of a second file that demand less, likewise.
fn weaker_places() -> Vec<(Value, &'static str, String)> {
    let mut alias = first()["archives"]["main"].clone();
    set(&mut alias, &[("max_age_days", json!(900)), ("also", json!([]))]);
    let mut system = first()["systems"]["os"].clone();
    set(&mut system, &[("image/checksums", Value::Null), ("image/proof", json!("first-use"))]);
    let mut more = archive(&[("also", json!(["updates", "own"]))]);
    more["archives"]["own"] = own_archive();
    let cases = [
        (archive(&[("keyring", json!("own.asc"))]), "archives/main", "keyring own.asc instead of k.asc"),
        (archive(&[("max_age_days", json!(15))]), "archives/main", "an index of up to 15 days instead of 14"),
        (archive(&[("max_age_days", Value::Null)]), "archives/main", "an index of any age instead of 14 days at most"),
        (archive(&[("also", Value::Null)]), "archives/main", "without the newer versions of archive updates"),
        (more, "archives/main", "also packages of archive own"),
        (json!({"archives": {"alias": alias}}), "archives/alias", "an index of up to 900 days instead of 14"),
        (json!({"systems": {"os": system}}), "systems/os", "the first download instead of a checksum file"),
        (json!({"systems": {"alias": system}}), "systems/alias", "the first download instead of a checksum file"),
    ];
    cases.map(|(two, name, expected)| (two, name, expected.to_owned())).into()
}

#[test]
fn no_file_demands_less_than_another_one() {
    for (two, name, expected) in weaker_artifacts().into_iter().chain(weaker_places()) {
        let error = load(&first(), &two, &[]).unwrap_err().to_string();
        let (start, end) = (format!("{name}: "), format!("one.json: {expected}"));
        assert!(error.starts_with(&start) && error.ends_with(&end), "{error}\nexpected: {expected}");
        assert!(error.contains("two.json requires a weaker proof than "), "{error}");
        assert!(load(&first(), &two, &["dependencies/none", "layers/main"]).is_err(), "{name}");
        let overriding = load(&first(), &two, &[name]).unwrap();
        let [Override { entry, weaker, found, .. }] = overriding.overridden() else { panic!("{name}") };
        assert_eq!((entry.as_str(), weaker.as_deref()), (name, Some(expected.as_str())));
        assert!(found.to_string().ends_with("two.json"));
    }
}

#[test]
fn an_entry_that_differs_is_refused_too() {
    let cases = [
        (upstream("bundled", &[("url", json!("https://mirror.example/{version}"))]), "dependencies/bundled"),
        (upstream("signed", &[("version", json!({"pinned": "0.1"}))]), "dependencies/signed"),
        (archive(&[("url", json!("https://mirror.example"))]), "archives/main"),
        (archive(&[("max_age_days", json!(7))]), "archives/main"),
        (json!({"systems": {"os": {"codename": "d"}}}), "systems/os"),
        (
            json!({"images": [{"image": "r.example/pause", "kinds": ["box"], "tag": {"pinned": "2"}}]}),
            "images/r.example/pause",
        ),
        (json!({"trust": {"k.asc": {"urls": ["https://own.example"]}}}), "trust/k.asc"),
    ];
    for (two, name) in cases {
        let error = load(&first(), &two, &[]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: ")) && error.contains("two.json differs from "), "{error}");
        let overriding = load(&first(), &two, &[name]).unwrap();
        assert_eq!(overriding.overridden().iter().map(|one| one.entry.as_str()).collect::<Vec<_>>(), [name]);
    }
}

#[test]
fn what_is_overridden_is_what_counts() {
    let two = upstream("bundled", &[("url", json!("https://mirror.example/{version}"))]);
    let merged = load(&first(), &two, &["dependencies/bundled"]).unwrap();
    let target = &merged.targets()[0];
    let start =
        |sources: &Sources| sources.upstream(target, "bundled").unwrap().url.as_ref().unwrap().start().to_owned();
    assert_eq!(start(&merged), "https://mirror.example/");
    assert_eq!(merged.dependencies(target).count(), 4);
    let image = json!({"images": [{"image": "r.example/pause", "kinds": ["box"], "tag": {"pinned": "2"}}]});
    let merged = load(&first(), &image, &["images/r.example/pause"]).unwrap();
    assert_eq!(merged.images(target).count(), 1);
    let plain = Sources::parse(Path::new("s.json"), first().to_string().as_bytes()).unwrap();
    assert_eq!(start(&plain), "https://g.example/");
    assert_ne!(plain.digest(), merged.digest());
}

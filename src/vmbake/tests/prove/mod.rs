//! Replayed proofs: claims in a manifest have no effect.

use serde_json::{Value, json};
use vmbake_common::digest::Digest;
use vmbake_pin::prove::VerifiedProof;

use crate::apt::lab::Lab;
use site::{DATE, Site};

mod site;

/// A manifest with another value at a place.
fn changed(manifest: &Value, place: &str, value: Value) -> Value {
    let mut manifest = manifest.clone();
    let (parent, key) =
        place.rsplit_once('/').map_or((String::new(), place), |(parent, key)| (format!("/{parent}"), key));
    manifest.pointer_mut(&format!("/vmconfig{parent}")).unwrap()[key] = value;
    manifest
}

#[test]
fn what_the_evidence_says_is_proven() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let archive = VerifiedProof::Archive { archive: "Test".to_owned(), date: DATE.parse().unwrap(), snapshot: None };
    assert_eq!(site.one(&site.manifest, "tool"), Ok(archive));
    assert_eq!(site.one(&site.manifest, "program"), Ok(VerifiedProof::Checksum));
    let proofs = json!([
        {"count": 1, "by": "by the Test archive of 2026-11-14", "signed": true},
        {"count": 1, "by": "by a checksum file of the site, not signed", "signed": false},
    ]);
    let expected = json!({"event": "verified", "artifacts": 2, "proofs": proofs});
    assert_eq!(json!(site.all(&site.manifest).unwrap().event()), expected);
}

#[test]
fn every_changed_word_is_noticed() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let forged = || json!(Digest::of(b"forged"));
    let [release, packages] = site.evidence();
    for (name, key, value, expected) in [
        ("tool", "digest", forged(), "the manifest states digest sha256:"),
        ("tool", "digest", json!(Digest::of(b"late")), "the manifest states digest sha256:"),
        ("tool", "size", json!(5), "the manifest states size 5, but the proven one is 4"),
        ("tool", "version", json!("1.0-2"), "package tool 1.0-2 not found"),
        ("tool", "version", json!("0.9-1"), "the manifest states URL"),
        ("tool", "url", json!("https://evil.example/tool_1.0-1.deb"), "the manifest states URL"),
        ("tool", "type", json!("binary"), "the manifest states type binary, but the proven one is deb"),
        ("tool", "proof", json!(null), "records no proof"),
        (
            "tool",
            "proof",
            json!({"type": "first-use"}),
            "records the first download, but its source requires the signed index",
        ),
        ("tool", "proof", json!({"type": "local"}), "records a local file"),
        ("tool", "proof/signers", json!(["A"]), "the manifest states signers A"),
        ("tool", "proof/date", json!("2026-11-15T08:00:00Z"), "the manifest states Date 2026-11-15T08:00:00Z"),
        ("tool", "proof/signed", json!("2026-11-15T08:00:00Z"), "the manifest states time of signing"),
        ("tool", "proof/suite", json!("sid"), "the manifest states suite sid, but the proven one is trixie"),
        ("tool", "proof/archive", json!("other"), "its source requires the signed index of archive main"),
        ("tool", "proof/archive", json!("none"), "its source requires the signed index of archive main"),
        // An archive that may have it, but does not: its documents are elsewhere.
        ("tool", "proof/archive", json!("fixes"), "expected https://f.example/debian/dists/trixie/InRelease"),
        ("tool", "proof/evidence", json!([]), "pins no evidence for archive main"),
        ("tool", "proof/evidence", json!([release]), "pins no evidence for archive main"),
        (
            "tool",
            "proof/evidence",
            json!([packages, packages]),
            "expected https://a.example/debian/dists/trixie/InRelease",
        ),
        ("tool", "proof/evidence", json!([release, release]), "InRelease does not list the index"),
        ("tool", "proof/evidence", json!([forged(), packages]), "no URL in the manifest"),
        ("program", "digest", forged(), "the manifest states digest"),
        ("program", "version", json!("2.1"), "the manifest states URL"),
        ("program", "version", json!("1/../2.0"), "\"1/../2.0\" is not a valid version"),
        ("program", "url", json!("https://g.example/v2.0/program-arm64"), "the manifest states URL"),
        ("program", "proof/url", json!("https://evil.example/sums"), "the manifest states the checksum file"),
        ("program", "proof/evidence", json!(release), "expected https://g.example/v2.0/program-amd64.sha256"),
        ("program", "proof/evidence", json!(null), "pins no evidence for checksum file"),
        (
            "program",
            "proof",
            json!({"type": "first-use"}),
            "records the first download, but its source requires a checksum file",
        ),
    ] {
        let manifest = changed(&site.manifest, &format!("dependencies/{name}/{key}"), value.clone());
        let said = site.one(&manifest, name).unwrap_err();
        assert!(said.contains(expected), "{name} {key} {value}: {said}");
        assert!(site.all(&manifest).is_err(), "{name} {key} {value}");
    }
}

#[test]
fn clouds_that_other_programs_list_do_not_matter() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let manifest = changed(&site.manifest, "dependencies/tool/providers", json!(["aws"]));
    assert!(site.one(&manifest, "tool").is_ok());
    assert!(!site.text(&manifest).contains("providers"), "they are not kept");
}

#[test]
fn evidence_comes_from_where_it_was_published() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    for digest in site.evidence() {
        for (key, value) in [("url", json!("https://evil.example/x")), ("form", json!("log-entry"))] {
            let manifest = changed(&site.manifest, &format!("evidence/{digest}/{key}"), value);
            let said = site.one(&manifest, "tool").unwrap_err();
            assert!(said.contains("expected https://a.example/debian/dists/trixie/"), "{said}");
        }
        let manifest = changed(&site.manifest, &format!("evidence/{digest}/size"), json!(200 << 20));
        assert!(site.one(&manifest, "tool").unwrap_err().contains("more than the limit of"));
    }
}

#[test]
fn a_verdict_is_of_one_manifest_whatever_its_file_is_called() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let forged = changed(&site.manifest, "dependencies/tool/size", json!(5));
    let other = changed(&site.manifest, "version", json!("2"));
    let verdicts = site.store.root().join("verdicts");
    let names = || -> Vec<_> { std::fs::read_dir(&verdicts).unwrap().map(|entry| entry.unwrap().path()).collect() };
    site.all(&site.manifest).unwrap();
    let first = names();
    site.all(&other).unwrap();
    let second = names().into_iter().find(|path| !first.contains(path)).unwrap();
    // The name of the forged one is not known here: each verdict is put under the other's name, and is found again.
    std::fs::rename(&first[0], &second).unwrap();
    let release = site.store.path(&site.evidence()[0]);
    std::fs::remove_file(release).unwrap();
    assert!(site.all(&other).is_err(), "the verdict of another manifest");
    assert!(site.all(&forged).is_err());
}

#[test]
fn a_base_that_the_user_has_is_named_by_the_user() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let mut manifest = site.manifest.clone();
    manifest["vmconfig"]["os"]["image"] = json!({"version": "local", "url": "local:own.qcow2", "type": "qcow2",
        "digest": Digest::of(b"base"), "size": 4, "proof": {"type": "local"}});
    site.store.insert(b"base").unwrap();
    assert_eq!(json!(site.all(&manifest).unwrap().event())["base"], "a local file");
    let said = site.base(&manifest).unwrap_err();
    assert!(said.contains("pins local:own.qcow2 as the base image, which is a local file"), "{said}");
}

#[test]
fn what_no_source_knows_was_pinned_by_hand_and_is_called_so() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let mut manifest = site.manifest.clone();
    let mut own = manifest["vmconfig"]["dependencies"]["tool"].clone();
    own.as_object_mut().unwrap().remove("proof");
    manifest["vmconfig"]["dependencies"]["own"] = own;
    assert_eq!(site.one(&manifest, "own"), Ok(VerifiedProof::ByHand));
    let by_hand = json!({"count": 1, "by": "pinned manually", "signed": false});
    assert_eq!(json!(site.all(&manifest).unwrap().event())["proofs"][2], by_hand);
    manifest["vmconfig"]["dependencies"]["own"]["proof"] =
        site.manifest["vmconfig"]["dependencies"]["tool"]["proof"].clone();
    assert!(site.one(&manifest, "own").unwrap_err().contains("no source defines the required proof"));
    let elsewhere = changed(&site.manifest, "os/name", json!("debian-14"));
    assert!(site.one(&elsewhere, "tool").unwrap_err().contains("no source defines the required proof"));
}

#[test]
fn time_passes_but_trust_is_of_today() {
    let Some(lab) = Lab::with_keys(&["expired", "good"]) else { return };
    // The key has expired and the `InRelease` is not valid any more: both were when they were used.
    let site = Site::signed_by(&lab, "expired");
    assert!(site.one(&site.manifest, "tool").is_ok());
    site.trust(&lab.export(&["good"]));
    assert!(site.one(&site.manifest, "tool").unwrap_err().contains("unknown key"), "the key is not trusted any more");
    assert!(site.all(&site.manifest).is_err());

    let site = Site::signed_by(&lab, "good");
    assert!(site.all(&site.manifest).is_ok());
    lab.supersede("good");
    site.trust(&lab.export(&["good"]));
    let said = site.one(&site.manifest, "tool").unwrap_err();
    assert!(said.contains("is revoked"), "{said}");
    assert!(site.all(&site.manifest).is_err(), "a verdict of before the revocation is not one of today");
}

#[test]
fn evidence_must_be_there_and_whole_unless_the_verdict_is_known() {
    let Some(lab) = Lab::with_keys(&["good"]) else { return };
    let site = Site::signed_by(&lab, "good");
    let [release, packages] = site.evidence();
    let path = site.store.path(&packages);
    let content = std::fs::read(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let said = site.one(&site.manifest, "tool").unwrap_err();
    assert!(said.contains(&format!("evidence {packages} is not in the store (from https://a.example/")), "{said}");
    for damaged in
        [&content[1..], b"", b"x".repeat(content.len()).as_slice(), [content.as_slice(), b"x"].concat().as_slice()]
    {
        std::fs::write(&path, damaged).unwrap();
        let said = site.one(&site.manifest, "tool").unwrap_err();
        assert!(said.contains("in the store, expected"), "{said}");
    }
    std::fs::write(&path, &content).unwrap();
    site.all(&site.manifest).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::remove_file(site.store.path(&release)).unwrap();
    site.all(&site.manifest).unwrap();
    let other = changed(&site.manifest, "version", json!("2"));
    assert!(site.all(&other).is_err(), "another manifest has no verdict yet");
}

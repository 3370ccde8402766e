//! Round trips: uploads, skipped uploads and downloads.

use std::fs;

use vmbake_disk::image::Format;
use vmbake_release::DocumentError;
use vmbake_release::binding::ReleaseBinding;
use vmbake_release::pull::PullError;
use vmbake_release::push::PushError;
use vmbake_store::registry::RegistryError;

use super::yard::{How, Yard, same};
use crate::release::lab::{NAME, edit, stderr, text, vmbake};

#[test]
fn a_release_comes_back_as_it_was_and_is_sent_once() {
    let Some(yard) = Yard::new() else { return };
    let first = yard.push("signed", &["raw", "qcow2"], &["1", "latest"], Some("one"), false).unwrap();
    assert!(first.sent > 10 && first.reused == 0, "{first:?}");
    assert!(first.attached.contains(&format!("{NAME}.spdx.json")), "{:?}", first.attached);
    let again = yard.push("signed", &["qcow2", "raw"], &["1", "2"], Some("one"), false).unwrap();
    assert_eq!((again.sent, again.sent_bytes, &again.digest), (0, 0, &first.digest));
    for tag in ["1", "2", "latest"] {
        assert_eq!(yard.repository().tag(tag).unwrap().unwrap().to_string(), first.digest);
    }

    let how = How { key: Some("one"), ..How::default() };
    let report = yard.pull(":2", "raw", &how).unwrap();
    assert_eq!((report.signed_by.as_slice(), report.reused_bytes), (["one".to_owned()].as_slice(), 0));
    let raw = format!("{NAME}.raw");
    assert!(same(&yard.lab.path("raw").join(&raw), &yard.image("signed", "raw")));
    let [key, public] = yard.lab.key();
    let image = yard.lab.path("raw").join(&raw);
    assert_eq!(yard.lab.verify(&image, &[&key, &public]), (0, vec![]));
    // The other format completes the release.
    yard.pull(":2", "raw", &How { format: Some(Format::Qcow2), key: Some("one"), ..How::default() }).unwrap();
    assert_eq!(yard.lab.verify(&yard.lab.path("raw"), &[&key, &public]), (0, vec![]));
    let mut expected: Vec<String> = fs::read_dir(yard.lab.path("signed"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    expected.sort();
    assert_eq!(yard.visible("raw"), expected);

    // Nothing is replaced, unless that is asked for.
    let error = yard.pull(":2", "raw", &how).unwrap_err();
    assert!(matches!(error, PullError::Publish(_)), "{error}");
    fs::write(&image, "x").unwrap();
    yard.pull(":2", "raw", &How { force: true, ..how }).unwrap();
    assert!(same(&image, &yard.image("signed", "raw")));
    let other = How { format: Some(Format::Qcow2), arch: Some("arm64"), ..How::default() };
    let error = yard.pull(":2", "arm64", &other).unwrap_err();
    let said = "images:2: no image of arm64 as qcow2, available: amd64 as raw, amd64 as qcow2";
    assert!(error.to_string().ends_with(said), "{error}");
}

#[test]
fn the_next_release_costs_what_has_changed() {
    let Some(yard) = Yard::new() else { return };
    let first = yard.push("signed", &["raw"], &["1"], None, false).unwrap();
    yard.other(96 << 20);
    // A tag is not moved by chance, and nothing is sent before that is known.
    let error = yard.push("other", &["raw"], &["1"], None, false).unwrap_err();
    let PushError::Tagged { tag, found, expected, .. } = error else { panic!("{error}") };
    assert_eq!((tag.as_str(), found.to_string()), ("1", first.digest.clone()));
    assert!(!yard.repository().has_manifest(&expected).unwrap());
    let second = yard.push("other", &["raw"], &["1"], None, true).unwrap();
    assert_eq!(second.digest, expected.to_string());
    assert!(second.reused > 0 && second.sent_bytes < first.sent_bytes, "{first:?} {second:?}");

    let error = yard.pull(&format!(":1@{}", first.digest), "moved", &How::default()).unwrap_err();
    assert!(matches!(error, PullError::Moved { .. }), "{error}");
    assert!(matches!(yard.pull("", "moved", &How::default()), Err(PullError::Unnamed { .. })));
    let whole = yard.pull(":1", "whole", &How::default()).unwrap();
    assert!(same(&whole.image, &yard.image("other", "raw")));
    // An older image that differs in the first chunk.
    let old = yard.lab.path("old.raw");
    let mut bytes = fs::read(&whole.image).unwrap();
    bytes[700] ^= 1;
    fs::write(&old, bytes).unwrap();
    let report = yard.pull(":1", "new", &How { from: Some(old.clone()), ..How::default() }).unwrap();
    assert!(same(&report.image, &whole.image));
    let manifest = yard.document(yard.document(&second.digest)["manifests"][0]["digest"].as_str().unwrap());
    assert_eq!(report.downloaded_bytes, manifest["layers"][0]["size"].as_u64().unwrap());
    assert_eq!(whole.reused_bytes, 0);
    // One that is shorter, and of which nothing fits.
    fs::write(&old, vec![3; 5 << 20]).unwrap();
    let report = yard.pull(":1", "other-new", &How { from: Some(old), ..How::default() }).unwrap();
    assert_eq!((report.reused_bytes, report.downloaded_bytes), (0, whole.downloaded_bytes));
    assert!(same(&report.image, &whole.image));
    // By its digest the first one is still there.
    yard.pull(&format!("@{}", first.digest), "old", &How::default()).unwrap();
    assert!(same(&yard.lab.path("old").join(format!("{NAME}.raw")), &yard.image("signed", "raw")));
}

#[test]
fn what_a_registry_has_lost_or_damaged_is_noticed_and_the_rest_kept() {
    let Some(yard) = Yard::new() else { return };
    let report = yard.push("signed", &["raw"], &["1"], None, false).unwrap();
    let index = yard.document(&report.digest);
    let manifest = yard.document(index["manifests"][0]["digest"].as_str().unwrap());
    let layers = manifest["layers"].as_array().unwrap();
    // The longest is none of zeros.
    let layer = layers.iter().max_by_key(|layer| layer["size"].as_u64()).unwrap();
    let digest = layer["digest"].as_str().unwrap();
    let file = yard.blob_file(digest);
    let content = fs::read(&file).unwrap();
    let mut swapped = content.clone();
    swapped[100] ^= 1;
    let attacks: [(&str, Vec<u8>); 3] = [
        ("swapped", swapped),
        ("truncated", content[..content.len() - 1].to_vec()),
        ("prolonged", [&content[..], b"x"].concat()),
    ];
    for (what, damaged) in attacks {
        fs::write(&file, damaged).unwrap();
        let error = yard.pull(":1", "out", &How::default()).unwrap_err();
        assert!(matches!(error, PullError::Registry(_)), "{what}: {error}");
        if what == "swapped" {
            assert!(matches!(error, PullError::Registry(RegistryError::Digest { .. })), "{what}: {error}");
        }
        assert_eq!(yard.visible("out"), [""; 0], "{what}");
    }
    // Foreign writes to the unnamed file have no effect.
    let part = yard.lab.path("out").join(format!(".{NAME}.raw.part"));
    let mut bytes = fs::read(&part).unwrap();
    let len = bytes.len();
    bytes[len - 4096..].fill(7);
    fs::write(&part, bytes).unwrap();
    fs::write(&file, &content).unwrap();
    let resumed = yard.pull(":1", "out", &How::default()).unwrap();
    assert!(resumed.reused_bytes > 0 && resumed.downloaded_bytes >= layer["size"].as_u64().unwrap(), "{resumed:?}");
    assert!(same(&resumed.image, &yard.image("signed", "raw")));
    assert!(!part.exists());
}

#[test]
fn what_is_no_release_is_not_pushed() {
    let Some(yard) = Yard::new() else { return };
    let read = |images: &[&str]| {
        let images: Vec<_> = images.iter().map(|image| yard.lab.path(image)).collect();
        vmbake_release::ReleaseFolder::read(&images).unwrap_err()
    };
    let [raw, qcow2] = ["raw", "qcow2"].map(|end| format!("{NAME}.{end}"));
    let copy = yard.lab.copy("copy");
    let twice = read(&[&format!("signed/{raw}"), &format!("copy/{qcow2}")]);
    assert!(matches!(twice, DocumentError::Folder { .. }), "{twice}");
    let twice = read(&[&format!("signed/{raw}"), &format!("signed/{raw}")]);
    assert!(matches!(twice, DocumentError::Twice { .. }), "{twice}");
    assert!(matches!(read(&["signed/SHA256SUMS"]), DocumentError::Name { .. }));
    assert!(matches!(read(&["base.raw"]), DocumentError::Unlisted { .. }));
    // A document that is not the listed one, and then an image.
    edit(&copy.join(format!("{NAME}.spdx.json")), |text| text + " ");
    assert!(matches!(read(&[&format!("copy/{raw}")]), DocumentError::Checksum { .. }));
    for end in ["raw", "qcow2"] {
        let changed = yard.lab.copy(end);
        let image = changed.join(format!("{NAME}.{end}"));
        let mut bytes = fs::read(&image).unwrap();
        bytes[700] ^= 1;
        fs::write(&image, bytes).unwrap();
        let error = yard.push(end, &[end], &["1"], None, false).unwrap_err();
        assert!(matches!(error, PushError::Documents(DocumentError::Checksum { .. })), "{error}");
    }
    assert_eq!(yard.repository().tag("1").unwrap(), None);
}

#[test]
fn a_plan_asks_nobody() {
    let Some(yard) = Yard::new() else { return };
    let image = yard.image("signed", "raw");
    // The tag is the version.
    let binding = ReleaseBinding { name: "images".to_owned(), version: Some("1".parse().unwrap()) };
    let pushed = yard.push_bound(&binding, ("images", &["1"]), ("signed", &["raw"]), None, false).unwrap();
    let args = ["push", text(&image), "registry.invalid/images:1", "--dry-run", "--json"];
    let output = vmbake(&args, &[]);
    assert!(output.status.success(), "{}", stderr(&output));
    let plan: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(plan["digest"], pushed.digest.as_str());
    assert_eq!(vmbake(&["push", text(&image), "registry.invalid/images@sha256:1", "-n"], &[]).status.code(), Some(2));
}

//! Required signers, and signatures that do not count.

use serde_json::json;
use vmbake_common::digest::Digest;
use vmbake_oci::Descriptor;
use vmbake_release::pull::PullError;
use vmbake_store::http::Payload;

use super::yard::{How, Yard};
use crate::release::lab::{text, vmbake};

const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";

fn by<'a>(key: &'a str) -> How<'a> {
    How { key: Some(key), ..How::default() }
}

#[test]
fn only_the_right_signature_of_this_index_counts() {
    let Some(yard) = Yard::new() else { return };
    yard.other(96 << 20);
    let signed = yard.push("signed", &["raw"], &["signed"], Some("one"), false).unwrap();
    let other = yard.push("other", &["raw"], &["other"], None, false).unwrap();
    let unsigned = |tag: &str, key: &str| {
        let error = yard.pull(tag, "out", &by(key)).unwrap_err();
        assert!(matches!(error, PullError::Unsigned { .. }), "{error}");
        assert!(yard.visible("out").is_empty());
        error.to_string()
    };
    unsigned(":signed", "two");
    assert!(unsigned(":other", "one").ends_with("no signature attached"));

    // The signature of the first index is attached to the second one, and something that is none.
    let repository = yard.repository();
    let subject: Digest = other.digest.parse().unwrap();
    let bundle = repository
        .referrers(&signed.digest.parse().unwrap())
        .unwrap()
        .into_iter()
        .filter(|entry| entry.annotations.contains_key("dev.sigstore.bundle.content"))
        .map(|entry| yard.document(&entry.digest.to_string())["layers"][0].clone())
        .next()
        .unwrap();
    repository.put_blob(&Digest::of(b"junk"), Payload::Bytes(b"junk"), None).unwrap();
    let junk = json!({"mediaType": BUNDLE, "digest": Digest::of(b"junk").to_string(), "size": 4});
    let size = repository.manifest(&other.digest).unwrap().bytes.len();
    for layer in [bundle, junk] {
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE, "layers": [layer],
            "config": {"mediaType": "application/vnd.oci.empty.v1+json", "digest": Digest::of(b"{}").to_string(), "size": 2},
            "subject": {"mediaType": "application/vnd.oci.image.index.v1+json", "digest": other.digest, "size": size},
        });
        let bytes = serde_json::to_vec(&manifest).unwrap();
        let mut entry = Descriptor::new(MANIFEST, Digest::of(&bytes), bytes.len() as u64);
        entry.artifact_type = Some(BUNDLE.to_owned());
        repository.attach(&subject, &entry, MANIFEST, &bytes).unwrap();
    }
    unsigned(":other", "one");

    // Who may sign it, signs it: what else is attached does not matter.
    yard.push("other", &["raw"], &["other"], Some("two"), false).unwrap();
    assert_eq!(yard.pull(":other", "out", &by("two")).unwrap().signed_by, ["two"]);
    unsigned_stays(&yard);
}

/// Without required signers nothing is pulled.
fn unsigned_stays(yard: &Yard) {
    let name = yard.name(":signed").to_string();
    let (out, store) = (yard.lab.path("none"), yard.lab.path("pulled-store"));
    let args = ["pull", &name, "--out", text(&out), "--store", text(&store)];
    let output = vmbake(&args, &[]);
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no trusted signer given") && said.contains("--allow-unsigned"), "{said}");
    assert!(!out.exists());
    let output = vmbake(&[&args[..], &["--allow-unsigned"]].concat(), &[]);
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().ends_with(".raw\n"));
}

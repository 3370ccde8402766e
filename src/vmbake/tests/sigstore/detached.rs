//! `.sig` and `.cert`, and log responses that complete them to a bundle.

use serde_json::{Value, json};
use vmbake_common::digest::Digest;
use vmbake_manifest::Signed;
use vmbake_proof::cosign::{CosignError, Detached, DetachedPolicy};
use vmbake_proof::sigstore::{self, Signer, SigstoreRoot, rekor};

use super::log::base64;
use super::{chain, data};

const IDENTITY: &str = "krel-staging@k8s-releng-prod.iam.gserviceaccount.com";
const ISSUER: &str = "https://accounts.google.com";

fn policy(allow_no_log: bool) -> DetachedPolicy<'static> {
    DetachedPolicy { identity: IDENTITY, issuer: ISSUER, allow_no_log, now: "2026-11-21T00:00:00Z".parse().unwrap() }
}

fn root() -> SigstoreRoot {
    SigstoreRoot::parse(&data("synthetic/trusted_root.json")).unwrap()
}

fn kubelet() -> [Digest; 1] {
    [Digest::of(&data("synthetic/kubelet"))]
}

fn detached(case: &str) -> Detached {
    let file = |name: &str| data(&format!("synthetic/{case}/{name}"));
    Detached::parse(&file("kubelet.sig"), &file("kubelet.cert")).unwrap()
}

fn answer(case: &str) -> Value {
    serde_json::from_slice(&data(&format!("synthetic/{case}/rekor-entry.json"))).unwrap()
}

fn entry(answer: &Value) -> &Value {
    answer.as_object().unwrap().values().next().unwrap()
}

#[test]
fn signature_certificate_and_entry_become_a_bundle_that_proves_alone() {
    let proven =
        detached("k8s").verify(&kubelet(), Some(&data("synthetic/k8s/rekor-entry.json")), &policy(false), &root());
    let proven = proven.unwrap();
    let bundle = proven.bundle.clone().unwrap();
    let [found, expected] = [&bundle, &data("synthetic/k8s/bundle.json")].map(|bytes| {
        let mut value: Value = serde_json::from_slice(bytes).unwrap();
        // An empty message and none are the same to protobuf.
        value["verificationMaterial"].as_object_mut().unwrap().remove("timestampVerificationData");
        value
    });
    assert_eq!(found, expected);
    let again = sigstore::BundlePolicy {
        signer: Signer::Certificate { identity: IDENTITY.to_owned(), issuer: ISSUER.to_owned() },
        predicate_type: None,
        subject_name: None,
        now: policy(false).now,
    };
    assert_eq!(sigstore::verify(&bundle, &kubelet(), &again, &root()).unwrap(), proven);
    let evidence = vec![Digest::of(&bundle)];
    let expected = Signed {
        identity: IDENTITY.to_owned(),
        issuer: ISSUER.to_owned(),
        log_index: Some(4_163_434),
        signed: "2026-08-12T10:05:00Z".parse().ok(),
        evidence: evidence.clone(),
    };
    assert_eq!(proven.record(evidence), Some(expected));
}

#[test]
fn the_entry_of_this_signature_is_found_among_others() {
    let (ours, others) = (answer("k8s"), answer("k8s-pem"));
    let bare = entry(&ours).clone();
    let mut many = json!({"0": entry(&others), "1": bare, "2": entry(&answer("k8s-issuer"))});
    let verify = |answer: &Value| {
        let found = detached("k8s").verify(&kubelet(), Some(answer.to_string().as_bytes()), &policy(true), &root());
        found.map(|proven| proven.log_index)
    };
    assert_eq!(verify(&bare).unwrap(), Some(4_163_434));
    assert_eq!(verify(&many).unwrap(), Some(4_163_434));
    many.as_object_mut().unwrap().remove("1");
    for wrong in [many, others, json!({})] {
        assert!(matches!(verify(&wrong), Err(CosignError::OtherEntry)), "{wrong}");
        assert!(detached("k8s").find(wrong.to_string().as_bytes()).unwrap().is_none());
    }
    // Log entries of another type, or malformed ones, under the same digest are ignored.
    for body in [
        "{}",
        "x",
        r#"{"kind": "hashedrekord", "apiVersion": "0.0.1"}"#,
        r#"{"kind": "rekord", "apiVersion": "0.0.1"}"#,
    ] {
        let mut strange = bare.clone();
        strange["body"] = base64(body.as_bytes()).into();
        assert_eq!(verify(&json!({"0": strange, "1": bare})).unwrap(), Some(4_163_434));
    }
}

#[test]
fn an_entry_that_is_given_must_hold() {
    let with = |pointer: &str, value: Value| {
        let mut entry = entry(&answer("k8s")).clone();
        *entry.pointer_mut(pointer).unwrap() = value;
        entry.to_string()
    };
    let promised = with("/verification/inclusionProof", Value::Null);
    for (entry, expected) in [
        (with("/integratedTime", json!(1_786_529_101)), "SET verification failed"),
        (with("/logIndex", json!(4_163_435)), "SET verification failed"),
        (with("/logIndex", json!(-1)), "invalid log entry"),
        (with("/logIndex", json!(u64::MAX)), "invalid log entry"),
        (with("/logID", "zz".into()), "invalid log entry"),
        (with("/logID", "00".repeat(32).into()), "No log key valid"),
        (with("/verification/signedEntryTimestamp", Value::Null), "No verified timestamp"),
        (with("/verification/inclusionProof/treeSize", json!(3)), "out of range"),
        (with("/verification/inclusionProof/treeSize", json!(9)), "inclusion proof"),
        (with("/verification/inclusionProof/logIndex", json!(2)), "inclusion proof"),
        (with("/verification/inclusionProof/checkpoint", "".into()), "no checkpoint"),
        (with("/verification", Value::Null), "inclusion promise"),
        (promised.replacen("\"integratedTime\":", "\"integratedTime\":1,\"integratedTime\":", 1), "duplicate key"),
        ("[]".to_owned(), "expected an object"),
        ("{\"a\": 1}".to_owned(), "invalid log entry"),
        (String::new(), "invalid log entry"),
    ] {
        let error = detached("k8s").verify(&kubelet(), Some(entry.as_bytes()), &policy(true), &root()).unwrap_err();
        assert!(chain(&error).contains(expected), "{expected}: {}", chain(&error));
    }
    // The log's promise says as much as its proof, and older logs gave nothing else.
    let proven = detached("k8s").verify(&kubelet(), Some(promised.as_bytes()), &policy(false), &root()).unwrap();
    assert_eq!(proven.log_index, Some(4_163_434));
}

#[test]
fn another_file_or_signer_is_not_proven() {
    let (answer, other) = (data("synthetic/k8s/rekor-entry.json"), [Digest::of(b"other")]);
    for answer in [Some(&answer[..]), None] {
        let judge = |artifact: &[Digest], policy| detached("k8s").verify(artifact, answer, &policy, &root());
        assert!(chain(&judge(&other, policy(true)).unwrap_err()).contains("signature"));
        assert!(chain(&judge(&[], policy(true)).unwrap_err()).contains("SHA-256 of the artifact is unknown"));
        let early = "2026-08-12T09:59:59Z".parse().unwrap();
        let error = judge(&kubelet(), DetachedPolicy { now: early, ..policy(true) }).unwrap_err();
        assert!(chain(&error).contains("after the time of the check"), "{}", chain(&error));
        for identity in ["Krel-staging@k8s-releng-prod.iam.gserviceaccount.com", &format!("{IDENTITY}\0"), ""] {
            let error = judge(&kubelet(), DetachedPolicy { identity, ..policy(true) }).unwrap_err();
            assert!(chain(&error).contains("signed by"), "{}", chain(&error));
        }
    }
}

#[test]
fn signature_and_certificate_are_alone_in_their_files() {
    let (signature, certificate) = (data("synthetic/k8s-pem/kubelet.sig"), data("synthetic/k8s-pem/kubelet.cert"));
    let pem = std::str::from_utf8(&certificate).unwrap().trim();
    let text = |text: &str| text.as_bytes().to_vec();
    for good in [certificate.clone(), text(pem), text(&format!("\n{pem}\r\n")), text(&base64(pem.as_bytes()))] {
        assert!(Detached::parse(&signature, &good).is_ok(), "{}", String::from_utf8_lossy(&good));
    }
    let body = pem.lines().skip(1).take(3).collect::<String>();
    for wrong in [
        text(&format!("{pem}\n{pem}")),
        text(&base64(format!("{pem}\n{pem}").as_bytes())),
        text(&format!("{pem}\ntrailing")),
        text(&format!("leading\n{pem}")),
        text(&base64(base64(pem.as_bytes()).as_bytes())),
        text(&pem.replace("CERTIFICATE", "PUBLIC KEY")),
        text(&pem[..pem.len() - 5]),
        text(&pem.replace("MII", "M*I")),
        text(&body),
        text(""),
        b"\xff\xfe".to_vec(),
    ] {
        let error = Detached::parse(&signature, &wrong).unwrap_err();
        assert!(matches!(error, CosignError::Certificate { .. }), "{}", String::from_utf8_lossy(&wrong));
    }
    for wrong in [&b""[..], b"\n", b"not base64!", b"\xff"] {
        let error = Detached::parse(wrong, &certificate).unwrap_err();
        assert!(matches!(error, CosignError::Signature { .. }), "{wrong:?}");
    }
}

#[test]
fn a_certificate_that_leaves_open_who_signed_is_refused() {
    for (name, expected) in [
        ("two-names", "2 subject alternative names, expected exactly one"),
        ("no-name", "0 subject alternative names, expected exactly one"),
        ("two-issuers", "two different issuers"),
        ("two-extensions", "duplicate extension 1.3.6.1.4.1.57264.1.8"),
        ("plain", "UnknownIssuer"),
    ] {
        let certificate = data(&format!("certificates/{name}.pem"));
        let detached = Detached::parse(&data("synthetic/k8s/kubelet.sig"), &certificate).unwrap();
        let policy = DetachedPolicy { identity: "a@example.com", ..policy(true) };
        let error = detached.verify(&kubelet(), None, &policy, &root()).unwrap_err();
        assert!(chain(&error).contains(expected), "{name}: {}", chain(&error));
    }
}

#[test]
fn a_certificate_that_is_too_long_is_not_looked_at() {
    let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----", base64(&[b'0'; 65_537]));
    let detached = Detached::parse(&data("synthetic/k8s/kubelet.sig"), pem.as_bytes()).unwrap();
    let error = detached.verify(&kubelet(), None, &policy(true), &root()).unwrap_err();
    assert_eq!(chain(&error), "certificate: certificate of 65537 bytes is too long");
}

#[test]
fn identifiers_of_entries_are_fit_for_a_url() {
    let found = rekor::uuids(&data("synthetic/k8s/rekor-index.json")).unwrap();
    assert_eq!(found, ["108e9186e8c5677aac30c0e3bf981946ff8516aebb466094b8025de563da80d2229f32f803d6430c"]);
    assert!(rekor::uuids(b"[]").unwrap().is_empty());
    let (short, path) = (["a"; 63].concat(), ["../"; 27].concat()[..80].to_owned());
    for wrong in [json!([short]), json!([path]), json!([1]), json!({}), json!([found[0], ""]), json!(null)] {
        assert!(rekor::uuids(wrong.to_string().as_bytes()).is_err(), "{wrong}");
    }
}

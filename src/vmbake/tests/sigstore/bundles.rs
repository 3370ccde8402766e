//! Sigstore bundles: format, selection from several, time and identity.

use serde_json::{Value, json};
use vmbake_common::digest::Digest;
use vmbake_proof::sigstore::{BundlePolicy, Proven, Signer, SigstoreError, SigstoreRoot, verify};

use super::log::{TIME, World, digests};
use super::{chain, data};

const FILE: &[u8] = b"the artifact\n";

fn judge(world: &World, bundles: &str) -> Result<Proven, SigstoreError> {
    verify(bundles.as_bytes(), &digests(FILE), &world.policy(), &world.root())
}

/// Asserts why a bundle is refused.
fn refused(world: &World, bundles: &str, expected: &str) {
    match judge(world, bundles) {
        Ok(_) => panic!("proven, and should not be for: {expected}"),
        Err(error) => assert!(chain(&error).contains(expected), "{expected}: {}", chain(&error)),
    }
}

#[test]
fn a_bundle_has_one_meaning_or_is_refused() {
    let world = World::new();
    let good = world.message(FILE);
    let proven = judge(&world, &good.to_string()).unwrap();
    let signed = jiff::Timestamp::from_second(TIME).ok();
    assert_eq!((proven.identity, proven.issuer, proven.log_index, proven.signed), (None, None, Some(7), signed));
    let with = |pointer: &str, key: &str, value: Value| {
        let mut bundle = good.clone();
        bundle.pointer_mut(pointer).unwrap()[key] = value;
        bundle.to_string()
    };
    let without = |pointer: &str, key: &str| {
        let mut bundle = good.clone();
        bundle.pointer_mut(pointer).unwrap().as_object_mut().unwrap().remove(key).unwrap();
        bundle.to_string()
    };
    let (material, entry) = ("/verificationMaterial", "/verificationMaterial/tlogEntries/0");
    let envelope = world.statement("x", "{}")["dsseEnvelope"].clone();
    let v03 = "application/vnd.dev.sigstore.bundle.v0.3+json";
    let huge = |key| with(entry, key, "9223372036854775808".into());
    for (bundle, expected) in [
        (with("", "dsseEnvelope", envelope), "expected exactly one member"),
        (with("", "messageSignature", Value::Null), "corrupt"),
        (without("", "messageSignature"), "expected exactly one member"),
        (with(material, "certificate", json!({"rawBytes": ""})), "expected exactly one member"),
        (without(material, "publicKey"), "expected exactly one member"),
        (without("", "verificationMaterial"), "expected exactly one member"),
        (without("", "mediaType"), "missing mediaType"),
        (with("", "mediaType", json!(["0.3"])), "missing mediaType"),
        (with("", "mediaType", "application/vnd.dev.sigstore.bundle+json;version=0.4".into()), "Invalid media type"),
        (with("", "mediaType", v03.into()), "must have an inclusion proof"),
        (with(material, "tlogEntries", json!([])), "inclusion promise"),
        (with(material, "tlogEntries", json!(vec![good.pointer(entry); 33])), "33 tlogEntries"),
        (without(entry, "inclusionPromise"), "inclusion promise"),
        (without(entry, "logId"), "corrupt"),
        (huge("logIndex"), "corrupt"),
        (huge("integratedTime"), "corrupt"),
        (with(entry, "logIndex", json!(-1)), "negative log index"),
        (with(entry, "logIndex", json!("8")), "SET verification failed"),
        (with(entry, "integratedTime", json!(TIME - 1)), "SET verification failed"),
        (with(entry, "kindVersion", json!({"kind": "rekord", "version": "0.0.1"})), "unsupported Rekor entry format"),
        (with("/messageSignature", "signature", "".into()), "invalid signature"),
        (with("/messageSignature/messageDigest", "algorithm", "MD5".into()), "corrupt"),
        (good.to_string().replacen('{', "{\"mediaType\":\"x\",", 1), "duplicate key \"mediaType\""),
        (good.to_string().replacen("\"logIndex\":", "\"logIndex\":\"1\",\"logIndex\":", 1), "duplicate key"),
        (format!("{good} {good}"), "trailing characters"),
        (good.to_string().replace('{', "["), "corrupt"),
        ("null".to_owned(), "missing mediaType"),
        ("[]".to_owned(), "missing mediaType"),
        ("\u{feff}{}".to_owned(), "corrupt"),
        (String::new(), "no bundle in the file"),
        (" \n\r\n\n".to_owned(), "no bundle in the file"),
    ] {
        refused(&world, &bundle, expected);
    }
    let not_text = [b"{\"mediaType\": \"", &b"\xff\"}"[..]].concat();
    assert!(matches!(
        verify(&not_text, &digests(FILE), &world.policy(), &world.root()),
        Err(SigstoreError::Corrupt { .. })
    ));
}

#[test]
fn a_statement_has_one_signature() {
    let world = World::new();
    let payload = json!({
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [{"digest": {"sha256": Digest::of(FILE).hex()}}],
        "predicateType": "x",
    });
    let mut bundle = world.statement("application/vnd.in-toto+json", &payload.to_string());
    assert!(judge(&world, &bundle.to_string()).is_ok());
    let signature = bundle["dsseEnvelope"]["signatures"][0].clone();
    for (signatures, found) in [(json!([]), 0), (json!([signature, signature]), 2)] {
        bundle["dsseEnvelope"]["signatures"] = signatures;
        refused(&world, &bundle.to_string(), &format!("exactly one signature, found {found}"));
    }
}

#[test]
fn of_several_bundles_the_one_that_proves_the_file_counts() {
    let (world, stranger) = (World::new(), World::new());
    let good = world.message(FILE).to_string();
    let (other, strange) = (world.message(b"other").to_string(), stranger.message(FILE).to_string());
    let pretty = serde_json::to_string_pretty(&world.message(FILE)).unwrap();
    for (bundles, proof) in [
        (format!("{other}\n{good}\n"), &good),
        (format!("{good}\n{other}"), &good),
        (format!("{{ broken\n\n{strange}\r\n{good}\r\n{other}\n"), &good),
        (format!("\n{pretty}\n"), &pretty),
    ] {
        let proven = judge(&world, &bundles).unwrap();
        assert_eq!(proven.bundle.as_deref(), Some(proof.as_bytes()));
    }
    for (bundles, line, expected) in [
        (
            format!("{other}\n{{ broken\n"),
            1,
            "none of 2 bundles proves the artifact; the best match is in line 1: the bundle is for other files",
        ),
        (
            format!("{{ broken\n{other}\n\n{strange}\n{other}"),
            4,
            "none of 4 bundles proves the artifact; the best match is in line 4",
        ),
    ] {
        let error = judge(&world, &bundles).unwrap_err();
        assert!(chain(&error).contains(expected), "{}", chain(&error));
        assert!(matches!(error, SigstoreError::NoneOf { line: found, .. } if found == line));
    }
    refused(&world, &format!("{pretty}\n{pretty}"), "corrupt bundle: trailing characters");
    refused(&world, &pretty[..pretty.len() - 2], "corrupt bundle: EOF");
    refused(&world, &good.replace("\"hashedrekord\"", "\"\\u001b[2J\""), "\u{fffd}[2J");
    refused(&world, &"{}\n".repeat(1_001), "a file of 1001 lines");
    refused(&world, &" ".repeat((16 << 20) + 1), "a file of more than 16777216 bytes");
}

#[test]
fn the_time_of_the_check_bounds_when_it_was_signed() {
    let world = World::new();
    let bundle = world.message(FILE).to_string();
    let at = |seconds: i64| {
        let now = jiff::Timestamp::from_second(seconds).unwrap();
        verify(bundle.as_bytes(), &digests(FILE), &BundlePolicy { now, ..world.policy() }, &world.root())
    };
    assert!(at(TIME).is_ok() && at(TIME + 1_000_000_000).is_ok());
    assert!(matches!(at(TIME - 1), Err(SigstoreError::Future { signed, .. }) if signed.as_second() == TIME));
}

#[test]
fn another_key_or_log_proves_nothing() {
    let (world, stranger) = (World::new(), World::new());
    let bundle = world.message(FILE).to_string();
    let judge = |policy: &BundlePolicy<'_>, root: &SigstoreRoot| {
        verify(bundle.as_bytes(), &digests(FILE), policy, root).unwrap_err()
    };
    let found = chain(&judge(&stranger.policy(), &world.root()));
    assert!(found.contains("signature"), "{found}");
    let found = chain(&judge(&world.policy(), &stranger.root()));
    assert!(found.contains("No log key valid"), "{found}");
    let signer = Signer::Certificate { identity: String::new(), issuer: String::new() };
    let found = chain(&judge(&BundlePolicy { signer, ..world.policy() }, &world.root()));
    assert!(found.contains("no signing certificate"), "{found}");
    let found = chain(&judge(&BundlePolicy { subject_name: Some("a"), ..world.policy() }, &world.root()));
    assert!(found.contains("a signature without the required statement"), "{found}");
}

/// What a bundle may say differently and still prove the same: nothing that is signed, and nothing that is compared.
/// Rekor v2 proves inclusion by the checkpoint alone, which says by itself whose it is.
const FREE: [&str; 3] = [
    "/verificationMaterial/tlogEntries/0/inclusionProof/logIndex",
    "/verificationMaterial/tlogEntries/0/inclusionProof/treeSize",
    "/verificationMaterial/tlogEntries/0/logId/keyId",
];

#[test]
fn no_other_value_in_its_place_proves_anything_or_crashes() {
    let numbers = [0, 1, -1, i64::MAX, i64::MIN].map(|number| json!(number));
    let texts = ["", "\0", "1", "-1", "9223372036854775807", "18446744073709551616", "AA==", "MAA=", "MIAAAA=="];
    let long = "A".repeat(1 << 16);
    let others = [Value::Null, json!(true), json!([]), json!({}), json!(1e300), json!(u64::MAX), json!(long)];
    let hostile: Vec<_> = numbers.into_iter().chain(texts.map(Value::from)).chain(others).collect();
    let artifact = digests(&data("conformance/a.txt"));
    let policy = conformance_policy();
    for (name, root, free) in [
        ("happy-path-v0.1", "../../../../../trust/sigstore-root.json", &[][..]),
        ("happy-path-intoto-in-dsse-v3", "../../../../../trust/sigstore-root.json", &[]),
        ("rekor2-happy-path", "conformance/rekor2-root.json", &FREE),
    ] {
        let root = SigstoreRoot::parse(&data(root)).unwrap();
        let good: Value = serde_json::from_slice(&data(&format!("conformance/{name}.json"))).unwrap();
        let mut pointers = Vec::new();
        leaves(&good, String::new(), &mut pointers);
        assert!(pointers.len() > 10 && verify(good.to_string().as_bytes(), &artifact, &policy, &root).is_ok());
        let proves = |pointer: &String| {
            hostile.iter().any(|value| {
                let mut bundle = good.clone();
                *bundle.pointer_mut(pointer).unwrap() = value.clone();
                bundle != good && verify(bundle.to_string().as_bytes(), &artifact, &policy, &root).is_ok()
            })
        };
        pointers.retain(proves);
        assert_eq!(pointers, free, "{name}");
    }
}

fn conformance_policy() -> BundlePolicy<'static> {
    let cases: Vec<Value> = serde_json::from_slice(&data("cases.json")).unwrap();
    let text = |key: &str| cases[0][key].as_str().unwrap().to_owned();
    BundlePolicy {
        signer: Signer::Certificate { identity: text("identity"), issuer: text("issuer") },
        predicate_type: None,
        subject_name: None,
        now: "2026-11-21T00:00:00Z".parse().unwrap(),
    }
}

/// JSON pointers of everything that is neither an object nor an array.
fn leaves(value: &Value, pointer: String, found: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(key, value)| leaves(value, format!("{pointer}/{key}"), found));
        }
        Value::Array(values) => {
            values.iter().enumerate().for_each(|(index, value)| leaves(value, format!("{pointer}/{index}"), found));
        }
        _ => found.push(pointer),
    }
}

#[test]
fn roots_and_keys_are_refused_where_they_are_wrong() {
    let production = String::from_utf8(data("synthetic/trusted_root.json")).unwrap();
    assert!(SigstoreRoot::parse(production.as_bytes()).is_ok());
    for wrong in ["", "{}", "[]", &production.replace("\"rawBytes\": \"M", "\"rawBytes\": \"A"), "\u{0}"] {
        assert!(matches!(SigstoreRoot::parse(wrong.as_bytes()), Err(SigstoreError::Root { .. })), "{wrong:.40}");
    }
    let pem = String::from_utf8(data("conformance/key.pub")).unwrap();
    let key = vmbake_proof::sigstore::PublicKey::from_pem;
    assert!(key(pem.as_bytes()).is_ok());
    for wrong in ["", &pem.replace("PUBLIC", "PRIVATE"), &pem[..90]] {
        assert!(matches!(key(wrong.as_bytes()), Err(SigstoreError::Key { .. })), "{wrong}");
    }
}

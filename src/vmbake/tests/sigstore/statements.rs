//! Correctly signed and logged statements, whose contents decide.

use serde_json::{Value, json};
use vmbake_common::digest::Digest;
use vmbake_proof::sigstore::{BundlePolicy, verify};

use super::chain;
use super::log::{World, digests};

const FILE: &[u8] = b"the artifact\n";
const IN_TOTO: &str = "application/vnd.in-toto+json";
const TYPE: &str = "https://slsa.dev/provenance/v1";

fn subject(name: &str, file: &[u8]) -> Value {
    json!({"name": name, "digest": {"sha256": digests(file)[0].hex()}})
}

fn statement(subjects: &Value) -> Value {
    json!({"_type": "https://in-toto.io/Statement/v1", "subject": subjects, "predicateType": TYPE, "predicate": {}})
}

/// The predicate type that is proven, or why nothing is.
fn judge(payload_type: &str, payload: &str, artifact: &[Digest], ask: &dyn Fn(&mut BundlePolicy<'static>)) -> String {
    let world = World::new();
    let mut policy = world.policy();
    ask(&mut policy);
    let bundle = world.statement(payload_type, payload).to_string();
    match verify(bundle.as_bytes(), artifact, &policy, &world.root()) {
        Ok(proven) => {
            assert_eq!((proven.log_index, proven.signed), (Some(7), Some(policy.now)));
            assert_eq!(proven.bundle.as_deref(), Some(bundle.as_bytes()));
            proven.predicate_type.unwrap()
        }
        Err(error) => chain(&error),
    }
}

fn judge_plain(payload: &str) -> String {
    judge(IN_TOTO, payload, &digests(FILE), &|_| {})
}

#[test]
fn subjects_decide_of_which_file_a_statement_speaks() {
    let (right, wrong) = (subject("a", FILE), subject("b", b"other"));
    let [sha256, sha512] = digests(FILE);
    let both = |sha256: Digest, sha512: Digest| json!({"digest": {"sha256": sha256.hex(), "sha512": sha512.hex()}});
    for (subjects, expected) in [
        (json!([right]), TYPE),
        (json!([wrong, right]), TYPE),
        (json!([right, right]), TYPE),
        (json!([{"digest": {"sha256": sha256.hex()}}]), TYPE),
        (json!([{"name": "a", "digest": {"sha512": sha512.hex()}}]), TYPE),
        (json!([both(sha256, sha512)]), TYPE),
        (json!([]), "the bundle is for other files"),
        (json!([wrong]), "the bundle is for other files"),
        (
            json!([{"name": "a", "digest": {"sha1": "da39a3ee5e6b4b0d3255bfef95601890afd80709"}}]),
            "the bundle is for other files",
        ),
        (json!([both(sha256, digests(b"other")[1])]), "has digests of two different files"),
        (json!([both(digests(b"other")[0], sha512)]), "has digests of two different files"),
        (json!([{"name": "a", "digest": {}}]), "at least one algorithm"),
        (json!([{"name": "a", "digest": {"sha256": &sha256.hex()[..62]}}]), "corrupt"),
        (json!({"name": "a"}), "corrupt"),
        (Value::Null, "corrupt"),
    ] {
        let found = judge_plain(&statement(&subjects).to_string());
        assert!(found.contains(expected), "{subjects}: {found}");
    }
}

#[test]
fn a_digest_that_nobody_computed_proves_nothing() {
    let [sha256, sha512] = digests(FILE);
    let by_sha512 = statement(&json!([{"digest": {"sha512": sha512.hex()}}])).to_string();
    assert!(judge(IN_TOTO, &by_sha512, &[sha256], &|_| {}).contains("the bundle is for other files"));
    assert_eq!(judge(IN_TOTO, &by_sha512, &[sha512], &|_| {}), TYPE);
    assert!(judge(IN_TOTO, &by_sha512, &[], &|_| {}).contains("SHA-256 of the artifact is unknown"));
}

#[test]
fn a_statement_must_be_of_the_type_that_is_asked_for() {
    let with = |key: &str, value: Value| {
        let mut statement = statement(&json!([subject("a", FILE)]));
        statement[key] = value;
        statement.to_string()
    };
    for (payload, expected) in [
        (with("_type", "https://in-toto.io/Statement/v0.1".into()), TYPE),
        (with("_type", "https://in-toto.io/Statement/v2".into()), "statement of type"),
        (with("_type", "".into()), "statement of type"),
        (with("_type", Value::Null), "corrupt"),
        (with("predicateType", "https://slsa.dev/provenance/v1 ".into()), "is not a URI"),
        (with("predicateType", "a\nidentity root@example.com".into()), "is not a URI"),
        (with("predicateType", "".into()), "is not a URI"),
        (with("predicateType", 1.into()), "corrupt"),
    ] {
        let found = judge_plain(&payload);
        assert!(found.contains(expected), "{payload}: {found}");
    }
    let good = with("predicate", json!({}));
    let ask =
        |uri: &'static str| judge(IN_TOTO, &good, &digests(FILE), &move |policy| policy.predicate_type = Some(uri));
    assert_eq!(ask(TYPE), TYPE);
    assert!(ask("https://slsa.dev/provenance/v1/").contains("predicate type is"));
    let other = judge("application/json", &good, &digests(FILE), &|_| {});
    assert!(other.contains("payload of type \"application/json\""), "{other}");
}

#[test]
fn a_subject_must_have_the_name_that_is_asked_for() {
    let ask = |subjects: Value, name: &'static str| {
        let payload = statement(&subjects).to_string();
        judge(IN_TOTO, &payload, &digests(FILE), &move |policy| policy.subject_name = Some(name))
    };
    assert_eq!(ask(json!([subject("a", FILE)]), "a"), TYPE);
    assert_eq!(ask(json!([subject("b", FILE), subject("a", FILE)]), "a"), TYPE);
    let found = ask(json!([subject("a", b"other"), subject("b", FILE)]), "a");
    assert!(found.contains(r#"is named ["b"], expected "a""#), "{found}");
    assert!(ask(json!([subject("a", b"other")]), "a").contains("the bundle is for other files"));
}

#[test]
fn a_statement_that_two_readers_read_differently_is_refused() {
    let good = statement(&json!([subject("a", FILE)])).to_string();
    let twice = |key: &str, value: &str| good.replacen('{', &format!("{{\"{key}\":{value},"), 1);
    let deep = "[".repeat(300) + &"]".repeat(300);
    let other = json!([subject("a", b"other")]).to_string();
    for (payload, expected) in [
        (twice("subject", &other), "duplicate key \"subject\""),
        (twice("predicateType", "\"x\""), "duplicate key \"predicateType\""),
        (good.replace("\"sha256\":", "\"sha256\":\"00\",\"sha256\":"), "duplicate key \"sha256\""),
        (good.replace("\"predicate\":{}", "\"predicate\":{\"n\":1e999}"), "number out of range"),
        (good.replace("\"predicate\":{}", &format!("\"predicate\":{deep}")), "recursion limit"),
        (format!("{good} {good}"), "trailing characters"),
        (String::new(), "EOF"),
    ] {
        let found = judge_plain(&payload);
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

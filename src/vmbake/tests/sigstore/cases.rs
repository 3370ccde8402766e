//! The cases of `cases.json` by the program. `tests/test_cosign.py` compares them with cosign.

use std::process::{Command, Output};

use serde_json::{Map, Value};

use super::{data, path};

fn vmbake(args: &[String]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vmbake")).arg("verify").args(args).output().unwrap()
}

/// The arguments for a case.
fn args(case: &Value) -> Vec<String> {
    let file = |key: &str| case[key].as_str().map(|name| path(name).into_os_string().into_string().unwrap());
    let text = |key: &str| case[key].as_str().map(str::to_owned);
    let mut args = vec![if case["bundle"].is_string() { "sigstore" } else { "cosign" }.to_owned(), "--json".to_owned()];
    for (option, value) in [
        ("--bundle", file("bundle")),
        ("--signature", file("signature")),
        ("--certificate", file("certificate")),
        ("--log-entry", file("log_entry")),
        ("--key", file("key")),
        ("--trusted-root", file("root")),
        ("--certificate-identity", text("identity")),
        ("--certificate-oidc-issuer", text("issuer")),
        ("--predicate-type", text("predicate_type")),
        ("--now", text("now")),
    ] {
        args.extend(value.map(|value| [option.to_owned(), value]).into_iter().flatten());
    }
    args.extend((case["allow_no_log"] == true).then(|| "--allow-no-log".to_owned()));
    args.extend(file("artifact"));
    args
}

#[test]
fn every_case_is_proven_or_refused_for_its_reason() {
    let cases: Vec<Value> = serde_json::from_slice(&data("cases.json")).unwrap();
    assert!(cases.len() > 50);
    for case in &cases {
        let name = &case["name"];
        let output = vmbake(&args(case));
        let errors = String::from_utf8(output.stderr).unwrap();
        match (&case["proven"], case["refused"].as_str()) {
            (Value::Object(expected), None) => {
                assert_eq!(output.status.code(), Some(0), "{name}: {errors}");
                let facts: Map<String, Value> = serde_json::from_slice(&output.stdout).unwrap();
                for (key, value) in expected {
                    assert_eq!(facts.get(key), Some(value), "{name}: {key}");
                }
                assert_eq!(facts.get("identity"), case.get("identity"), "{name}");
                assert_eq!(facts.get("issuer"), case.get("issuer"), "{name}");
                let unlogged = case["allow_no_log"] == true;
                assert_eq!(unlogged, !facts.contains_key("signed") && !facts.contains_key("log_index"), "{name}");
                assert_eq!(unlogged, errors.contains("the signing time is not proven"), "{name}: {errors}");
            }
            (Value::Null, Some(reason)) => {
                assert_eq!(output.status.code(), Some(1), "{name}: {errors}");
                assert!(errors.contains(reason), "{name}: {errors}");
                assert!(output.stdout.is_empty(), "{name}");
            }
            _ => panic!("{name}: neither proven nor refused"),
        }
    }
}

#[test]
fn wrong_usage_is_told_from_a_refusal() {
    let identity = ["--certificate-identity", "a", "--certificate-oidc-issuer", "b"];
    let (bundle, key) = (["sigstore", "--bundle", "b"], ["--key", "k"]);
    let detached = ["cosign", "--signature", "s", "--certificate", "c"];
    for parts in [
        &[&bundle[..], &["a"]][..],
        &[&bundle, &identity[..2], &["a"]],
        &[&bundle, &identity[2..], &["a"]],
        &[&bundle, &identity, &key, &["a"]],
        &[&bundle, &identity[..2], &key, &["a"]],
        &[&bundle, &identity],
        &[&bundle, &identity, &["--now", "yesterday", "a"]],
        &[&bundle, &["--certificate-identity", "", "--certificate-oidc-issuer", "b", "a"]],
        &[&detached, &["a"]],
        &[&detached, &identity[..2], &["a"]],
    ] {
        let args: Vec<_> = parts.concat().into_iter().map(str::to_owned).collect();
        assert_eq!(vmbake(&args).status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn facts_are_lines_of_key_and_value() {
    let cases: Vec<Value> = serde_json::from_slice(&data("cases.json")).unwrap();
    let case = cases.iter().find(|case| case["name"] == "npm provenance, v0.3").unwrap();
    let args: Vec<_> = args(case).into_iter().filter(|arg| arg != "--json").collect();
    let output = vmbake(&args);
    let expected = "identity https://github.com/sigstore/sigstore-js/.github/workflows/release.yml@refs/heads/main\n\
                    issuer https://token.actions.githubusercontent.com\n\
                    log_index 33351527\n\
                    signed 2023-08-29T15:40:23Z\n\
                    predicate_type https://slsa.dev/provenance/v1\n";
    assert_eq!(String::from_utf8(output.stdout).unwrap(), expected);
}

#[test]
fn endless_files_are_not_read_to_their_end() {
    let dir = tempfile::tempdir().unwrap();
    let long = dir.path().join("long");
    std::fs::File::create(&long).unwrap().set_len(1 << 40).unwrap();
    let (long, small) = (long.to_str().unwrap(), path("conformance/a.txt"));
    let small = small.to_str().unwrap();
    let identity = ["--certificate-identity", "a", "--certificate-oidc-issuer", "b", small];
    for parts in [
        &["sigstore", "--bundle", long][..],
        &["sigstore", "--bundle", small, "--trusted-root", long],
        &["cosign", "--signature", long, "--certificate", small],
        &["cosign", "--signature", small, "--certificate", long],
    ] {
        let args: Vec<_> = [parts, &identity].concat().into_iter().map(str::to_owned).collect();
        let output = vmbake(&args);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{args:?}: {errors}");
        assert!(errors.contains("long: larger than "), "{errors}");
    }
}

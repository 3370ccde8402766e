//! Requirements of a verification: keys, thresholds, builders, sources, ages; and the report without any.

use std::fs;
use std::path::Path;

use vmbake_bake::BakeRequest;
use vmbake_bake::release::policy::{PolicyError, ReleasePolicy};

use super::lab::{Lab, NAME, both, stderr, text, vmbake};
use crate::origin::bakery::{bake, can_bake};
use crate::tools::have;

#[test]
fn without_a_demand_signatures_are_only_told_of() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let (code, said) = lab.verify(&lab.path("signed"), &[]);
    assert_eq!((code, said.len()), (0, 3), "{said:?}");
    assert!(
        said.iter().all(|line| line.starts_with("not-asked signature ") && line.contains(": signed; ")),
        "{said:?}"
    );
    let out = lab.copy("unsigned");
    for file in ["SHA256SUMS.sigstore.json", "FSVERITYSUMS.sigstore.json"] {
        fs::remove_file(out.join(file)).unwrap();
    }
    let (code, said) = lab.verify(&out, &[]);
    assert_eq!((code, said[0].as_str()), (0, "not-asked signature SHA256SUMS: not signed"));
}

#[test]
fn what_has_the_name_of_an_image_and_is_not_listed_is_a_warning() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let out = lab.copy("strays");
    for file in ["vmdk", "raw.sigstore.json", "raw.sha256"] {
        fs::write(out.join(format!("{NAME}.{file}")), "x").unwrap();
    }
    fs::write(out.join(format!("{}.RAW", NAME.to_uppercase())), "x").unwrap();
    fs::write(out.join(format!("{NAME}2.txt")), "of another image").unwrap();
    fs::write(out.join("README"), "of no image").unwrap();
    fs::create_dir(out.join(format!("{NAME}-old"))).unwrap();
    let (code, said) = lab.verify(&out, &[]);
    let strays = ["raw.sha256", "raw.sigstore.json", "vmdk"].map(|end| format!("{NAME}.{end}"));
    let all = [format!("{}.RAW", NAME.to_uppercase()), format!("{NAME}-old")].into_iter().chain(strays);
    let expected: Vec<String> =
        all.map(|file| format!("warning list {file}: not listed, but has the name of the image")).collect();
    let warnings: Vec<&String> = said.iter().filter(|line| line.starts_with("warning")).collect();
    assert_eq!((code, warnings), (0, expected.iter().collect()), "{said:?}");
    // A signed list, which covers none of them, makes no difference.
    lab.sign(&out, "one", &[]);
    let (code, said) = lab.verify(&out, &["--key", lab.path("one.pub").to_str().unwrap()]);
    assert_eq!((code, said.iter().filter(|line| line.starts_with("warning")).count()), (0, expected.len()), "{said:?}");
}

#[test]
fn of_a_single_image_the_other_form_may_be_elsewhere() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let out = lab.copy("part");
    fs::remove_file(out.join(format!("{NAME}.raw"))).unwrap();
    let image = out.join(format!("{NAME}.qcow2"));
    let key = lab.key();
    let key = key.each_ref().map(String::as_str);
    assert_eq!(lab.verify(&image, &key), (0, vec![]));
    assert_eq!(lab.verify(&out, &key).0, 1);
    let foreign = out.join("foreign.qcow2");
    fs::copy(&image, &foreign).unwrap();
    let (code, said) = lab.verify(&foreign, &key);
    assert!(code == 1 && said.contains(&"failed list foreign.qcow2: not listed".to_owned()), "{said:?}");
    for wrong in ["SHA256SUMS", "missing.raw"] {
        let refused = vmbake(&["verify", "image", text(&out.join(wrong))], &[]);
        assert!(refused.status.code() == Some(1) && stderr(&refused).contains(wrong), "{}", stderr(&refused));
    }
}

#[test]
fn evidence_that_is_not_there_leaves_a_proof_open() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let empty = lab.path("empty");
    let (code, said) = lab.verify(&lab.path("signed"), &["--store", text(&empty)]);
    let open: Vec<_> = said.iter().filter(|line| line.starts_with("not-verified proof tools.o.amd64.json: ")).collect();
    assert!(code == 1 && !open.is_empty(), "{said:?}");
    assert!(open[0].contains("is not in the store") && open[0].contains("`vmbake fetch`"), "{open:?}");
    assert!(!said.iter().any(|line| line.starts_with("failed")), "{said:?}");
}

#[test]
fn keys_of_another_kind_are_refused_by_name() {
    if !can_bake() || !have(&["openssl"]) {
        return;
    }
    let lab = Lab::new();
    let rsa = lab.path("rsa.pub");
    let made = std::process::Command::new("sh")
        .args(["-c", "openssl genpkey -quiet -algorithm ED25519 | openssl pkey -pubout -out \"$1\"", "sh", text(&rsa)])
        .status();
    assert!(made.unwrap().success());
    for (key, expected) in [
        (rsa, "unsupported key type Ed25519, expected ECDSA P-256"),
        (lab.path("one.key"), "expected PUBLIC KEY PEM block, got PRIVATE KEY"),
        (lab.path("sources.json"), "public key: "),
    ] {
        let refused = vmbake(&["verify", "image", text(&lab.path("signed")), "--key", text(&key)], &[]);
        assert!(refused.status.code() == Some(1) && stderr(&refused).contains(expected), "{}", stderr(&refused));
    }
    let key = lab.path("one.pub");
    let signed = lab.path("signed");
    let twice = ["verify", "image", text(&signed), "--key", text(&key), "--key", text(&key)];
    assert!(stderr(&vmbake(&twice, &[])).contains("same key as"));
}

#[test]
fn a_policy_demands_keys_builders_and_sources() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let signed = lab.path("signed");
    let verify = |policy: &str| {
        fs::write(lab.path("policy.json"), policy).unwrap();
        lab.verify(&signed, &["--policy", text(&lab.path("policy.json"))])
    };
    let both_keys = r#"{"format": 1, "keys": {"require": 2, "of": ["one.pub", "two.pub"]}}"#;
    let (code, said) = verify(both_keys);
    assert!(code == 1 && said.len() == 3, "{said:?}");
    assert!(said[0].contains("signed by 1 of the required 2 signers: ") && said[0].contains("two.pub: "), "{said:?}");
    assert_eq!(verify(r#"{"format": 1, "keys": {"require": 1, "of": ["one.pub", "two.pub"]}}"#), (0, vec![]));
    lab.sign(&signed, "two", &["--label", "two"]);
    assert_eq!(verify(both_keys), (0, vec![]));

    let builder =
        r#"{"format": 1, "builders": ["https://example.org/builder"], "keys": {"require": 1, "of": ["one.pub"]}}"#;
    let (code, said) = verify(builder);
    assert_eq!(code, 1);
    let expected = "builder urn:vmbake:builder is not listed in the policy";
    assert!(
        said.iter().any(|line| *line == format!("failed provenance {NAME}.provenance.json: {expected}")),
        "{said:?}"
    );
    assert!(said.iter().any(|line| line.starts_with("failed signature") && line.contains(expected)), "{said:?}");
    assert_eq!(verify(&builder.replace("https://example.org/builder", "urn:vmbake:builder")), (0, vec![]));

    let inputs = fs::read_to_string(signed.join(format!("{NAME}.inputs.json"))).unwrap();
    let inputs: serde_json::Value = serde_json::from_str(&inputs).unwrap();
    let sources = |digest: &str| verify(&format!(r#"{{"format": 1, "sources": ["{digest}"]}}"#));
    assert_eq!(sources(inputs["sources"].as_str().unwrap()).0, 0);
    let (code, said) = sources(inputs["manifest"].as_str().unwrap());
    assert!(code == 1 && said.iter().any(|line| line.contains("are not listed in the policy")), "{said:?}");
}

/// A builder of another name signs the same, and is believed by its own key.
#[test]
fn another_builder_may_sign_the_same_with_its_name() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let again = BakeRequest { builder: "urn:second".parse().unwrap(), ..both(lab.dir.path(), "again") };
    bake(&again).unwrap();
    lab.sign(&again.out, "two", &[]);
    let signed = lab.path("signed");
    lab.sign(&signed, "two", &["--label", "two"]);
    let bundle = |label: &str| format!("{NAME}.provenance{label}.sigstore.json");
    fs::copy(again.out.join(bundle("")), signed.join(bundle(".two"))).unwrap();
    let key = lab.path("two.pub");
    assert_eq!(lab.verify(&signed, &["--key", text(&key)]), (0, vec![]));
    let other = BakeRequest { size: Some(96 << 20), ..both(lab.dir.path(), "other") };
    bake(&other).unwrap();
    lab.sign(&other.out, "two", &[]);
    fs::copy(other.out.join(bundle("")), signed.join(bundle(".two"))).unwrap();
    let (code, said) = lab.verify(&signed, &["--key", text(&key)]);
    assert!(code == 1 && said[0].contains("unexpected statement: "), "{said:?}");
}

#[test]
fn a_policy_is_read_strictly() {
    let parse = |text: &str| ReleasePolicy::parse(Path::new("/p/policy.json"), text.as_bytes());
    let policy =
        parse(r#"{"format": 1, "keys": {"require": 1, "of": ["a.pub"]}, "max_index_age_days": {"debian": 3}}"#)
            .unwrap();
    assert_eq!(policy.keys.unwrap().of, [Path::new("/p/a.pub")]);
    for (text, expected) in [
        ("{}", "missing field `format`"),
        (r#"{"format": 2}"#, "unsupported format 2"),
        (r#"{"format": 1, "format": 1}"#, "duplicate key"),
        (r#"{"format": 1, "key": []}"#, "unknown field `key`"),
        (r#"{"format": 1, "keys": {"require": 2, "of": ["a"]}}"#, "`require` is 2, but there are 1 keys"),
        (r#"{"format": 1, "keys": {"require": 0, "of": ["a"]}}"#, "`require` is 0, but there are 1 keys"),
        (r#"{"format": 1, "builders": []}"#, "an empty list"),
        (r#"{"format": 1, "builders": ["me"]}"#, "builder \"me\" is not a valid URI"),
        (r#"{"format": 1, "sources": ["sha256:1"]}"#, "expected sha256:"),
        ("x", "expected value"),
    ] {
        let error = parse(text).unwrap_err();
        let said = match &error {
            PolicyError::Syntax { source, .. } => source.to_string(),
            other => other.to_string(),
        };
        assert!(said.contains(expected), "{text}: {said}");
    }
}

#[test]
fn ages_are_counted_to_the_time_of_the_check() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let policy = lab.path("policy.json");
    fs::write(&policy, r#"{"format": 1, "max_index_age_days": {"debian": 3}}"#).unwrap();
    let (code, said) = lab.verify(&lab.path("signed"), &["--policy", text(&policy), "--now", "2026-01-01T00:00:00Z"]);
    let expected = format!("failed policy {NAME}.json: no index of archive debian");
    assert!(code == 1 && said.contains(&expected), "{said:?}");
}

/// Another validator agrees with ours about the form of a policy.
#[test]
fn the_schema_tells_policies_from_other_documents() {
    let Some(python) = crate::layers::python() else { return };
    let schema = vmbake(&["schema", "policy"], &[]).stdout;
    let texts = [
        r#"{"format": 1}"#,
        r#"{"format": 1, "builders": ["urn:a:b"], "keys": {"require": 1, "of": ["a"]}, "max_index_age_days": {"a": 1}}"#,
        r#"{}"#,
        r#"{"format": 1, "builders": []}"#,
        r#"{"format": 1, "keys": {"require": 0, "of": ["a"]}}"#,
        r#"{"format": 1, "sources": ["x"]}"#,
        r#"{"format": 1, "more": 1}"#,
        r#"{"format": 1, "max_index_age_days": {"a": -1}}"#,
    ];
    let script = "import json, sys, jsonschema\n\
        schema = json.loads(sys.argv[1])\n\
        jsonschema.Draft202012Validator.check_schema(schema)\n\
        validator = jsonschema.Draft202012Validator(schema)\n\
        print([validator.is_valid(json.loads(text)) for text in sys.argv[2:]])\n";
    let output =
        std::process::Command::new(python).args(["-c", script, str::from_utf8(&schema).unwrap()]).args(texts).output();
    let output = output.unwrap();
    let expected = "[True, True, False, False, False, False, False, False]\n";
    assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{}", stderr(&output));
    let accepted = texts.map(|text| ReleasePolicy::parse(Path::new("p"), text.as_bytes()).is_ok());
    assert_eq!(accepted, [true, true, false, false, false, false, false, false]);
}

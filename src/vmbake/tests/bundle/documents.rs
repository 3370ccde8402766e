//! `bundle.json`: parsing, and errors with positions.

use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vmbake_bundle::BundleError;
use vmbake_bundle::document::{BundleDocument, MAX_DOCUMENT};

use crate::release::lab::vmbake;

const TEXT: &str = r#"{"schema": 1, "publisher": "acme", "name": "rke2", "version": "1.35.5+rke2r1", "description": "Kubernetes",
"os": ["debian-13"], "arch": ["amd64"], "kinds": ["node"], "vmbake": ">=0.1",
"layers": {"acme.rke2": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
"requires": [{"layer": "vm", "version": "1"}, {"program": "iptables"}, {"module": "br_netfilter"}],
"provides": {"kubernetes": "1.35.5"}, "conflicts": ["kubernetes"], "upgrade": {"from": ">=1.34.0, <1.36.0"},
"state": ["/var/lib/rancher", "/etc/rancher"], "asks": {"paths": ["/usr/local", "/etc/rancher"], "ports": ["6443/tcp"]},
"artifacts": {"debian-13.amd64": {"acme.rke2": {"version": "1", "url": "https://up.example/rke2", "type": "binary",
"digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "size": 0, "proof": {"type": "stated"}}}}}"#;

fn parse(text: &str) -> Result<BundleDocument, BundleError> {
    BundleDocument::parse(Path::new("bundle.json"), text.as_bytes())
}

#[test]
fn a_document_is_read_and_written_as_it_was() {
    let document = parse(TEXT).unwrap();
    assert_eq!((document.title().as_str(), document.version.tag().as_str()), ("acme.rke2", "1.35.5_rke2r1"));
    assert!(
        document.owns("acme.rke2") && !document.owns("acme") && !document.owns("acmex.a") && !document.owns("acme./a")
    );
    let text = document.to_text().unwrap();
    let again = BundleDocument::parse(Path::new("again"), &text).unwrap();
    assert_eq!(again, document);
    assert_eq!(again.to_text().unwrap(), text);
}

#[test]
fn faults_have_a_place() {
    for (from, to, expected) in [
        ("\"schema\": 1", "\"schema\": 2", "`schema`: unsupported schema 2: expected 1"),
        ("\"kinds\"", "\"kind\"", "bundle.json:2:46: unknown field `kind`, expected one of"),
        ("\"os\": [", "\"os\": [], \"os\": [", "bundle.json:2:14: duplicate field `os`"),
        ("{\"layer\": \"vm\", ", "{\"layer\": \"vm\", \"layer\": \"x\", ", "duplicate field `layer`"),
        ("\"provides\": {", "\"provides\": {\"kubernetes\": \"1\", ", "duplicate key \"kubernetes\""),
        ("\"acme\"", "\"Acme\"", "`publisher`: \"Acme\" is invalid: expected at most"),
        ("\"rke2\", \"v", "\"../rke2\", \"v", "`name`: \"../rke2\" is invalid: expected"),
        ("1.35.5+rke2r1", "v1", "invalid \"v1\": expected a version of numbers separated by dots"),
        (">=0.1", "~0.1", "invalid \"~0.1\": expected a version constraint such as"),
        ("[\"debian-13\"]", "[]", "`os`: is empty"),
        ("[\"amd64\"]", "[\"riscv64\"]", "`arch`: \"riscv64\" is invalid: expected amd64 or arm64"),
        ("\"acme.rke2\": \"sha", "\"other.rke2\": \"sha", "`layers`: \"other.rke2\" does not start with \"acme.\""),
        ("\"acme.rke2\": {\"v", "\"acme.\": {\"v", "`artifacts`: \"acme.\" does not start with"),
        ("debian-13.amd64", "debian-12.amd64", "`artifacts`: \"debian-12.amd64\" does not match `os` and `arch`"),
        ("{\"program\": \"iptables\"}", "{}", "`requires/1`: expected exactly one of"),
        (
            "\"iptables\"}",
            "\"iptables\", \"version\": \"1\"}",
            "`requires/1`: \"iptables\" is not a layer: `version` only applies to layers",
        ),
        ("\"/usr/local\"", "\"/usr/../etc\"", "`asks/paths`: path \"/usr/../etc\" is not absolute or contains `..`"),
        ("6443/tcp", "6443", "`asks/ports`: \"6443\" is invalid: expected NUMBER/tcp"),
        ("\"/var/lib/rancher\"", "\"var\"", "`state`: path \"var\" is not absolute"),
        ("Kubernetes\"", "a\\nb\"", "`description`: is not a single line of text"),
        ("\"size\": 0", "\"size\": -1", "invalid value: integer `-1`"),
    ] {
        assert!(TEXT.contains(from), "{from}");
        let error = parse(&TEXT.replacen(from, to, 1)).unwrap_err();
        let causes = vmbake_common::escape::chain(&error);
        assert!(causes.contains(expected), "{to}: {causes}");
    }
}

#[test]
fn bombs_are_refused_before_they_burst() {
    let deep = parse(&TEXT.replace("[\"node\"]", &"[".repeat(100_000))).unwrap_err();
    assert!(matches!(deep, BundleError::Syntax { .. }), "{deep}");
    let nested = parse(&"[".repeat(100_000)).unwrap_err();
    assert!(matches!(nested, BundleError::Syntax { .. }), "{nested}");
    let large = " ".repeat(usize::try_from(MAX_DOCUMENT).unwrap() + 1);
    assert!(matches!(parse(&large), Err(BundleError::Limit { .. })));
    let many: Vec<String> = (0..1025).map(|number| format!("\"{number}\"")).collect();
    let many = parse(&TEXT.replace("[\"node\"]", &format!("[{}]", many.join(",")))).unwrap_err();
    assert_eq!(many.to_string(), "bundle.json: `kinds`: has more than 1024 entries");
}

#[test]
fn the_schema_knows_every_key() {
    let schema = vmbake(&["schema", "bundle"], &[]).stdout;
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    let document: Value = serde_json::from_str(TEXT).unwrap();
    for key in document.as_object().unwrap().keys() {
        assert!(schema["properties"].get(key).is_some(), "{key}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

/// Another validator agrees with ours about the form of a bundle.
#[test]
fn the_schema_tells_bundles_from_other_documents() {
    let Some(python) = crate::layers::python() else { return };
    let schema = vmbake(&["schema", "bundle"], &[]).stdout;
    let texts = [
        TEXT.to_owned(),
        TEXT.replace("[\"amd64\"]", "[]"),
        TEXT.replace("1.35.5+rke2r1", "v1"),
        TEXT.replace("\"acme\"", "\"Acme\""),
        TEXT.replace("\"kinds\"", "\"kind\""),
        TEXT.replace("\"asks\"", "\"state\""),
    ];
    let script = "import json, sys, jsonschema\n\
        validator = jsonschema.Draft202012Validator(json.loads(sys.argv[1]))\n\
        print([validator.is_valid(json.loads(text)) for text in sys.argv[2:]])\n";
    let output =
        Command::new(python).args(["-c", script, str::from_utf8(&schema).unwrap()]).args(&texts).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "[True, False, False, False, False, False]\n", "{output:?}");
    assert_eq!(texts.map(|text| parse(&text).is_ok()), [true, false, false, false, false, false]);
}

//! Modifications of a release, and the check that detects each.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use vmbake_bake::BakeRequest;

use super::lab::{Lab, NAME, both, edit, relist};
use crate::origin::bakery::{TOOL, bake, can_bake};

/// A modification, its name, and the expected report.
type Attack<'a> = (&'static str, &'a dyn Fn(&Path), &'a [&'a str]);

fn file(end: &str) -> String {
    format!("{NAME}.{end}")
}

/// Copies a file of another release.
fn take(lab: &Lab, from: &str, out: &Path, name: &str) {
    fs::copy(lab.path(from).join(name), out.join(name)).unwrap();
}

fn copy(from: PathBuf, to: PathBuf) {
    fs::copy(from, to).unwrap();
}

#[test]
fn every_change_is_named() {
    if !can_bake() {
        return;
    }
    let lab = Lab::new();
    let whole = lab.verify(&lab.path("signed"), &lab.key().each_ref().map(String::as_str));
    assert_eq!(whole, (0, vec![]));
    // Another release by the same key: of the same inputs, but for the size of the disk.
    let other = BakeRequest { size: Some(96 << 20), ..both(lab.dir.path(), "other") };
    bake(&other).unwrap();
    lab.sign(&other.out, "one", &[]);
    let [provenance, inputs, origin, raw, qcow2] =
        ["provenance.json", "inputs.json", "origin.json", "raw", "qcow2"].map(file);
    let [bundle, sums] = [file("provenance.sigstore.json"), "SHA256SUMS.sigstore.json".to_owned()];
    let changed = |out: &Path, name: &str, change: &dyn Fn(String) -> String| {
        edit(&out.join(name), change);
        relist(out, name);
    };
    let write = |out: &Path, name: &str, content: &[u8], at: u64| {
        fs::File::options().write(true).open(out.join(name)).unwrap().write_all_at(content, at).unwrap();
    };
    let unsigned = "failed signature SHA256SUMS: signed by 0 of the required 1 signers";
    let attacks: &[Attack<'_>] = &[
        (
            "a byte of the qcow2 file",
            &|out| write(out, &qcow2, b"x", 9000),
            &["failed sha256 tools.o.amd64.qcow2: found sha256:"],
        ),
        (
            "a byte of the raw file",
            &|out| write(out, &raw, b"x", 0),
            &["failed fs-verity tools.o.amd64.raw: found fsverity:sha256:"],
        ),
        (
            "a file that is gone",
            &|out| fs::remove_file(out.join(&raw)).unwrap(),
            &["failed fs-verity tools.o.amd64.raw: listed, but missing"],
        ),
        ("one more image", &|out| fs::write(out.join("more.raw"), "x").unwrap(), &["failed list more.raw: not listed"]),
        (
            "one more document",
            &|out| fs::write(out.join(file("more.json")), "{}").unwrap(),
            &["failed list tools.o.amd64.more.json: not listed"],
        ),
        (
            "a swapped sidecar",
            &|out| take(&lab, "other", out, &inputs),
            &["failed sha256 tools.o.amd64.inputs.json: found sha256:"],
        ),
        (
            "a swapped sidecar that is listed",
            &|out| {
                take(&lab, "other", out, &inputs);
                relist(out, &inputs);
            },
            &[
                unsigned,
                "failed provenance tools.o.amd64.provenance.json: /predicate/buildDefinition/externalParameters/size is nothing, expected 100663296",
            ],
        ),
        (
            "provenance of another image",
            &|out| {
                take(&lab, "other", out, &provenance);
                take(&lab, "other", out, &bundle);
            },
            &[
                "failed sha256 tools.o.amd64.provenance.json: found sha256:",
                "failed provenance tools.o.amd64.provenance.json: /predicate/buildDefinition/externalParameters/size is 100663296, expected nothing",
                "failed signature tools.o.amd64.provenance.json: signed by 0",
            ],
        ),
        (
            "another release's list",
            &|out| take(&lab, "other", out, "SHA256SUMS"),
            &[unsigned, "failed sha256 tools.o.amd64.qcow2: found sha256:"],
        ),
        (
            "a signature by another key",
            &|out| lab.sign(out, "two", &[]),
            &[unsigned, "failed signature tools.o.amd64.provenance.json: signed by 0"],
        ),
        (
            "a subject that is missing",
            &|out| changed(out, &provenance, &|text| without_subject(&text, &raw)),
            &[
                unsigned,
                "failed provenance tools.o.amd64.provenance.json: tools.o.amd64.raw is missing in its subjects",
            ],
        ),
        (
            "a subject that is not an output",
            &|out| changed(out, &provenance, &|text| text.replacen(&raw, "other.raw", 1)),
            &["failed provenance tools.o.amd64.provenance.json: tools.o.amd64.raw is missing in its subjects"],
        ),
        (
            "an unknown field",
            &|out| changed(out, &provenance, &|text| text.replacen("\"subject\"", "\"x\": 1,\n  \"subject\"", 1)),
            &["failed provenance tools.o.amd64.provenance.json: /x is 1, expected nothing"],
        ),
        (
            "a duplicate key",
            &|out| changed(out, &provenance, &|text| text.replacen("\"_type\"", "\"_type\": \"x\",\n  \"_type\"", 1)),
            &[
                "failed provenance tools.o.amd64.provenance.json: tools.o.amd64.provenance.json: cannot be used: duplicate key \"_type\"",
            ],
        ),
        (
            "a manifest with a key twice",
            &|out| {
                changed(out, &file("json"), &|text| text.replacen("\"vmconfig\"", "\"vmconfig\": 1, \"vmconfig\"", 1))
            },
            &[
                "failed provenance tools.o.amd64.provenance.json: tools.o.amd64.json: cannot be used: duplicate key \"vmconfig\"",
            ],
        ),
        (
            "another manifest",
            &|out| changed(out, &file("json"), &|text| text + "\n"),
            &["failed provenance tools.o.amd64.provenance.json: tools.o.amd64.inputs.json states manifest"],
        ),
        (
            "a bundle that ends early",
            &|out| edit(&out.join(&sums), |text| text[..text.len() - 9].to_owned()),
            &["failed signature SHA256SUMS: signed by 0", "corrupt bundle"],
        ),
        (
            "a bundle with a key twice",
            &|out| {
                edit(&out.join(&sums), |text| text.replacen("\"mediaType\"", "\"mediaType\":\"x\",\"mediaType\"", 1))
            },
            &["failed signature SHA256SUMS: signed by 0", "duplicate key"],
        ),
        ("no bundle", &|out| fs::remove_file(out.join(&sums)).unwrap(), &["failed signature SHA256SUMS: not signed"]),
        (
            "the bundle of another list",
            &|out| copy(out.join("FSVERITYSUMS.sigstore.json"), out.join(&sums)),
            &["failed signature SHA256SUMS: signed by 0", "the bundle is for other files"],
        ),
        (
            "the bundle of the statement",
            &|out| copy(out.join(&bundle), out.join(&sums)),
            &["failed signature SHA256SUMS: signed by 0", "the bundle is for other files"],
        ),
        (
            "the bundle of a list for a statement",
            &|out| copy(out.join(&sums), out.join(&bundle)),
            &[
                "failed signature tools.o.amd64.provenance.json: signed by 0",
                "a signature without the required statement",
            ],
        ),
        (
            "another payload",
            &|out| edit(&out.join(&bundle), |text| text.replacen("\"payload\":\"ewog", "\"payload\":\"ewoJ", 1)),
            &[
                "failed signature tools.o.amd64.provenance.json: signed by 0",
                "the signature does not match this key and content",
            ],
        ),
        (
            "an edited list",
            &|out| {
                edit(&out.join("SHA256SUMS"), |text| {
                    text.lines().filter(|line| !line.ends_with("inputs.json")).map(|line| format!("{line}\n")).collect()
                })
            },
            &[unsigned, "failed list tools.o.amd64.inputs.json: not listed"],
        ),
        (
            "a list in another order",
            &|out| edit(&out.join("SHA256SUMS"), |text| text.lines().rev().map(|line| format!("{line}\n")).collect()),
            &["failed list SHA256SUMS: ", "names are not sorted"],
        ),
        ("no list", &|out| fs::remove_file(out.join("SHA256SUMS")).unwrap(), &["failed list SHA256SUMS: missing"]),
        (
            "another record of origins",
            &|out| changed(out, &origin, &|text| text.replacen("\"version\":\"7\"", "\"version\":\"8\"", 1)),
            &[
                "failed origin tools.o.amd64.raw: the record of origins in the image differs from the one next to it",
                "failed origin tools.o.amd64.qcow2: the record",
            ],
        ),
        (
            "another bill of materials",
            &|out| changed(out, &file("spdx.json"), &|text| text.replacen("SPDX-2.3", "SPDX-2.2", 1)),
            &["failed sbom tools.o.amd64.spdx.json: /spdxVersion is \"SPDX-2.2\", but \"SPDX-2.3\" in the image"],
        ),
        (
            "a bill of materials in another form",
            &|out| changed(out, &file("cdx.json"), &|text| text + "\n"),
            &["failed sbom tools.o.amd64.cdx.json: not in the form that vmbake writes"],
        ),
        (
            "a program in the image",
            &|out| {
                let image = fs::read(out.join(&raw)).unwrap();
                let at = image.windows(TOOL.len()).position(|part| part == TOOL).unwrap();
                write(out, &raw, b"#!/bin/sh\necho TOOL\n", at as u64);
                relist(out, &raw);
            },
            &[
                "failed signature FSVERITYSUMS: signed by 0",
                "failed origin tools.o.amd64.raw: /usr/bin/tool in the image has sha256:",
            ],
        ),
    ];
    for (index, (what, attack, expected)) in attacks.iter().enumerate() {
        let out = lab.copy(&format!("copy-{index}"));
        attack(&out);
        let (code, said) = lab.verify(&out, &lab.key().each_ref().map(String::as_str));
        assert_eq!(code, 1, "{what}");
        for expected in *expected {
            assert!(said.iter().any(|line| line.contains(expected)), "{what}: {expected}\n{said:#?}");
        }
        fs::remove_dir_all(out).unwrap();
    }
}

/// The statement without one of its subjects.
fn without_subject(text: &str, name: &str) -> String {
    let mut statement: serde_json::Value = serde_json::from_str(text).unwrap();
    statement["subject"].as_array_mut().unwrap().retain(|subject| subject["name"] != name);
    serde_json::to_string_pretty(&statement).unwrap() + "\n"
}

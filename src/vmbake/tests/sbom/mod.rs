//! SBOMs of synthetic trees, of corrupt ones, and of freshly baked images.

mod attacks;
mod images;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use vmbake_common::digest::Digest;
use vmbake_compose::origin::Record;
use vmbake_disk::tree::Tree;
use vmbake_manifest::Manifest;
use vmbake_query::sbom::{Inventory, Knowledge, SbomFormat};

use crate::elf::go::go_program;
use crate::origin::image::{content, empty, file, link, put};
use crate::tools::have;

const STATUS: &str = "/var/lib/dpkg/status";

/// A tree of Debian 13 with that status file.
fn debian(status: &str) -> Tree {
    let mut tree = empty();
    file(&mut tree, "/etc/os-release", "ID=debian\nVERSION_ID=\"13\"\nPRETTY_NAME=\"Debian 13\"\n");
    file(&mut tree, STATUS, status);
    tree
}

fn stanza(name: &str, rest: &str) -> String {
    format!("Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2-3+b1\n{rest}\n\n")
}

/// A program of Go that is as large as real ones are.
fn go_file(tree: &mut Tree, path: &str, mut bytes: Vec<u8>) {
    bytes.resize(bytes.len().max(1 << 20), 0);
    let kind = content(tree, &bytes);
    put(tree, path.as_bytes(), kind);
}

fn inventory(tree: &Tree) -> Inventory {
    Inventory::of_tree(tree, Knowledge { file_name: "disk.raw", ..Knowledge::default() }).unwrap()
}

fn document(tree: &Tree, format: SbomFormat) -> Value {
    serde_json::from_str(&inventory(tree).text(format).unwrap()).unwrap()
}

/// The packages of a document of SPDX, by their names.
fn packages(document: &Value) -> BTreeMap<&str, &Value> {
    let packages = document["packages"].as_array().unwrap();
    packages.iter().map(|package| (package["name"].as_str().unwrap(), package)).collect()
}

/// The relations of a document of SPDX, without the prefixes of identifiers.
fn relations(document: &Value) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap().trim_start_matches("SPDXRef-").to_owned();
    let relation = |one: &Value| {
        let [from, how, to] = ["spdxElementId", "relationshipType", "relatedSpdxElement"].map(|key| text(&one[key]));
        format!("{from} {how} {to}")
    };
    document["relationships"].as_array().unwrap().iter().map(relation).collect()
}

#[test]
fn packages_have_sources_licences_suppliers_and_dependencies() {
    let status = [
        stanza("liba", "Source: a\nMaintainer: A Team <a@example.org>\nProvides: virtual (= 2)"),
        stanza("b", "Source: bee (1:1.9)\nMaintainer: B. Person <b@example.org>\nDepends: liba (>= 1:2), c | virtual (>= 2), d (>> 9)\nPre-Depends: absent | d"),
        stanza("d", "Multi-Arch: foreign"),
        "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\nPackage: half\nStatus: install ok unpacked\nArchitecture: all\nVersion: 7\n".to_owned(),
    ];
    let mut tree = debian(&status.concat());
    file(
        &mut tree,
        "/usr/share/doc/liba/copyright",
        "Format: x\n\nFiles: *\nLicense: GPL-2+ or Expat\n\nFiles: b\nLicense: own\n Text.\n",
    );
    link(&mut tree, "/usr/share/doc/b", "liba");
    let document = document(&tree, SbomFormat::Spdx);
    let packages = packages(&document);
    let found: Vec<&&str> = packages.keys().collect();
    assert_eq!(found, [&"b", &"d", &"debian", &"disk.raw", &"half", &"liba"]);
    let (a, b) = (packages["liba"], packages["b"]);
    let purl = |package: &Value| package["externalRefs"][0]["referenceLocator"].as_str().unwrap().to_owned();
    assert_eq!(purl(a), "pkg:deb/debian/liba@1:2-3%2Bb1?arch=amd64&distro=debian-13&upstream=a");
    assert_eq!(purl(b), "pkg:deb/debian/b@1:2-3%2Bb1?arch=amd64&distro=debian-13&upstream=bee%401:1.9");
    assert_eq!(b["sourceInfo"], "built package from: bee 1:1.9");
    assert_eq!(
        (&a["supplier"], &b["supplier"]),
        (&"Organization: A Team (a@example.org)".into(), &"Person: B. Person (b@example.org)".into())
    );
    let own = document["hasExtractedLicensingInfos"][0]["licenseId"].as_str().unwrap();
    assert_eq!(document["hasExtractedLicensingInfos"][0]["extractedText"], "Text.");
    assert_eq!(a["licenseDeclared"], format!("(GPL-2.0-or-later OR MIT) AND {own}"));
    assert_eq!(
        (&b["licenseDeclared"], &packages["d"]["licenseDeclared"]),
        (&a["licenseDeclared"], &"NOASSERTION".into())
    );
    let relations = relations(&document);
    let expected = [
        "DOCUMENT DESCRIBES Image",
        "Image CONTAINS OperatingSystem",
        "OperatingSystem CONTAINS Package-b-amd64",
        "OperatingSystem CONTAINS Package-d-amd64",
        "OperatingSystem CONTAINS Package-half-all",
        "OperatingSystem CONTAINS Package-liba-amd64",
        "Package-b-amd64 DEPENDS_ON Package-d-amd64",
        "Package-b-amd64 DEPENDS_ON Package-liba-amd64",
    ];
    assert_eq!(relations, expected);
}

#[test]
fn modules_of_go_are_listed_once() {
    let mut tree = debian("");
    let lines = "path\texample.org/A/cmd/x\nmod\texample.org/A\tv1.2.3\t\ndep\tb\tv0.1.0+incompatible\th1:x\n";
    go_file(&mut tree, "/usr/bin/x", go_program(lines));
    go_file(&mut tree, "/usr/bin/y", go_program(&lines.replace("v1.2.3", "(devel)")));
    let document = document(&tree, SbomFormat::Spdx);
    let found = packages(&document);
    assert_eq!(found["/usr/bin/x"]["versionInfo"], "v1.2.3");
    let purls: Vec<_> =
        found.values().filter_map(|package| package["externalRefs"][0]["referenceLocator"].as_str()).collect();
    for expected in
        ["pkg:golang/b@v0.1.0%2Bincompatible", "pkg:golang/example.org/a@v1.2.3", "pkg:golang/stdlib@1.24.2"]
    {
        assert_eq!(purls.iter().filter(|purl| **purl == expected).count(), 1, "{purls:?}");
    }
    let relations = relations(&document);
    let held = |program: &str| {
        relations.iter().filter(|one| one.starts_with(&format!("Application--usr-bin-{program} CONTAINS "))).count()
    };
    assert_eq!((held("x"), held("y")), (3, 2), "{relations:#?}");
}

#[test]
fn both_forms_name_the_distribution_and_what_is_not_known() {
    let tree = debian(&stanza("a", "Source: s"));
    let spdx = document(&tree, SbomFormat::Spdx);
    assert!(spdx["comment"].as_str().unwrap().contains("no record of origins"));
    assert_eq!(packages(&spdx)["debian"]["SPDXID"], "SPDXRef-OperatingSystem");
    let cdx = document(&tree, SbomFormat::CycloneDx);
    assert_eq!(
        (&cdx["components"][0]["type"], &cdx["components"][0]["name"], &cdx["components"][0]["version"]),
        (&"operating-system".into(), &"debian".into(), &"13".into())
    );
    assert!(cdx["metadata"]["properties"][0]["value"].as_str().unwrap().contains("no record of origins"));
    let properties: Vec<_> = cdx["components"][1]["properties"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| format!("{}={}", one["name"].as_str().unwrap(), one["value"].as_str().unwrap()))
        .collect();
    assert_eq!(
        properties,
        ["SrcName=s", "SrcVersion=2", "SrcRelease=3+b1", "SrcEpoch=1", "PkgType=debian"]
            .map(|one| format!("aquasecurity:trivy:{one}"))
    );
    let serial = cdx["serialNumber"].as_str().unwrap();
    assert_eq!(document(&tree, SbomFormat::CycloneDx)["serialNumber"], serial);
    assert_ne!(document(&debian(&stanza("b", "")), SbomFormat::CycloneDx)["serialNumber"], serial);
}

#[test]
fn files_are_listed_with_the_digests_of_coreutils() {
    if !have(&["sha1sum", "sha256sum"]) {
        return;
    }
    let mut tree = debian("");
    file(&mut tree, "/a", "hello");
    link(&mut tree, "/link", "a");
    let mut found = inventory(&tree);
    found.add_files(&tree, NonZeroUsize::MIN).unwrap();
    let spdx: Value = serde_json::from_str(&found.text(SbomFormat::Spdx).unwrap()).unwrap();
    let files = spdx["files"].as_array().unwrap();
    let names: Vec<_> = files.iter().map(|file| file["fileName"].as_str().unwrap()).collect();
    assert_eq!(names, ["./a", "./etc/os-release", "./var/lib/dpkg/status"]);
    for (place, tool) in ["sha1sum", "sha256sum"].into_iter().enumerate() {
        let script = format!("printf hello | {tool}");
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        let digest = files[0]["checksums"][place]["checksumValue"].as_str().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().split(' ').next().unwrap(), digest);
    }
    assert_eq!(packages(&spdx)["disk.raw"]["filesAnalyzed"], true);
    assert!(relations(&spdx).contains(&"Image CONTAINS File-1".to_owned()));
    let cdx: Value = serde_json::from_str(&found.text(SbomFormat::CycloneDx).unwrap()).unwrap();
    let listed = cdx["components"].as_array().unwrap().iter().filter(|one| one["type"] == "file");
    assert_eq!(
        listed.map(|one| one["name"].as_str().unwrap()).collect::<Vec<_>>(),
        ["/a", "/etc/os-release", "/var/lib/dpkg/status"]
    );
}

#[test]
fn artifacts_of_the_record_have_digests_and_proofs() {
    let [image, index, deb, archive] = ["image", "index", "deb", "archive"].map(|text| Digest::of(text.as_bytes()));
    let entry = |kind: &str, url: &str, digest: Digest, proof: &str| {
        format!(
            r#"{{"version": "1.0+x", "url": "{url}", "type": "{kind}", "digest": "{digest}", "size": 1, "proof": {proof}}}"#
        )
    };
    let proof = r#"{"type": "sigstore", "identity": "me", "issuer": "you"}"#;
    let text = format!(
        r#"{{"vmconfig": {{"version": "9", "kind": "k", "os": {{"name": "debian-13", "arch": "amd64"}}, "dependencies": {{"d": {}, "tool": {}}},
        "images": [{{"image": "example.org/a/Pause:3.10", "digest": "{image}", "size": 1, "platform": "linux/amd64", "index": "{index}"}}]}}}}"#,
        entry("deb", "https://example.org/d_1.deb", deb, r#"{"type": "first-use"}"#),
        entry("tar.gz", "https://example.org/tool?a=b&c", archive, proof),
    );
    let manifest = Manifest::parse(Path::new("m"), text.into_bytes()).unwrap();
    let record = format!(
        "{{\"format\":1,\"manifest\":\"{}\",\"layers\":{{\"l\":{{\"version\":\"1\",\"digest\":\"{index}\"}}}},\"artifacts\":{{\
         \"d\":{{\"layer\":\"l\",\"digest\":\"{deb}\"}},\"example.org/a/Pause:3.10\":{{\"layer\":\"l\",\"digest\":\"{image}\"}},\
         \"tool\":{{\"layer\":\"l\",\"digest\":\"{archive}\"}}}},\"paths\":{{\"/var/lib/dpkg/info/d:amd64.list\":{{\"layer\":\"l\",\
         \"artifact\":\"d\"}}}},\"removed\":{{}}}}\n",
        manifest.digest()
    );
    let record = Record::parse("r", record.as_bytes()).unwrap();
    let tree = debian(&[stanza("d", ""), stanza("other", "")].concat());
    let known = Knowledge { file_name: "", record: Some(&record), manifest: Some(&manifest) };
    let inventory = Inventory::of_tree(&tree, known).unwrap();
    assert_eq!((inventory.name.as_str(), inventory.notes.len()), ("k.debian-13.amd64", 0));
    let spdx: Value = serde_json::from_str(&inventory.text(SbomFormat::Spdx).unwrap()).unwrap();
    let found = packages(&spdx);
    let purl = |name: &str| found[name]["externalRefs"][0]["referenceLocator"].as_str().unwrap().to_owned();
    let digest = |name: &str| found[name]["checksums"][0]["checksumValue"].as_str().map(str::to_owned);
    // The purl specification: names of images in small letters; in values of qualifiers what could end one is encoded.
    let expected = format!("pkg:oci/pause@{image}?arch=amd64&repository_url=example.org/a/Pause&tag=3.10");
    assert_eq!(purl("example.org/a/Pause:3.10"), expected);
    let expected = "download_url=https://example.org/tool%3Fa%3Db%26c";
    assert_eq!(purl("tool"), format!("pkg:generic/tool@1.0%2Bx?checksum={archive}&{expected}"));
    assert_eq!(found["tool"]["comment"], "layer: l\nproof: sigstore bundle by me (you)");
    assert_eq!(
        (digest("d"), digest("other"), digest("example.org/a/Pause:3.10")),
        (Some(deb.hex()), None, Some(image.hex()))
    );
    assert_eq!(found["d"]["comment"], "layer: l\nproof: the first download");
    assert_eq!(found["d"]["downloadLocation"], "https://example.org/d_1.deb");
}

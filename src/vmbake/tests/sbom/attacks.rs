//! Malicious trees: against crashes, wrong results and terminal escapes.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Kind, Tree};
use vmbake_query::sbom::{Inventory, Knowledge, SbomError, SbomFormat};

use super::{STATUS, debian, document, go_file, inventory, packages, stanza};
use crate::elf::go::go_program;
use crate::origin::image::{content, empty, file, link, put};

/// Both documents of a tree, after what holds for each of them was checked.
fn texts(tree: &Tree) -> [String; 2] {
    [SbomFormat::Spdx, SbomFormat::CycloneDx].map(|format| {
        let text = inventory(tree).text(format).unwrap();
        assert!(text.chars().all(|char| char == '\n' || !char.is_control()), "{format}");
        assert!(!text.contains('\u{202e}'), "{format}");
        let document = document(tree, format);
        let key = if format == SbomFormat::Spdx { ("packages", "SPDXID") } else { ("components", "bom-ref") };
        let ids: Vec<&str> =
            document[key.0].as_array().unwrap().iter().map(|one| one[key.1].as_str().unwrap()).collect();
        let plain =
            |id: &&str| id.len() < 300 && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte));
        assert!(ids.iter().all(plain), "{format}: {ids:?}");
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len(), "{format}: {ids:?}");
        text
    })
}

fn failure(tree: &Tree) -> String {
    let error = Inventory::of_tree(tree, Knowledge::default()).unwrap_err();
    assert!(matches!(error, SbomError::Package(_)), "{error:?}");
    vmbake_common::escape::chain(&error)
}

#[test]
fn odd_values_of_a_status_file_are_told_as_they_are() {
    let long = "x".repeat(1 << 20);
    let status = [
        stanza("a\u{1b}[2J", "Maintainer: \u{202e}(x) <y>\nSource: s\u{7} (1"),
        stanza("a-.2J", "Depends: ((( , \u{1}\nProvides: |"),
        stanza("a?b#c&d=e/../f%", "Maintainer: <"),
        stanza(&long, &format!("Source: {long}\nMaintainer: {long}\nDepends: {long}")),
        "Package: bare\nStatus: x y half-installed\nVersion: -\n\n".to_owned(),
    ];
    let mut tree = debian(&status.concat());
    let kind = content(
        &mut tree,
        &[status.concat().as_bytes(), b"Package: raw\nStatus: a b installed\nVersion: 1\xff\xfe\n"].concat(),
    );
    put(&mut tree, STATUS.as_bytes(), kind);
    let [spdx, _] = texts(&tree);
    assert!(spdx.contains("field Depends is malformed and ignored"), "{spdx:.2000}");
    let document = document(&tree, SbomFormat::Spdx);
    let packages = packages(&document);
    assert_eq!(packages["raw"]["versionInfo"], "1\u{fffd}\u{fffd}");
    assert_eq!(
        packages["a?b#c&d=e/../f%"]["externalRefs"][0]["referenceLocator"],
        "pkg:deb/debian/a%3Fb%23c%26d%3De/../f%25@1:2-3%2Bb1?arch=amd64&distro=debian-13"
    );
    assert_eq!(packages["bare"]["versionInfo"], "-");
    assert_eq!(packages["a\u{1b}[2J"]["supplier"], "Person: \u{202e}'x' (y)");
    assert!(packages.contains_key(long.as_str()));
}

#[test]
fn damaged_status_files_are_refused() {
    for (status, expected) in [
        (
            "Package: a\nStatus: a b installed\n",
            "/var/lib/dpkg/status: stanza 1 is malformed: control file: has no field Version",
        ),
        (
            "Package: a\n\nStatus: a b installed\nVersion: 1\n",
            "/var/lib/dpkg/status: stanza 2 is malformed: control file: has no field Package",
        ),
        (" x\n", "/var/lib/dpkg/status: stanza 1 is malformed: control file: starts with a continuation line"),
        ("nothing\n", "/var/lib/dpkg/status: stanza 1 is malformed: control file: line \"nothing\" is not a field"),
    ] {
        assert_eq!(failure(&debian(status)), expected);
    }
    let mut tree = empty();
    put(&mut tree, STATUS.as_bytes(), Kind::directory());
    assert!(failure(&tree).starts_with("cannot read the package database: "));
}

#[test]
fn images_without_packages_say_so() {
    let tree = empty();
    let [spdx, cdx] = texts(&tree);
    for text in [spdx, cdx] {
        assert!(text.contains("no dpkg database") && text.contains("no os-release"), "{text}");
    }
}

#[test]
fn copyright_files_that_cannot_be_used_are_noted() {
    let names = ["loop", "folder", "huge", "dangling", "binary"];
    let mut tree = debian(&names.map(|name| stanza(name, "")).concat());
    link(&mut tree, "/usr/share/doc/loop", "loop");
    put(&mut tree, b"/usr/share/doc/folder/copyright", Kind::directory());
    file(&mut tree, "/usr/share/doc/huge/copyright", &"x".repeat((4 << 20) + 1));
    link(&mut tree, "/usr/share/doc/dangling", "../../../../../../etc/nothing");
    let kind = content(&mut tree, b"Format: \xff\n\nFiles: *\nLicense: a\x00b\x1b\xff\n \xfe\n");
    put(&mut tree, b"/usr/share/doc/binary/copyright", kind);
    texts(&tree);
    let notes = inventory(&tree).notes.join("\n");
    for part in [
        "symbolic links",
        "expected a regular file, found a directory",
        "4194305 bytes, more than the limit of 4194304",
    ] {
        assert!(notes.contains(part), "{notes}");
    }
    let document = document(&tree, SbomFormat::Spdx);
    let packages = packages(&document);
    for name in &names[..4] {
        assert_eq!(packages[name]["licenseDeclared"], "NOASSERTION", "{name}");
    }
    let own = &document["hasExtractedLicensingInfos"][0];
    assert_eq!(
        (&own["name"], &own["licenseId"]),
        (&"a\0b\u{1b}\u{fffd}".into(), &packages["binary"]["licenseDeclared"])
    );
}

#[test]
fn damaged_programs_of_go_are_noted() {
    let good = go_program("path\ta\n");
    let mut tree = debian("");
    go_file(&mut tree, "/a-good", good.clone());
    go_file(&mut tree, "/b-\u{1b}cut", good[..good.len() - 20].to_vec());
    let mut outside = good.clone();
    outside[0x28..0x30].copy_from_slice(&[0xff; 8]);
    go_file(&mut tree, "/c-outside", outside);
    go_file(&mut tree, "/d-text", vec![b'x'; 16]);
    texts(&tree);
    let inventory = inventory(&tree);
    let noted: Vec<&String> = inventory.notes.iter().filter(|note| note.starts_with('/')).collect();
    assert_eq!(noted.len(), 2, "{noted:?}");
    assert!(
        noted[0].starts_with("/b-\\x1bcut: unknown whether it is a Go program: Go build information:"),
        "{noted:?}"
    );
    assert!(noted[1].starts_with("/c-outside: unknown whether it is a Go program: the section headers"), "{noted:?}");
}

#[test]
fn programs_with_countless_modules_are_noted() {
    let mut tree = debian("");
    let program = go_program(&format!("path\ta\n{}", "dep\tb\tv1\n".repeat(90_000)));
    for number in 1..=6 {
        go_file(&mut tree, &format!("/{number}"), program.clone());
    }
    let notes = inventory(&tree).notes;
    let noted: Vec<&String> = notes.iter().filter(|note| note.starts_with('/')).collect();
    assert_eq!(noted, ["/6: not listed, since all Go programs together have more than 500000 modules"]);
}

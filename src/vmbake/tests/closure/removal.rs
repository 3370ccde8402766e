//! Packages that layers remove: compared with apt, and refusals.

use std::collections::BTreeMap;

use vmbake_pin::closure::rehearse;
use vmbake_proof::apt::PackageIndex;

use super::archive::{Workshop, file, said};
use super::rules::{apt, choose, index, is_recent, request, status, words};
use crate::tools::have;

/// What it is about, the archive, the base, what is asked for and removed, and what is chosen.
type Case = (&'static str, &'static str, &'static str, &'static [&'static str], &'static [&'static str], &'static str);

const CASES: &[Case] = &[
    ("a package", "z 1", "x 1\n\ny 1", &[], &["x"], ""),
    (
        "a replacement",
        "new 1\nConflicts: time\nProvides: time\nReplaces: time",
        "old 1\nConflicts: time\nProvides: time\nReplaces: time",
        &["new"],
        &["old"],
        "new=1",
    ),
    ("a replacement that is needed", "new 1", "old 1\n\nuser 1\nDepends: old | new", &["new"], &["old"], "new=1"),
    ("another provider", "z 1", "old 1\nProvides: v\n\nuser 1\nDepends: v\n\nother 1\nProvides: v", &[], &["old"], ""),
    ("a dependent that stays", "z 1", "old 1\n\nuser 1\nDepends: old", &[], &["old"], "-"),
    ("a dependent that goes too", "z 1", "old 1\n\nuser 1\nDepends: old", &[], &["old", "user"], ""),
    ("what a new package needs", "a 1\nDepends: old\n\nold 1", "old 1", &["a"], &["old"], "-"),
    ("another alternative", "a 1\nDepends: old | y\n\nold 1\n\ny 1", "old 1", &["a"], &["old"], "a=1 y=1"),
    (
        "what only the removed needed",
        "a 1\nDepends: lib",
        "old 1\nDepends: lib\n\nlib 1\n\nlib-data 1",
        &["a"],
        &["old"],
        "a=1",
    ),
    (
        "what the base has of the same source",
        "new 2\nSource: s\n\nold 2\nSource: s",
        "old 1\nSource: s",
        &["new"],
        &["old"],
        "new=2",
    ),
    ("what is recommended by what stays", "z 1", "old 1\n\nuser 1\nRecommends: old", &[], &["old"], ""),
];

#[test]
fn apt_chooses_the_same() {
    let has_apt = have(&["apt-get", "dpkg"]) && is_recent();
    for (what, archive, base, packages, removed, expected) in CASES {
        let [asked, gone] = [packages, removed].map(|names| serde_json::to_string(names).unwrap());
        let found = choose(archive, base, request(&format!(r#"{{"packages": {asked}, "remove_packages": {gone}}}"#)));
        assert_eq!(found.as_ref().map_or("-".to_owned(), words), *expected, "{what}: {found:?}");
        if has_apt {
            let found = apt(archive, base, packages, removed, false);
            assert_eq!(found.as_ref().map_or("-".to_owned(), words), *expected, "{what}: apt");
        }
    }
}

/// Requests of the layers `web` and `more`, the error, and the hint.
const REFUSED: &[(&str, &str, &str, &str)] = &[
    (
        r#"{"remove_packages": ["usr"]}"#,
        "{}",
        "layer web: remove_packages: package usr is neither in the base nor installed by an earlier layer",
        "did you mean `user`?",
    ),
    (
        r#"{"remove_packages": ["boss"]}"#,
        "{}",
        "layer web: remove_packages: package boss has `Essential: yes`, which forbids removing it",
        "remove the entry: ",
    ),
    (
        r#"{"remove_packages": ["guard"]}"#,
        "{}",
        "layer web: remove_packages: package guard has `Protected: yes`, which forbids removing it",
        "remove the entry: ",
    ),
    (
        r#"{"remove_packages": ["held"]}"#,
        "{}",
        "layer web: remove_packages: the base has package held on hold",
        "use a base that does not have it on hold",
    ),
    (
        r#"{"remove_packages": ["lib"]}"#,
        "{}",
        "lib: layer web removes it, but user depends on lib (>= 1) | none",
        "add user to `remove_packages` of layer web too, or install another package",
    ),
    (
        r#"{"remove_packages": ["lib", "user"]}"#,
        r#"{"packages": ["app"]}"#,
        "app → lib: lib is removed by layer web",
        "take lib out of `remove_packages` of layer web",
    ),
    (
        r#"{"packages": ["app"]}"#,
        r#"{"remove_packages": ["data"]}"#,
        "data: layer more removes it, but app depends on data",
        "add app to `remove_packages` of layer more too",
    ),
    (
        r#"{"packages": ["rival"]}"#,
        "{}",
        "rival: conflicts with lib 1 of the base: Conflicts lib",
        r#"to remove lib from the image, add to the layer: "remove_packages": ["lib"]"#,
    ),
];

#[test]
fn what_must_stay_is_refused() {
    let archive = index("app 1\nDepends: lib, data\n\ndata 1\n\nlib 1\n\nrival 1\nConflicts: lib");
    let base = status(
        "lib 1\n\nuser 1\nDepends: lib (>= 1) | none\n\nboss 1\nEssential: yes\n\nguard 1\nProtected: yes\n\nheld 1",
    );
    let base = base.replace("Package: held\nStatus: install", "Package: held\nStatus: hold");
    let (archive, base) = (PackageIndex::unsigned(&archive, "amd64"), PackageIndex::installed(&base));
    for (web, more, expected, hint) in REFUSED {
        let requests = vec![("web".to_owned(), request(web)), ("more".to_owned(), request(more))];
        let error = rehearse(&[("main", &archive)], &base, &requests).expect_err(&format!("{web} {more}"));
        assert_eq!(vmbake_common::escape::chain(&error), *expected, "{web} {more}");
        let found = vmbake::cli::error_report::hint(&error).unwrap();
        assert!(found.starts_with(hint), "{web} {more}: {found}");
    }
}

/// A package that an earlier layer installs, and nothing depends on, is installed and then removed.
#[test]
fn packages_of_earlier_layers_are_removed() {
    let archive = index("app 1\nRecommends: data\n\ndata 1\n\nlate 1\nConflicts: data");
    let (archive, base) = (PackageIndex::unsigned(&archive, "amd64"), PackageIndex::installed(""));
    let [web, more] =
        [r#"{"packages": ["app"], "recommends": true}"#, r#"{"packages": ["late"], "remove_packages": ["data"]}"#]
            .map(request);
    let requests = vec![("web".to_owned(), web), ("more".to_owned(), more)];
    let found: BTreeMap<String, String> = rehearse(&[("main", &archive)], &base, &requests).unwrap();
    assert_eq!(words(&found), "app=1 data=1 late=1");
}

#[test]
fn a_package_is_removed_from_the_image() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("web", r#", "packages": ["tool"], "remove_packages": ["libold"]"#);
    let updated = workshop.update(&[]);
    assert!(updated.status.success(), "{}", said(&updated));
    assert!(said(&updated).contains("  removes  web.o.amd64 libold 0.9: layer web\n"), "{}", said(&updated));
    let baked = workshop.bake();
    assert!(baked.status.success(), "{}", said(&baked));
    let image = workshop.path("dist/web.o.amd64.raw");
    let status = file(&image, "/var/lib/dpkg/status");
    assert!(status.contains("Package: tool\n") && !status.contains("Package: libold\n"), "{status}");
    let sbom = std::fs::read_to_string(workshop.path("dist/web.o.amd64.spdx.json")).unwrap();
    assert!(sbom.contains("\"tool\"") && !sbom.contains("libold"), "the SBOM has only what is there");
    // A layer that removes more than the manifest was made for is not baked.
    workshop.layer("web", r#", "packages": ["tool"], "remove_packages": ["libold", "libc6"]"#);
    assert!(!workshop.bake().status.success());
}

#[test]
fn layers_that_contradict_each_other_are_named() {
    let Some(workshop) = Workshop::new() else { return };
    workshop.layer("more", r#", "remove_packages": ["libold"]"#);
    for (keys, expected) in [
        (r#""packages": ["libold"]"#, "layer more removes package libold, but layer web installs it"),
        (r#""hold": ["libold"]"#, "libold: conflicting values in `remove_packages` of the layers more and web"),
        (r#""upgrade": ["libold"]"#, "libold: conflicting values in `remove_packages` of the layers more and web"),
    ] {
        workshop.layer("web", &format!(r#", "requires": ["more"], {keys}"#));
        let text = said(&workshop.update(&[]));
        assert!(text.contains(expected), "{keys}: {text}");
    }
}

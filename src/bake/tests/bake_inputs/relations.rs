//! Relations of packages with each other and with those of the base.

use super::parts::{bake, bake_onto, base_with, control, deb, hint, package};

const PROVIDES: &str = "Provides: service (= 2)\n";

#[test]
fn packages_that_do_not_fit_are_refused() {
    let cases = [
        ("Depends: none\n", "p: depends on none, which neither the base nor a layer provides"),
        ("Depends: libc6 (>= 2.42)\n", "p: depends on libc6 (>= 2.42)"),
        ("Depends: libc6 (>= 1:0)\n", "p: depends on libc6 (>= 1:0)"),
        ("Pre-Depends: libc6, none | other (>= 1)\n", "p: depends on none | other (>= 1)"),
        ("Depends: libc-dev-virtual (>= 4)\n", "p: depends on libc-dev-virtual (>= 4)"),
        ("Depends: gone\n", "p: depends on gone"),
        ("Conflicts: libc6\n", "p: conflicts with libc6, found 2.41-12"),
        ("Breaks: libc6 (<< 3)\n", "p: conflicts with libc6 (<< 3)"),
        ("Depends: libc6:any\n", "p: depends on libc6:any"),
        ("Depends: libc6:arm64\n", "p: depends on libc6:arm64"),
        (
            "Depends: libc6, none [amd64]\n",
            "p: field Depends is not a valid list of relations: \"libc6, none [amd64]\"",
        ),
        ("Pre-Depends: libc6 (=> 1)\n", "p: field Pre-Depends is not a valid list of relations: \"libc6 (=> 1)\""),
        ("Conflicts: libc6 (>> 9), (\n", "p: field Conflicts"),
        ("Replaces: <x>\n", "p: field Replaces"),
        ("Provides: a b\n", "p: field Provides"),
        ("Depends: libc-dev-virtual (>= 2), range\nProvides: range (>= 1)\n", "p: depends on range"),
        ("Provides: service\nConflicts: service\n", "p: conflicts with service, found 1.0-1"),
        ("Provides: service\nBreaks: service (<< 3)\n", "p: conflicts with service (<< 3)"),
        ("Conflicts: q\n", "p: conflicts with q, found 1.0-1"),
    ];
    for (fields, expected) in cases {
        let parts =
            [package("a", deb(&control("p", fields), &[], &[])), package("b", deb(&control("q", PROVIDES), &[], &[]))];
        let error = bake(&parts).expect_err(fields);
        assert!(error.contains(expected), "{fields}: {error}");
    }
    for (name, expected) in [
        ("libc6", "libc6: the base has version 2.41-12, which is newer than the pinned 1.0-1"),
        ("fragile", "wall: conflicts with fragile (<< 2), found 1.0-1"),
    ] {
        let error = bake(&[package("a", deb(&control(name, ""), &[], &[]))]).expect_err(name);
        assert!(error.contains(expected), "{name}: {error}");
    }
}

/// The base has what is needed, in another version: the hint is what has to be added.
#[test]
fn another_version_of_the_base_is_named() {
    let parts = [package("a", deb(&control("p", "Depends: none, libc6 (>= 2.42)\n"), &[], &[]))];
    assert_eq!(bake(&parts).unwrap_err(), "p: depends on none, which neither the base nor a layer provides");
    let parts = [package("a", deb(&control("p", "Depends: none | libc6 (>= 2.42)\n"), &[], &[]))];
    let expected = "p: depends on none | libc6 (>= 2.42), but the base has version 2.41-12 of libc6";
    assert_eq!(bake(&parts).unwrap_err(), expected);
    let keys = "\"artifacts\": {\"libc6\": {\"type\": \"deb\"}}, \"upgrade\": [\"libc6\"]";
    let expected = format!("list libc6 in `dependencies` of the sources, and add to the layer that installs p: {keys}");
    assert_eq!(hint(&parts, "").unwrap(), expected);
}

#[test]
fn packages_that_fit_are_taken() {
    for fields in [
        "Depends: libc6 (>= 2.38), none | q\n",
        "Depends: libc6:amd64 (= 2.41-12), libc6:native\n",
        "Replaces: libc6 (<< 1)\nSuggests: nonsense [here]\n",
        "Depends: libc-dev-virtual (>= 2)\n",
        "Depends: q (= 1.0-1)\nPre-Depends: libc6\n",
        "Conflicts: gone, libc6 (<< 2)\nBreaks: q (>> 1.0-1)\n",
        "Provides: virtual\nConflicts: virtual\n",
    ] {
        let parts =
            [package("a", deb(&control("p", fields), &[], &[])), package("b", deb(&control("q", ""), &[], &[]))];
        bake(&parts).expect(fields);
    }
}

#[test]
fn a_package_comes_once() {
    let parts = ["a", "b"].map(|name| package(name, deb(&control("p", ""), &[], &[])));
    assert_eq!(bake(&parts).unwrap_err(), "p: is both artifact a and artifact b");
}

/// dpkg would upgrade or finish these, or take the new package for one that was there before.
#[test]
fn what_the_base_has_half_is_there() {
    for (state, expected) in [
        ("deinstall ok config-files", "/var/lib/dpkg/status: has p in the state config-files"),
        ("install ok unpacked", "/var/lib/dpkg/status: has p in the state unpacked"),
        ("install reinstreq half-installed", "/var/lib/dpkg/status: has p in the state half-installed"),
        ("install ok triggers-awaited", "/var/lib/dpkg/status: has p in the state triggers-awaited"),
        ("deinstall ok installed", "/var/lib/dpkg/status: has p in the state installed, to be removed"),
    ] {
        let status = format!("Package: p\nStatus: {state}\nArchitecture: amd64\nVersion: 0.9\n\n");
        let base = || base_with(&[("/var/lib/dpkg/status", &status)]);
        let error = bake_onto(base(), &[package("a", deb(&control("p", ""), &[], &[]))], "").expect_err(state);
        assert!(error.starts_with(expected), "{state}: {error}");
        let result = bake_onto(base(), &[package("a", deb(&control("q", "Conflicts: p\n"), &[], &[]))], "");
        assert_eq!(result.is_ok(), state.ends_with("config-files"), "{state}");
    }
    let gone = "Package: p\nStatus: purge ok not-installed\nArchitecture: amd64\n\n";
    let base = base_with(&[("/var/lib/dpkg/status", gone)]);
    bake_onto(base, &[package("a", deb(&control("p", ""), &[], &[]))], "").unwrap();
}

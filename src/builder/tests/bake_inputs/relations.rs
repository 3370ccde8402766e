//! Relations of packages with each other and with those of the base.

use super::parts::{bake, control, deb, package};

#[test]
fn packages_that_do_not_fit_are_refused() {
    let cases = [
        ("Depends: none\n", "p: needs none, which neither the base nor the layers have"),
        ("Depends: libc6 (>= 2.42)\n", "p: needs libc6 (>= 2.42)"),
        ("Depends: libc6 (>= 1:0)\n", "p: needs libc6 (>= 1:0)"),
        ("Pre-Depends: libc6, none | other (>= 1)\n", "p: needs none | other (>= 1)"),
        ("Depends: libc-dev-virtual (>= 4)\n", "p: needs libc-dev-virtual (>= 4)"),
        ("Depends: gone\n", "p: needs gone"),
        ("Conflicts: libc6\n", "p: conflicts with libc6, which is installed as 2.41-12"),
        ("Breaks: libc6 (<< 3)\n", "p: conflicts with libc6 (<< 3)"),
        ("Conflicts: q\n", "p: conflicts with q, which is installed as 1.0-1"),
    ];
    for (fields, expected) in cases {
        let parts =
            [package("a", deb(&control("p", fields), &[], &[])), package("b", deb(&control("q", ""), &[], &[]))];
        let error = bake(&parts).expect_err(fields);
        assert!(error.contains(expected), "{fields}: {error}");
    }
    for (name, expected) in [
        ("libc6", "libc6: already installed in version 2.41-12"),
        ("fragile", "wall: conflicts with fragile (<< 2), which is installed as 1.0-1"),
    ] {
        let error = bake(&[package("a", deb(&control(name, ""), &[], &[]))]).expect_err(name);
        assert!(error.contains(expected), "{name}: {error}");
    }
}

#[test]
fn packages_that_fit_are_taken() {
    for fields in [
        "Depends: libc6 (>= 2.38), none | q\n",
        "Depends: libc6:any (= 2.41-12)\n",
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

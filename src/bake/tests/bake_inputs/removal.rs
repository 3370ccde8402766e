//! Packages that a layer removes: refusals, the order of scripts, and what [`super::removal_judge`] cannot show without a shell.

use vmbake_common::digest::Digest;
use vmbake_disk::tree::Tree;

use super::parts::{
    BASE_STATUS, bake_layers_onto, bake_onto, base_with, control, deb, dir, file, hint_on, package, text, warnings,
};

const REMOVE: &str = r#", "remove_packages": ["pp"]"#;

const LIST: &str = "/.\n/etc\n/etc/p.conf\n/usr\n/usr/bin\n/usr/bin/p\n/usr/share\n/usr/share/p\n/usr/share/p/x\n";

/// A base with the package `pp`, which has these fields and scripts, and with more stanzas and files.
fn base(fields: &str, scripts: &[(&str, &str)], stanzas: &str, files: &[(&str, &str)]) -> Tree {
    let status = format!(
        "{BASE_STATUS}Package: pp\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n{fields}Conffiles:\n \
         /etc/p.conf 764efa883dda1e11db47671c4a3bbd9e\nDescription: d\n\n{stanzas}"
    );
    let scripts: Vec<(String, &str)> =
        scripts.iter().map(|(name, text)| (format!("/var/lib/dpkg/info/pp.{name}"), *text)).collect();
    let mut all = vec![
        ("/var/lib/dpkg/status", status.as_str()),
        ("/var/lib/dpkg/info/pp.list", LIST),
        ("/var/lib/dpkg/info/format", "1\n"),
        ("/usr/bin/p", "1"),
        ("/usr/share/p/x", "1"),
        ("/etc/p.conf", "hi\n"),
    ];
    all.extend(scripts.iter().map(|(path, text)| (path.as_str(), *text)));
    all.extend(files);
    base_with(&all)
}

fn installed(name: &str, fields: &str) -> String {
    format!(
        "Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n{fields}Description: d\n\n"
    )
}

fn has(tree: &Tree, path: &str) -> bool {
    tree.lookup(path.as_bytes()).is_some()
}

#[test]
fn a_package_goes_with_all_that_it_has() {
    let states = "Package: pp\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: wall\nArchitecture: amd64\n\n";
    let tree = bake_onto(base("", &[], "", &[("/var/lib/apt/extended_states", states)]), &[], REMOVE).unwrap();
    // No package lists `/usr/share`, and nothing else is in it.
    for path in ["/usr/bin/p", "/usr/share", "/etc/p.conf", "/var/lib/dpkg/info/pp.list"] {
        assert!(!has(&tree, path), "{path}");
    }
    assert!(has(&tree, "/usr/bin/sh"));
    let status = text(&tree, "/var/lib/dpkg/status");
    assert!(!status.contains("Package: pp\n") && status.contains("Package: wall\n"), "{status}");
    assert_eq!(text(&tree, "/var/lib/apt/extended_states"), "Package: wall\nArchitecture: amd64\n\n");
}

#[test]
fn scripts_run_in_the_order_of_dpkg() {
    let script = |name: &str| {
        format!(
            "#!/bin/sh\nset -e\nfor path in /usr/share/p/x /etc/p.conf /var/lib/dpkg/info/pp.prerm; do\n\
             if [ -e $path ]; then there=\"$there ${{path##*/}}\"; fi\ndone\n\
             echo \"{name} $*:$there\" >>/var/log/p\n"
        )
    };
    let (prerm, postrm) = (script("prerm"), script("postrm"));
    let base = base("", &[("prerm", &prerm), ("postrm", &postrm)], "", &[("/var/log/other", "")]);
    let tree = bake_onto(base, &[], REMOVE).unwrap();
    let expected = "prerm remove: x p.conf pp.prerm\npostrm remove: p.conf pp.prerm\npostrm purge:\n";
    assert_eq!(text(&tree, "/var/log/p"), expected);
    assert!(!has(&tree, "/var/lib/dpkg/info/pp.postrm"));
}

/// A package for two architectures counts twice, and the tools of another package may be gone.
#[test]
fn scripts_see_what_is_there() {
    let other = installed("pp", "Multi-Arch: same\n").replace("Architecture: amd64", "Architecture: i386");
    let postrm = "#!/bin/sh\nset -e\necho $1 $DPKG_MAINTSCRIPT_PACKAGE_REFCOUNT >>/var/log/p\n\
        if [ $1 = purge ]; then deluser --system p || echo $? >>/var/log/p; fi\n";
    let files = |more: &[(&'static str, &'static str)]| {
        [&[("/var/log/p", ""), ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\np:x:200:65534:p:/:/bin/sh\n")], more]
            .concat()
    };
    let tree = bake_onto(base("", &[("postrm", postrm)], &other, &files(&[])), &[], REMOVE).unwrap();
    assert_eq!(text(&tree, "/var/log/p"), "remove 2\npurge 2\n127\n");
    let tree =
        bake_onto(base("", &[("postrm", postrm)], "", &files(&[("/usr/sbin/deluser", "")])), &[], REMOVE).unwrap();
    assert_eq!(text(&tree, "/var/log/p"), "remove 1\npurge 1\n");
    assert!(!text(&tree, "/etc/passwd").contains("p:x:"));
}

#[test]
fn what_must_stay_is_refused() {
    let needs = installed("qq", "Depends: pp\n");
    let held = |fields: &str| base(fields, &[], "", &[]);
    let cases: Vec<(&str, Tree, &str, &str)> = vec![
        (
            "unknown",
            held(""),
            r#", "remove_packages": ["none"]"#,
            "none: layer k removes it, but it is neither in the base nor installed by an earlier layer",
        ),
        (
            "essential",
            held("Essential: yes\n"),
            REMOVE,
            "pp: layer k removes it, but it has `Essential: yes`, which forbids that",
        ),
        (
            "protected",
            held("Protected: yes\n"),
            REMOVE,
            "pp: layer k removes it, but it has `Protected: yes`, which forbids that",
        ),
        ("needed", base("", &[], &needs, &[]), REMOVE, "pp: layer k removes it, but qq depends on pp"),
        (
            "needed by what is not configured yet",
            base("", &[], &needs.replace("ok installed", "ok unpacked"), &[]),
            REMOVE,
            "pp: layer k removes it, but qq depends on pp",
        ),
        (
            "needed as what it provides",
            base("Provides: v (= 2)\n", &[], &installed("qq", "Pre-Depends: v (>= 1)\n"), &[]),
            REMOVE,
            "pp: layer k removes it, but qq depends on v (>= 1)",
        ),
        ("a script in Perl", base("", &[("prerm", "#!/usr/bin/perl\n")], "", &[]), REMOVE, "pp: its prerm (sha256 "),
        (
            "a script that fails",
            base("", &[("postrm", "#!/bin/sh\n[ \"$1\" != purge ]\n")], "", &[]),
            REMOVE,
            "pp: its postrm (sha256 ",
        ),
    ];
    for (what, base, keys, expected) in cases {
        let error = bake_onto(base, &[], keys).expect_err(what);
        assert!(error.starts_with(expected), "{what}: {error}");
    }
    let status = text(&held(""), "/var/lib/dpkg/status").replace("pp\nStatus: install", "pp\nStatus: hold");
    let error = bake_onto(base("", &[], "", &[("/var/lib/dpkg/status", &status)]), &[], REMOVE).unwrap_err();
    assert_eq!(error, "pp: layer k removes it, but the base has it on hold");
    // A provider that stays, or comes, is enough.
    let needs = installed("qq", "Depends: v\n");
    let other = installed("r", "Provides: v\n");
    bake_onto(base("Provides: v\n", &[], &[needs.as_str(), &other].concat(), &[]), &[], REMOVE).unwrap();
    let part = package("new", deb(&control("new", "Provides: v\nConflicts: pp\n"), &[], &[]));
    bake_onto(base("Provides: v\n", &[], &needs, &[]), &[part], REMOVE).unwrap();
    // Both may go together.
    let both = r#", "remove_packages": ["pp", "qq"]"#;
    let tree = bake_onto(base("Provides: v\n", &[], &needs, &[]), &[], both).unwrap();
    assert!(!text(&tree, "/var/lib/dpkg/status").contains("Package: qq\n"));
}

#[test]
fn a_conflicting_package_takes_the_place_of_a_removed_one() {
    let part = || {
        let data = [dir("./usr/"), dir("./usr/bin/"), file("./usr/bin/p", "new")];
        [package("new", deb(&control("new", "Conflicts: pp\n"), &[], &data))]
    };
    let error = bake_onto(base("", &[], "", &[]), &part(), "").unwrap_err();
    assert_eq!(error, "new: conflicts with pp, found 1");
    let expected = r#"to remove pp from the image, add to the layer: "remove_packages": ["pp"]"#;
    assert_eq!(hint_on(base("", &[], "", &[]), &part(), "").unwrap(), expected);
    let tree = bake_onto(base("", &[], "", &[]), &part(), REMOVE).unwrap();
    assert_eq!(text(&tree, "/usr/bin/p"), "new");
    assert!(!has(&tree, "/usr/share/p"));
}

#[test]
fn a_later_layer_removes_what_an_earlier_one_installs() {
    let part = || [package("pp", deb(&control("pp", ""), &[], &[dir("./opt/"), file("./opt/p", "1")]))];
    let remove: (&str, &str, &[_]) = ("late", REMOVE, &[]);
    let tree = bake_layers_onto(base_with(&[]), &[("early", "", &part()), remove]).unwrap();
    assert!(!has(&tree, "/opt") && !text(&tree, "/var/lib/dpkg/status").contains("Package: pp\n"));
    let error = bake_layers_onto(base("", &[], "", &[]), &[("early", REMOVE, &[]), ("late", "", &part())]).unwrap_err();
    assert_eq!(error, "pp: layer early removes it, but layer late installs it");
    let needs = [package("n", deb(&control("n", "Depends: pp\n"), &[], &[]))];
    let error = bake_layers_onto(base("", &[], "", &[]), &[("early", "", &needs), remove]).unwrap_err();
    assert_eq!(error, "pp: layer late removes it, but n depends on pp");
}

#[test]
fn an_entry_of_a_layer_replaces_a_script_of_the_removal() {
    let script = "#!/usr/bin/perl\n";
    let sha256 = Digest::of(script.as_bytes()).hex();
    let keys = |more: &str| {
        format!(r#"{REMOVE}, "scripts": [{{"package": "pp", "script": "prerm", "sha256": "{sha256}"{more}}}]"#)
    };
    let base = || base("", &[("prerm", script)], "", &[]);
    let expected = format!(
        r#"add to `scripts` of the layer that removes pp: {{"package": "pp", "script": "prerm", "sha256": "{sha256}", "remove": true}}"#
    );
    let found = hint_on(base(), &[], REMOVE).unwrap();
    assert!(found.starts_with(&expected), "{found}");
    assert!(bake_onto(base(), &[], &keys(r#", "upgrade": true"#)).is_err());
    bake_onto(base(), &[], &keys(r#", "remove": true"#)).unwrap();
}

#[test]
fn what_only_the_removed_needed_is_named() {
    let states = "Package: lib\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: data\nArchitecture: amd64\n\
        Auto-Installed: 1\n\nPackage: both\nArchitecture: amd64\nAuto-Installed: 1\n\nPackage: unused\nArchitecture: amd64\n\
        Auto-Installed: 1\n\n";
    let stanzas = [
        installed("both", ""),
        installed("data", ""),
        installed("lib", "Recommends: data\n"),
        installed("unused", ""),
        installed("user", "Suggests: both\n"),
    ];
    let base = base("Depends: lib, both\n", &[], &stanzas.concat(), &[("/var/lib/apt/extended_states", states)]);
    let found = warnings(base, &[], REMOVE);
    let expected =
        "data, lib: installed automatically and no longer required, but kept: `remove_packages` can list them too";
    assert_eq!(found, [expected]);
}

/// An image that was baked with the same layers is a base without the package.
#[test]
fn a_baked_image_has_it_no_more() {
    let manifest = r#"{"vmconfig": {"version": "1", "kind": "k", "os": {"name": "o", "arch": "amd64"}, "dependencies": {},
        "closure": {"layers": {"k": {"remove_packages": ["pp"]}}}}}"#;
    let record = ("/opt/podplane/share/vmconfig-installed.json", manifest);
    bake_onto(base_with(&[record]), &[], REMOVE).unwrap();
    bake_onto(base_with(&[]), &[], REMOVE).unwrap_err();
}

//! Triggers that packages activate in other packages.

use vmbake_common::digest::Digest;

use super::parts::{BASE_STATUS, Part, bake_onto, base_with, control, deb, dir, file, package, text};

const POSTINST: &str = "#!/bin/sh\n[ \"$1\" != triggered ] || echo \"$DPKG_MAINTSCRIPT_PACKAGE $2\" >>/etc/set-off\n";

fn run(parts: &[Part], keys: &str) -> Result<vmbake_disk::tree::Tree, String> {
    let status = format!(
        "{BASE_STATUS}Package: keen\nStatus: install ok installed\nArchitecture: all\nVersion: 1\nDescription: k\n\
         Homepage: h\n\nPackage: libc-bin\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n\
         Package: dbus\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\n"
    );
    let base = base_with(&[
        ("/var/lib/dpkg/status", &status),
        ("/var/lib/dpkg/info/keen.postinst", POSTINST),
        (
            "/var/lib/dpkg/triggers/File",
            "/usr/share/keen keen\n/usr/share/gone gone/noawait\n/usr/share/dbus-1/system.d dbus/noawait\n",
        ),
        ("/var/lib/dpkg/triggers/ldconfig", "libc-bin\n"),
        ("/var/lib/dpkg/triggers/update-initramfs", "keen\n"),
    ]);
    bake_onto(base, parts, keys)
}

fn one(name: &'static str, triggers: &str, paths: &[&str]) -> Part {
    let data: Vec<Vec<u8>> = paths.iter().map(|path| file(path, "")).collect();
    package(name, deb(&control(name, ""), &[("triggers", triggers)], &data))
}

#[test]
fn what_a_package_sets_off_is_processed() {
    for (triggers, paths, expected) in [
        ("", &["./usr/share/keen/file"] as &[&str], "keen /usr/share/keen\n"),
        ("", &["./usr/share/keen"], "keen /usr/share/keen\n"),
        ("activate /usr/share/keen/x\n", &[], "keen /usr/share/keen\n"),
        ("activate-noawait update-initramfs\n", &[], "keen update-initramfs\n"),
        (
            "# c\n\n activate-await  update-initramfs \n",
            &["./usr/share/keen/y"],
            "keen /usr/share/keen update-initramfs\n",
        ),
        ("", &["./usr/share/other"], ""),
    ] {
        let tree = run(&[one("p", triggers, paths), one("q", triggers, &[])], "").unwrap();
        let found = tree.lookup(b"/etc/set-off").map(|_| text(&tree, "/etc/set-off")).unwrap_or_default();
        assert_eq!(found, expected, "{triggers:?} {paths:?}: once, for both packages");
    }
    for (triggers, expected) in [
        ("interest\n", "triggers of p: line \"interest\" has no trigger name"),
        ("interest /a//b\n", "has no trigger name"),
        ("activate /a/\n", "has no trigger name"),
        ("interest a_b\n", "has no trigger name"),
        ("interest ../x\n", "has no trigger name"),
        ("interest /../../x\n", "has no trigger name"),
        ("wait x\n", "line \"wait x\" has an unknown directive"),
    ] {
        let error = run(&[one("p", triggers, &[])], "").expect_err(triggers);
        assert!(error.contains(expected), "{triggers}: {error}");
    }
    // A package that is configured in the same run is not set off by those before it.
    let script = ("postinst", POSTINST);
    let interest = ("triggers", "interest new-trigger\ninterest-noawait /usr/share/new\n");
    let keen = package("a", deb(&control("a", ""), &[script, interest], &[file("./usr/share/new/x", "")]));
    let tree = run(&[keen, one("b", "activate new-trigger\n", &[])], "").unwrap();
    assert!(tree.lookup(b"/etc/set-off").is_none());
}

#[test]
fn interests_are_recorded_and_harmless_triggers_pass() {
    let paths = ["./usr/share/keener", "./usr/share/gone/x", "./usr/share/dbus-1/system.d/p.conf"];
    let part = one("p", "activate-noawait ldconfig\nactivate none\n", &paths);
    let fields = "Multi-Arch: same\n";
    let triggers = "interest-noawait update-initramfs\ninterest /usr/share/q\ninterest q\n";
    let q = package("q", deb(&control("q", fields), &[("triggers", triggers)], &[dir("./usr/share/q/")]));
    let tree = run(&[part, q], "").unwrap();
    let of = |name: &str| text(&tree, &format!("/var/lib/dpkg/triggers/{name}"));
    assert!(of("File").ends_with("/usr/share/dbus-1/system.d dbus/noawait\n/usr/share/q q:amd64\n"), "{}", of("File"));
    assert_eq!((of("update-initramfs"), of("q")), ("keen\nq:amd64/noawait\n".into(), "q:amd64\n".into()));
    assert!(tree.lookup(b"/usr/lib/systemd/system/vmbake-configure-packages.service").is_none());
}

#[test]
fn a_layer_answers_for_a_trigger() {
    let entry = |sha256: &str, more: &str| {
        format!(
            r#", "scripts": [{{"package": "keen", "script": "postinst", "sha256": "{sha256}", "triggers": ["/usr/share/keen"]{more}}}]"#
        )
    };
    let sha256 = Digest::of(POSTINST.as_bytes()).hex();
    let part = || one("p", "", &["./usr/share/keen/x"]);
    let tree = run(&[part()], &entry(&sha256, r#", "symlinks": {"/usr/share/cache": "x"}"#)).unwrap();
    assert_eq!(super::parts::link(&tree, "/usr/share/cache"), "x");
    let other = Digest::of(b"other").hex();
    let tree = run(&[part()], &entry(&other, "")).unwrap();
    assert_eq!(text(&tree, "/etc/set-off"), "keen /usr/share/keen\n", "about another script");
    let second = one("q", "activate update-initramfs\n", &[]);
    let tree = run(&[part(), second], &entry(&sha256, r#", "skip": "no cache is used""#)).unwrap();
    assert_eq!(text(&tree, "/etc/set-off"), "keen update-initramfs\n", "about another trigger");

    let tree = run(&[part(), one("q", "", &["./usr/share/keen/y"])], &entry(&sha256, r#", "defer": true"#)).unwrap();
    let stanza = "Package: keen\nStatus: install ok triggers-pending\nArchitecture: all\nVersion: 1\nDescription: k\n\
        Triggers-Pending: /usr/share/keen\nHomepage: h\n\n";
    assert!(text(&tree, "/var/lib/dpkg/status").contains(stanza), "{}", text(&tree, "/var/lib/dpkg/status"));
    assert!(tree.lookup(b"/var/lib/vmbake/configure-packages").is_some());
}

#[test]
fn packages_that_set_off_each_other_without_end_are_named() {
    let stanza =
        |name: &str| format!("Package: {name}\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n\n");
    let script = |sets_off: &str| format!("#!/bin/sh\n[ \"$1\" != triggered ] || {sets_off}\n");
    let run = |eager: &str| {
        let base = base_with(&[
            ("/var/lib/dpkg/status", &format!("{BASE_STATUS}{}{}", stanza("keen"), stanza("eager"))),
            ("/var/lib/dpkg/info/keen.postinst", &script("dpkg-trigger --no-await wake-eager")),
            ("/var/lib/dpkg/info/eager.postinst", &script(eager)),
            ("/var/lib/dpkg/triggers/wake-keen", "keen\n"),
            ("/var/lib/dpkg/triggers/wake-eager", "eager\n"),
        ]);
        bake_onto(base, &[one("p", "activate wake-keen\n", &[])], "")
    };
    let tree = run("echo woken >>/etc/woken").unwrap();
    assert_eq!(text(&tree, "/etc/woken"), "woken\n");
    let error = run("dpkg-trigger --no-await wake-keen").expect_err("for ever");
    assert!(error.contains(": trigger cycle"), "{error}");
    assert!(error.contains("keen") || error.contains("eager"), "{error}");
}

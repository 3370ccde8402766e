//! Packages: refusals, and the tree after a valid one.

use vmbake_disk::tree::Kind;

use super::parts::{BASE_STATUS, ar, bake, compress, control, deb, dir, file, link, member, package, tar, text};

const UNIT: &str = "[Unit]\nDescription=good\n[Service]\nExecStart=/usr/bin/good\n[Install]\n\
    WantedBy=multi-user.target\nAlias=fine.service\n";

const POSTINST: &str = "#!/bin/sh\nset -e\n# Automatically added by dh_installsystemd/13.24.2\n\
    if [ \"$1\" = \"configure\" ] || [ \"$1\" = \"abort-upgrade\" ] ; then\n\
    \tdeb-systemd-helper unmask 'good.service' >/dev/null || true\n\n\
    \tif deb-systemd-helper --quiet was-enabled 'good.service'; then\n\
    \t\tdeb-systemd-helper enable 'good.service' >/dev/null || true\n\
    \telse\n\
    \t\tdeb-systemd-helper update-state 'good.service' >/dev/null || true\n\
    \tfi\nfi\n# End automatically added section\n";

#[test]
fn hostile_packages_are_refused() {
    let good = deb(&control("p", ""), &[], &[file("./usr/x", &"x".repeat(4000))]);
    let packed = |control: &str| compress("xz", &tar(&[file("./control", control)]));
    let (head, data) = (packed(&control("p", "")), compress("xz", &tar(&[file("./usr/x", "x")])));
    let (version, head, data): (&[u8], &[u8], &[u8]) = (b"2.0\n", &head, &data);
    let only = |control: &str| deb(control, &[], &[file("./usr/x", "x")]);
    let with = |name: &str, text: &str| deb(&control("p", ""), &[(name, text)], &[]);
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        (
            "order",
            ar(&[("debian-binary", version), ("data.tar.xz", data), ("control.tar.xz", head)]),
            "expected member control.tar, found data.tar.xz",
        ),
        ("no version", ar(&[("control.tar.xz", head)]), "expected member debian-binary, found control.tar.xz"),
        (
            "no data",
            ar(&[("debian-binary", version), ("control.tar.xz", head)]),
            "expected member data.tar, found the end",
        ),
        (
            "version 3.0",
            ar(&[("debian-binary", b"3.0\n"), ("control.tar.xz", head), ("data.tar.xz", data)]),
            "format version \"3.0\\n\" is not 2.0",
        ),
        (
            "compression",
            ar(&[("debian-binary", version), ("control.tar.xz", head), ("data.tar.lzo", data)]),
            "archive data.tar.lzo: unknown compression \"lzo\"",
        ),
        (
            "other compression than named",
            ar(&[("debian-binary", version), ("control.tar.xz", head), ("data.tar.gz", data)]),
            "archive data.tar.gz: cannot decompress: failed after 0 bytes",
        ),
        ("truncated", good[..good.len() - 100].to_vec(), "ends after the file's"),
        (
            "a long-name table that claims 9 GB",
            [&b"!<arch>\n"[..], format!("{:<48}{:<10}`\n", "//", 9_999_999_999_u64).as_bytes()].concat(),
            "with a short name",
        ),
        ("truncated in a header", good[..100].to_vec(), "cannot read"),
        ("no ar", b"!<arc>\n".repeat(20), "cannot read"),
        ("..", deb(&control("p", ""), &[], &[file("./../x", "x")]), "name contains `..`"),
        ("device", deb(&control("p", ""), &[], &[member(b'3', b"./dev/x", b"", b"")]), "devices and named pipes"),
        ("architecture", only(&control("p", "").replace("amd64", "arm64")), "is for arm64, but the image is for amd64"),
        ("no name", only(&control("p", "").replace("Package: p\n", "")), "control file: has no field Package"),
        ("no version field", only(&control("p", "").replace("Version: 1.0-1\n", "")), "has no field Version"),
        ("misnamed", only(&control("../x", "")), "invalid package name or version: \"../x\" \"1.0-1\""),
        ("no field", only("Package p\n"), "control file: line \"Package p\" is not a field"),
        ("own status", only(&control("p", "Status: install ok installed\n")), "field \"Status\" is duplicated or"),
        ("hidden status", only(&control("p", "Status : install ok installed\n")), "field \"Status \" is duplicated"),
        ("conffiles", only(&control("p", "conffiles:\n /etc/passwd 0\n")), "field \"conffiles\" is duplicated or"),
        ("field twice", only(&control("p", "package: q\n")), "field \"package\" is duplicated or not allowed here"),
        ("control file in a folder", with("a/b", "x"), "control file: \"a/b\" next to it is not a regular file"),
        (
            "name of two lines",
            deb(&control("p", ""), &[], &[file("./a\n/etc/passwd", "x")]),
            "name is not a single line of UTF-8",
        ),
        (
            "name in Latin-1",
            deb(&control("p", ""), &[], &[member(b'0', b"./fran\xe7ais", b"", b"x")]),
            "is contained in p, but its name is not a single line of UTF-8",
        ),
        ("no control", deb_without_control(data), "control file: is missing"),
        ("conffile of the base", with("conffiles", "/etc/taken.conf\n"), "/etc/taken.conf: exists already"),
    ];
    for (label, bytes, expected) in cases {
        let error = bake(&[package("art", bytes)]).expect_err(label);
        assert!(error.contains(expected), "{label}: {error}");
    }
}

fn deb_without_control(data: &[u8]) -> Vec<u8> {
    let control = compress("gz", &tar(&[file("./md5sums", "")]));
    ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &control), ("data.tar.xz", data)])
}

#[test]
fn scripts_that_are_not_understood_are_shown() {
    let script = "#!/bin/sh\nset -e\n  update-alternatives --config \"a b\"\n";
    for name in ["preinst", "postinst"] {
        let error = bake(&[package("art", deb(&control("p", ""), &[(name, script)], &[]))]).unwrap_err();
        let sha256 = vmbake_common::digest::Digest::of(script.as_bytes()).hex();
        let expected = format!(
            "p: its {name} (sha256 {sha256}): p.{name}:3: update-alternatives --config a b: \"--config a b\" is not supported\n    \
             update-alternatives --config \"a b\""
        );
        assert_eq!(error, expected);
    }
    // What runs only when the package goes is kept as it is.
    let tree = bake(&[package("art", deb(&control("p", ""), &[("postrm", script)], &[]))]).unwrap();
    assert_eq!(text(&tree, "/var/lib/dpkg/info/p.postrm"), script);
}

/// dpkg-deb packs a script that is also another one so, and dpkg runs both.
#[test]
fn scripts_that_are_hard_links_are_scripts() {
    let links = |target: &str, kind: u8| {
        let (own, script) = (file("./control", &control("p", "")), "#!/bin/sh\nfalse p\n");
        let members = [own, file("./postrm", script), member(kind, b"./postinst", target.as_bytes(), b"")];
        let (head, data) = (compress("gz", &tar(&members)), compress("xz", &tar(&[])));
        ar(&[("debian-binary", b"2.0\n"), ("control.tar.gz", &head), ("data.tar.xz", &data)])
    };
    let error = bake(&[package("art", links("./postrm", b'1'))]).unwrap_err();
    assert!(error.contains("p: its postinst (sha256 ") && error.ends_with("fails with status 1"), "{error}");
    let error = bake(&[package("art", links("postrm", b'2'))]).unwrap_err();
    assert!(error.contains("control file: \"postinst\" next to it is not a regular file"), "{error}");
}

#[test]
fn names_that_dpkg_leaves_out_are_left_out() {
    let info = [("list", "/etc/passwd\n"), ("own.txt", "x")];
    let tree = bake(&[package("art", deb(&control("p", ""), &info, &[file("./usr/x", "x")]))]).unwrap();
    assert_eq!(text(&tree, "/var/lib/dpkg/info/p.list"), "/usr/x\n");
    assert!(tree.lookup(b"/var/lib/dpkg/info/p.own.txt").is_none());
}

#[test]
fn a_good_package_is_installed_as_dpkg_does() {
    let fields = "Homepage: https://example.org\nMulti-Arch: same\nDepends: libc6 (>= 2.38)\nSection: libs\n\
        Installed-Size: 9\nConflicts: none\nSource: good-src (1.0)\nPriority: optional\n";
    let text_of_control = control("libgood", fields) + " More of it.\n .\n End.\n";
    let data = [
        dir("./"),
        dir("./etc/"),
        file("./etc/good.conf", "good\n"),
        dir("./usr/"),
        dir("./usr/lib/"),
        dir("./usr/lib/systemd/"),
        dir("./usr/lib/systemd/system/"),
        file("./usr/lib/systemd/system/good.service", UNIT),
        member(b'1', b"./usr/lib/same.service", b"./usr/lib/systemd/system/good.service", b""),
        member(b'2', b"./usr/lib/libgood.so", b"libgood.so.1", b""),
    ];
    let info = [
        ("conffiles", "/etc/good.conf\nremove-on-upgrade /etc/old.conf\n"),
        ("postinst", POSTINST),
        ("triggers", "activate-noawait ldconfig\n"),
    ];
    let tree = bake(&[package("art", deb(&text_of_control, &info, &data))]).unwrap();

    let stanza = "Package: libgood\nStatus: install ok installed\nPriority: optional\nSection: libs\nInstalled-Size: 9\n\
        Maintainer: M <m@example.org>\nArchitecture: amd64\nMulti-Arch: same\nSource: good-src (1.0)\nVersion: 1.0-1\n\
        Depends: libc6 (>= 2.38)\nConflicts: none\nConffiles:\n /etc/good.conf d7f986677d9f563bd1794b09d82206a3\n \
        /etc/old.conf newconffile remove-on-upgrade\n\
        Description: d\n More of it.\n .\n End.\nHomepage: https://example.org\n\n";
    let old: Vec<&str> = BASE_STATUS.split_inclusive("\n\n").collect();
    let expected = [old[1], old[0], stanza, old[2]].concat();
    assert_eq!(text(&tree, "/var/lib/dpkg/status"), expected, "sorted by name");
    assert_eq!(text(&tree, "/var/lib/dpkg/status-old"), BASE_STATUS);

    let list = "/.\n/etc\n/etc/good.conf\n/usr\n/usr/lib\n/usr/lib/systemd\n/usr/lib/systemd/system\n\
        /usr/lib/systemd/system/good.service\n/usr/lib/same.service\n/usr/lib/libgood.so\n";
    let stem = "/var/lib/dpkg/info/libgood:amd64";
    assert_eq!(text(&tree, &format!("{stem}.list")), list);
    for (name, content) in info {
        let path = format!("{stem}.{name}");
        assert_eq!(text(&tree, &path), content);
        let mode = tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta.mode;
        assert_eq!(mode, if name == "postinst" { 0o755 } else { 0o644 }, "{name}");
    }
    assert!(tree.lookup(format!("{stem}.control").as_bytes()).is_none());

    let unit = "/usr/lib/systemd/system/good.service";
    let (wants, alias) =
        ("/etc/systemd/system/multi-user.target.wants/good.service", "/etc/systemd/system/fine.service");
    assert_eq!((link(&tree, wants).as_str(), link(&tree, alias).as_str()), (unit, unit));
    assert_eq!(link(&tree, "/usr/lib/libgood.so"), "libgood.so.1");
    assert_eq!(tree.lookup(b"/usr/lib/same.service"), tree.lookup(unit.as_bytes()), "one inode, two names");
    let enabled = "/var/lib/systemd/deb-systemd-helper-enabled";
    assert_eq!(text(&tree, &format!("{enabled}/good.service.dsh-also")), format!("{alias}\n{wants}\n"));
    assert_eq!(text(&tree, &format!("{enabled}/multi-user.target.wants/good.service")), "");
    assert!(matches!(tree.inode(tree.lookup(b"/lib").unwrap()).kind, Kind::Symlink(_)), "the base's link stays");
}

#[test]
fn a_conffile_that_one_package_gave_up_is_anothers() {
    let [one, other] = ["a-common", "b"].map(|name| control(name, ""));
    let gave_up = [("conffiles", "remove-on-upgrade /etc/b.rc\n")];
    let has = [("conffiles", "/etc/b.rc\n")];
    let data = [dir("./"), dir("./etc/"), file("./etc/b.rc", "b\n")];
    let parts = [package("a-common", deb(&one, &gave_up, &[dir("./")])), package("b", deb(&other, &has, &data))];
    let tree = bake(&parts).unwrap();
    assert_eq!(text(&tree, "/etc/b.rc"), "b\n");
    let status = text(&tree, "/var/lib/dpkg/status");
    assert!(status.contains("Conffiles:\n /etc/b.rc newconffile remove-on-upgrade\n"), "{status}");
    assert!(status.contains("Conffiles:\n /etc/b.rc 3b5d5c3712955042212316173ccf37be\n"), "{status}");
    // As long as it is the other's, it stays refused.
    let parts = [package("a-common", deb(&one, &has, &data)), package("b", deb(&other, &has, &data))];
    assert!(bake(&parts).unwrap_err().contains("/etc/b.rc"), "two packages have it");
}

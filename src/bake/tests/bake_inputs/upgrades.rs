//! Upgrades of packages of the base: refusals, and results of units, scripts and triggers. [`super::judge`] compares
//! the rest with dpkg.

use vmbake_common::digest::Digest;
use vmbake_disk::tree::{Kind, Tree};

use super::parts::{
    BASE_STATUS, Part, bake_onto, base_with, control, deb, dir, file, link, member, owned, package, text,
};

/// A package in two versions; none where it is not in the base, or not in the manifest.
pub struct Versions {
    pub name: &'static str,
    pub old: Option<Vec<u8>>,
    pub new: Option<Vec<u8>>,
}

/// Metadata, control files and members of one version.
struct Version<'a>(&'a str, &'a [(&'a str, &'a str)], &'a [Vec<u8>]);

fn build(name: &str, version: &str, Version(fields, info, data): &Version<'_>) -> Vec<u8> {
    let control = control(name, fields).replace("Version: 1.0-1", &format!("Version: {version}"));
    let control =
        if fields.contains("Architecture") { control.replacen("Architecture: amd64\n", "", 1) } else { control };
    // dpkg removes a package without any remaining file.
    let own = file(&format!("./usr/share/own-{name}"), version);
    deb(&control, info, &[vec![dir("./"), dir("./usr/"), dir("./usr/share/"), own], data.to_vec()].concat())
}

fn pair(name: &'static str, old: Option<Version<'_>>, new: Option<Version<'_>>) -> Versions {
    let built = |version: &str, one: Option<Version<'_>>| one.map(|one| build(name, version, &one));
    Versions { name, old: built("1.0-1", old), new: built("2.0-1", new) }
}

/// All that an upgrade may meet, in the order of the names, as a bake installs them.
pub fn versions() -> Vec<Versions> {
    let conf = |names: &[&str], text: &str| -> Vec<Vec<u8>> {
        let files = names.iter().map(|name| file(&format!("./etc/conf/{name}"), &format!("{name} {text}\n")));
        [dir("./etc/"), dir("./etc/conf/")].into_iter().chain(files).collect()
    };
    let list = |names: &[&str]| names.iter().map(|name| format!("/etc/conf/{name}\n")).collect::<String>();
    let (same, old, new) = (
        ["same", "edited", "deleted"],
        ["newer", "both", "equal", "missing", "obsolete", "went"],
        ["newer", "both", "equal", "missing", "fresh", "taken"],
    );
    let conf_old = [conf(&same, "1"), conf(&old, "1")].concat();
    let conf_new = [conf(&same, "1"), conf(&new, "2")].concat();
    let (list_old, list_new) = (list(&[same.as_slice(), &old].concat()), list(&[same.as_slice(), &new].concat()));
    let moved =
        [dir("./usr/share/giver/"), file("./usr/share/giver/moved", "1\n"), file("./usr/share/giver/stays", "1\n")];
    let given = [dir("./usr/share/giver/"), file("./usr/share/giver/stays", "2\n")];
    let taken = [dir("./usr/share/giver/"), file("./usr/share/giver/moved", "2\n")];
    let (files_old, files_new) = (files_old(), files_new());
    // Only a package that has the link at the top, too, keeps dpkg from removing it.
    let shared = [dir("./lib/"), dir("./usr/share/files/"), dir("./usr/share/files/shared/")];
    let plain = [dir("./usr/share/doc/"), file("./usr/share/doc/x", "x\n")];
    let triggers = |path: &str| format!("interest-noawait /usr/share/{path}\ninterest named-{path}\n");
    let (before, after) = (triggers("a"), triggers("b"));
    vec![
        pair("arch", Some(Version("Architecture: all\n", &[], &moved[..0])), Some(Version("", &[], &moved[..0]))),
        pair(
            "conf",
            Some(Version("", &[("conffiles", &list_old)], &conf_old)),
            Some(Version("", &[("conffiles", &list_new)], &conf_new)),
        ),
        pair(
            "files",
            Some(Version("Section: x\n", &[("shlibs", "x\n"), ("md5sums", "0  x\n")], &files_old)),
            Some(Version("Priority: extra\n", &[("symbols", "y\n")], &files_new)),
        ),
        pair("flip", Some(Version("", &[("md5sums", "")], &plain)), Some(Version("Multi-Arch: same\n", &[], &plain))),
        pair("giver", Some(Version("", &[], &moved)), Some(Version("", &[], &given))),
        pair("other", Some(Version("", &[], &shared)), None),
        pair("taker", None, Some(Version("Replaces: giver (<< 2)\n", &[], &taken))),
        pair(
            "trigger",
            Some(Version("", &[("triggers", &before)], &[])),
            Some(Version("", &[("triggers", &after)], &[])),
        ),
    ]
}

fn files_old() -> Vec<Vec<u8>> {
    let at = |name: &str| format!("./usr/share/files/{name}");
    let mut data: Vec<Vec<u8>> = ["", "sub/", "sub/deep/", "full/", "shared/", "closed/", "elsewhere/"]
        .iter()
        .map(|name| dir(&at(name)))
        .collect();
    data.extend(
        ["gone", "kept", "sub/deep/x", "full/x", "turned", "closed/x", "elsewhere/x", "first", "becomes-link"]
            .iter()
            .map(|name| file(&at(name), "1\n")),
    );
    data.push(member(b'1', at("second").as_bytes(), at("first").as_bytes(), b""));
    data.push(member(b'1', at("third").as_bytes(), at("first").as_bytes(), b""));
    data.push(member(b'2', at("link").as_bytes(), b"kept", b""));
    data.push(member(b'2', at("becomes-file").as_bytes(), b"kept", b""));
    data.push(member(b'2', at("link-gone").as_bytes(), b"kept", b""));
    data.extend([
        dir("./lib/"),
        file("./lib/alias", "1\n"),
        dir("./opt/"),
        dir("./opt/files/"),
        file("./opt/files/x", ""),
    ]);
    data
}

fn files_new() -> Vec<Vec<u8>> {
    let at = |name: &str| format!("./usr/share/files/{name}");
    let mut data: Vec<Vec<u8>> = ["", "turned/", "closed/", "elsewhere/"].iter().map(|name| dir(&at(name))).collect();
    data.extend(
        ["kept", "turned/x", "closed/y", "elsewhere/y", "first", "becomes-file"]
            .iter()
            .map(|name| file(&at(name), "2\n")),
    );
    data.push(member(b'1', at("second").as_bytes(), at("first").as_bytes(), b""));
    data.push(member(b'2', at("link").as_bytes(), b"first", b""));
    data.push(member(b'2', at("becomes-link").as_bytes(), b"kept", b""));
    data.push(owned(file(&at("mode"), "2\n"), 0o750, 0, 0));
    data.extend([dir("./usr/lib/"), file("./usr/lib/alias", "2\n")]);
    data
}

const UPGRADE: &str = r#", "upgrade": ["art"]"#;

/// Bakes version 2 of `p` on a base with version 1, which has the scripts `before`; `files` are more of the base.
fn upgrade(
    before: &[(&str, &str)],
    after: &[(&str, &str)],
    files: &[(&str, &str)],
    keys: &str,
) -> Result<Tree, String> {
    let status = format!(
        "{BASE_STATUS}Package: p\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\nConffiles:\n \
         /etc/p.conf 764efa883dda1e11db47671c4a3bbd9e\nDescription: d\n\n"
    );
    let list = "/.\n/usr\n/usr/bin\n/usr/bin/p\n/usr/bin/old\n/etc\n/etc/p.conf\n";
    let scripts: Vec<(String, &str)> =
        before.iter().map(|(name, text)| (format!("/var/lib/dpkg/info/p.{name}"), *text)).collect();
    let mut all = vec![
        ("/var/lib/dpkg/status", status.as_str()),
        ("/var/lib/dpkg/info/p.list", list),
        ("/usr/bin/p", "1"),
        ("/usr/bin/old", "1"),
        ("/etc/p.conf", "hi\n"),
        ("/usr/lib/systemd/system/p.service", "[Install]\nWantedBy=multi-user.target\n"),
    ];
    all.extend(scripts.iter().map(|(path, text)| (path.as_str(), *text)));
    all.extend(files);
    let control = control("p", "").replace("1.0-1", "2.0-1");
    let data = [file("./usr/bin/p", "2"), file("./usr/share/new", "2")];
    bake_onto(base_with(&all), &[package("art", deb(&control, after, &data))], &format!("{UPGRADE}{keys}"))
}

#[test]
fn scripts_are_read_as_in_an_upgrade() {
    let only =
        |action: &str, line: &str| format!("#!/bin/sh\nset -e\nif [ \"$1\" = \"{action}\" ]; then\n{line}\nfi\n");
    let (removal, install) = (only("remove", "rm -rf /srv"), only("install", "adduser p"));
    let fresh =
        "#!/bin/sh\nset -e\ncase \"$1\" in\nconfigure)\n  if [ -z \"$2\" ]; then\n    adduser p\n  fi\n  ;;\nesac\n";
    let both = [("prerm", removal.as_str()), ("postrm", removal.as_str())];
    let tree = upgrade(&both, &[("preinst", &install), ("postinst", fresh)], &[], "").unwrap();
    assert_eq!(text(&tree, "/usr/bin/p"), "2");
    assert!(tree.lookup(b"/usr/bin/old").is_none() && tree.lookup(b"/var/lib/dpkg/info/p.prerm").is_none());
    assert_eq!(text(&tree, "/var/lib/dpkg/info/p.list"), "/usr/bin/p\n/usr/share/new\n/etc/p.conf\n");
    let stanza = "Package: p\nStatus: install ok installed\nMaintainer: M <m@example.org>\nArchitecture: amd64\nVersion: 2.0-1\n\
        Conffiles:\n /etc/p.conf 764efa883dda1e11db47671c4a3bbd9e obsolete\nDescription: d\n";
    assert!(text(&tree, "/var/lib/dpkg/status").contains(stanza), "{}", text(&tree, "/var/lib/dpkg/status"));

    let acts = only("upgrade", "update-alternatives --config");
    for (before, after) in [
        (Some(("prerm", acts.as_str())), None),
        (Some(("postrm", acts.as_str())), None),
        (None, Some(("preinst", acts.as_str()))),
        (None, Some(("postinst", "#!/bin/sh\nif [ -n \"$2\" ]; then\nupdate-alternatives --config\nfi\n"))),
    ] {
        let error = upgrade(before.as_slice(), after.as_slice(), &[], "").unwrap_err();
        let (name, text) = before.or(after).unwrap();
        let sha256 = Digest::of(text.as_bytes()).hex();
        let expected = format!("p: its {name} (sha256 {sha256}): p.{name}:");
        assert!(
            error.starts_with(&expected) && error.ends_with("is not supported\n    update-alternatives --config"),
            "{error}"
        );
        let entry = |more: &str| {
            format!(
                r#", "scripts": [{{"package": "p", "script": "{name}", "sha256": "{sha256}", "symlinks": {{"/opt/l": "x"}}{more}}}]"#
            )
        };
        let tree = upgrade(before.as_slice(), after.as_slice(), &[], &entry(r#", "upgrade": true"#)).unwrap();
        assert_eq!(link(&tree, "/opt/l"), "x");
        if after.is_some() {
            // A choice for a new installation applies to nothing else.
            let error = upgrade(before.as_slice(), after.as_slice(), &[], &entry("")).unwrap_err();
            assert!(error.starts_with(&expected), "{error}");
        }
    }
}

const POSTINST: &str = "#!/bin/sh\nset -e\n# Automatically added by dh_installsystemd/13\n\
    if [ \"$1\" = \"configure\" ] || [ \"$1\" = \"abort-upgrade\" ] ; then\n\
    if deb-systemd-helper --quiet was-enabled 'p.service'; then\ndeb-systemd-helper enable 'p.service' >/dev/null || true\n\
    else\ndeb-systemd-helper update-state 'p.service' >/dev/null || true\nfi\nfi\n# End automatically added section\n";

#[test]
fn a_unit_that_somebody_disabled_stays_disabled() {
    let record = "/var/lib/systemd/deb-systemd-helper-enabled/p.service.dsh-also";
    let wants = "/etc/systemd/system/multi-user.target.wants/p.service";
    let files = [(record, "/etc/systemd/system/multi-user.target.wants/p.service\n")];
    let tree = upgrade(&[], &[("postinst", POSTINST)], &files, "").unwrap();
    assert!(tree.lookup(wants.as_bytes()).is_none());
    assert_eq!(text(&tree, record), format!("{wants}\n"));
    let tree = upgrade(&[], &[("postinst", POSTINST)], &[], "").unwrap();
    assert!(tree.lookup(wants.as_bytes()).is_some(), "it is not recorded, and so new");
    let gated = POSTINST
        .replace(
            "if deb-systemd-helper --quiet",
            "if deb-systemd-helper debian-installed 'p.service'; then\nif deb-systemd-helper --quiet",
        )
        .replace("\nfi\n# End", "\nfi\nfi\n# End");
    let tree = upgrade(&[], &[("postinst", &gated)], &[], "").unwrap();
    assert!(tree.lookup(wants.as_bytes()).is_none() && tree.lookup(record.as_bytes()).is_none(), "new, and gated");
}

#[test]
fn a_postinst_that_waits_learns_the_old_version() {
    let script = "#!/bin/sh\nunknown\n";
    let sha256 = Digest::of(script.as_bytes()).hex();
    let keys = format!(
        r#", "scripts": [{{"package": "p", "script": "postinst", "sha256": "{sha256}", "upgrade": true, "defer": true}}]"#
    );
    let tree = upgrade(&[], &[("postinst", script)], &[], &keys).unwrap();
    let status = text(&tree, "/var/lib/dpkg/status");
    let stanza = status.split("\n\n").find(|stanza| stanza.contains("Package: p\n")).unwrap();
    assert!(
        stanza.contains("Status: install ok unpacked\n") && stanza.contains("Version: 2.0-1\nConfig-Version: 1.0-1\n")
    );
}

/// As the scripts of Debian's editors and pagers: what a new installation needs an entry for is certain in an upgrade.
#[test]
fn alternatives_outside_of_sections_are_installed() {
    let postinst = "#!/bin/sh\nset -e\ncase \"$1\" in\n  configure)\n    update-alternatives --install /usr/bin/tool tool \\\n      \
        /usr/bin/p 40\n  ;;\n  abort-upgrade)\n  ;;\n  *)\n    echo \"called with \\`$1'\" >&2\n    exit 1\n  ;;\nesac\n";
    let prerm =
        "#!/bin/sh\nset -e\nif [ \"$1\" != \"upgrade\" ]; then\n  update-alternatives --remove tool /usr/bin/p\nfi\n";
    let tree = upgrade(&[("prerm", prerm)], &[("postinst", postinst)], &[], "").unwrap();
    assert_eq!(link(&tree, "/etc/alternatives/tool"), "/usr/bin/p");
    let tree = upgrade(&[], &[("postinst", &postinst.replace("configure", "other"))], &[], "").unwrap_err();
    assert!(tree.ends_with("fails with status 1\ncalled with `configure'"), "{tree}");
}

/// The relations of remaining packages of the base, and their previous dependencies.
#[test]
fn other_packages_keep_what_they_need() {
    let run = |needs: &str, fields: &str| {
        let status = format!(
            "Package: p\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\nProvides: abi-1\n\n\
             Package: q\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n{needs}\n\n"
        );
        let base = base_with(&[("/var/lib/dpkg/status", &status), ("/var/lib/dpkg/info/p.list", "/.\n")]);
        let control = control("p", fields).replace("Version: 1.0-1", "Version: 2.0-1");
        bake_onto(base, &[package("art", deb(&control, &[], &[]))], UPGRADE)
    };
    for (needs, fields, expected) in [
        ("Depends: p (<< 2)", "", "q: depends on p (<< 2), satisfied only by the version being replaced"),
        ("Pre-Depends: none | p (= 1.0-1)", "", "q: depends on none | p (= 1.0-1), satisfied only"),
        ("Depends: abi-1", "", "q: depends on abi-1, satisfied only"),
        ("Breaks: p (>= 2)", "", "q: conflicts with p (>= 2), found 2.0-1"),
        ("Priority: x", "Breaks: q (<< 2)\n", "p: conflicts with q (<< 2), found 1"),
    ] {
        let error = run(needs, fields).expect_err(needs);
        assert!(error.starts_with(expected), "{needs}: {error}");
    }
    for (needs, fields) in [
        ("Depends: p", ""),
        ("Depends: abi-1", "Provides: abi-1\n"),
        // Broken before.
        ("Depends: p (>= 3), nothing", ""),
        ("Breaks: p (<< 2)", ""),
    ] {
        run(needs, fields).expect(needs);
    }
}

type Files = Vec<(&'static str, &'static str)>;

#[test]
fn what_an_upgrade_cannot_replace_is_refused() {
    let cases: [(Files, Files, &str); 5] = [
        (vec![("/usr/bin/p/x", "")], vec![], "usr/bin/p: art needs a regular file, found a directory"),
        (
            vec![("/usr/share/new/x", "")],
            vec![("conffiles", "/usr/share/new\n")],
            "/usr/share/new: is a directory in the",
        ),
        (vec![], vec![("conffiles", "remove-on-upgrade /etc/p.conf\n")], "/etc/p.conf: is a conffile that p removes"),
        (vec![("/etc/x", "")], vec![("conffiles", "/etc/x\n")], "/etc/x: is listed as a conffile of p, but missing"),
        (
            vec![("/var/lib/dpkg/info/p.triggers", "nonsense\n")],
            vec![],
            "triggers of p: line \"nonsense\" has an unknown",
        ),
    ];
    for (files, after, expected) in cases {
        let error = upgrade_of(&files, &after).expect_err(expected);
        assert!(error.starts_with(expected), "{error}");
    }
}

/// dpkg compares with what the other package installed: until that is done here, nothing old may stay silently.
#[test]
fn conffiles_that_move_between_packages_are_refused() {
    let status = "Package: p\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\n\n\
        Package: q\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\nConffiles:\n \
        /etc/q.conf 764efa883dda1e11db47671c4a3bbd9e obsolete\n\n";
    let bake = |conffile: &str| {
        let control = control("p", "Replaces: q (<< 2)\n").replace("1.0-1", "2.0-1");
        let data = [dir("./etc/"), file(&format!("./etc/{conffile}"), "new\n")];
        let part = package("art", deb(&control, &[("conffiles", &format!("/etc/{conffile}\n"))], &data));
        let base =
            [("/var/lib/dpkg/status", status), ("/var/lib/dpkg/info/p.list", "/.\n/usr\n"), ("/etc/q.conf", "hi\n")];
        bake_onto(base_with(&base), &[part], UPGRADE)
    };
    let error = bake("q.conf").unwrap_err();
    assert!(error.starts_with("/etc/q.conf: is a conffile of p, but belongs to q in the base"), "{error}");
    assert_eq!(text(&bake("p.conf").unwrap(), "/etc/p.conf"), "new\n");
}

#[test]
fn hard_links_of_conffiles_are_refused() {
    let status = "Package: p\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\n\n";
    let base = [("/var/lib/dpkg/status", status), ("/var/lib/dpkg/info/p.list", "/.\n/usr\n")];
    let control = control("p", "").replace("1.0-1", "2.0-1");
    let data = [dir("./etc/"), file("./etc/p.conf", "new\n"), member(b'1', b"./etc/link", b"./etc/p.conf", b"")];
    for conffile in ["p.conf", "link"] {
        let part = package("art", deb(&control, &[("conffiles", &format!("/etc/{conffile}\n"))], &data));
        let error = bake_onto(base_with(&base), &[part], UPGRADE).unwrap_err();
        assert!(error.starts_with("/etc/link: is a hard link to a conffile"), "{error}");
    }
}

fn upgrade_of(files: &[(&str, &str)], after: &[(&str, &str)]) -> Result<Tree, String> {
    let status = "Package: p\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\n\n";
    let mut all =
        vec![("/var/lib/dpkg/status", status), ("/var/lib/dpkg/info/p.list", "/usr\n"), ("/etc/p.conf", "hi\n")];
    all.extend(files);
    let control = control("p", "").replace("1.0-1", "2.0-1");
    let data = [file("./usr/bin/p", "2"), file("./usr/share/new", "2")];
    bake_onto(base_with(&all), &[package("art", deb(&control, after, &data))], UPGRADE)
}

/// Nothing of the base is written through, and what the layer does not list in `setuid` is refused in upgrades too.
#[test]
fn privileges_of_a_newer_version_are_listed() {
    let status = "Package: p\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1.0-1\n\n";
    let base = || {
        base_with(&[
            ("/var/lib/dpkg/status", status),
            ("/var/lib/dpkg/info/p.list", "/usr/bin/p\n"),
            ("/usr/bin/p", "1"),
        ])
    };
    let control = control("p", "").replace("1.0-1", "2.0-1");
    let part = || -> Part { package("art", deb(&control, &[], &[owned(file("./usr/bin/p", "2"), 0o4755, 0, 0)])) };
    let error = bake_onto(base(), &[part()], UPGRADE).unwrap_err();
    assert!(error.starts_with("/usr/bin/p: artifact art contains it with mode 4755"), "{error}");
    let tree = bake_onto(base(), &[part()], &format!(r#"{UPGRADE}, "setuid": ["/usr/bin/p"]"#)).unwrap();
    let inode = tree.inode(tree.lookup(b"/usr/bin/p").unwrap());
    assert!(inode.meta.mode == 0o4755 && matches!(inode.kind, Kind::File(_)));
}

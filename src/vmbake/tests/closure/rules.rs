//! Dependency resolution: small archives, compared with apt.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use vmbake_manifest::package_request::PackageRequest;
use vmbake_pin::closure::rehearse;
use vmbake_proof::apt::PackageIndex;

use crate::tools::have;

/// The stanzas of an index: `name version`, then lines of fields.
pub(super) fn index(packages: &str) -> String {
    let stanza = |text: &str| {
        let mut lines = text.lines();
        let (name, version) = lines.next().unwrap().split_once(' ').unwrap();
        let fields: String = lines.map(|line| format!("{}\n", line.trim())).collect();
        let architecture = if fields.contains("Architecture:") { "" } else { "Architecture: amd64\n" };
        let digest = format!("{:064}", 0);
        format!(
            "Package: {name}\nVersion: {version}\n{architecture}{fields}Filename: pool/{name}_{version}.deb\nSize: 4\nSHA256: {digest}\n"
        )
    };
    packages
        .split("\n\n")
        .filter(|text| !text.is_empty())
        .map(|text| stanza(text.trim()))
        .collect::<Vec<_>>()
        .join("\n")
}

/// The record of a base with such packages.
pub(super) fn status(packages: &str) -> String {
    let installed = index(packages).replace("\nVersion: ", "\nStatus: install ok installed\nVersion: ");
    let is_kept = |line: &&str| !["Filename:", "Size:", "SHA256:"].iter().any(|start| line.starts_with(start));
    installed.lines().filter(is_kept).map(|line| format!("{line}\n")).collect()
}

pub(super) fn choose(archive: &str, base: &str, request: PackageRequest) -> Result<BTreeMap<String, String>, String> {
    let (archive, base) = (PackageIndex::unsigned(&index(archive), "amd64"), PackageIndex::installed(&status(base)));
    let requests = vec![("web".to_owned(), request)];
    rehearse(&[("main", &archive)], &base, &requests).map_err(|error| vmbake_common::escape::chain(&error))
}

pub(super) fn request(json: &str) -> PackageRequest {
    serde_json::from_str(json).unwrap()
}

/// What apt would install; nothing where it would remove another package than the named ones, or finds no way.
pub(super) fn apt(
    archive: &str,
    base: &str,
    packages: &[&str],
    removed: &[&str],
    recommends: bool,
) -> Option<BTreeMap<String, String>> {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["lists/partial", "cache/archives/partial", "etc/preferences.d", "repo"] {
        fs::create_dir_all(dir.path().join(folder)).unwrap();
    }
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("repo/Packages"), index(archive)).unwrap();
    fs::write(path("status"), status(base)).unwrap();
    fs::write(path("etc/sources.list"), format!("deb [trusted=yes] copy:{} ./\n", path("repo"))).unwrap();
    let options = [
        ("Dir::Etc", path("etc")),
        ("Dir::Etc::sourceparts", "-".to_owned()),
        ("Dir::State", dir.path().to_str().unwrap().to_owned()),
        ("Dir::State::lists", path("lists")),
        ("Dir::State::status", path("status")),
        ("Dir::Cache", path("cache")),
        ("APT::Architecture", "amd64".to_owned()),
        ("APT::Architectures", "amd64".to_owned()),
        ("APT::Install-Recommends", recommends.to_string()),
        ("APT::Sandbox::User", "root".to_owned()),
        ("Debug::NoLocking", "1".to_owned()),
    ];
    let apt = |args: &[&str]| {
        let mut command = Command::new("apt-get");
        options.iter().for_each(|(name, value)| {
            command.arg("-o").arg(format!("{name}={value}"));
        });
        command.args(args).env("LC_ALL", "C.UTF-8").current_dir(dir.path()).output().unwrap()
    };
    let updated = apt(&["update"]);
    assert!(updated.status.success(), "{}", String::from_utf8_lossy(&updated.stderr));
    let minus: Vec<String> = removed.iter().map(|name| format!("{name}-")).collect();
    let minus: Vec<&str> = minus.iter().map(String::as_str).collect();
    let output = apt(&[&["install", "-s", "-y"], packages, &minus].concat());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut goes = text.lines().filter_map(|line| line.strip_prefix("Remv ")?.split(' ').next());
    if !output.status.success() || goes.any(|name| !removed.contains(&name)) {
        return None;
    }
    let install = |line: &str| {
        let (name, rest) = line.strip_prefix("Inst ")?.split_once(' ')?;
        let version = rest.split_once('(')?.1.split(' ').next()?;
        Some((name.to_owned(), version.to_owned()))
    };
    Some(text.lines().filter_map(install).collect())
}

/// Whether apt upgrades packages of the same source together, as it does since 2.5.2.
pub(super) fn is_recent() -> bool {
    let output = Command::new("apt-get").arg("--version").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let version = text.split_whitespace().nth(1).unwrap_or_default();
    let is_recent =
        Command::new("dpkg").args(["--compare-versions", version, "ge", "2.5.2"]).status().unwrap().success();
    if !is_recent {
        eprintln!("not compared with apt-get {version}: needs 2.5.2");
    }
    is_recent
}

/// What it is about, the archive, the base, what is asked for, and what is chosen.
const CASES: &[(&str, &str, &str, &[&str], &str)] = &[
    ("a chain", "a 1\nDepends: b\n\nb 1\nPre-Depends: c (>= 1)\n\nc 1\n\nc 2\n\nd 1", "", &["a"], "a=1 b=1 c=2"),
    ("what is installed", "a 1\nDepends: b (>= 1), c\n\nb 2\n\nc 1", "b 1", &["a"], "a=1 c=1"),
    ("the first alternative", "a 1\nDepends: x | y\n\nx 1\n\ny 1", "", &["a"], "a=1 x=1"),
    ("an installed alternative", "a 1\nDepends: x | y\n\nx 1\n\ny 1", "y 1", &["a"], "a=1"),
    ("an alternative that is asked for", "a 1\nDepends: x | y\n\nx 1\n\ny 1", "", &["a", "y"], "a=1 y=1"),
    ("an alternative that can be had", "a 1\nDepends: x | y\n\nx 1\nDepends: none\n\ny 1", "", &["a"], "a=1 y=1"),
    (
        "an alternative of the base that is too old",
        "a 1\nDepends: x | y (>= 2)\n\nx 1\n\ny 2",
        "y 1",
        &["a"],
        "a=1 y=2",
    ),
    ("a provider", "a 1\nDepends: v\n\nx 1\nProvides: v", "", &["a"], "a=1 x=1"),
    ("a real package before a provider", "a 1\nDepends: v\n\nw 1\nProvides: v\n\nv 1", "", &["a"], "a=1 v=1"),
    (
        "versions of providers",
        "a 1\nDepends: v (>= 2)\n\nx 1\nProvides: v\n\ny 1\nProvides: v (= 1)\n\nz 1\nProvides: v (= 2)",
        "",
        &["a"],
        "a=1 z=1",
    ),
    (
        "providers by priority",
        "a 1\nDepends: v\n\nx 1\nProvides: v\nPriority: optional\n\ny 1\nProvides: v\nPriority: standard\n\nz 1\nProvides: v\nPriority: optional",
        "",
        &["a"],
        "a=1 y=1",
    ),
    (
        "the provider that is met last",
        "a 1\nDepends: v\nSuggests: z\n\nx 1\nProvides: v\n\ny 1\nProvides: v\n\nz 1\nProvides: v",
        "",
        &["a"],
        "a=1 y=1",
    ),
    (
        "any architecture",
        "a 1\nDepends: x:any, y:any | z\n\nx 1\nMulti-Arch: allowed\n\ny 1\n\nz 1\nArchitecture: all",
        "",
        &["a"],
        "a=1 x=1 z=1",
    ),
    ("another architecture", "a 1\nDepends: x:arm64 | y\n\nx 1\n\ny 1", "", &["a"], "a=1 y=1"),
    ("an upgrade that is needed", "a 1\nDepends: x (>= 2)\n\nx 2\nDepends: y\n\ny 1", "x 1", &["a"], "a=1 x=2 y=1"),
    (
        "an upgrade that takes another one along",
        "a 1\nDepends: x (>= 2)\n\nx 2\n\nx-data 2\nDepends: x (= 2)",
        "x 1\n\nx-data 1\nDepends: x (= 1)",
        &["a"],
        "a=1 x=2 x-data=2",
    ),
    (
        "what an upgrade takes from an alternative that is not the only one",
        "a 1\nDepends: x (>= 2)\n\nx 2\n\nx-user 2",
        "x 1\n\ny 1\n\nx-user 1\nDepends: x (= 1) | y",
        &["a"],
        "a=1 x=2 x-user=2",
    ),
    (
        "what the base has of the same source",
        "a 1\nDepends: x-new\n\nx-new 2\nSource: x\n\nx-old 2\nSource: x\nDepends: y\n\nx-older 2\nSource: x (1)\n\ny 1",
        "x-old 1\nSource: x\n\nx-older 1\nSource: x",
        &["a"],
        "a=1 x-new=2 x-old=2 y=1",
    ),
    (
        "what the base has of the same source, and cannot be upgraded",
        "a 1\n\na-old 1\nSource: a\nDepends: none",
        "a-old 0\nSource: a",
        &["a"],
        "a=1",
    ),
    ("an upgrade that Breaks asks for", "a 1\nBreaks: x (<< 2)\n\nx 2", "x 1", &["a"], "a=1 x=2"),
    ("a conflict with the base", "a 1\nConflicts: x\n\nx 1", "x 1", &["a"], "-"),
    ("a conflict with what is provided", "a 1\nConflicts: v\nProvides: v", "x 1\nProvides: v", &["a"], "-"),
    ("a conflict with itself", "a 1\nConflicts: v\nProvides: v", "", &["a"], "a=1"),
    ("a conflict of two that are asked for", "a 1\nConflicts: b\n\nb 1", "", &["a", "b"], "-"),
    (
        "a conflict far below",
        "a 1\nDepends: c\n\nb 1\nDepends: d\n\nc 1\nConflicts: d (<< 2)\n\nd 1",
        "",
        &["a", "b"],
        "-",
    ),
    ("nothing that can be had", "a 1\nDepends: b (>= 2)\n\nb 1", "", &["a"], "-"),
    ("a circle", "a 1\nDepends: b\n\nb 1\nDepends: a", "", &["a"], "a=1 b=1"),
    (
        "what is recommended",
        "a 1\nRecommends: b | c, none\n\nb 1\nRecommends: d\n\nc 1\n\nd 1",
        "",
        &["a"],
        "a=1 b=1 d=1",
    ),
];

pub(super) fn words(packages: &BTreeMap<String, String>) -> String {
    packages.iter().map(|(name, version)| format!("{name}={version}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn apt_chooses_the_same() {
    let has_apt = have(&["apt-get", "dpkg"]) && is_recent();
    for (what, archive, base, packages, expected) in CASES {
        let recommends = *what == "what is recommended";
        let packages_json = serde_json::to_string(packages).unwrap();
        let asked = request(&format!(r#"{{"packages": {packages_json}, "recommends": {recommends}}}"#));
        let found = choose(archive, base, asked);
        assert_eq!(found.as_ref().map_or("-".to_owned(), words), *expected, "{what}: {found:?}");
        if has_apt {
            let found = apt(archive, base, packages, &[], recommends);
            assert_eq!(found.as_ref().map_or("-".to_owned(), words), *expected, "{what}: apt");
        }
    }
}

#[test]
fn layers_say_what_may_come() {
    let archive = "a 1\nDepends: x | y\nRecommends: r\n\nx 1\n\ny 1\n\nr 1\nRecommends: s\n\ns 1\n\nold 2\n\nolder 3\nBreaks: held (<< 2)\n\nheld 2\n\n\
        b 1.1\n\nb 1.2\n\nb 2.0\n\nlinux-image-amd64 2";
    let base = "old 1\n\nolder 2\n\nheld 1\n\nlinux-image-amd64 1\n\ngrub-common 1";
    for (asked, expected) in [
        (r#"{"packages": ["a"]}"#, "a=1 x=1"),
        (r#"{"packages": ["a"], "without": ["x"]}"#, "a=1 y=1"),
        (r#"{"packages": ["a"], "recommends": ["a"]}"#, "a=1 r=1 x=1"),
        (r#"{"packages": ["a"], "recommends": true}"#, "a=1 r=1 s=1 x=1"),
        (r#"{"packages": ["a"], "recommends": true, "without": ["r"]}"#, "a=1 x=1"),
        (r#"{"packages": ["b=1.*"]}"#, "b=1.2"),
        (r#"{"packages": ["b=1.1"]}"#, "b=1.1"),
        (r#"{"packages": ["old"]}"#, ""),
        (r#"{"packages": ["old=2"]}"#, "old=2"),
        (r#"{"upgrade": ["old"]}"#, "old=2"),
        (r#"{"upgrade": true}"#, "held=2 old=2 older=3"),
        (r#"{"upgrade": true, "hold": ["held"]}"#, "old=2"),
    ] {
        assert_eq!(
            choose(archive, base, request(asked)).map(|found| words(&found)),
            Ok(expected.to_owned()),
            "{asked}"
        );
    }
}

/// A request, and why it is refused; the base has `x 1`, `held 1` on hold and `new 3`.
const REFUSED: &[(&str, &str)] = &[
    (r#"{"packages": ["nginy"]}"#, "layer web: packages: package nginy not found in main"),
    (r#"{"packages": ["virtual"]}"#, "layer web: packages: virtual is a virtual package, provided by p, q"),
    (r#"{"packages": ["nginx=2.*"]}"#, "layer web: no version matches nginx=2.*, available: 1"),
    (r#"{"packages": ["new=1"]}"#, "new: refusing to downgrade from version 3 of the base to new=1"),
    (r#"{"packages": ["nginx"], "hold": ["nothing"]}"#, "layer web: hold: package nothing not found in main"),
    (r#"{"packages": ["nginx"], "without": ["nothing"]}"#, "layer web: without: package nothing not found in main"),
    (r#"{"packages": ["nginx"], "without": ["common"]}"#, "nginx → common: common is excluded by `without`"),
    (
        r#"{"packages": ["lost"]}"#,
        "lost → lost-too: depends on none (>= 1), which is neither in the base nor in an archive",
    ),
    (r#"{"packages": ["newer"]}"#, "newer → held: depends on held 2, but the base has it on hold at version 1"),
    (
        r#"{"packages": ["wants-x"], "hold": ["x"]}"#,
        "wants-x → x: depends on x 2, but a layer has it on hold at version 1",
    ),
    (r#"{"packages": ["nginx", "hater"]}"#, "hater → hates: conflicts with nginx → common (1): Conflicts common"),
    (r#"{"packages": ["base-hater"]}"#, "base-hater: conflicts with new 3 of the base: Breaks new"),
    (r#"{"packages": ["stuck"]}"#, "stuck → x: replaces a dependency of package x-data of the base: x (= 1)"),
    (
        r#"{"packages": ["zfs"]}"#,
        "zfs → grub-pc: grub-pc is a boot loader or generates an initial RAM disk, which is not supported in a bake",
    ),
    (
        r#"{"packages": ["wireguard"]}"#,
        "wireguard → dkms: dkms compiles kernel modules on the machine, which is not supported in a bake",
    ),
];

#[test]
fn what_does_not_go_together_is_refused_with_its_chains() {
    let archive = "nginx 1\nDepends: common\n\ncommon 1\n\np 1\nProvides: virtual\n\nq 1\nProvides: virtual\n\nnew 1\n\nheld 2\n\n\
        lost 1\nDepends: lost-too\n\nlost-too 1\nDepends: none (>= 1)\n\nnewer 1\nDepends: held (>= 2)\n\nx 2\n\n\
        wants-x 1\nDepends: x (>= 2)\n\nhater 1\nDepends: hates\n\nhates 1\nConflicts: common\n\nbase-hater 1\nBreaks: new\n\n\
        stuck 1\nDepends: x (>= 2)\n\nzfs 1\nDepends: grub-pc\n\ngrub-pc 1\n\nwireguard 1\nDepends: dkms\n\ndkms 1";
    let base = status("x 1\n\nx-data 1\nDepends: x (= 1)\n\nnew 3\n\nheld 1");
    let base = base.replace("Package: held\nStatus: install", "Package: held\nStatus: hold");
    let (archive, base) = (PackageIndex::unsigned(&index(archive), "amd64"), PackageIndex::installed(&base));
    for (asked, expected) in REFUSED {
        let requests = vec![("web".to_owned(), request(asked))];
        let error = rehearse(&[("main", &archive)], &base, &requests).unwrap_err();
        assert_eq!(vmbake_common::escape::chain(&error), *expected, "{asked}");
        assert!(vmbake::cli::error_report::hint(&error).is_some(), "{asked}: no hint");
    }
}

#[test]
fn a_long_chain_ends() {
    let link = |number: u32| format!("p{number} 1\nDepends: p{}", number + 1);
    let archive = (0..3000).map(link).collect::<Vec<_>>().join("\n\n") + "\n\np3000 1";
    let error = choose(&archive, "", request(r#"{"packages": ["p0"]}"#)).unwrap_err();
    assert!(error.ends_with("chain of more than 1000 dependencies"), "{error}");
    let found = choose(&archive, "", request(r#"{"packages": ["p2500"]}"#)).unwrap();
    assert_eq!(found.len(), 501);
}

#[test]
fn no_text_is_too_strange() {
    for status in [
        "",
        "\n\n\n",
        "Package: a",
        "x",
        ": :\n\n:",
        "Package: a\nStatus: install ok installed\nVersion: :\nDepends: (((",
        " a\n b",
    ] {
        let base = PackageIndex::installed(status);
        let archive = PackageIndex::unsigned(status, "amd64");
        let requests = vec![("web".to_owned(), request(r#"{"packages": ["a"], "upgrade": true}"#))];
        assert!(rehearse(&[("main", &archive)], &base, &requests).is_err(), "{status:?}");
    }
}

#[test]
fn the_list_of_the_check_has_300_names_each_once() {
    let list = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/closure.list")).unwrap();
    let mut names: Vec<&str> = list.lines().collect();
    names.dedup();
    assert_eq!(names.len(), 300);
}

//! Bundles as extensions: contents as listed by e2fsprogs, reproducibility and refusals.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::composing::TRUST;
use super::shop::Shop;
use crate::requested::yard::stated;

/// Files that only /usr has.
pub(super) const USR: &str = r#", "symlinks": {"/usr/lib/systemd/system/multi-user.target.wants/agent.service": "../agent.service"},
    "files": {"/usr/lib/systemd/system/agent.service": {"content": "[Service]\nExecStart=/usr/bin/tool\n"},
    "/usr/bin/say": {"content": "say\n"}}"#;
/// The same of /etc.
const ETC: &str = r#", "files": {"/etc/agent/agent.conf": {"mode": "0640", "content": "port = 1\n"}}"#;

/// What a layer also does, and what is said of that.
const REFUSED: &[(&str, &str)] = &[
    (r#", "files": {"/etc/agent/a": {"content": "a"}}"#, "`files`: \"/etc/agent/a\": a sysext does not merge /etc"),
    (
        r#", "files": {"/var/lib/a": {"content": "a"}}"#,
        "`files`: \"/var/lib/a\": sysexts only contain files below /usr",
    ),
    (r#", "files": {"/opt/a/b": {"content": "a"}}"#, "`files`: \"/opt/a/b\": a merged /opt is read-only"),
    (r#", "directories": {"/srv/a": {"mode": "0755"}}"#, "`directories`: \"/srv/a\": sysexts only contain files"),
    (r#", "directories": {"/usr/a": {"mode": "1777"}}"#, "`directories`: \"/usr/a\": mode 1777 has set-uid"),
    (r#", "symlinks": {"/etc/a": "b"}"#, "`symlinks`: \"/etc/a\": a sysext does not merge /etc"),
    (r#", "remove": ["/usr/bin/a"]"#, "`remove`: \"/usr/bin/a\": extensions cannot change"),
    (r#", "empty": ["/usr/lib/a"]"#, "`empty`: \"/usr/lib/a\": extensions cannot change"),
    (r#", "modes": {"/usr/bin/a": {"mode": "0755"}}"#, "`modes`: \"/usr/bin/a\": extensions cannot change"),
    (r#", "setuid": ["/usr/bin/a"]"#, "`setuid`: \"/usr/bin/a\": extensions cannot contain privileged files"),
    (r#", "groups": {"agents": 990}"#, "`groups`: \"agents\": accounts must exist before"),
    (r#", "users": {"agent": {"id": 990, "home": "/usr/a"}}"#, "`users`: \"agent\": accounts must exist before"),
    (
        r#", "files": {"/usr/a": {"owner": "daemon", "content": "a"}}"#,
        "`files`: \"/usr/a\": expected owner root:root, found daemon:root",
    ),
    (
        r#", "units": {"enable": ["a.service"], "files": {"a.service": ["[Service]", "ExecStart=/usr/bin/a", "[Install]", "WantedBy=multi-user.target"]}}"#,
        "`units`: enable \"a.service\": to start a unit of an extension",
    ),
    (r#", "modules_load": ["dummy"]"#, "`modules_load`: is read before extensions are merged"),
    (r#", "sysctl": {"vm.swappiness": 1}"#, "`sysctl`: is read before extensions are merged"),
    (
        r#", "units": {"mask": ["a.service"], "files": {"a.service": ["[Service]", "ExecStart=/usr/bin/a", "[Install]", "WantedBy=multi-user.target"]}}"#,
        "`units`: mask \"a.service\": to start a unit of an extension, use `Upholds=`",
    ),
    (
        r#", "units": {"disable": ["a.service"], "files": {"a.service": ["[Service]", "ExecStart=/usr/bin/a", "[Install]", "WantedBy=multi-user.target"]}}"#,
        "`units`: disable \"a.service\": to start a unit of an extension",
    ),
    (r#", "first_boot": {"variables": {"A": {"default": "b"}}}"#, "`first_boot`: the machine has already booted"),
];

fn document(asks: &str) -> String {
    format!(
        r#"{{"schema": 1, "publisher": "acme", "name": "agent", "version": "1.0.0", "description": "An agent.", "os": ["o"],
        "arch": ["amd64"], "asks": {{"paths": ["/"], "setuid": ["/usr/a", "/usr/bin/a"], "users": ["agent", "agents"]{asks}}}}}"#
    )
}

/// A workshop with a signed and trusted bundle that has these keys in its layer; `None` where a tool is missing.
pub(super) fn shop(more: &str) -> Option<Shop> {
    let shop = Shop::new()?;
    fs::remove_dir_all(shop.path("agent")).unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../trust/sigstore-root.json");
    shop.put("anchors/sigstore-root.json", &fs::read_to_string(root).unwrap());
    shop.key("acme");
    write(&shop, more);
    Some(shop)
}

/// Packs the bundle with these keys and trusts it.
pub(super) fn write(shop: &Shop, more: &str) {
    shop.put("agent/bundle.json", &document(""));
    let layer = format!(
        r#"{{"name": "acme.agent", "version": "1", "description": "d", "os": ["o"], "requires": ["settings"]{more}}}"#
    );
    shop.put("agent/layers/acme.agent/layer.json", &layer);
    shop.packed("agent.oci", &["--key=acme.key", "--force"]);
    let (ok, said) = shop.said(&["trust", "agent.oci", "--key", "acme.pub", "--yes"]);
    assert!(ok, "{said}");
}

/// Makes an extension.
pub(super) fn sysext(shop: &Shop, more: &[&str]) -> (bool, String) {
    let args = ["bundle", "sysext", "agent.oci", "--os=o", "--offline", "--layers=layers", TRUST];
    shop.yard.run(&[&args[..], more].concat())
}

/// What debugfs says of a volume.
fn debugfs(image: &Path, ask: &str) -> String {
    let output =
        Command::new("debugfs").env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin").args(["-R", ask]).arg(image).output();
    String::from_utf8(output.unwrap().stdout).unwrap()
}

#[test]
fn a_sysext_has_the_files_and_says_for_what_it_is() {
    let tool = stated().replace("\"tool\":", "\"acme.tool\":").replace("/opt/tool", "/usr/lib/tool");
    let Some(shop) = shop(&format!("{USR}{tool}")) else { return };
    let (ok, said) = sysext(&shop, &["-o", "agent.raw"]);
    assert!(ok, "{said}");
    let image = shop.path("agent.raw");
    let release = debugfs(&image, "cat /usr/lib/extension-release.d/extension-release.agent");
    assert_eq!(release, "ID=o\nARCHITECTURE=x86-64\nEXTENSION_RELOAD_MANAGER=1\n");
    assert_eq!(debugfs(&image, "cat /usr/bin/say"), "say\n");
    assert_eq!(debugfs(&image, "cat /usr/lib/tool/bin/tool"), "#!/bin/sh\n# amd64\n");
    assert!(debugfs(&image, "stat /usr/bin/say").contains("Mode:  0755"));
    let link = debugfs(&image, "stat /usr/lib/systemd/system/multi-user.target.wants/agent.service");
    assert!(link.contains("\"../agent.service\""), "{link}");
    let checked = Command::new("/usr/sbin/e2fsck").args(["-fn"]).arg(&image).output().unwrap();
    assert!(checked.status.success(), "{checked:?}");
    // Another folder, the same bytes; and what is there stays without --force.
    assert!(sysext(&shop, &["-o", "other/agent.raw"]).0);
    assert!(fs::read(&image).unwrap() == fs::read(shop.path("other/agent.raw")).unwrap());
    let (ok, said) = sysext(&shop, &["-o", "agent.raw"]);
    assert!(!ok && said.contains("already exists"), "{said}");
    assert!(sysext(&shop, &["-o", "agent.raw", "--force"]).0);
}

#[test]
fn a_confext_has_files_of_etc_alone() {
    let Some(shop) = shop(ETC) else { return };
    let (ok, said) = sysext(&shop, &["-o", "agent.raw", "--confext"]);
    assert!(ok, "{said}");
    let image = shop.path("agent.raw");
    assert!(debugfs(&image, "cat /etc/extension-release.d/extension-release.agent").starts_with("ID=o\n"));
    assert!(debugfs(&image, "stat /etc/agent/agent.conf").contains("Mode:  0640"));
    write(&shop, USR);
    let (ok, said) = sysext(&shop, &["-o", "usr.raw", "--confext"]);
    assert!(!ok && said.contains("\"/usr/bin/say\": confexts only contain files below /etc"), "{said}");
    assert!(!shop.path("usr.raw").exists());
}

#[test]
fn what_systemd_would_not_do_is_refused() {
    let Some(shop) = shop("") else { return };
    for (more, expected) in REFUSED {
        write(&shop, more);
        let (ok, said) = sysext(&shop, &["-o", "agent.raw"]);
        assert!(!ok && said.contains(expected), "{more}: {said}");
        assert!(!shop.path("agent.raw").exists(), "{more}");
    }
    write(&shop, r#", "remove": ["/usr/bin/a"], "symlinks": {"/etc/a": "b"}, "sysctl": {"vm.swappiness": 1}"#);
    let (_, said) = sysext(&shop, &["-o", "agent.raw"]);
    for one in ["`remove`", "`symlinks`", "`sysctl`"] {
        assert!(said.contains(one), "all at once: {said}");
    }
    let (ok, said) = sysext(&shop, &["-o", "agent.raw", "--arch=arm64"]);
    assert!(!ok && said.contains("expected a bundle for o on arm64, found one for o on amd64"), "{said}");
}

//! Changes between two images, and between documents next to them; and names with Markdown.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use vmbake_disk::tree::Tree;

use crate::origin::bakery::{baked, can_bake};
use crate::origin::image::{TOOLS, change, empty, file, link, text, vmbake, write_disk};
use crate::tools::have;

const PLAN: &str = "/opt/podplane/share/firstboot.json";

fn stanza(name: &str, version: &str) -> String {
    format!("Package: {name}\nStatus: install ok installed\nArchitecture: amd64\nVersion: {version}\n\n")
}

fn before() -> Tree {
    let mut tree = empty();
    file(&mut tree, "/etc/os-release", "ID=debian\nVERSION_ID=13\nIMAGE_ID=web\nIMAGE_VERSION=1\n");
    let status =
        [("gone", "1"), ("newer", "1.9"), ("older", "1:1"), ("same", "1")].map(|(name, version)| stanza(name, version));
    file(&mut tree, "/var/lib/dpkg/status", &status.concat());
    file(&mut tree, "/etc/passwd", "root:x:0:0:root:/root:/bin/sh\nold:x:7:7::/:/bin/false\n");
    file(&mut tree, "/etc/group", "root:x:0:\nsudo:x:27:\n");
    file(&mut tree, "/usr/bin/su", "su").mode = 0o4755;
    file(&mut tree, "/etc/apt/keyrings/a.asc", "key");
    file(&mut tree, PLAN, r#"{"variables": {"A": {}, "B": {"default": "x"}}}"#);
    tree
}

fn after() -> Tree {
    let mut tree = before();
    file(&mut tree, "/etc/os-release", "ID=debian\nVERSION_ID=13\nIMAGE_ID=web\nIMAGE_VERSION=2\n");
    let status =
        [("added", "3"), ("newer", "1.10"), ("older", "2"), ("same", "1")].map(|(name, version)| stanza(name, version));
    file(&mut tree, "/var/lib/dpkg/status", &status.concat());
    file(&mut tree, "/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n");
    file(&mut tree, "/etc/group", "root:x:0:\nsudo:x:27:me\n");
    tree.remove(b"/usr/bin/su").unwrap();
    let xattrs = &mut file(&mut tree, "/usr/bin/ping", "ping").xattrs;
    xattrs.insert(b"security.capability".to_vec(), vec![1, 0, 0, 2]);
    file(&mut tree, "/etc/apt/keyrings/a.asc", "another key");
    file(&mut tree, "/home/me/.ssh/authorized_keys", "ssh-ed25519 x");
    file(&mut tree, "/usr/lib/systemd/system/s.socket", "[Socket]\nListenStream=80\nListenDatagram = /run/x\n");
    link(&mut tree, "/etc/systemd/system/sockets.target.wants/s.socket", "/usr/lib/systemd/system/s.socket");
    file(&mut tree, PLAN, r#"{"variables": {"A": {"required": true}, "C": {"one_of": ["1", "2"]}}, "later": 1}"#);
    tree
}

/// What `vmbake changelog` prints of two files.
fn told(from: &Path, to: &Path, json: bool) -> String {
    let more: &[&str] = if json { &["--json"] } else { &[] };
    let output = vmbake(&[&["changelog", from.to_str().unwrap(), to.to_str().unwrap()], more].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).to_owned()
}

/// `name: from -> to` for each entry of a list.
fn list(value: &Value) -> Vec<String> {
    let side = |one: &Value, key| one[key].as_str().unwrap_or("-").to_owned();
    let line = |one: &Value| format!("{}: {} -> {}", side(one, "name"), side(one, "from"), side(one, "to"));
    value.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn two_images_are_compared() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = [("from.raw", before()), ("to.raw", after())].map(|(name, tree)| {
        write_disk(&tree, &dir.path().join(name));
        dir.path().join(name)
    });
    let found: Value = serde_json::from_str(&told(&from, &to, true)).unwrap();
    assert_eq!(
        (&found["from"]["version"], &found["to"]["version"], &found["to"]["name"]),
        (&json!("1"), &json!("2"), &json!("web"))
    );
    let security = &found["security"];
    for (what, expected) in [
        (
            "privileged",
            vec![
                "/usr/bin/ping: - -> mode 0644, owner 0:0, capabilities 01000002",
                "/usr/bin/su: mode 4755, owner 0:0 -> -",
            ],
        ),
        (
            "users",
            vec![
                "old: id 7, home /, shell /bin/false -> -",
                "root: id 0, home /root, shell /bin/sh -> id 0, home /root, shell /bin/bash",
            ],
        ),
        ("groups", vec!["sudo: id 27 -> id 27, members me"]),
        ("units", vec!["s.socket: - -> wanted by sockets.target"]),
        ("sockets", vec!["s.socket: - -> stream 80, datagram /run/x"]),
    ] {
        assert_eq!(list(&security[what]), expected, "{what}");
    }
    let trust = list(&security["trust"]);
    assert!(
        trust[0].starts_with("/etc/apt/keyrings/a.asc: sha256:")
            && trust[1].starts_with("/home/me/.ssh/authorized_keys: - -> sha256:"),
        "{trust:?}"
    );
    for (what, expected) in [
        ("upgraded", "newer: 1.9 -> 1.10"),
        ("downgraded", "older: 1:1 -> 2"),
        ("added", "added: - -> 3"),
        ("removed", "gone: 1 -> -"),
    ] {
        assert_eq!(list(&found["packages"][what]), [expected], "{what}");
    }
    assert_eq!(
        list(&found["settings"]),
        ["A: optional -> required", "B: optional, by default x -> -", "C: - -> optional, one of 1|2"]
    );
    assert_eq!(found["sizes"][0], json!({"what": "disk", "from": 48 << 20, "to": 48 << 20}));

    let page = told(&from, &to, false);
    let headings: Vec<&str> = page.lines().filter(|line| line.starts_with("# ") || line.starts_with("## ")).collect();
    assert_eq!(
        headings,
        ["# web 1 → web 2", "## Security", "## Packages", "## First-boot settings", "## Sizes", "## Not compared"]
    );
    assert!(page.contains("\n- `newer`: 1.9 → 1.10\n") && page.contains("\n- removed `gone`: 1\n"), "{page}");
    assert!(told(&from, &from, false).contains("No changes."));
}

#[test]
fn names_are_no_markdown() {
    if !have(&TOOLS) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [from, to] = ["from.raw", "to.raw"].map(|name| dir.path().join(name));
    write_disk(&before(), &from);
    change(&from, &to, |tree| {
        file(tree, "/a`<b>\n# c", "x").mode = 0o4755;
        file(tree, "/etc/passwd", "<script>:x:0:0:\u{202e}x:[/](javascript:1):/a|b\n");
        file(tree, PLAN, "{\"variables\": [");
    });
    let page = told(&from, &to, false);
    assert!(
        page.contains("- added /a\\`&lt;b>\\\\x5cx0a\\# c: mode 4755")
            || page.contains("- added /a\\`&lt;b>\\\\x0a\\# c: mode 4755"),
        "{page}"
    );
    assert!(page.contains("- added `<script>`: id 0, home \\[/\\](javascript, shell 1)"), "{page}");
    assert!(page.contains("its settings are unknown: /opt/podplane/share/firstboot.json: "), "{page}");
    assert!(!page.contains('\u{202e}'));
}

#[test]
fn documents_are_enough_for_packages_programs_and_layers() {
    if !can_bake() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (_, out) = baked(dir.path(), 1);
    let other = dir.path().join("other");
    fs::create_dir(&other).unwrap();
    for end in ["spdx", "origin"] {
        fs::copy(out.join(format!("tools.o.amd64.{end}.json")), other.join(format!("tools.o.amd64.{end}.json")))
            .unwrap();
    }
    let changed = other.join("tools.o.amd64.spdx.json");
    let document = fs::read_to_string(&changed).unwrap();
    fs::write(
        &changed,
        document
            .replace("\"0.5.12-12\"", "\"0.5.13-1\"")
            .replace("\"versionInfo\": \"1.2\"", "\"versionInfo\": \"1.3\""),
    )
    .unwrap();
    let found: Value = serde_json::from_str(&told(&out.join("tools.o.amd64.origin.json"), &changed, true)).unwrap();
    assert_eq!(list(&found["packages"]["upgraded"]), ["dash: 0.5.12-12 -> 0.5.13-1"]);
    let programs = list(&found["programs"]);
    assert!(
        programs.len() == 1 && programs[0].starts_with("tool: 1.2 (") && programs[0].contains(" -> 1.3 ("),
        "{programs:?}"
    );
    assert!(found["security"].is_null() && found["layers"] == json!([]), "{found}");
    assert!(found["notes"][0].as_str().unwrap().starts_with("accounts, units, set-uid files"), "{found}");
    // The image and the document next to it agree.
    let same: Value =
        serde_json::from_str(&told(&out.join("tools.o.amd64.raw"), &out.join("tools.o.amd64.json"), true)).unwrap();
    assert_eq!(
        (list(&same["packages"]["upgraded"]).len(), &same["programs"], &same["layers"]),
        (0, &json!([]), &json!([]))
    );
}

#[test]
fn documents_that_are_none_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    for content in ["", "{}", "[1", "{\"packages\": [{\"SPDXID\": 1, \"name\": \"\"}]}", "\u{0}"] {
        let path = dir.path().join("a.spdx.json");
        fs::write(&path, content).unwrap();
        let output = vmbake(&["changelog", path.to_str().unwrap(), path.to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains("a.spdx.json: not an SPDX document"), "{}", text(&output.stderr));
    }
}

//! Choices that an administrator makes with tools of Debian: alternatives, capabilities, instances of units, and
//! os-release. Each is compared with the tool.

use std::fs;
use std::path::Path;
use std::process::Command;

use vmbake_disk::tree::Tree;

use super::judge::{as_root, write};
use super::parts::{Part, bake_onto, base_with, hint, link, text};
use crate::tools::have;

const ED: &str =
    "auto\n/usr/bin/editor\neditor.1\n/usr/man/editor.1\n\n/usr/bin/nano\n40\n/usr/man/nano.1\n/usr/bin/vim\n50\n\n\n";
const GETTY: &str = "[Service]\nExecStart=x\n[Install]\nWantedBy=getty.target\nAlias=tty@%i.service\n";
const DEFAULT: &str = "[Install]\nWantedBy=multi-user.target\nDefaultInstance=main\n";

fn base() -> Tree {
    base_with(&[
        ("/var/lib/dpkg/alternatives/editor", ED),
        ("/usr/bin/nano", ""),
        ("/usr/bin/vim", ""),
        ("/usr/man/nano.1", ""),
        ("/etc/os-release", "ID=debian\n"),
        ("/usr/bin/server", "server"),
        ("/usr/lib/systemd/system/odd@.service", "[Install]\nAlias=odd-%i.service\n"),
        ("/usr/lib/systemd/system/plain@.service", "[Install]\nWantedBy=a.target\n"),
        ("/usr/lib/systemd/system/line@.service", GETTY),
        ("/usr/lib/systemd/system/db@.service", DEFAULT),
    ])
}

fn bake(keys: &str) -> Result<Tree, String> {
    bake_onto(base(), &[] as &[Part], keys)
}

fn output(command: &mut Command) -> String {
    let output = command.env("LC_ALL", "C").output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn a_chosen_alternative_is_that_of_update_alternatives() {
    let tree = bake(r#", "alternatives": {"editor": "/usr/bin/nano"}"#).unwrap();
    assert_eq!(link(&tree, "/etc/alternatives/editor"), "/usr/bin/nano");
    for (keys, expected) in [
        (r#""vi": "/usr/bin/vim""#, "alternatives/vi: does not exist: no package has installed this alternative"),
        (r#""editor": "/usr/bin/ed""#, "has no choice /usr/bin/ed: expected one of: /usr/bin/nano, /usr/bin/vim"),
        (r#""a/b": "/usr/bin/ed""#, "is not the name of an alternative"),
        (r#""editor": "ed""#, "is not absolute"),
    ] {
        let error = bake(&format!(r#", "alternatives": {{{keys}}}"#)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    if !have(&["update-alternatives"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
    write(&tree, &ours);
    write(&base(), &theirs);
    fs::create_dir_all(theirs.join("etc/alternatives")).unwrap();
    let tool = |root: &Path, args: &[&str]| {
        let mut command = Command::new("update-alternatives");
        command.arg("--root").arg(root).args(["--log", "/dev/null"]).args(args);
        output(&mut command)
    };
    tool(&theirs, &["--set", "editor", "/usr/bin/nano"]);
    let shown = [&ours, &theirs].map(|root| {
        let links = ["etc/alternatives/editor", "etc/alternatives/editor.1", "usr/bin/editor", "usr/man/editor.1"];
        let links = links.map(|path| fs::read_link(root.join(path)).ok());
        let record = fs::read_to_string(root.join("var/lib/dpkg/alternatives/editor")).unwrap();
        (tool(root, &["--query", "editor"]), links, record)
    });
    assert_eq!(shown[0], shown[1]);
    assert!(shown[0].0.contains("Status: manual\n"), "{}", shown[0].0);
}

#[test]
fn capabilities_are_those_of_setcap() {
    let keys =
        |text: &str| format!(r#", "capabilities": {{"/usr/bin/server": "{text}"}}, "setuid": ["/usr/bin/server"]"#);
    let tree = bake(&keys("cap_net_bind_service,cap_net_raw+ep")).unwrap();
    let meta = &tree.inode(tree.lookup(b"/usr/bin/server").unwrap()).meta;
    let value = meta.xattrs.get(b"security.capability".as_slice()).unwrap();
    for (keys, expected) in [
        (keys("net_raw"), "is not a list of capabilities"),
        (keys("cap_nix+ep"), "is not a list of capabilities"),
        (r#", "capabilities": {"/usr/bin/server": "cap_chown=p"}"#.to_owned(), "`setuid` does not list"),
        (keys("cap_chown=p").replace("server", "nix"), "/usr/bin/nix"),
        (keys("cap_chown=p").replace("/usr/bin/server", "/usr/bin"), "only regular files can have capabilities"),
    ] {
        let error = bake(&keys).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    let dir = tempfile::tempdir().unwrap();
    if as_root(dir.path()).is_none_or(|prefix| !prefix.is_empty()) || !have(&["setcap", "getfattr"]) {
        return crate::tools::skip::skip("needs root, setcap and getfattr");
    }
    let file = dir.path().join("server");
    fs::write(&file, "").unwrap();
    output(Command::new("setcap").arg("cap_net_bind_service,cap_net_raw+ep").arg(&file));
    let found = output(
        Command::new("getfattr").args(["--absolute-names", "-e", "hex", "-n", "security.capability"]).arg(&file),
    );
    let hex: String = value.iter().map(|byte| format!("{byte:02x}")).collect();
    assert!(found.contains(&format!("security.capability=0x{hex}\n")), "{found}");
}

#[test]
fn a_mask_replaces_no_file_or_link_in_etc() {
    let etc = "/etc/systemd/system";
    let own = r#""files": {"own.service": "[Service]\nExecStart=/bin/true\n"}"#;
    for (more, unit, found) in [
        (format!(r#", "units": {{{own}, "mask": ["own.service"]}}"#), "own.service", "a regular file"),
        (
            format!(
                r#", "symlinks": {{"{etc}/other.service": "/usr/lib/systemd/system/db@.service"}}, "units": {{"mask": ["other.service"]}}"#
            ),
            "other.service",
            "a link to /usr/lib/systemd/system/db@.service",
        ),
    ] {
        let error = bake(&more).unwrap_err();
        assert!(error.contains(&format!("{unit} cannot be masked: {etc}/{unit} is {found}")), "{error}");
        let hint = hint(&[], &more).unwrap();
        let expected = format!("add to layer k: \"symlinks\": {{\"{etc}/{unit}\": \"/dev/null\"}}");
        assert!(hint.contains(&expected), "{hint}");
    }
    let tree =
        bake(&format!(r#", "symlinks": {{"{etc}/db@.service": "/dev/null"}}, "units": {{"mask": ["db@.service"]}}"#));
    assert_eq!(link(&tree.unwrap(), &format!("{etc}/db@.service")), "/dev/null");
}

#[test]
fn instances_are_enabled_as_by_systemctl() {
    let units = ["line@ttyS1.service", "db@.service"];
    let tree = bake(&format!(r#", "units": {{"enable": {units:?}, "mask": ["line@tty9.service"]}}"#)).unwrap();
    let etc = "/etc/systemd/system";
    let made = [
        (format!("{etc}/getty.target.wants/line@ttyS1.service"), "/usr/lib/systemd/system/line@.service"),
        (format!("{etc}/tty@ttyS1.service"), "/usr/lib/systemd/system/line@.service"),
        (format!("{etc}/multi-user.target.wants/db@main.service"), "/usr/lib/systemd/system/db@.service"),
        (format!("{etc}/line@tty9.service"), "/dev/null"),
    ];
    for (path, to) in &made {
        assert_eq!(link(&tree, path), *to, "{path}");
    }
    for (unit, expected) in [
        ("plain@.service", "WantedBy=a.target needs an instance, but the template has no DefaultInstance="),
        (
            "odd@a.service",
            "/usr/lib/systemd/system/odd@.service:2: Alias=odd-%i.service is not a valid name for the unit",
        ),
        ("none@a.service", "none@a.service is not in the image"),
    ] {
        let error = bake(&format!(r#", "units": {{"enable": ["{unit}"]}}"#)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    if !have(&["systemctl"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    write(&base(), dir.path());
    let mut command = Command::new("systemctl");
    output(command.arg(format!("--root={}", dir.path().display())).arg("enable").args(units));
    for (path, to) in made.iter().take(3) {
        let found = fs::read_link(dir.path().join(&path[1..])).unwrap_or_default();
        // Before version 257 the prefix is kept.
        assert!(found.ends_with(to.rsplit('/').next().unwrap()), "{path}: {}", found.display());
    }
    let enabled =
        Command::new("find").arg(dir.path().join("etc/systemd/system")).args(["-type", "l"]).output().unwrap();
    assert_eq!(String::from_utf8(enabled.stdout).unwrap().lines().count(), 3);
}

#[test]
fn a_shell_reads_what_os_release_says() {
    let values = [
        ("A", "Acme Linux 1"),
        ("B", "a\"b$HOME`id`\\c"),
        ("C", "it's; # &"),
        ("D", ""),
        ("E", "plain-1.0_x"),
        ("ID", "ü"),
    ];
    let json: Vec<String> =
        values.iter().map(|(key, value)| format!("{key:?}: {}", serde_json::json!(value))).collect();
    let tree = bake(&format!(r#", "os_release": {{{}}}"#, json.join(", "))).unwrap();
    let os_release = text(&tree, "/etc/os-release");
    assert!(os_release.contains("\nE=plain-1.0_x\n") && os_release.contains("A=\"Acme Linux 1\"\n"), "{os_release}");
    assert_eq!(os_release.matches("ID=").count(), 1);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("os-release");
    fs::write(&file, &os_release).unwrap();
    let script = ". \"$0\"; printf '%s\\n' \"$A\" \"$B\" \"$C\" \"$D\" \"$E\" \"$ID\"";
    let said = output(Command::new("sh").args(["-c", script]).arg(&file));
    assert_eq!(said.lines().collect::<Vec<_>>(), values.map(|(_, value)| value));
    let error = bake(r#", "os_release": {"A": "a\nb"}"#).unwrap_err();
    assert!(error.contains("contains a control character"), "{error}");
}

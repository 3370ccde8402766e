//! Actions for a machine, derived from its state.

use std::path::Path;

use super::*;
use crate::sync::machine::FoundNode;
use crate::sync::ssh::Login;
use crate::sync::{compares_plan, desired, keys, scope};
use vmbake_common::catalog::Catalog;
use vmbake_compose::origin::Record;
use vmbake_layer::Layers;
use vmbake_manifest::Manifest;

const ZEROS: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

const LAYER: &str = r#"{"name": "web", "version": "1", "description": "d", "os": ["o"],
    "directories": {"/opt/web": {"mode": "0750", "group": "web"}},
    "files": {"/opt/web/a": {"mode": "0640", "group": "web", "content": "a"}, "/etc/b": {"content": "b"}, "/opt/none/c": {"content": "c"},
        "/etc/default/grub.d/x.cfg": {"content": "x"}, "/etc/owned": {"owner": "absent", "content": ""}},
    "symlinks": {"/etc/link": "b", "/etc/folder": "b"},
    "units": {"enable": ["a.service", "planned.service", "on.service"], "disable": ["b.service"], "mask": ["c.service"],
        "files": {"a.service": ["[Install]", "WantedBy=multi-user.target"]}},
    "packages": ["jq"], "groups": {"web": 7, "other": 8}, "remove": ["/etc/gone", "/var/*.log"],
    "capabilities": {"/opt/web/a": "cap_net_raw+ep"}, "setuid": ["/opt/web/a"]}"#;

fn layer() -> Layer {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in
        [("web", LAYER), ("hygiene", r#"{"name": "hygiene", "version": "1", "description": "d", "os": ["o"]}"#)]
    {
        std::fs::create_dir(dir.path().join(name)).unwrap();
        std::fs::write(dir.path().join(name).join("layer.json"), text).unwrap();
    }
    Layers::load(&Catalog::only(dir.path())).unwrap().resolve("web", "o").unwrap().remove(0)
}

fn installed() -> Installed {
    let record = format!(
        "{{\"format\":1,\"manifest\":\"{ZEROS}\",\"layers\":{{\"web\":{{\"version\":\"1\",\"digest\":\"{ZEROS}\"}}}},\"artifacts\":{{}},\
         \"paths\":{{\"/etc/b\":{{\"layer\":\"web\"}},\"/etc/dropped\":{{\"layer\":\"web\"}},\"/etc/group\":{{\"layer\":\"web\"}}}},\"removed\":{{}}}}\n"
    );
    let manifest = r#"{"vmconfig": {"version": "1", "kind": "web", "os": {"name": "o", "arch": "amd64"}, "dependencies": {}, "images": []}}"#;
    let sent = |digest: &[u8], created| SentFile {
        layer: "web".to_owned(),
        digest: Digest::of(digest),
        earlier: BTreeSet::new(),
        created,
    };
    let files = [
        ("/etc/ours", sent(b"1", true)),
        ("/etc/changed", sent(b"1", true)),
        ("/etc/old", sent(b"b", true)),
        ("/etc/image", sent(b"1", false)),
        // Derived from the plan, which was sent before.
        (vmbake_firstboot::plan::PATH, sent(b"1", false)),
        ("/etc/absent", sent(b"1", true)),
    ];
    Installed {
        login: Login::Root,
        hostname: "m".to_owned(),
        manifest: Manifest::parse(Path::new("m"), manifest.into()).unwrap(),
        record: Record::parse("r", record.as_bytes()).unwrap(),
        plan: serde_json::from_str(r#"{"services": [{"unit": "planned.service"}]}"#).unwrap(),
        plan_text: serde_json::Value::Null,
        state: State {
            pending: true,
            files: files.map(|(path, sent)| (path.to_owned(), sent)).into(),
            ..State::default()
        },
        state_hex: String::new(),
        users: ["root".to_owned()].into(),
        groups: [("root", "0"), ("web", "7")].map(|(name, id)| (name.to_owned(), id.to_owned())).into(),
    }
}

fn found() -> Found {
    let node = |kind: &str, mode, group: &str, content: &[u8]| FoundNode {
        kind: kind.to_owned(),
        mode,
        owner: "root".to_owned(),
        group: group.to_owned(),
        target: if kind == "l" { String::from_utf8_lossy(content).into_owned() } else { String::new() },
        digest: (kind == "f").then(|| Digest::of(content)),
    };
    let nodes = [
        ("/etc", node("d", 0o755, "root", b"")),
        ("/etc/default", node("d", 0o755, "root", b"")),
        ("/etc/default/grub.d", node("d", 0o755, "root", b"")),
        ("/etc/systemd", node("d", 0o755, "root", b"")),
        ("/etc/systemd/system", node("d", 0o755, "root", b"")),
        ("/opt", node("d", 0o755, "root", b"")),
        ("/etc/b", node("f", 0o644, "web", b"b")),
        ("/etc/folder", node("d", 0o755, "root", b"")),
        ("/etc/link", node("l", 0o777, "root", b"b")),
        ("/etc/gone", node("f", 0o644, "root", b"")),
        ("/etc/dropped", node("f", 0o644, "root", b"")),
        ("/etc/group", node("f", 0o644, "root", b"")),
        ("/etc/ours", node("f", 0o644, "root", b"1")),
        ("/etc/changed", node("f", 0o644, "root", b"2")),
        ("/etc/old", node("l", 0o777, "root", b"b")),
        ("/etc/image", node("f", 0o644, "root", b"1")),
        (vmbake_firstboot::plan::PATH, node("f", 0o644, "root", b"1")),
    ];
    let units = [
        ("a.service", ""),
        ("b.service", "enabled"),
        ("c.service", "static"),
        ("on.service", "enabled"),
        ("planned.service", "disabled"),
    ];
    Found {
        nodes: nodes.map(|(path, node)| (path.to_owned(), node)).into(),
        units: units.map(|(unit, state)| (unit.to_owned(), state.to_owned())).into(),
        ..Found::default()
    }
}

fn shown(action: &SyncAction) -> String {
    match action {
        SyncAction::Directory { path, ownership } => {
            format!("directory {path} {:o} {}", ownership.mode, ownership.group)
        }
        SyncAction::Write { path, ownership, .. } => format!("write {path} {:o} {}", ownership.mode, ownership.group),
        SyncAction::Link { path, .. } => format!("link {path}"),
        SyncAction::Remove { path, .. } => format!("remove {path}"),
        SyncAction::RemoveDirectory { path } => format!("remove {path}/"),
        SyncAction::Unmask { unit } => format!("unmask {unit}"),
        SyncAction::Start { unit } => format!("start {unit}"),
        SyncAction::Enable { unit } => format!("enable {unit}"),
        SyncAction::Disable { unit } => format!("disable {unit}"),
        SyncAction::Mask { unit } => format!("mask {unit}"),
    }
}

#[test]
fn what_differs_is_sent_and_the_rest_is_named() {
    let (layer, installed, found) = (layer(), installed(), found());
    let desired = desired::files(std::slice::from_ref(&layer), installed.manifest.content()).unwrap();
    let actions = compare(&desired, &[&layer], &installed.plan, &installed, &found);
    let told: Vec<String> = actions.list.iter().map(shown).collect();
    // Only the group of /etc/b differs.
    let expected = [
        "write /etc/b 644 root",
        "write /etc/systemd/system/a.service 644 root",
        "directory /opt/none 755 root",
        "write /opt/none/c 644 root",
        "directory /opt/web 750 web",
        "write /opt/web/a 640 web",
        "remove /etc/old",
        "remove /etc/ours",
        "enable a.service",
        "disable b.service",
        "mask c.service",
    ];
    assert_eq!(told, expected);
    let named: Vec<(&str, &str)> = actions.new_image.iter().map(|one| (one.what.as_str(), one.why.as_str())).collect();
    let expected = [
        ("/etc/default/grub.d/x.cfg", "a bake processes this file, so it cannot be sent unchanged"),
        ("/etc/folder", "/etc/folder is a directory on the machine"),
        ("/etc/owned", "user absent does not exist on the machine"),
    ];
    assert_eq!(named, expected);
    let left: Vec<&str> = actions.left.iter().map(|note| note.path.as_str()).collect();
    assert_eq!(left, ["/etc/changed", "/etc/image", "/etc/dropped"]);
    let kept = actions.state.files.iter().map(|(path, sent)| (path.as_str(), sent.created)).collect::<Vec<_>>();
    let expected = [
        ("/etc/b", false),
        ("/etc/changed", true),
        ("/etc/image", false),
        ("/etc/systemd/system/a.service", true),
        ("/opt/none/c", true),
        (vmbake_firstboot::plan::PATH, false),
        ("/opt/web/a", true),
    ];
    assert_eq!(kept, expected);
    assert!(!actions.state.pending);
}

#[test]
fn sent_files_make_room_for_others() {
    let mut layer = layer();
    layer.schema.units = Default::default();
    let sent = |content: &str| SentFile {
        layer: "web".to_owned(),
        digest: Digest::of(content.as_bytes()),
        earlier: BTreeSet::new(),
        created: true,
    };
    let node = |kind: &str, content: &str| FoundNode {
        kind: kind.to_owned(),
        target: if kind == "l" { content.to_owned() } else { String::new() },
        digest: (kind == "f").then(|| Digest::of(content.as_bytes())),
        ..FoundNode::default()
    };
    // Directories and files that sync made, what else there is, desired files and links, and actions.
    for (directories, files, others, desired, expected) in [
        ("", "/a", "", "f/a/b/c", "remove /a, directory /a, directory /a/b, write /a/b/c"),
        ("/a /a/b", "/a/b/c /a/d", "", "f/a", "remove /a/b/c, remove /a/d, remove /a/b/, remove /a/, write /a"),
        ("/a", "/a/b", "", "f/a/b/c", "remove /a/b, directory /a/b, write /a/b/c"),
        ("/a", "/a/b", "/a/c", "f/a", "remove /a/b; /a is a directory on the machine"),
        ("/a /b", "/a/b /b/c", "", "f/a/c", "write /a/c, remove /a/b, remove /b/c, remove /b/"),
        ("/a", "/a/b", "/a/c", "", "remove /a/b"),
        // One that is no longer there.
        ("/a /b", "/b/c", "", "", "remove /b/c, remove /b/"),
        ("", "/a", "", "l/a", "link /a"),
        ("", "", "/a", "l/a", "; /a is a file on the machine"),
        ("", "", "/a", "f/a/b", "; /a is not a directory on the machine"),
    ] {
        let mut installed = installed();
        let words = |text: &'static str| text.split_whitespace().map(str::to_owned);
        installed.state.directories = words(directories).collect();
        installed.state.files = words(files).map(|path| (path, sent("1"))).collect();
        let mut found = Found::default();
        words(directories).filter(|path| *path != "/a" || files.contains("/a")).for_each(|path| {
            found.nodes.insert(path, node("d", ""));
        });
        words(files).chain(words(others)).for_each(|path| drop(found.nodes.insert(path, node("f", "1"))));
        found.entries = found.nodes.keys().cloned().collect();
        let wanted = words(desired).map(|path| {
            let node = match path.strip_prefix('l') {
                Some(_) => DesiredNode::Link("b".to_owned()),
                None => DesiredNode::File(b"2".to_vec()),
            };
            let desired = Desired { layer: "web".to_owned(), ownership: desired::owned_by_root(0o644), node };
            (path[1..].to_owned(), desired)
        });
        let actions = compare(&wanted.collect(), &[&layer], &installed.plan, &installed, &found);
        let told = actions.list.iter().map(|action| shown(action).replace(" 644 root", "").replace(" 755 root", ""));
        let refused = actions.new_image.iter().map(|one| format!("; {}", one.why)).collect::<String>();
        assert_eq!(
            told.collect::<Vec<_>>().join(", ") + &refused,
            expected,
            "{directories} {files} {others} {desired}"
        );
        let kept = actions.state.directories.iter().all(|path| {
            found.nodes.contains_key(path)
                || actions.list.iter().any(|action| shown(action) == format!("directory {path} 755 root"))
        });
        assert!(kept, "{:?}", actions.state.directories);
    }
}

#[test]
fn keys_that_cannot_be_sent_are_compared() {
    let (layer, installed, found) = (layer(), installed(), found());
    let keys = keys::compare(&layer, &installed, &found).unwrap();
    let named = |list: &[NewImage]| list.iter().map(|one| format!("{}: {}", one.what, one.why)).collect::<Vec<_>>();
    let expected = [
        "packages: other packages were resolved for the image",
        "groups: group other does not exist on the machine",
        "remove: /etc/gone exists on the machine",
    ];
    assert_eq!(named(&keys.differs), expected);
    assert_eq!(named(&keys.unknown), ["capabilities: not recorded on the machine", "remove: /var/*.log"]);
}

#[test]
fn units_are_known_by_their_paths() {
    for (path, expected) in [
        ("/etc/systemd/system/a.service", Some("a.service")),
        ("/usr/lib/systemd/system/a.service.d/x.conf", Some("a.service")),
        ("/etc/systemd/network/a.network", None),
        ("/etc/systemd/system/service.d/x.conf", None),
        ("/etc/systemd/system/web-.service.d/x.conf", None),
        ("/etc/systemd/system/multi-user.target.wants/a.service", None),
        ("/etc/systemd/system/a.conf", None),
        ("/opt/a.service", None),
    ] {
        assert_eq!(unit(path), expected, "{path}");
    }
}

#[test]
fn a_sent_plan_is_compared_without_changed_layers() {
    let (layer, mut installed) = (layer(), installed());
    assert!(compares_plan(&[&layer], &installed));
    assert!(compares_plan(&[], &installed));
    installed.state.files.remove(vmbake_firstboot::plan::PATH);
    assert!(!compares_plan(&[], &installed));
    assert!(compares_plan(&[&layer], &installed));
}

/// The fixtures without files, with a layer that is in the image.
fn restored(units: [&str; 3], before: Option<(&str, &str)>) -> (Layer, Installed) {
    let (mut layer, mut installed) = (layer(), installed());
    let [enable, disable, mask] =
        units.map(|names| names.split_whitespace().map(str::to_owned).collect::<Vec<String>>());
    layer.schema.units.enable = enable;
    layer.schema.units.disable = disable;
    layer.schema.units.mask = mask;
    installed.state.files.clear();
    installed.record.layers.get_mut("web").unwrap().digest = layer.digest;
    if let Some((unit, state)) = before {
        let units = [(unit.to_owned(), state.to_owned())].into();
        installed.state.units.insert("web".to_owned(), units);
    }
    (layer, installed)
}

#[test]
fn changes_of_units_are_recorded_and_undone() {
    // Keys `enable`, `disable` and `mask` of the layer; the recorded state; the state on the machine; actions; the state recorded next for a
    // layer that differs from the image.
    for (units, before, state, expected, next) in [
        (["", "", "u.service"], None, "enabled", "mask u.service", Some("enabled")),
        (["", "", "u.service"], Some("enabled"), "masked", "", Some("enabled")),
        (["u.service", "", ""], Some("enabled"), "masked", "enable u.service", Some("enabled")),
        (["", "", ""], Some("enabled"), "masked", "enable u.service", None),
        (["", "", ""], Some("static"), "masked", "unmask u.service", None),
        // It ran without being enabled.
        (["", "", "u.service"], None, "static active", "mask u.service", Some("static active")),
        (["", "", ""], Some("static active"), "masked", "unmask u.service, start u.service", None),
        (["", "u.service", ""], Some("disabled active"), "masked", "unmask u.service", Some("disabled active")),
        (["", "", ""], Some("enabled active"), "masked", "enable u.service", None),
        (["", "u.service", ""], None, "enabled active", "disable u.service", Some("enabled active")),
        (["", "", ""], Some("masked"), "masked", "", None),
        (["u.service", "", ""], None, "indirect", "enable u.service", Some("indirect")),
        (["u.service", "", ""], Some("indirect"), "indirect", "", Some("indirect")),
        (["", "", ""], Some("enabled"), "disabled", "enable u.service", None),
        (["", "", ""], Some("enabled"), "enabled", "", None),
        (["", "", ""], None, "masked", "", None),
        (["", "", ""], Some("disabled"), "enabled", "", None),
        (["", "u.service", ""], Some("disabled"), "enabled", "disable u.service", Some("disabled")),
        (["", "u.service", ""], Some("enabled"), "masked", "unmask u.service, disable u.service", Some("enabled")),
    ] {
        let about = format!("{units:?} {before:?} {state}");
        let (layer, mut installed) = restored(units, before.map(|before| ("u.service", before)));
        let mut found = found();
        found.units.insert("u.service".to_owned(), state.to_owned());
        let actions = |installed: &Installed| compare(&BTreeMap::new(), &[&layer], &installed.plan, installed, &found);
        let of_image = actions(&installed);
        assert_eq!(of_image.list.iter().map(shown).collect::<Vec<_>>().join(", "), expected, "{about}");
        assert!(of_image.state.units.is_empty(), "{about}");
        installed.record.layers.get_mut("web").unwrap().digest = ZEROS.parse().unwrap();
        let changed = actions(&installed);
        assert_eq!(changed.list, of_image.list, "{about}");
        let recorded = changed.state.units.get("web").and_then(|units| units.get("u.service"));
        assert_eq!(recorded.map(String::as_str), next, "{about}");
    }
    // The first-boot program enables units of the plan.
    let (layer, installed) = restored(["planned.service", "", ""], Some(("planned.service", "enabled")));
    let mut found = found();
    found.units.insert("planned.service".to_owned(), "masked".to_owned());
    let actions = compare(&BTreeMap::new(), &[&layer], &installed.plan, &installed, &found);
    assert_eq!(actions.list.iter().map(shown).collect::<Vec<_>>(), ["unmask planned.service"]);
}

#[test]
fn layers_with_changed_units_are_compared() {
    let own = BTreeSet::from(["web".to_owned()]);
    for (before, own, expected, foreign) in [
        (None, &own, 0, 0),
        (Some(("u.service", "enabled")), &own, 1, 0),
        (Some(("u.service", "enabled")), &BTreeSet::new(), 0, 1),
    ] {
        let (layer, installed) = restored(["u.service", "", ""], before);
        let (scope, named) = scope(std::slice::from_ref(&layer), own, &BTreeMap::new(), &installed);
        assert_eq!((scope.len(), named.len()), (expected, foreign), "{before:?}");
    }
}

#[test]
fn a_state_without_units_is_read() {
    let state: State = serde_json::from_str("{\"files\": {}}").unwrap();
    assert_eq!(state, State::default());
    assert_eq!(serde_json::to_string(&state).unwrap(), "{\"files\":{}}");
}

#[test]
fn files_of_the_machine_are_reserved() {
    let mut installed = installed();
    installed.plan = serde_json::from_str(
        r#"{"inputs": {"user_data": "/opt/a", "detected": "/opt/b", "mutable": "/opt/c", "defaults": "/opt/defaults", "marker": "/opt/d"}}"#,
    )
    .unwrap();
    for path in [
        "/etc/passwd",
        "/etc/group",
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/machine-id",
        "/etc/os-release",
        "/lib/os-release",
        "/usr/lib/os-release",
        "/opt/podplane/share/vmconfig-installed.json",
        "/opt/podplane/share/vmbake-origin.json",
        "/opt/podplane/share/firstboot.json",
        "/opt/podplane/bin/firstboot",
        "/opt/defaults",
        "/var/lib/vmbake/sync",
        "/var/lib/vmbake/sync/state.json",
        "/var/lib/vmbake/sync/a/b",
    ] {
        assert!(installed.is_reserved(path), "{path}");
    }
    for path in ["/etc/passwd.d/a", "/opt/podplane/share/templates/a", "/var/lib/vmbake/synced", "/opt/podplane/bin/a"]
    {
        assert!(!installed.is_reserved(path), "{path}");
    }
}

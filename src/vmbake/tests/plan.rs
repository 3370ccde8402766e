//! The first-boot plan: parts of layers in; the plan, the defaults and the baked files of an image out, or all errors.

use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use vmbake_bake::inputs::prepare;
use vmbake_common::catalog::Catalog;
use vmbake_common::progress::Progress;
use vmbake_compose::merge::merge;
use vmbake_compose::stage;
use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};
use vmbake_fetch::verify;
use vmbake_fetch::{Supply, fetch};
use vmbake_firstboot::plan::{PATH, Plan};
use vmbake_layer::first_boot::compile;
use vmbake_layer::{Layers, check};
use vmbake_manifest::Manifest;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

#[test]
fn built_in_kinds_have_plans_that_read_again() {
    for (kind, has, lacks) in
        [("node", "", "kubelet"), ("knd", "kubelet", "kube-apiserver"), ("knc", "kube-apiserver", "")]
    {
        let layers = Layers::load(&Catalog::built_in()).unwrap().resolve(kind, "debian-13").unwrap();
        let compiled = compile(&layers, "x86_64-linux-gnu").unwrap();
        let text = serde_json::to_string_pretty(&compiled.plan).unwrap();
        let again: Plan = serde_json::from_str(&text).unwrap();
        assert_eq!(text, serde_json::to_string_pretty(&again).unwrap());
        // The machine has a smaller parser.
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(text, serde_json::to_string_pretty(&Plan::read(&value).unwrap()).unwrap());
        assert!(has.is_empty() || again.exec.get(has).is_some(), "{kind}");
        assert!(again.exec.get(lacks).is_none(), "{kind}");
        assert!(again.directories.get("/opt/podplane/bin").is_some(), "{kind}");
        assert_eq!(again.inputs.is_some(), kind != "node");
        for index in 0..again.files.len() {
            let source = compiled.source(&format!("/files/{index}/path")).unwrap();
            assert!(layers.iter().any(|layer| layer.schema.name == source.layer && layer.schema.first_boot.is_some()));
        }
    }
}

/// A layer: name, keys after `os`, files with their texts.
type OneLayer<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)]);

/// Writes layers.
fn write(root: &Path, layers: &[OneLayer<'_>]) {
    for (name, rest, files) in layers {
        let text = format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"], {rest}}}"#);
        for (path, text) in [("layer.json".to_owned(), text.as_str())]
            .into_iter()
            .chain(files.iter().map(|(path, text)| (format!("files{path}"), *text)))
        {
            let path = root.join(name).join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }
}

fn faults(root: &Path, name: &str) -> Vec<String> {
    let found = check(&root.join(name), &Catalog::built_in()).unwrap();
    found.iter().map(|fault| fault.to_string().replace(&format!("{}/", root.display()), "")).collect()
}

#[test]
fn what_goes_wrong_together_is_told_of_the_layer_that_requires_both() {
    let dir = tempfile::tempdir().unwrap();
    let part = r#""first_boot": {"variables": {"A": {}}}"#;
    write(
        dir.path(),
        &[
            ("hygiene", r#""requires": []"#, &[]),
            ("a", part, &[]),
            ("b", part, &[]),
            ("both", r#""requires": ["a", "b"]"#, &[]),
            ("top", r#""requires": ["both"]"#, &[]),
        ],
    );
    let expected = "layer b: /first_boot/variables/A: already defined by layer a";
    let found = faults(dir.path(), "both");
    assert!(
        found.len() == 1 && found[0].ends_with(expected) && found[0].starts_with("both/layer.json:1:"),
        "{found:?}"
    );
    for name in ["a", "b", "top"] {
        assert_eq!(faults(dir.path(), name), [""; 0], "{name}");
    }
    let error = Layers::load(&Catalog::only(dir.path())).and_then(Layers::complete).unwrap_err().to_string();
    assert!(error.contains(expected), "{error}");
}

#[test]
fn units_and_programs_know_each_other() {
    let dir = tempfile::tempdir().unwrap();
    let unit = "/usr/lib/systemd/system/x.service";
    let part = r#""first_boot": {
        "files": [{"path": "/e", "mode": "0640", "content": {"environment": [{"name": "A", "value": "a"}]}}],
        "exec": {"x": {"environment_file": "/e", "program": "/opt/x", "arguments": ["{{ A }}", "{{ B }}"]}}}"#;
    write(
        dir.path(),
        &[
            (
                "called",
                &part.replace(", \"{{ B }}\"", ""),
                &[(unit, "[Service]\nExecStart=/f/firstboot exec x\n"), ("/opt/x", "")],
            ),
            ("other", &part.replace(", \"{{ B }}\"", ""), &[(unit, "[Service]\nExecStart=-/f/firstboot exec y\n")]),
            ("outside", part, &[(unit, "[Service]\nExecStart=/f/firstboot exec x\n"), ("/opt/x", "")]),
        ],
    );
    assert_eq!(faults(dir.path(), "called"), [""; 0]);
    let found = faults(dir.path(), "other");
    for expected in [
        "no unit of the layers calls `firstboot exec x`",
        "files/usr/lib/systemd/system/x.service:2: calls `firstboot exec y`, which is not in `exec` of any layer",
        "warning: program \"/opt/x\" is neither in this layer nor in a required layer",
    ] {
        assert!(found.iter().any(|fault| fault.ends_with(expected)), "{expected}: {found:#?}");
    }
    assert_eq!(found.len(), 3, "{found:#?}");
    let found = faults(dir.path(), "outside");
    assert!(found.len() == 1 && found[0].ends_with("B is not defined"), "{found:?}");
}

/// A base with a unit, programs, and `/lib` as a link into `/usr`.
fn base() -> Tree {
    let meta = Metadata::root(0o755, Timestamp::default());
    let mut tree = Tree::new(meta.clone(), Origin { layer: "base".to_owned(), ..Origin::default() });
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    let mut place = |path: &str, mode: u16, kind: Kind| {
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        let meta = Metadata::root(mode, Timestamp::default());
        tree.place(path.as_bytes(), Inode { meta, kind, origin }).unwrap();
    };
    place("/usr/lib/x.so", 0o777, Kind::Symlink(b"x.so.1".to_vec()));
    place("/lib", 0o777, Kind::Symlink(b"usr/lib".to_vec()));
    for (path, mode, text) in [
        ("/etc/passwd", 0o644, "root:x:0:0:root:/root:/bin/sh\ndaemon:x:1:1::/:/bin/sh\n"),
        ("/etc/group", 0o644, "root:x:0:\ndaemon:x:1:\n"),
        ("/usr/bin/program", 0o755, ""),
        ("/usr/bin/text", 0o644, ""),
        ("/usr/lib/x.so.1", 0o644, ""),
        ("/usr/lib/systemd/system/plain.service", 0o644, "[Service]\n"),
        ("/usr/lib/systemd/system/good.service", 0o644, "[Install]\nWantedBy=multi-user.target\n"),
    ] {
        let source = tree.sources_mut().add(Arc::new(text.as_bytes().to_vec()));
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &meta, origin).unwrap();
        let kind = Kind::File(Map::whole(source, 0, text.len() as u64));
        tree.place(path.as_bytes(), Inode { meta: Metadata::root(mode, meta.mtime), kind, origin }).unwrap();
    }
    tree
}

/// Merges the layers up to `top` onto the base.
fn merged(top: &str, layers: &[OneLayer<'_>]) -> Result<Tree, String> {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), &[("hygiene", r#""remove": []"#, &[])]);
    write(dir.path(), layers);
    let layers = Layers::load(&Catalog::only(dir.path()))
        .and_then(Layers::complete)
        .map_err(|error| error.to_string())?
        .resolve(top, "o")
        .unwrap();
    let text =
        format!(r#"{{"vmconfig": {{"version": "dev", "kind": "{top}", "os": {{"name": "o", "arch": "amd64"}}}}}}"#);
    let manifest = Manifest::parse(Path::new("m"), text.into_bytes()).unwrap();
    let store = Store::open(Some(dir.path().join("store"))).unwrap();
    let (sources, threads) = (Sources::load(&Catalog::built_in()).unwrap(), NonZeroUsize::MIN);
    let supply = Supply { store: &store, sources: &sources, anchors: &Anchors::default(), client: None, threads };
    let fetched = fetch(&manifest, &supply, &Progress::new(true)).unwrap();
    let verify::Verified { artifacts, .. } = verify::check(fetched, None, &store, threads).unwrap();
    let plan = stage::Plan::new(layers, &manifest).unwrap();
    let (staged, _) = prepare(plan, artifacts, None, None, &store, threads).unwrap();
    merge(
        base(),
        staged,
        &manifest,
        &std::collections::BTreeMap::new(),
        vmbake_compose::merge::Pins::Fixed,
        Timestamp { secs: 1, nanos: 0 },
    )
    .map(|merged| merged.tree)
    .map_err(|error| error.to_string())
}

fn text(tree: &Tree, path: &str) -> String {
    String::from_utf8(tree.read(path.as_bytes(), 1 << 20).unwrap()).unwrap()
}

/// The layer that a path came from.
fn layer_of(tree: &Tree, path: &str) -> String {
    tree.origin(tree.inode(tree.lookup(path.as_bytes()).unwrap()).origin).layer.clone()
}

#[test]
fn an_image_has_its_plan_its_defaults_and_what_is_baked() {
    let a = r#""directories": {"/lib/own": {"mode": "0750"}, "/opt/gone": {"mode": "0755"}},
        "modes": {"/lib/x.so": {"mode": "0755"}},
        "first_boot": {
            "inputs": {"user_data": "/opt/u", "detected": "/opt/d", "mutable": "/opt/m", "defaults": "/opt/share/defaults", "marker": "/opt/k"},
            "variables": {"B": {"mutable": true, "default": "it's"}, "A": {"mutable": true},
                "U": {"mutable": true, "unlisted": true, "default": "u"}, "C": {"default": "c"}, "R": {"required": true}},
            "detect": [{"name": "KIND", "value": "{{ kind }}{{ hostname }}"}]}"#;
    let b = r#""requires": ["a"], "expand": ["/opt/share/x.tmpl"], "remove": ["/opt/gone"],
        "first_boot": {
            "values": [{"name": "D", "value": "{{ C ~ 'd' }}"}],
            "services": [{"unit": "good.service"}],
            "commands": [["/usr/bin/program"]],
            "files": [
                {"path": "/etc/x/x.conf", "mode": "0640", "group": "daemon", "directory": {"mode": "0750", "group": "daemon"},
                    "bake": true, "content": {"template": {"file": "/opt/share/x.tmpl", "format": "json"}}},
                {"path": "/etc/later", "mode": "0640", "content": {"text": "{{ R }}"}}]}"#;
    let template = "on @{arch}: {{ B }} {{ D }}{{ KIND }}\n{% if R %}\nnever\n{% endif %}\n";
    let tree = merged("b", &[("a", a, &[]), ("b", b, &[("/opt/share/x.tmpl", template)])]).unwrap();
    assert_eq!(text(&tree, "/etc/x/x.conf"), "on amd64: \"it's\" \"cd\"\"b\"\n");
    assert_eq!(text(&tree, "/opt/share/defaults"), "A=''\nB='it'\"'\"'s'\n");
    let plan: Plan = serde_json::from_str(&text(&tree, PATH)).unwrap();
    assert_eq!(text(&tree, PATH), serde_json::to_string_pretty(&plan).unwrap() + "\n");
    assert_eq!(plan.directories.keys().collect::<Vec<_>>(), ["/usr/lib/own"]);
    assert_eq!(plan.modes.keys().collect::<Vec<_>>(), ["/usr/lib/x.so.1"]);
    assert!(plan.variables.get("R").unwrap().required);
    for (path, layer) in [(PATH, "a"), ("/opt/share/defaults", "a"), ("/etc/x/x.conf", "b"), ("/etc/x", "b")] {
        assert_eq!(layer_of(&tree, path), layer, "{path}");
    }
    let meta = |path: &str| {
        let meta = &tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta;
        (meta.mode, meta.uid, meta.gid)
    };
    assert_eq!((meta("/etc/x/x.conf"), meta("/etc/x"), meta(PATH)), ((0o640, 0, 1), (0o750, 0, 1), (0o644, 0, 0)));
    assert_eq!(tree.lookup(b"/etc/later"), None);
    let plain = merged("a", &[("a", r#""empty": ["/etc/x"]"#, &[])]).unwrap();
    assert_eq!(plain.lookup(PATH.as_bytes()), None, "no plan was requested");
}

#[test]
fn an_image_tells_what_only_it_knows() {
    let file = r#""mode": "0640", "content": {"text": ""}"#;
    for (part, expected) in [
        (r#""services": [{"unit": "none.service"}]"#.to_owned(), "services/0/unit: unit \"none.service\" is not in the image"),
        (r#""services": [{"unit": "plain.service"}]"#.to_owned(), "services/0/unit: unit \"plain.service\" has no [Install]"),
        (r#""commands": [["/usr/bin/none"]]"#.to_owned(), "commands/0/0: program \"/usr/bin/none\" is not in any layer, artifact or package"),
        (r#""commands": [["/usr/bin/text"]]"#.to_owned(), "commands/0/0: program \"/usr/bin/text\" cannot be run with mode 0644"),
        (r#""users": {"u": {"when": "true", "shell": "/usr"}}"#.to_owned(), "users/u/shell: program \"/usr\" is a directory"),
        (r#""modes": {"/opt/none": {"mode": "0640"}}"#.to_owned(), "modes/~1opt~1none: \"/opt/none\" is not in the image"),
        (r#""optional_modes": {"/x": {"mode": "0640", "group": "who"}}"#.to_owned(), "optional_modes/~1x/group: group \"who\" is created neither"),
        (format!(r#""files": [{{"path": "/lib/x", {file}}}]"#), "files/0/path: path \"/lib/x\": its \"lib\" is a symbolic link"),
        (format!(r#""files": [{{"path": "/usr/lib", {file}}}]"#), "files/0/path: path \"/usr/lib\": its \"lib\" is a directory"),
        (
            r#""variables": {"R": {}}, "files": [{"path": "/x", "mode": "0640", "bake": true, "content": {"text": "{{ R|int }}"}}]"#.to_owned(),
            "cannot write a file of the first boot into the image",
        ),
    ] {
        let error = merged("a", &[("a", &format!(r#""first_boot": {{{part}}}"#), &[])]).unwrap_err();
        let expected = if expected.starts_with("cannot") { expected.to_owned() } else { format!("layer a: /first_boot/{expected}") };
        assert!(error.starts_with(&expected), "{error}");
    }
}

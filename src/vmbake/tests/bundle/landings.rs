//! Attacks through links: no key of a bundle's layer changes anything outside of its grants.

use std::path::Path;
use std::process::Command;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::composing::{bake, shop};
use super::shop::{Shop, document, layer};
use crate::elf::parts::{Make, library};
use crate::fixtures as parts;
use crate::origin::image::write_disk;
use crate::tools::have;

/// A base with links from `/usr/lib/ssl`, as Debian's openssl has them, and worse ones.
fn base() -> Tree {
    let mut tree = parts::base_with(&[
        ("/boot/grub/grub.cfg", "menuentry 'x' {\n linux /boot/vmlinuz ro\n initrd /boot/initrd\n}\n"),
        ("/boot/vmlinuz", "v"),
        ("/boot/initrd", "i"),
        ("/etc/machine-id", ""),
        ("/etc/os-release", "ID=o\n"),
        ("/etc/ssl/certs/ca.crt", "the real one\n"),
        ("/etc/ld.so.conf", "include /etc/ld.so.conf.d/*.conf\n"),
        ("/etc/ld.so.conf.d/libc.conf", "/usr/local/lib\n"),
        ("/etc/hard.conf", "one file with two names\n"),
        ("/etc/secret", "s\n"),
        ("/etc/deep/x", "x\n"),
        ("/etc/ssl/certs/deep/x", "x\n"),
        ("/usr/lib/ssl/openssl.cnf", "o\n"),
    ]);
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    let meta = Metadata::root(0o777, Timestamp::default());
    for (path, to) in [
        ("/usr/lib/ssl/certs", "/etc/ssl/certs"),
        ("/usr/lib/ssl/chain", "../second"),
        ("/usr/lib/second", "../../opt/third"),
        ("/opt/third", "/etc"),
        ("/usr/lib/ssl/secret", "/etc/secret"),
    ] {
        tree.make_dirs(path.rsplit_once('/').unwrap().0.as_bytes(), &Metadata::root(0o755, meta.mtime), origin)
            .unwrap();
        let kind = Kind::Symlink(to.as_bytes().to_vec());
        tree.place(path.as_bytes(), Inode { meta: meta.clone(), kind, origin }).unwrap();
    }
    let (dir, hard) = (tree.lookup(b"/usr/lib/ssl").unwrap(), tree.lookup(b"/etc/hard.conf").unwrap());
    tree.link(dir, b"hard.conf", hard).unwrap();
    tree
}

/// A shop whose bundle was granted `/usr/lib/ssl`, and whose images have these links.
fn linked() -> Option<Shop> {
    let shop = shop()?;
    // The disk is written in another directory, where nothing has the names of its parts.
    std::fs::create_dir(shop.path("linked")).unwrap();
    write_disk(&base(), &shop.path("linked/base.raw"));
    std::fs::rename(shop.path("linked/base.raw"), shop.path("base.raw")).unwrap();
    shop.yard.updated();
    Some(shop)
}

/// Packs the bundle with another document and layer, trusts it, and bakes it.
fn baked(shop: &Shop, paths: &str, asks: &str, layer: &str) -> (bool, String) {
    let text = document(asks).replace("\"/opt/tool\", ", &format!("\"/opt/tool\", {paths}, "));
    shop.put("agent/bundle.json", &text);
    shop.put("agent/layers/acme.agent/layer.json", layer);
    let (ok, said) = shop.pack("linked.oci", &["--key=acme.key", "--offline", "--force"]);
    if !ok {
        return (ok, said);
    }
    let (ok, said) = shop.said(&["trust", "linked.oci", "--key", "acme.pub", "--yes"]);
    assert!(ok, "{said}");
    std::fs::remove_file(shop.path("m/bundles.lock.json")).ok();
    bake(shop, &["--with=linked.oci"])
}

/// More keys of the layer, and what is said of the bake.
const ATTACKS: &[(&str, &str)] = &[
    (r#", "expand": ["/usr/lib/ssl/certs/ca.crt"]"#, "changes /etc/ssl/certs/ca.crt"),
    (r#", "directories": {"/usr/lib/ssl/certs/new": {"mode": "0777"}}"#, "creates /etc/ssl/certs/new"),
    (r#", "modes": {"/usr/lib/ssl/certs/ca.crt": {"mode": "0666"}}"#, "changes /etc/ssl/certs/ca.crt"),
    (r#", "modes": {"/usr/lib/ssl/secret": {"mode": "0666"}}"#, "changes /etc/secret"),
    (r#", "modes": {"/usr/lib/ssl/hard.conf": {"mode": "0666"}}"#, "changes /etc/hard.conf"),
    (r#", "symlinks": {"/usr/lib/ssl/certs/b.crt": "/tmp/b.crt"}"#, "creates /etc/ssl/certs/b.crt"),
    (r#", "symlinks": {"/usr/lib/ssl/chain/cron.d": "/tmp"}"#, "creates /etc/cron.d"),
    (r#", "remove": ["/usr/lib/ssl/certs/ca.crt"]"#, "removes /etc/ssl/certs/ca.crt"),
    (r#", "remove": ["/usr/lib/ssl/certs/deep/*"]"#, "removes /etc/ssl/certs/deep/x"),
    (r#", "remove": ["/usr/lib/ssl/chain/deep/**"]"#, "removes /etc/deep/x"),
    (r#", "empty": ["/usr/lib/ssl/certs/ca.crt"]"#, "changes /etc/ssl/certs/ca.crt"),
    (r#", "empty": ["/usr/lib/ssl/chain/nologin"]"#, "creates /etc/nologin"),
    (r#", "users": {"agent": {"id": 990, "home": "/usr/lib/ssl/certs"}}"#, "writes /etc/ssl/certs"),
    (r#", "users": {"agent": {"id": 990, "home": "/usr/lib/ssl/certs/deep"}}"#, "writes /etc/ssl/certs/deep"),
    (r#", "truncate": ["/usr/lib/ssl/certs/ca.crt"]"#, "changes /etc/ssl/certs/ca.crt"),
    (r#", "users": {"agent": {"id": 990, "home": "/usr/lib/ssl/certs/home"}}"#, "writes /etc/ssl/certs/home"),
];

#[test]
fn no_key_leads_out_of_what_was_granted() {
    let Some(shop) = linked() else { return };
    let file = |layer: &str, path: &str| {
        layer.replacen("\"files\": {", &format!("\"files\": {{\"{path}\": {{\"content\": \"x\\n\"}}, "), 1)
    };
    let mut wrong = Vec::new();
    let mut attack = |layer: &str, expected: &str| {
        let (ok, said) = baked(&shop, "\"/usr/lib/ssl\"", r#", "users": ["agent"]"#, layer);
        let whole = format!("layer acme.agent: {expected}");
        if ok || !said.contains(&whole) || !said.contains("hint: ") || shop.path("dist/box.o.amd64.raw").exists() {
            wrong.push(format!("{expected}: {layer}: {said}"));
        }
    };
    for (keys, expected) in ATTACKS {
        let plain = layer(keys);
        attack(&if keys.contains("expand") { file(&plain, "/usr/lib/ssl/certs/ca.crt") } else { plain }, expected);
    }
    attack(&file(&layer(""), "/usr/lib/ssl/chain/sudoers.d/agent"), "creates /etc/sudoers.d");
    attack(&layer("").replace("\"/opt/tool\"", "\"/usr/lib/ssl/certs/tool\""), "creates /etc/ssl/certs/tool");
    // The plan of the first boot names real paths, since its program follows no link.
    let part = r#""first_boot": {"modes": {"/usr/lib/ssl/certs/ca.crt": {"mode": "0666"}}, "#;
    attack(&layer("").replacen("\"first_boot\": {", part, 1), "writes /etc/ssl/certs/ca.crt");
    let part = r#""first_boot": {"directories": {"/usr/lib/ssl/certs/x": {"mode": "0777"}}, "#;
    let of_link = r#"/first_boot/directories/~1usr~1lib~1ssl~1certs~1x: path "/usr/lib/ssl/certs/x": its "certs" is a symbolic link"#;
    attack(&layer("").replacen("\"first_boot\": {", part, 1), of_link);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn only_regular_files_are_made_empty() {
    let Some(shop) = linked() else { return };
    for (key, path, found) in [
        ("truncate", "/usr/lib/ssl/secret", "symbolic link"),
        ("empty", "/usr/lib/ssl/certs", "directory or a link to one"),
        ("truncate", "/usr/lib/ssl", "directory"),
        ("empty", "/usr/lib/ssl", "directory or a link to one"),
    ] {
        shop.yard.layer("box", &format!(r#", "{key}": ["{path}"]"#));
        shop.yard.updated();
        let (ok, said) = bake(&shop, &[]);
        assert!(
            !ok && said.contains(&format!("{path}: is a {found}, but `{key}` only supports regular files")),
            "{said}"
        );
    }
}

#[test]
fn a_grant_of_the_place_itself_is_enough() {
    let Some(shop) = linked() else { return };
    let keys = r#", "users": {"agent": {"id": 990, "home": "/srv/deep/agent"}}, "modes": {"/usr/lib/ssl/certs/ca.crt": {"mode": "0600"}}"#;
    let paths = r#""/usr/lib/ssl", "/etc/ssl", "/srv/deep/agent""#;
    let (ok, said) = baked(&shop, paths, r#", "users": ["agent"]"#, &layer(keys));
    assert!(ok, "{said}");
    let listed = |path: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_vmbake"));
        let output = command.args(["ls", "dist/box.o.amd64.raw", path]).current_dir(shop.path(".")).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(listed("/etc/ssl/certs/ca.crt").starts_with("-rw------- "), "{}", listed("/etc/ssl/certs/ca.crt"));
    assert!(listed("/srv/deep").contains("/srv/deep/agent"), "{}", listed("/srv/deep"));
    assert!(Path::new(&shop.path("m/bundles.lock.json")).exists());
}

#[test]
fn a_link_of_a_bundle_is_no_way_for_other_layers() {
    let Some(shop) = linked() else { return };
    shop.yard
        .layer("box", r#", "modes": {"/etc/agent/link/secret": {"mode": "0640"}}, "empty": ["/etc/agent/link/made"]"#);
    shop.yard.updated();
    let (ok, said) = baked(&shop, "\"/usr/lib/ssl\"", "", &layer(r#", "symlinks": {"/etc/agent/link": "/etc"}"#));
    assert!(!ok && said.contains("link"), "{said}");
}

#[test]
fn a_user_of_a_bundle_joins_no_group_that_was_not_asked_for() {
    let Some(shop) = Shop::new() else { return };
    for (key, keys) in [
        ("users", r#", "users": {"agent": {"id": 990, "home": "/opt/tool/home", "groups": ["sudo"]}}"#),
        ("users", r#", "users": {"agent": {"id": 990, "home": "/opt/tool/home", "optional_groups": ["sudo"]}}"#),
    ] {
        shop.write(r#", "users": ["agent"]"#, keys);
        let (ok, said) = shop.check("agent");
        let expected = format!("layer acme.agent: `{key}`: agent joins group \"sudo\", which is not in `asks/users`");
        assert!(!ok && said.contains(&expected), "{said}");
        shop.write(r#", "users": ["agent", "sudo"]"#, keys);
        assert_eq!(shop.check("agent"), (true, String::new()));
    }
}

#[test]
fn what_is_made_of_a_file_must_be_granted_too() {
    let Some(shop) = linked() else { return };
    let file = |path: &str, content: &str| {
        layer("").replacen("\"files\": {", &format!("\"files\": {{\"{path}\": {{\"content\": {content:?}}}, "), 1)
    };
    let certificate = include_str!("../data/certificates/first.pem");
    for (path, content, expected) in [
        ("/usr/local/share/ca-certificates/a.crt", certificate, "layer acme.agent: writes /etc/ssl/certs"),
        ("/etc/default/grub.d/a.cfg", "GRUB_TIMEOUT=3\n", "layer acme.agent: writes /boot/grub/grub.cfg"),
    ] {
        let (ok, said) = baked(&shop, &format!("{path:?}"), r#", "users": ["agent"]"#, &file(path, content));
        assert!(!ok && said.contains(expected), "{path}: {said}");
    }
}

/// The library goes to the one path that is granted, but others would find it by its soname.
#[test]
fn a_library_has_no_name_that_is_not_granted() {
    let Some(shop) = shop().filter(|_| have(&["ldconfig"])) else { return };
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(root.path().join("etc/ld.so.conf.d")).unwrap();
    std::fs::write(root.path().join("etc/ld.so.conf"), "").unwrap();
    assert!(Command::new("ldconfig").arg("-r").arg(root.path()).status().unwrap().success());
    let mut tree = base();
    let cache = std::fs::read(root.path().join("etc/ld.so.cache")).unwrap();
    let (len, source) = (cache.len() as u64, tree.sources_mut().add(std::sync::Arc::new(cache)));
    let kind = Kind::File(Map::whole(source, 0, len));
    let (meta, origin) = (Metadata::root(0o644, Timestamp::default()), tree.first_origin());
    tree.place(b"/etc/ld.so.cache", Inode { meta, kind, origin }).unwrap();
    std::fs::create_dir(shop.path("linked")).unwrap();
    write_disk(&tree, &shop.path("linked/base.raw"));
    std::fs::rename(shop.path("linked/base.raw"), shop.path("base.raw")).unwrap();
    shop.yard.updated();
    let folder = shop.path("agent/layers/acme.agent/files/usr/local/lib");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("libagent.so"), Make { soname: Some("libssl.so.3"), ..library(&[]) }.bytes()).unwrap();
    for (paths, is_granted) in [
        (r#""/usr/local/lib/libagent.so""#, false),
        (r#""/usr/local/lib/libagent.so", "/usr/local/lib/libssl.so.3""#, true),
    ] {
        let (ok, said) = baked(&shop, paths, r#", "users": ["agent"]"#, &layer(""));
        let is_refused = said.contains("layer acme.agent: writes /usr/local/lib/libssl.so.3");
        assert!(ok == is_granted && is_refused != is_granted, "{paths}: {said}");
    }
}

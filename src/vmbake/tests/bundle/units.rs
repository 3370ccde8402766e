//! Units of the base and of other layers: a grant of a unit directory does not let a bundle enable, replace, extend or remove them.

use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree};

use super::composing::{bake, shop};
use super::shop::{Shop, document, layer};
use crate::fixtures as parts;
use crate::origin::image::write_disk;

const DEBUG: &str = "[Service]\nExecStart=/bin/sh\n[Install]\nWantedBy=sysinit.target\n";

/// A base with units, one of which is enabled.
fn base() -> Tree {
    let mut tree = parts::base_with(&[
        ("/boot/grub/grub.cfg", "menuentry 'x' {\n linux /boot/vmlinuz ro\n initrd /boot/initrd\n}\n"),
        ("/boot/vmlinuz", "v"),
        ("/boot/initrd", "i"),
        ("/etc/machine-id", ""),
        ("/etc/os-release", "ID=o\n"),
        ("/etc/init.d/old", "#!/bin/sh\n"),
        ("/usr/lib/systemd/system/debug-shell.service", DEBUG),
        ("/usr/lib/systemd/system/dbus.service", "[Service]\nExecStart=/usr/bin/dbus\n"),
        ("/usr/lib/systemd/system/getty@.service", "[Service]\nExecStart=/usr/bin/getty\n"),
        ("/usr/lib/systemd/user/desk.service", "[Service]\nExecStart=/usr/bin/desk\n"),
    ]);
    let origin = tree.add_origin(Origin { layer: "base".to_owned(), ..Origin::default() });
    let meta = Metadata::root(0o777, Timestamp::default());
    let wants = "/etc/systemd/system/multi-user.target.wants";
    tree.make_dirs(wants.as_bytes(), &Metadata::root(0o755, meta.mtime), origin).unwrap();
    let kind = Kind::Symlink(b"/usr/lib/systemd/system/dbus.service".to_vec());
    tree.place(format!("{wants}/dbus.service").as_bytes(), Inode { meta, kind, origin }).unwrap();
    tree
}

fn workshop() -> Option<Shop> {
    let shop = shop()?;
    std::fs::create_dir(shop.path("linked")).unwrap();
    write_disk(&base(), &shop.path("linked/base.raw"));
    std::fs::rename(shop.path("linked/base.raw"), shop.path("base.raw")).unwrap();
    shop.yard.layer("box", r#", "units": {"files": {"late.service": ["[Service]", "ExecStart=/bin/true"]}}"#);
    shop.yard.updated();
    Some(shop)
}

/// Writes the bundle with more paths in its document and another layer.
fn write(shop: &Shop, paths: &str, layer: &str) {
    let text = document("").replace("\"/opt/tool\", ", &format!("\"/opt/tool\", \"/etc/systemd/user\", {paths}"));
    shop.put("agent/bundle.json", &text);
    shop.put("agent/layers/acme.agent/layer.json", layer);
}

/// Packs, trusts and bakes it.
fn baked(shop: &Shop, paths: &str, layer: &str) -> (bool, String) {
    write(shop, paths, layer);
    shop.packed("units.oci", &["--key=acme.key", "--offline", "--force"]);
    let (ok, said) = shop.said(&["trust", "units.oci", "--key", "acme.pub", "--yes"]);
    assert!(ok, "{said}");
    std::fs::remove_file(shop.path("m/bundles.lock.json")).ok();
    bake(shop, &["--with=units.oci"])
}

/// The layer with more lines of its unit's `[Install]` section.
fn with_install(lines: &str) -> String {
    layer("").replacen("\"[Install]\",", &format!("\"[Install]\", {lines},"), 1)
}

fn with_file(path: &str) -> String {
    let file = format!("\"files\": {{\"{path}\": {{\"content\": \"[Unit]\\nDescription=x\\n\"}}, ");
    layer("").replacen("\"files\": {", &file, 1)
}

fn with_boot_file(path: &str) -> String {
    let file = format!("\"files\": [{{\"path\": \"{path}\", \"mode\": \"0644\", \"content\": {{\"text\": \"x\"}}}}, ");
    layer("").replacen("\"files\": [", &file, 1)
}

fn with_link(path: &str, to: &str) -> String {
    layer(&format!(r#", "symlinks": {{"{path}": "{to}"}}"#))
}

#[test]
fn a_directory_of_units_is_granted_for_the_units_of_the_bundle() {
    let Some(shop) = workshop() else { return };
    let etc = "/etc/systemd/system";
    let debug = "/usr/lib/systemd/system/debug-shell.service";
    let wanted = format!("{etc}/multi-user.target.wants");
    let mut wrong = Vec::new();
    // What the layers alone show is told before anything is packed, the rest when the base is there.
    for (layer, path, unit) in [
        (with_install(r#""Also=debug-shell.service""#), format!("{etc}/debug-shell.service"), "debug-shell.service"),
        (
            with_link(&format!("{wanted}/debug-shell.service"), debug),
            format!("{wanted}/debug-shell.service"),
            "debug-shell.service",
        ),
        (
            with_link(&format!("{etc}/x.target.upholds/debug-shell.service"), debug),
            format!("{etc}/x.target.upholds/debug-shell.service"),
            "debug-shell.service",
        ),
        (with_link(&format!("{etc}/other.service"), debug), format!("{etc}/other.service"), debug),
        (with_link(&format!("{etc}/dbus.service.d"), "/opt/tool"), format!("{etc}/dbus.service.d"), "dbus.service"),
        (with_link(&format!("{etc}/x.target.wants"), "/opt/tool"), format!("{etc}/x.target.wants"), "x.target.wants"),
        (with_file(&format!("{etc}/dbus.service.d/x.conf")), format!("{etc}/dbus.service.d/x.conf"), "dbus.service"),
        (with_file(&format!("{etc}/service.d/x.conf")), format!("{etc}/service.d/x.conf"), "service"),
        (
            with_boot_file(&format!("{etc}/dbus.service.d/x.conf")),
            format!("{etc}/dbus.service.d/x.conf"),
            "dbus.service",
        ),
        (layer(&format!(r#", "remove": ["{wanted}/dbus.service"]"#)), format!("{wanted}/dbus.service"), "dbus.service"),
    ] {
        write(&shop, "", &layer);
        let (ok, said) = shop.check("agent");
        let expected = format!("layer acme.agent: {path}: configures {unit}, which is not a unit of the bundle");
        let is_packed = shop.pack("units.oci", &["--key=acme.key", "--offline", "--force"]).0;
        if ok || !said.contains(&expected) || is_packed {
            wrong.push(format!("{expected}: {said}"));
        }
    }
    for (layer, path, unit) in [
        (with_install(r#""Alias=dbus.service""#), format!("{etc}/dbus.service"), "dbus.service"),
        (with_install(r#""Alias=late.service""#), format!("{etc}/late.service"), "late.service"),
        (with_link(&format!("{etc}/dbus.service"), "/dev/null"), format!("{etc}/dbus.service"), "dbus.service"),
        (with_file(&format!("{etc}/dbus.service")), format!("{etc}/dbus.service"), "dbus.service"),
        (with_file(&format!("{etc}/getty@tty1.service")), format!("{etc}/getty@tty1.service"), "getty@tty1.service"),
        (with_file(&format!("{etc}/old.service")), format!("{etc}/old.service"), "old.service"),
        (with_file("/etc/systemd/user/desk.service"), "/etc/systemd/user/desk.service".to_owned(), "desk.service"),
        (with_boot_file(&format!("{etc}/dbus.service")), format!("{etc}/dbus.service"), "dbus.service"),
    ] {
        let (ok, said) = baked(&shop, "", &layer);
        let expected = format!("layer acme.agent: {path}: configures {unit}, which is not a unit of the bundle");
        if ok || !said.contains(&expected) || !said.contains("hint: ") || shop.path("dist/box.o.amd64.raw").exists() {
            wrong.push(format!("{expected}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The layer with two more files.
fn with_files(paths: [&str; 2]) -> String {
    let file = |path: &str| format!("\"{path}\": {{\"content\": \"[Unit]\\nDescription=x\\n\"}}, ");
    layer("").replacen("\"files\": {", &format!("\"files\": {{{}", paths.map(file).concat()), 1)
}

#[test]
fn units_that_only_a_machine_has_are_not_of_a_bundle() {
    let Some(shop) = Shop::new() else { return };
    let etc = "/etc/systemd/system";
    let configures = |path: &str, unit: &str| format!("{path}: configures {unit}, which is not a unit of the bundle");
    let own = |name: &str| with_files([&format!("{etc}/{name}"), &format!("{etc}/{name}.d/x.conf")]);
    let mut wrong = Vec::new();
    for (layer, expected) in [
        (own("dbus-.service"), configures(&format!("{etc}/dbus-.service.d/x.conf"), "dbus-.service")),
        (with_file(&format!("{etc}/service.d/x.conf")), configures(&format!("{etc}/service.d/x.conf"), "service")),
        (with_file(&format!("{etc}/user-.slice")), configures(&format!("{etc}/user-.slice"), "user-.slice")),
        (with_file(&format!("{etc}/dev-sda.device")), configures(&format!("{etc}/dev-sda.device"), "dev-sda.device")),
        (
            with_file(&format!("{etc}/systemd-cryptsetup@x.service")),
            configures(&format!("{etc}/systemd-cryptsetup@x.service"), "systemd-cryptsetup@x.service"),
        ),
        (with_file(&format!("{etc}/-.mount")), configures(&format!("{etc}/-.mount"), "-.mount")),
        (
            with_file(&format!("{etc}/boot-efi.mount")),
            format!("{etc}/boot-efi.mount: is for /boot/efi, which is not in"),
        ),
        (with_file(&format!("{etc}/swapfile.swap")), format!("{etc}/swapfile.swap: is for /swapfile, which is not in")),
        (
            with_boot_file("/etc/tmpfiles.d/{{ AGENT_LEVEL }}.conf"),
            "\"/etc/tmpfiles.d/{{ AGENT_LEVEL }}.conf\" may take effect at boot".to_owned(),
        ),
    ] {
        write(&shop, "\"/etc/tmpfiles.d\", ", &layer);
        let (ok, said) = shop.check("agent");
        if ok || !said.contains(&expected) {
            wrong.push(format!("{expected}: {said}"));
        }
    }
    write(&shop, "", &with_file(&format!("{etc}/opt-tool-data.mount")));
    assert_eq!(shop.check("agent"), (true, String::new()));
    write(&shop, &format!("\"{etc}/boot-efi.mount\", "), &with_file(&format!("{etc}/boot-efi.mount")));
    assert_eq!(shop.check("agent"), (true, String::new()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn baked_files_of_the_first_boot_stay_in_their_directory() {
    let Some(shop) = shop() else { return };
    let with = |value: &str| {
        let file = "\"files\": [{\"path\": \"/opt/tool/{{ AGENT_DIR }}\", \"bake\": true, \"mode\": \"0644\", \"content\": {\"text\": \"x\"}}, ";
        let layer = layer("").replacen("\"files\": [", file, 1);
        let variables = format!("\"variables\": {{\"AGENT_DIR\": {{\"default\": \"{value}\"}}, ");
        let layer = layer.replacen("\"variables\": {", &variables, 1);
        shop.put("agent/bundle.json", &document(""));
        shop.put("agent/layers/acme.agent/layer.json", &layer);
        shop.packed("dir.oci", &["--key=acme.key", "--offline", "--force"]);
        std::fs::remove_file(shop.path("m/bundles.lock.json")).ok();
        bake(&shop, &["--with=dir.oci"])
    };
    let (ok, said) = with("../../etc/cron.d/evil");
    let expected = "refused: expected an absolute path without . and .., found \"/opt/tool/../../etc/cron.d/evil\"";
    assert!(!ok && said.contains(expected), "{said}");
    let (ok, said) = with("a");
    assert!(ok, "{said}");
}

#[test]
fn a_grant_of_the_very_path_is_for_units_of_others_too() {
    let Some(shop) = workshop() else { return };
    let etc = "/etc/systemd/system";
    for (layer, paths) in [
        (with_install(r#""Alias=dbus.service""#), format!("\"{etc}/dbus.service\", ")),
        (with_file(&format!("{etc}/dbus.service.d/x.conf")), format!("\"{etc}/dbus.service.d\", ")),
        (with_file(&format!("{etc}/agent.service.d/x.conf")), String::new()),
        (with_install(r#""Alias=agentd.service""#), String::new()),
        (
            with_link(
                &format!("{etc}/multi-user.target.wants/debug-shell.service"),
                "/usr/lib/systemd/system/debug-shell.service",
            ),
            format!("\"{etc}/multi-user.target.wants/debug-shell.service\", "),
        ),
    ] {
        let (ok, said) = baked(&shop, &paths, &layer);
        assert!(ok, "{paths}: {said}");
    }
}

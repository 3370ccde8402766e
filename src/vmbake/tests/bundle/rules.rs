//! Rules for bundles: each has a bundle that violates only this rule.

use super::shop::{Shop, document};

/// What the bundle also asks for, what its layer also does, and what is said of that.
const BROKEN: &[(&str, &str, &str)] = &[
    (
        "",
        r#", "directories": {"/srv/agent": {"mode": "0755"}}"#,
        "`directories`: \"/srv/agent\" is not in `asks/paths`",
    ),
    (
        "",
        r#", "symlinks": {"/usr/bin/tool": "/opt/tool/bin/tool"}"#,
        "`symlinks`: \"/usr/bin/tool\" is not in `asks/paths`",
    ),
    (
        "",
        r#", "symlinks": {"/bin/tool": "/opt/tool/bin/tool"}"#,
        "`symlinks`: \"/usr/bin/tool\" is not in `asks/paths`",
    ),
    ("", r#", "remove": ["/etc/ssh/*"]"#, "`remove`: \"/etc/ssh\" is not in `asks/paths`"),
    ("", r#", "empty": ["/etc/motd"]"#, "`empty`: \"/etc/motd\" is not in `asks/paths`"),
    ("", r#", "modes": {"/etc/shadow": {"mode": "0644"}}"#, "`modes`: \"/etc/shadow\" is not in `asks/paths`"),
    ("", r#", "sysctl": {"vm.swappiness": 1}"#, "\"/etc/sysctl.d/60-acme.agent.conf\" is not in `asks/paths`"),
    ("", r#", "setuid": ["/opt/tool/bin/tool"]"#, "`setuid`: \"/opt/tool/bin/tool\" is not in `asks/setuid`"),
    ("", r#", "users": {"agent": {"id": 990, "home": "/etc/agent"}}"#, "`users`: \"agent\" is not in `asks/users`"),
    ("", r#", "groups": {"agents": 990}"#, "`groups`: \"agents\" is not in `asks/users`"),
    (
        r#", "users": ["agent"]"#,
        r#", "users": {"agent": {"id": 990}}"#,
        "`users`: \"/home/agent\" is not in `asks/paths`",
    ),
    (
        "",
        r#", "scripts": [{"package": "x", "script": "postinst", "sha256":
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "skip": "why"}]"#,
        "`scripts`: \"x\" is not in `asks/scripts`",
    ),
    ("", r#", "motd": "bought by acme\n""#, "`motd` is not supported in a bundle: set it in a layer of the image"),
    ("", r#", "hostname": "acme""#, "`hostname` is not supported in a bundle: set it in a layer of the image"),
    (
        "",
        r#", "ssh_authorized_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ0n0example0example0example0example0example a"]"#,
        "`ssh_authorized_keys` is not supported in a bundle",
    ),
    ("", r#", "os_release": {"ID": "acme"}"#, "`os_release` is not supported in a bundle"),
    ("", r#", "truncate": ["/etc/passwd"]"#, "`truncate`: \"/etc/passwd\" is not in `asks/paths`"),
    ("", r#", "packages": ["nginx"]"#, "`packages` is not supported in a bundle"),
    (
        "",
        r#", "container_images": ["registry.example/pause:3.10"], "images": "/var/lib/x""#,
        "`container_images` is not supported",
    ),
    ("", r#", "artifacts": {"acme.deb": {"type": "deb"}}"#, "`install`: \"/\" is not in `asks/paths`"),
    (
        "",
        r#", "artifacts": {"acme.a": {"type": "file", "path": "/srv/a", "mode": "0755"}}"#,
        "`install`: \"/srv/a\" is not in `asks/paths`",
    ),
    ("", r#", "artifacts": {"acme.a": {"type": "tar", "path": "/srv"}}"#, "`install`: \"/srv\" is not in `asks/paths`"),
    ("", r#", "artifacts": {"acme.deb": {"type": "deb"}}"#, "`install`: \"acme.deb\" is not in `asks/scripts`"),
    (
        r#", "scripts": ["x"]"#,
        r#", "scripts": [{"package": "x", "script": "postinst", "sha256":
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", "symlinks": {"/usr/bin/x": "y"}}]"#,
        "`scripts`: \"/usr/bin/x\" is not in `asks/paths`",
    ),
    ("", r#", "timezone": "Europe/Berlin""#, "`timezone` is not supported in a bundle: set it in a layer of the image"),
    ("", r#", "locale": "C.UTF-8""#, "`locale` is not supported in a bundle: set it in a layer of the image"),
    (
        "",
        r#", "keyboard": {"layout": "de"}"#,
        "`keyboard` is not supported in a bundle: set it in a layer of the image",
    ),
    ("", r#", "images": "/var/lib/agent""#, "`images` is not supported in a bundle: set it in a layer of the image"),
    ("", r#", "bundles": ["other.oci"]"#, "`bundles` is not supported in a bundle: set it in a layer of the image"),
    ("", r#", "debconf": {"a/b": "c"}"#, "`debconf` is not supported in a bundle"),
    (
        "",
        r#", "artifacts": {"runc": {"type": "file", "path": "/opt/tool/runc", "mode": "0755"}}"#,
        "the name of artifact \"runc\" does not start with \"acme.\"",
    ),
];

#[test]
fn every_rule_has_a_bundle_that_breaks_it() {
    let Some(shop) = Shop::new() else { return };
    assert_eq!(shop.check("agent"), (true, String::new()));
    let mut wrong = Vec::new();
    for (asks, more, expected) in BROKEN {
        shop.write(asks, more);
        let (ok, said) = shop.check("agent");
        if ok || !said.lines().any(|line| line.starts_with("agent: layer acme.agent: ") && line.contains(expected)) {
            wrong.push(format!("{more}: {said}"));
        }
        // What is not sound is not packed.
        let (ok, said) = shop.pack("agent.oci", &[]);
        if ok || !said.contains(expected) {
            wrong.push(format!("{more}: {said}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(!shop.path("agent.oci").exists() && !shop.path("agent/pins.json").exists());
}

#[test]
fn files_units_and_the_first_boot_are_those_that_were_asked_for() {
    let Some(shop) = Shop::new() else { return };
    let layer = super::shop::layer("");
    for (from, to, expected) in [
        (
            "\"services\":",
            "\"commands\": [[\"/bin/sh\", \"-c\", \"id\"]], \"services\":",
            "\"/bin/sh -c id\" is not in `asks/commands`",
        ),
        ("\"/etc/agent/agent.conf\"", "\"/srv/a\"", "`files`: \"/srv/a\" is not in `asks/paths`"),
        ("\"/etc/agent/env\"", "\"/etc/passwd\"", "`first_boot/files`: \"/etc/passwd\" is not in `asks/paths`"),
        ("\"/etc/agent/env\"", "\"/etc/{{ AGENT_LEVEL }}\"", "`first_boot/files`: \"/etc\" is not in `asks/paths`"),
        (
            "\"unit\": \"agent.service\"",
            "\"unit\": \"ssh.service\"",
            "`first_boot/services`: unit ssh.service is not a unit of the bundle",
        ),
        (
            "\"enable\": [",
            "\"mask\": [\"ssh.service\"], \"enable\": [",
            "`units/mask`: unit ssh.service is not a unit of the bundle",
        ),
        (
            "\"enable\": [",
            "\"disable\": [\"ssh.service\"], \"enable\": [",
            "`units/disable`: unit ssh.service is not a unit of the bundle",
        ),
        (
            "\"services\":",
            "\"blocks\": [{\"path\": \"/etc/hosts\", \"name\": \"a\", \"text\": \"b\"}], \"services\":",
            "`first_boot/blocks`: \"/etc/hosts\" is not",
        ),
        (
            "\"enable\": [",
            "\"enable\": [\"ssh.service\", ",
            "`units/enable`: unit ssh.service is not a unit of the bundle",
        ),
        (
            "\"services\":",
            "\"directories\": {\"/srv/a\": {\"mode\": \"0755\"}}, \"services\":",
            "`first_boot/directories`: \"/srv/a\" is not in `asks/paths`",
        ),
        (
            "\"services\":",
            "\"optional_modes\": {\"/etc/ssh/*\": {\"mode\": \"0644\"}}, \"services\":",
            "`first_boot/optional_modes`: \"/etc/ssh\" is not in `asks/paths`",
        ),
        (
            "\"services\":",
            "\"received\": {\"ca.crt\": {\"directory\": \"/etc/ssl\", \"group\": \"root\"}}, \"services\":",
            "`first_boot/received`: \"/etc/ssl\" is not in `asks/paths`",
        ),
        (
            "\"services\":",
            "\"keys\": {\"a.key\": {\"directory\": \"/etc/ssl\", \"group\": \"root\", \"certificate\": \"/etc/agent/a\"}}, \"services\":",
            "`first_boot/keys`: \"/etc/ssl\" is not in `asks/paths`",
        ),
        (
            "\"first_boot\":",
            "\"setuid\": [\"/opt/tool/bin/tool\", \"/etc/agent/env\"], \"first_boot\":",
            "`setuid`: \"/etc/agent/env\" is not in `asks/setuid`",
        ),
        (
            "\"services\":",
            "\"modes\": {\"/etc/shadow\": {\"mode\": \"0644\"}}, \"services\":",
            "`first_boot/modes`: \"/etc/shadow\"",
        ),
    ] {
        assert!(layer.contains(from), "{from}");
        shop.put("agent/layers/acme.agent/layer.json", &layer.replacen(from, to, 1));
        let (ok, said) = shop.check("agent");
        assert!(!ok && said.contains(expected), "{to}: {said}");
    }
}

#[test]
fn sources_are_the_publishers_own() {
    let Some(shop) = Shop::new() else { return };
    for (text, expected) in [
        (r#"{"systems": {}}"#, "sources.json: `systems` is not allowed in a bundle"),
        (r#"{"trust": {}}"#, "sources.json: `trust` is not allowed in a bundle"),
        (r#"{"archives": {"debian": {}}}"#, "sources.json: \"debian\" does not start with \"acme.\""),
        (
            r#"{"dependencies": [{"name": "acme.x", "proof": "first-use"}]}"#,
            "\"acme.x\" has no proof other than its first download",
        ),
        (r#"{"dependencies": [{"name": "runc"}]}"#, "sources.json: \"runc\" does not start with \"acme.\""),
    ] {
        shop.put("agent/sources.json", text);
        let (ok, said) = shop.check("agent");
        assert!(!ok && said.contains(expected), "{text}: {said}");
    }
    shop.put("agent/sources.json", r#"{"archives": {}, "archives": {}}"#);
    let (ok, said) = shop.check("agent");
    assert!(!ok && said.contains("sources.json:1:") && said.contains("hint: "), "{said}");
}

#[test]
fn what_pack_writes_is_not_written_by_hand() {
    let Some(shop) = Shop::new() else { return };
    let digest = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
    let text =
        super::shop::document("").replace("\"os\":", &format!("\"layers\": {{\"acme.agent\": \"{digest}\"}}, \"os\":"));
    shop.put("agent/bundle.json", &text);
    let (ok, said) = shop.check("agent");
    assert!(!ok && said.contains("`layers`: is written by `vmbake bundle pack`"), "{said}");
}

#[test]
fn no_layer_writes_through_a_link_of_another_one() {
    let Some(shop) = Shop::new() else { return };
    shop.write("", r#", "symlinks": {"/etc/agent/link": "/etc"}"#);
    assert_eq!(shop.check("agent"), (true, String::new()));
    let text = r#"{"name": "acme.other", "version": "1", "description": "d", "os": ["o"],
        "files": {"/etc/agent/link/shadow": {"content": "x"}}}"#;
    shop.put("agent/layers/acme.other/layer.json", text);
    let (ok, said) = shop.check("agent");
    let expected = "agent: layer acme.other: `files`: \"/etc/agent/link/shadow\" leads through the link \"/etc/agent/link\" of the bundle";
    assert!(!ok && said.contains(expected), "{said}");
}

#[test]
fn no_layer_brings_content_into_what_machines_keep() {
    let Some(shop) = Shop::new() else { return };
    let asks = document(r#", "users": ["agent"]"#).replace("\"/opt/tool\", ", "\"/opt/tool\", \"/var/lib/agent\", ");
    for (more, said) in [
        (r#", "symlinks": {"/var/lib/agent/x": "y"}"#, Some("`symlinks`: \"/var/lib/agent/x\"")),
        (r#", "symlinks": {"/var/lib/agent": "y"}"#, Some("`symlinks`: \"/var/lib/agent\"")),
        (r#", "empty": ["/var/lib/agent/x"]"#, Some("`empty`: \"/var/lib/agent/x\"")),
        (r#", "remove": ["/var/lib/agent/*"]"#, Some("`remove`: \"/var/lib/agent\"")),
        (r#", "modes": {"/var/lib/agent/x": {"mode": "0600"}}"#, Some("`modes`: \"/var/lib/agent/x\"")),
        (
            r#", "artifacts": {"acme.a": {"type": "tar", "path": "/var/lib/agent/a"}}"#,
            Some("`install`: \"/var/lib/agent/a\""),
        ),
        (r#", "directories": {"/var/lib/agent/x": {"mode": "0700"}}"#, None),
        (r#", "users": {"agent": {"id": 990, "home": "/var/lib/agent"}}"#, None),
    ] {
        shop.write("", more);
        shop.put("agent/bundle.json", &asks);
        let found = shop.check("agent");
        match said {
            Some(said) => {
                let expected = format!("{said} is in `state` of bundle.json, which updates of machines keep");
                assert!(
                    !found.0 && found.1.contains(&expected) && found.1.matches("layer acme").count() == 1,
                    "{found:?}"
                );
            }
            None => assert_eq!(found, (true, String::new()), "{more}"),
        }
    }
}

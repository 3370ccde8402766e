//! Files of a bundle from which systemd creates paths at boot, special bits of directories, and names with hidden characters.

use serde_json::json;

use super::composing::{bake, shop};
use super::shop::{Shop, document, layer};

/// Checks the bundle with more paths, another request, and more keys of its layer.
fn check(shop: &Shop, paths: &str, asks: &str, more: &str) -> (bool, String) {
    let paths = format!("\"paths\": [{paths}\"/opt/tool\"");
    shop.put("agent/bundle.json", &document(asks).replacen("\"paths\": [\"/opt/tool\"", &paths, 1));
    shop.put("agent/layers/acme.agent/layer.json", &layer(more));
    shop.check("agent")
}

fn with_files(files: &[(&str, &str)]) -> String {
    let one = |(path, text): &(&str, &str)| format!("{}: {}", json!(path), json!({"content": text}));
    let files: Vec<String> = files.iter().map(one).collect();
    layer("").replacen("\"files\": {", &format!("\"files\": {{{}, ", files.join(", ")), 1)
}

/// Each of these creates something at boot that the bundle may not create in the image.
const BOOT: &[(&str, &str, &str)] = &[
    ("/etc/tmpfiles.d/a.conf", "d /run/agent\n", "/etc/tmpfiles.d/a.conf:1: \"/run/agent\" is not in `asks/paths`"),
    ("/etc/tmpfiles.d/a.conf", "#\nf+ /etc/cron.d/a - - - - x", "a.conf:2: \"/etc/cron.d/a\" is not in `asks/paths`"),
    ("/etc/tmpfiles.d/a.conf", "L+ /etc/shadow - - - - /opt/tool/x", "a.conf:1: not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "L /opt/tool/l - - - - /etc\nz /opt/tool/l/shadow 0666", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "C /opt/tool/su - - - - /usr/bin/su", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "b+ /opt/tool/sda 0666 agent - - 8:0", "a.conf:1: not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "c /opt/tool/mem 0666 - - - 1:1", "a.conf:1: not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "R /opt/tool/*/../../../etc/ssh", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "R /opt/tool/{..,x}/{..,x}/etc/ssh", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "R /opt/tool/.?/.?/etc/ssh", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "z /opt/tool/*/shadow 0666", "a.conf:1: not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "e /opt/tool/l* 0777", "a.conf:1: not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "t /opt/tool/su - - - - security.capability=0sAQAAAgAg", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "f^ /opt/tool/a 0644 - - - ssh.authorized_keys.root", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "z /opt/tool/a\u{c}0644\u{c}/b 0666", "a.conf:1: not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "z /etc/*.conf 0666", "\"/etc\" is not in `asks/paths`"),
    ("/etc/tmpfiles.d/a.conf", "z /opt/tool/su 4755", "\"/opt/tool/su\" is not in `asks/setuid`"),
    ("/etc/tmpfiles.d/a.conf", "d \"/opt/tool/a b\"", "not supported in a bundle unless `asks/paths` lists the file"),
    ("/etc/tmpfiles.d/a.conf", "d /opt/tool/%H", "not supported in a bundle"),
    ("/etc/tmpfiles.d/a.conf", "#\n# c\rf /etc/cron.d/evil 0644 root root - x", "a.conf:2: not supported in a bundle"),
    ("/usr/share/user-tmpfiles.d/a.conf", "d /opt/tool/x\nf+ /etc/cron.d/a", "a.conf:2: \"/etc/cron.d/a\" is not in"),
    ("/usr/share/user-tmpfiles.d/a.conf", "f+ %h/.ssh/authorized_keys", "a.conf:1: not supported in a bundle"),
    ("/etc/xdg/user-tmpfiles.d/a.conf", "R %t/bus", "/etc/xdg/user-tmpfiles.d/a.conf:1: not supported in a bundle"),
    ("/etc/sysusers.d/a.conf", "# c\ru evil 0\r\n", "/etc/sysusers.d/a.conf:1: not supported in a bundle"),
    ("/usr/lib/tmpfiles.d/a.conf", "d /var/run/agent", "\"/var/run/agent\" is not in `asks/paths`"),
    ("/etc/sysusers.d/a.conf", "u evil 0", "/etc/sysusers.d/a.conf:1: \"evil\" is not a user of the bundle's layers"),
    ("/etc/sysusers.d/a.conf", "g disk", "/etc/sysusers.d/a.conf:1: \"disk\" is not a group of the bundle's layers"),
    ("/etc/sysusers.d/a.conf", "u evil -:disk", "\"evil\" and \"disk\" are not a user and a group of the bundle's"),
    ("/etc/sysusers.d/a.conf", "u evil 990:6", "/etc/sysusers.d/a.conf:1: not supported in a bundle"),
    ("/etc/sysusers.d/a.conf", "u evil /etc/shadow", "/etc/sysusers.d/a.conf:1: not supported in a bundle"),
    ("/etc/sysusers.d/a.conf", "m evil sudo", "\"evil\" and \"sudo\" are not a user and a group of the bundle's"),
    ("/etc/systemd/system-preset/0.preset", "enable *", "0.preset:1: not supported in a bundle"),
];

const GRANTED: &str = "\"/usr/share/user-tmpfiles.d\", \"/etc/xdg/user-tmpfiles.d\", \"/etc/tmpfiles.d\", \"/usr/lib/tmpfiles.d\", \"/etc/sysusers.d\", \"/etc/systemd/system-preset\", ";

#[test]
fn files_that_create_at_boot_what_is_not_granted_are_refused() {
    let Some(shop) = Shop::new() else { return };
    let mut wrong = Vec::new();
    for (path, text, expected) in BOOT {
        let with = |paths: &str| {
            let paths = format!("\"paths\": [{paths}\"/opt/tool\"");
            shop.put("agent/bundle.json", &document("").replacen("\"paths\": [\"/opt/tool\"", &paths, 1));
            shop.put("agent/layers/acme.agent/layer.json", &with_files(&[(path, text)]));
            shop.check("agent")
        };
        let (ok, said) = with(GRANTED);
        if ok || !said.contains(expected) {
            wrong.push(format!("{text}: {said}"));
        }
        // A grant of the very file allows whatever it does.
        let (ok, said) = with(&format!("{path:?}, "));
        if !ok {
            wrong.push(format!("granted {text}: {said}"));
        }
    }
    for (path, text) in [
        ("/etc/tmpfiles.d/a.conf", "d /opt/tool/spool 0750\nx /tmp/agent\n"),
        ("/usr/share/user-tmpfiles.d/a.conf", "e /opt/tool/spool - - - 10d\n"),
        ("/etc/sysusers.d/a.conf", "u agent - \"An agent\"\n"),
        ("/etc/sysusers.d/a.conf", "g agent\nu agent -:agent\nm agent agent\n"),
    ] {
        let paths = format!("\"paths\": [{GRANTED}\"/home/agent\", \"/opt/tool\"");
        let asks = document(r#", "users": ["agent"]"#).replacen("\"paths\": [\"/opt/tool\"", &paths, 1);
        shop.put("agent/bundle.json", &asks);
        let users = "\"users\": {\"agent\": {\"id\": 990}}, \"files\": {";
        let text = with_files(&[(path, text)]).replacen("\"files\": {", users, 1);
        shop.put("agent/layers/acme.agent/layer.json", &text);
        assert_eq!(shop.check("agent"), (true, String::new()));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn special_bits_of_directories_are_granted_as_those_of_files() {
    let Some(shop) = Shop::new() else { return };
    let boot = |key: &str| layer("").replacen("\"first_boot\": {", &format!("\"first_boot\": {{{key}, "), 1);
    for mode in ["4755", "2755", "1777"] {
        let own = format!(r#", "directories": {{"/opt/tool/spool": {{"mode": "{mode}"}}}}"#);
        let (ok, said) = check(&shop, "", "", &own);
        let expected = "layer acme.agent: `directories`: \"/opt/tool/spool\" is not in `asks/setuid` of bundle.json";
        assert!(!ok && said.contains(expected), "{mode}: {said}");
        let granted = check(&shop, "", r#", "setuid": ["/opt/tool/spool"]"#, &own);
        assert_eq!(granted, (true, String::new()), "{mode}");
        let later = format!(r#""directories": {{"/opt/tool/spool": {{"mode": "{mode}"}}}}"#);
        shop.put("agent/bundle.json", &document(""));
        shop.put("agent/layers/acme.agent/layer.json", &boot(&later));
        let (ok, said) = shop.check("agent");
        assert!(!ok && said.contains("`first_boot/directories`: \"/opt/tool/spool\" is not in"), "{mode}: {said}");
    }
    assert_eq!(
        check(&shop, "", "", r#", "directories": {"/opt/tool/spool": {"mode": "0750"}}"#),
        (true, String::new())
    );
}

#[test]
fn names_with_hidden_characters_are_refused() {
    let Some(shop) = Shop::new() else { return };
    for char in ['\u{1}', '\u{7f}', '\u{85}', '\u{ad}', '\u{200b}', '\u{200e}', '\u{202e}', '\u{2066}', '\u{feff}'] {
        let code = format!("\\u{:04x}", u32::from(char));
        for (paths, more) in [
            (String::new(), format!(r#", "directories": {{"/opt/tool/a{code}b": {{}}}}"#)),
            (String::new(), format!(r#", "symlinks": {{"/opt/tool/a{code}b": "x"}}"#)),
            (String::new(), format!(r#", "symlinks": {{"/opt/tool/x": "a{code}b"}}"#)),
            (format!("\"/opt/a{code}b\", "), String::new()),
        ] {
            let (ok, said) = check(&shop, &paths, "", &more);
            let is_named = said.contains("control, bidirectional or zero-width character") || said.contains("target");
            assert!(!ok && is_named, "{paths}{more}: {said}");
        }
    }
    let (ok, said) = check(&shop, "", "", r#", "directories": {"/opt/tool/größe 漢字": {}}"#);
    assert!(ok, "{said}");
}

#[test]
fn what_others_have_is_not_replaced_at_boot() {
    let Some(shop) = shop() else { return };
    let box_layer = r#", "files": {"/usr/lib/tmpfiles.d/tmp.conf": {"content": "q /tmp 1777 root root 10d\n"}}"#;
    shop.yard.layer("box", box_layer);
    let baked = |path: &str| {
        shop.put("agent/bundle.json", &document("").replacen("\"/opt/tool\"", "\"/etc/tmpfiles.d\", \"/opt/tool\"", 1));
        shop.put("agent/layers/acme.agent/layer.json", &with_files(&[(path, "d /opt/tool/spool\n")]));
        shop.packed("boot.oci", &["--key=acme.key", "--offline", "--force"]);
        let (ok, said) = shop.said(&["trust", "boot.oci", "--key", "acme.pub", "--yes"]);
        assert!(ok, "{said}");
        std::fs::remove_file(shop.path("m/bundles.lock.json")).ok();
        bake(&shop, &["--with=boot.oci"])
    };
    let (ok, said) = baked("/etc/tmpfiles.d/tmp.conf");
    let expected = "layer acme.agent: /etc/tmpfiles.d/tmp.conf: conflicts with /usr/lib/tmpfiles.d/tmp.conf";
    assert!(!ok && said.contains(expected), "{said}");
    let (ok, said) = baked("/etc/tmpfiles.d/agent.conf");
    assert!(ok, "{said}");
}

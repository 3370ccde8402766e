//! Settings of a layer become files and links of the image.

use vmbake_disk::tree::Tree;

use super::parts::{Part, bake_onto, base_with, link, text};

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5OV/zJ a@b";

fn bake(keys: &str) -> Result<Tree, String> {
    let base = base_with(&[
        ("/usr/share/zoneinfo/Europe/Berlin", "TZif"),
        ("/usr/lib/locale/C.utf8/LC_CTYPE", ""),
        ("/usr/lib/locale/locale-archive", "head\0de_DE.utf8\0fr_FR\0"),
        ("/etc/motd", "old\n"),
    ]);
    bake_onto(base, &[] as &[Part], keys)
}

#[test]
fn settings_become_files() {
    let keys = format!(
        r#", "sysctl": {{"net.ipv4.ip_forward": 1, "kernel.core_pattern": "|/bin/false"}}, "modules_load": ["br_netfilter", "overlay"],
        "hostname": "web-1.example.org", "timezone": "Europe/Berlin", "locale": "C.UTF-8", "motd": ["a", "b"],
        "keyboard": {{"layout": "de,us", "variant": "nodeadkeys,"}}, "ssh_authorized_keys": ["{KEY}"],
        "files": {{"/usr/local/bin/x": {{"content": "x\n"}}, "/etc/secret": {{"content": "", "mode": "0600"}}}},
        "units": {{"files": {{"a.service": ["[Service]", "ExecStart=-/x", "[Install]", "WantedBy=b.target"]}}, "enable": ["a.service"]}}"#
    );
    let tree = bake(&keys).unwrap();
    for (path, expected) in [
        ("/etc/sysctl.d/60-k.conf", "kernel.core_pattern = |/bin/false\nnet.ipv4.ip_forward = 1\n"),
        ("/etc/modules-load.d/k.conf", "br_netfilter\noverlay\n"),
        ("/etc/hostname", "web-1.example.org\n"),
        ("/etc/default/locale", "LANG=C.UTF-8\n"),
        ("/etc/motd", "a\nb\n"),
        (
            "/etc/default/keyboard",
            "XKBMODEL=\"pc105\"\nXKBLAYOUT=\"de,us\"\nXKBVARIANT=\"nodeadkeys,\"\nXKBOPTIONS=\"\"\nBACKSPACE=\"guess\"\n",
        ),
        ("/usr/local/bin/x", "x\n"),
        ("/etc/systemd/system/a.service", "[Service]\nExecStart=-/x\n[Install]\nWantedBy=b.target\n"),
    ] {
        assert_eq!(text(&tree, path), expected, "{path}");
    }
    let cloud = text(&tree, "/etc/cloud/cloud.cfg.d/95-k.cfg");
    let cloud: serde_json::Value = serde_json::from_str(&cloud).unwrap();
    assert_eq!(cloud, serde_json::json!({"preserve_hostname": true, "ssh_authorized_keys": [KEY]}));
    assert_eq!(link(&tree, "/etc/localtime"), "/usr/share/zoneinfo/Europe/Berlin");
    assert_eq!(link(&tree, "/etc/systemd/system/b.target.wants/a.service"), "/etc/systemd/system/a.service");
    let mode = |path: &str| tree.inode(tree.lookup(path.as_bytes()).unwrap()).meta.mode & 0o7777;
    assert_eq!((mode("/usr/local/bin/x"), mode("/etc/secret"), mode("/etc/hostname")), (0o755, 0o600, 0o644));
}

#[test]
fn what_the_image_does_not_have_is_refused() {
    for (keys, expected) in [
        (
            r#", "timezone": "Europe/Berlim""#,
            "no time zone Europe/Berlim: /usr/share/zoneinfo/Europe/Berlim does not exist",
        ),
        (r#", "locale": "en_US.UTF-8""#, "no locale en_US.UTF-8: /usr/lib/locale/en_US.utf8 does not exist"),
    ] {
        let error = bake(keys).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for locale in ["C", "POSIX", "C.utf8", "de_DE.UTF-8", "fr_FR"] {
        bake(&format!(r#", "locale": "{locale}""#)).unwrap();
    }
}

//! SSH host keys: when the bake adds the unit that generates them.

use vmbake_disk::tree::Tree;

use super::parts::{bake_onto, base_with, link, text as content};

const UNIT: &str = "/usr/lib/systemd/system/vmbake-ssh-host-keys.service";

const GENERATOR: &str = "/usr/lib/systemd/system-generators/cloud-init-generator";
const CONFIG: &str = "#cloud-config\nusers:\n - default\n\ncloud_init_modules:\n - seed_random\n # keys\n - ssh\n\ncloud_config_modules:\n - x\n";

/// A base with a server, and these files.
fn server(files: &[&str]) -> Tree {
    let all = ["/usr/sbin/sshd", "/usr/bin/ssh-keygen", "/etc/systemd/system/multi-user.target.wants/ssh.service"];
    let config = [("/etc/cloud/cloud.cfg", CONFIG)];
    let all: Vec<(&str, &str)> = all.iter().chain(files).map(|path| (*path, "")).chain(config).collect();
    base_with(&all)
}

const CLOUD_INIT: [&str; 6] = [
    GENERATOR,
    "/usr/bin/cloud-init",
    "/usr/lib/systemd/system/cloud-init.target",
    "/usr/lib/systemd/system/cloud-init-network.service",
    "/etc/systemd/system/cloud-init.target.wants/cloud-init-network.service",
    "/etc/systemd/system/ssh.socket.wants/sshd-keygen.service",
];

#[test]
fn machines_without_cloud_init_or_a_cloud_make_host_keys() {
    let file = |path: &str| format!(", \"files\": {{{path:?}: {{\"content\": \"\"}}}}");
    let text = |path: &str, content: &str| format!(", \"files\": {{{path:?}: {{\"content\": {content:?}}}}}");
    let masked = ", \"symlinks\": {\"/etc/systemd/system-generators/cloud-init-generator\": \"/dev/null\"}";
    let remove = ", \"remove\": [\"/etc/systemd/system/cloud-init.target.wants/cloud-init-network.service\"]";
    // Whether the unit is there, and waits for a boot without a cloud.
    for (base, keys, expected) in [
        (server(&CLOUD_INIT), String::new(), Some(true)),
        (server(&[]), String::new(), Some(false)),
        (server(&CLOUD_INIT), file("/etc/cloud/cloud-init.disabled"), Some(false)),
        (server(&CLOUD_INIT), ", \"units\": {\"mask\": [\"cloud-init-network.service\"]}".to_owned(), Some(false)),
        (server(&CLOUD_INIT), ", \"units\": {\"mask\": [\"cloud-init.target\"]}".to_owned(), Some(false)),
        (server(&CLOUD_INIT), remove.to_owned(), Some(false)),
        (server(&CLOUD_INIT), text("/etc/cloud/ds-identify.cfg", "policy: disabled\n"), Some(false)),
        (server(&CLOUD_INIT), text("/etc/cloud/ds-identify.cfg", "policy: search,found=all\n"), Some(true)),
        (server(&CLOUD_INIT), masked.to_owned(), Some(false)),
        (server(&CLOUD_INIT), format!(", \"remove\": [{GENERATOR:?}]"), Some(false)),
        (server(&CLOUD_INIT), text("/etc/cloud/cloud.cfg", &CONFIG.replace(" - ssh\n", "")), Some(false)),
        (
            server(&CLOUD_INIT),
            text("/etc/cloud/cloud.cfg", &CONFIG.replace(" - ssh\n", "other:\n - ssh\n")),
            Some(false),
        ),
        (server(&CLOUD_INIT), text("/etc/cloud/cloud.cfg.d/9.cfg", "cloud_init_modules: [bootcmd]\n"), Some(false)),
        (server(&CLOUD_INIT), text("/etc/cloud/cloud.cfg.d/9.cfg", "ssh_genkeytypes: []\n"), Some(false)),
        (server(&CLOUD_INIT), text("/etc/cloud/cloud.cfg.d/9.cfg", "# ssh_genkeytypes: []\nlocale: C\n"), Some(true)),
        (server(&[]), ", \"units\": {\"mask\": [\"vmbake-ssh-host-keys.service\"]}".to_owned(), None),
        (server(&[]), ", \"units\": {\"mask\": [\"ssh.service\"]}".to_owned(), None),
        (base_with(&[("/usr/sbin/sshd", ""), ("/usr/bin/ssh-keygen", "")]), String::new(), None),
    ] {
        let tree = bake_onto(base, &[], &keys).unwrap();
        let unit = tree.lookup(UNIT.as_bytes()).map(|_| content(&tree, UNIT));
        let waits = unit.map(|unit| unit.contains("\nConditionPathExists=/run/cloud-init/disabled\n"));
        assert_eq!(waits, expected, "{keys}");
        if expected.is_some() {
            let wants = "/etc/systemd/system/ssh.service.wants/vmbake-ssh-host-keys.service";
            assert_eq!(link(&tree, wants), UNIT);
        }
    }
}

//! State that was removed from a machine, and that `permissions` restores.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::image::{Image, put};
use super::machine::{Machine, as_root, scratch};
use super::settings::Choice;

/// Lines of files of accounts that have to be there again, whatever is done to them.
const PASSWD: [&str; 3] = [
    "netsy:x:906:906::/home/netsy:/usr/sbin/nologin",
    "zot:x:905:905::/home/zot:/usr/sbin/nologin",
    "kubelet:x:1000:1000::/home/kubelet:/usr/sbin/nologin",
];
const GROUP: [&str; 5] = [
    "adm:x:4:",
    "containerd:x:904:kubelet",
    "netsy:x:906:",
    "systemd-journal:x:999:fluent-bit",
    "syslog:x:104:fluent-bit",
];

#[test]
fn accounts_and_modes_come_back() {
    if !as_root("restored::accounts_and_modes_come_back") {
        return;
    }
    let work = scratch();
    let image = Image::new("knc");
    let machine = Machine::new(work.path().join("0"), &image, "amd64", &Choice([1, 0, 0, 0, 0]).user_data());
    let etc = |name: &str| machine.root.join("etc").join(name);
    let read = |name: &str| fs::read_to_string(etc(name)).unwrap();
    let sorted = |text: String, of: fn(&str) -> bool| {
        let mut lines: Vec<String> = text.lines().filter(|line| of(line)).map(str::to_owned).collect();
        lines.sort();
        lines
    };
    put(&machine.root, "/opt/cni/bin/bridge", "");
    put(&machine.root, "/opt/cni/bin/portmap", "");
    machine.succeed(&["permissions"]);
    let (passwd, group) = (read("passwd"), read("group"));

    // A user without its group, another with it, a shell, groups too many and too few, and a group that came later.
    let passwd_without: String =
        passwd.lines().filter(|line| !line.starts_with("netsy:")).map(|l| format!("{l}\n")).collect();
    fs::write(etc("passwd"), passwd_without.replace("/home/kubelet:/usr/sbin/nologin", "/home/kubelet:/bin/bash"))
        .unwrap();
    let group_without: String =
        group.lines().filter(|line| !line.starts_with("netsy:")).map(|l| format!("{l}\n")).collect();
    let group_without = group_without.replace("containerd:x:904:kubelet", "containerd:x:904:zot")
        + "adm:x:4:zot,kubelet\nsyslog:x:104:\n";
    fs::write(etc("group"), &group_without).unwrap();
    fs::write(etc("passwd"), read("passwd").replace("zot:x:905:905::/home/zot:/usr/sbin/nologin\n", "")).unwrap();
    let programs = ["opt/cni/bin/bridge", "opt/cni/bin/portmap", "opt/fluent-bit/bin/fluent-bit", "usr/bin/getsubids"];
    for path in programs {
        fs::set_permissions(machine.root.join(path), fs::Permissions::from_mode(0o644)).unwrap();
    }

    machine.succeed(&["permissions"]);
    for line in PASSWD {
        assert!(read("passwd").lines().any(|found| found == line), "{line}: {}", read("passwd"));
    }
    for line in GROUP {
        assert!(read("group").lines().any(|found| found == line), "{line}: {}", read("group"));
    }
    assert_eq!(sorted(read("passwd"), |_| true), sorted(passwd, |_| true));
    let of_image = |line: &str| !line.starts_with("adm:") && !line.starts_with("syslog:");
    assert_eq!(sorted(read("group"), of_image), sorted(group, |_| true));
    for path in programs {
        assert_eq!(fs::metadata(machine.root.join(path)).unwrap().permissions().mode() & 0o7777, 0o755, "{path}");
    }
    let said = machine.succeed(&["permissions", "--dry-run"]);
    assert_eq!(said, "", "nothing is left to do");
}

#[test]
fn subordinate_ids_are_written_anew_on_every_boot() {
    if !as_root("restored::subordinate_ids_are_written_anew_on_every_boot") {
        return;
    }
    let work = scratch();
    let machine =
        Machine::new(work.path().join("0"), &Image::new("knd"), "amd64", &Choice([0, 0, 0, 0, 0]).user_data());
    for other in ["", "debian:100000:65536\nkubelet:65536:1\n"] {
        for name in ["subuid", "subgid"] {
            put(&machine.root, &format!("/etc/{name}"), other);
        }
        machine.succeed(&["configure"]);
        for name in ["subuid", "subgid"] {
            let found = fs::read_to_string(machine.root.join("etc").join(name)).unwrap();
            assert_eq!(found, "kubelet:65536:7208960\n", "{name}");
        }
    }
}

//! Programs that do nothing, fail or wait where nothing runs.

use super::helpers::{postinst, refusal, said};
use crate::bake_inputs::parts::{base_with, text};

#[test]
fn programs_end_as_where_nothing_runs() {
    let programs = [
        ("py3compile -p own", 0),
        ("py3clean -p own", 0),
        ("pypy3compile -p own", 0),
        ("logger hello", 0),
        ("restorecon /etc/group", 0),
        ("update-menus", 0),
        ("apparmor_parser -r -T -W /etc/apparmor.d/own", 0),
        ("aa-enabled --quiet", 1),
        ("aa-status --enabled", 1),
        ("selinuxenabled", 1),
        ("pidof own", 1),
        ("pgrep own", 1),
        ("pkill own", 1),
        ("killall -0 own", 1),
        ("dbus-send --system / a.b.c", 1),
        ("modprobe own", 1),
        ("chattr +C /etc", 1),
        ("start-stop-daemon --stop --exec /usr/bin/own", 1),
        ("start-stop-daemon --stop --oknodo --exec /usr/bin/own", 0),
        ("sysctl --system", 0),
        ("udevadm control --reload-rules", 0),
        ("udevadm trigger --subsystem-match=own", 0),
        ("apache2ctl configtest", 0),
    ];
    let paths = programs.map(|(command, _)| format!("/usr/bin/{}", command.split(' ').next().unwrap()));
    let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "\x7fELF")).collect();
    let commands = programs.map(|(command, _)| command);
    let (found, _) = said(base_with(&files), &commands);
    for ((command, status), found) in programs.iter().zip(found) {
        assert_eq!(found, if *status == 0 { String::new() } else { format!("={status}\n") }, "{command}");
    }
    // An image that lacks them.
    let (found, tree) = said(base_with(&[]), &commands);
    assert!(found.iter().all(|found| found == "=127\n"), "{found:?}");
    assert!(text(&tree, "/errors").starts_with("py3compile: not found\n"));
}

#[test]
fn what_only_a_machine_can_run_waits_for_the_first_boot() {
    for command in
        ["perl -e 1", "ip addr", "postconf -e a=b", "sysctl -n kernel.x", "start-stop-daemon --start", "su own"]
    {
        let path = format!("/usr/bin/{}", command.split(' ').next().unwrap());
        let tree =
            postinst(base_with(&[(&path, "\x7fELF")]), &format!("echo >/etc/before\n{command} || true")).unwrap();
        let status = text(&tree, "/var/lib/dpkg/status");
        assert!(status.contains("Package: own\nStatus: install ok unpacked\n"), "{command}: {status}");
        assert!(tree.lookup(b"/etc/before").is_none(), "{command}");
    }
}

#[test]
fn what_is_not_known_is_refused() {
    for command in ["udevadm info --export", "chattr +i /etc/x", "apache2ctl graceful"] {
        let error = refusal(base_with(&[]), &format!("{command} || true"));
        assert!(error.contains("is not supported"), "{command}: {error}");
    }
}

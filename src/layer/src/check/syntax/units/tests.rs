//! Texts of sockets, daemons and networks with the line of each problem, as systemd 257 finds them; warnings have `~` before the line.

use super::super::{File, Problem, calendar_zone, problems};
use super::{UnitCommand, unit_commands};
use crate::Ownership;

fn found(path: &str, text: &str) -> String {
    let access = Ownership { mode: 0o644, owner: "root".to_owned(), group: "root".to_owned() };
    let found = problems(&File { path, bytes: text.as_bytes(), text, access, has_drop_ins: false });
    let line =
        |problem: Problem| format!("{}{}", if problem.is_warning { "~" } else { "" }, problem.line.unwrap_or_default());
    found.into_iter().map(line).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn are_found(path: &str, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(found(path, text), *expected, "{path}: {text:?}");
    }
}

/// `systemd-analyze verify`.
#[test]
fn sockets_that_systemd_refuses() {
    are_found(
        "/etc/systemd/system/x.socket",
        &[
            ("[Socket]\nListenStream=80\nAccept=yes\n", ""),
            ("[Socket]\nListenStream=80\nAccept=yes\nService=x.service\n", "4"),
            ("[Socket]\nListenStream=80\nAccept=yes\nAccept=no\nService=x.service\n", ""),
            ("[Socket]\nListenDatagram=80\nAccept=yes\n", "2"),
            ("[Socket]\nListenFIFO=/run/x\nAccept=yes\n", "2"),
            ("[Socket]\nListenDatagram=80\nListenDatagram=\nListenStream=80\nAccept=yes\n", ""),
            ("[Socket]\nListenStream=80\nMaxConnections=0\n", "3"),
            ("[Socket]\nListenStream=/run/a\nSymlinks=/run/b\n", ""),
            ("[Socket]\nListenStream=/run/a\nListenStream=80\nSymlinks=/run/b\n", ""),
            ("[Socket]\nListenStream=/run/a\nListenFIFO=/run/c\nSymlinks=/run/b\n", "4"),
            ("[Socket]\nListenStream=80\nSymlinks=/run/b\n", "3"),
            ("[Socket]\nListenStream=80\nSymlinks=/run/b\nSymlinks=\n", ""),
        ],
    );
}

/// `systemd-analyze verify`.
#[test]
fn limits_and_services_that_systemd_refuses() {
    let limit = |value: &str| format!("[Service]\nExecStart=/bin/true\n{value}\n");
    for (value, expected) in [
        ("LimitCPU=1min:2min", ""),
        ("LimitCPU=2min:1min", "3"),
        ("LimitCPU=1800ms:1500ms", ""),
        ("LimitCPU=90:1min", "3"),
        ("LimitCPU=infinity:5", "3"),
        ("LimitCPU=5:infinity", ""),
        ("LimitRTTIME=5:1ms", ""),
        ("LimitRTTIME=5ms:1ms", "3"),
        ("LimitNOFILE=5:4", "3"),
        ("LimitAS=1G:1M", "3"),
        ("Type=forking\nPrivatePIDs=yes", "4"),
        ("Type=oneshot\nRuntimeMaxSec=5", "~4"),
        ("RuntimeMaxSec=5", ""),
    ] {
        assert_eq!(found("/etc/systemd/system/x.service", &limit(value)), expected, "{value}");
    }
}

/// The warnings of the daemons.
#[test]
fn settings_of_daemons() {
    for (path, text, expected) in [
        ("/etc/systemd/journald.conf", "[Journal]\nStorage=persistent\nSystemMaxUse=1G\n#x\n", ""),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journal]\nStorag=persistent\nSystemMaxUse=1X\nSeal=maybe\n", "2 3 4"),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journald]\nStorage=volatile\n", "1"),
        ("/etc/systemd/journald.conf.d/a.conf", "Storage=volatile\n[Journal]\nStorage=disk\nSyncIntervalSec=\n", "1 3"),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journal]\nRateLimitBurst=-1\nnothing\n", "2 3"),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journal\n", "1"),
        ("/etc/systemd/journald.conf.d/.a.conf", "[Journal\n", ""),
        ("/usr/lib/systemd/logind.conf.d/a.conf", "[Login]\nHandleLidSwitch=ignore\nKillUserProcesses=no\n", ""),
        ("/usr/lib/systemd/logind.conf.d/a.conf", "[Login]\nHandleLidSwitch=nothing\nUserTasksMax=1\n", "2"),
        (
            "/etc/systemd/system.conf",
            "[Manager]\nDefaultLimitNOFILE=10:5\nDefaultTimeoutStopSec=5x\nDumpCore=no\n",
            "2 3",
        ),
        ("/etc/systemd/timesyncd.conf", "[Time]\nNTP=a b\nServer=x\n", "3"),
        ("/etc/systemd/resolved.conf", "[Resolve]\nDNS=1.1.1.1\nDNSSEC=allow-downgrade\nLLMNR=perhaps\n", "4"),
        ("/etc/systemd/sleep.conf", "[Sleep]\nAllowSuspend=no\nAllowHibernate=no\n", "3"),
        ("/etc/systemd/coredump.conf", "[Coredump]\nStorage=none\nProcessSizeMax=big\n", "3"),
        (
            "/etc/systemd/network/a.network",
            "[Match]\nName=e*\n[Network]\nDHCP=yes\nIPv6AcceptRA=no\n[Route]\nGateway=10.0.0.1\n",
            "",
        ),
        ("/etc/systemd/network/a.network", "[Match]\nName=e*\n[Networks]\nDHCP=yes\n", "3"),
        ("/etc/systemd/network/a.network", "[Network]\nDhcp=yes\nLLMNR=perhaps\n", "2 3"),
        ("/etc/systemd/network/a.network.d/x.conf", "[Network]\nDNS=1.1.1.1\nGatway=10.0.0.1\n", "3"),
        ("/etc/systemd/network/a.network", "[SR-IOV]\nVirtualFunction=1\nTrustt=yes\n", "3"),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nName=br0\nKind=bridge\n[Bridge]\nSTP=maybe\n", "5"),
        ("/etc/systemd/network/a.link", "[Match]\nDriver=x\n[Link]\nNamePolicy=keep\nMACPolicy=none\n", "5"),
        ("/etc/systemd/foo.conf", "[X]\nY=1\n", ""),
        ("/usr/lib/systemd/portable/profile/a/journald.conf", "[X]\nY=1\n", ""),
    ] {
        assert_eq!(found(path, text), expected, "{path}: {text}");
    }
}

#[test]
fn time_zones_of_timers() {
    for (text, expected) in [
        ("daily", None),
        ("daily UTC", None),
        ("*-*-* 03:00 Europe/Berlin", Some("Europe/Berlin")),
        ("Mon 03:00 CET", Some("CET")),
        ("Mon,Tue 03:00", None),
    ] {
        assert_eq!(calendar_zone(text), expected, "{text}");
    }
}

#[test]
fn commands_of_services() {
    let command = |prefixes: &str, program: &str| UnitCommand { prefixes: prefixes.into(), program: program.into() };
    for (value, expected) in [
        ("/usr/bin/x --a", vec![command("", "/usr/bin/x")]),
        ("-+\"/opt/a b\" c ; y", vec![command("-+", "/opt/a b"), command("", "y")]),
        ("/usr/bin/x \"", vec![]),
        ("", vec![]),
    ] {
        assert_eq!(unit_commands(value), expected, "{value}");
    }
}

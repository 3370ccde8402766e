//! Texts of sockets, daemons and networks with the line of each problem, as systemd 257 finds them; warnings have `~` before the line.

use super::super::{File, Problem, calendar_zone, problems};
use super::{UnitCommand, named_route_tables, route_tables, unit_commands, values};
use crate::Ownership;

fn found(path: &str, text: &str) -> String {
    let access = Ownership { mode: 0o644, owner: "root".to_owned(), group: "root".to_owned() };
    let found = problems(&File { path, bytes: text.as_bytes(), text, access, has_drop_ins: false });
    let line =
        |problem: Problem| format!("{}{}", if problem.is_warning { "~" } else { "" }, problem.line.unwrap_or_default());
    found.into_iter().map(line).collect::<Vec<_>>().join(" ")
}

fn messages(path: &str, text: &str) -> String {
    let access = Ownership { mode: 0o644, owner: "root".to_owned(), group: "root".to_owned() };
    let found = problems(&File { path, bytes: text.as_bytes(), text, access, has_drop_ins: false });
    found.into_iter().map(|problem| problem.message).collect()
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

/// systemd-networkd and `udevadm test-builtin net_setup_link` of systemd 257.
#[test]
fn networks_that_lack_settings() {
    let network = |rest: &str| format!("[Match]\nName=lo\n{rest}\n");
    for (section, expected) in [
        ("[Address]\nAddress=10.0.0.1/24", ""),
        ("[Address]\nLabel=x", "3"),
        ("[Address]\nAddress=", "3"),
        ("[Address]", ""),
        ("[Route]\nDestination=10.0.0.0/8", ""),
        ("[Route]\nMetric=5\n[Route]\nGateway=10.0.0.1", "3"),
        ("[Neighbor]\nAddress=10.0.0.1\nMACAddress=00:11:22:33:44:55", ""),
        ("[Neighbor]\nAddress=10.0.0.1", "3"),
        ("[IPv6AddressLabel]\nLabel=5", "3"),
        ("[DHCPServerStaticLease]\nAddress=10.0.0.1", "3"),
        ("[SR-IOV]\nTrust=yes", "3"),
        ("[IPv6SendRA]\nDomains=a b a", "4"),
        ("[IPv6SendRA]\nDomains=a A\nDomains=\nDomains=a", ""),
        ("[IPv6SendRA]\nDomains=a\n[IPv6PrefixDelegation]\nDomains=a", "6"),
    ] {
        assert_eq!(found("/etc/systemd/network/a.network", &network(section)), expected, "{section}");
    }
    let link = "/etc/systemd/network/a.link";
    for (path, text, is_read) in [
        ("/etc/systemd/network/a.network", "", true),
        ("/etc/systemd/network/a.network", "# c\n", false),
        ("/etc/systemd/network/a.network", "[Network]\nDHCP=yes\n", false),
        ("/etc/systemd/network/a.network", "[Match]\nName=lo\nName=\n", false),
        ("/etc/systemd/network/a.network.d/x.conf", "[Network]\nDHCP=yes\n", true),
        (link, "[Link]\nMTUBytes=1500\n", false),
        (link, "[Match]\nOriginalName=*\n[Link]\nAdvertise=1000baset-full tp\nSR-IOVVirtualFunctions=5\n", true),
        (link, "[Match]\nOriginalName=*\n[Link]\nAdvertise=1000baset\n", false),
        (link, "[Match]\nOriginalName=*\n[Link]\nSR-IOVVirtualFunctions=2147483648\n", false),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nName=x\n", false),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nKind=dummy\n", false),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nKind=dummy\nName=x\n[X-Y]\n", true),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nKind=bridge\nName=x\n[Bridge]\nSTP=no\n", true),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nKind=bridge\nName=x\n[VLAN]\nId=5\n", false),
    ] {
        let found = messages(path, text);
        assert_eq!(found.is_empty(), is_read, "{path}: {text:?}: {found}");
    }
}

/// The warnings of the daemons.
#[test]
fn settings_of_daemons() {
    for (path, text, expected) in [
        ("/etc/systemd/journald.conf", "[Journal]\nStorage=persistent\nSystemMaxUse=1G\n#x\n", ""),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journal]\nStorag=persistent\nSystemMaxUse=1X\nSeal=maybe\n", "2 3 4"),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journald]\nStorage=volatile\n", "1"),
        (
            "/etc/systemd/journald.conf.d/a.conf",
            "Storage=volatile\n[Journal]\nStorage=disk\nSyncIntervalSec=\nLineMax=\n",
            "1 3 4",
        ),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journal]\nRateLimitBurst=-1\nnothing\n", "2 3"),
        ("/etc/systemd/journald.conf.d/a.conf", "[Journal\n", "1"),
        ("/etc/systemd/journald.conf.d/.a.conf", "[Journal\n", ""),
        ("/usr/lib/systemd/logind.conf.d/a.conf", "[Login]\nHandleLidSwitch=ignore\nKillUserProcesses=no\n", ""),
        ("/usr/lib/systemd/logind.conf.d/a.conf", "[Login]\nHandleLidSwitch=nothing\nUserTasksMax=1\n", "2 ~3"),
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
        ("/etc/systemd/network/a.network.d/x.conf", "[Network]\nDhcp=yes\nLLMNR=perhaps\n", "2 3"),
        ("/etc/systemd/network/a.network.d/x.conf", "[Network]\nDNS=1.1.1.1\nGatway=10.0.0.1\n", "3"),
        ("/etc/systemd/network/a.network.d/x.conf", "[SR-IOV]\nVirtualFunction=1\nTrustt=yes\n", "3"),
        ("/etc/systemd/network/a.netdev", "[NetDev]\nName=br0\nKind=bridge\n[Bridge]\nSTP=maybe\n", "5"),
        ("/etc/systemd/network/a.link", "[Match]\nDriver=x\n[Link]\nNamePolicy=keep\nMACPolicy=none\n", "5"),
        ("/etc/systemd/journald.conf", "[Journal]\nTTYPath=/dev/%z\nMaxLevelStore=9\nMaxLevelSyslog=info\n", "3"),
        ("/etc/systemd/journald.conf", "[Journal]\nLineMax=x\nCompress=maybe\nCompress=1K\nTTYPath=x\n", "2 3 5"),
        (
            "/etc/systemd/logind.conf",
            "[Login]\nNAutoVTs=16\nSleepOperation=suspend nap\nRuntimeDirectorySize=infinity\n",
            "2 3 4",
        ),
        (
            "/etc/systemd/system.conf",
            "[Manager]\nCPUAffinity=x\nShowStatus=maybe\nLogLevel=console:x\nLogTarget=x\n",
            "2 3 4 5",
        ),
        ("/etc/systemd/networkd.conf", "[DHCPv4]\nDUIDType=x\n[Network]\nRouteTable=x\nRouteTable=x:5\n", "2 4"),
        ("/etc/systemd/foo.conf", "[X]\nY=1\n", ""),
        ("/usr/lib/systemd/portable/profile/a/journald.conf", "[X]\nY=1\n", ""),
    ] {
        assert_eq!(found(path, text), expected, "{path}: {text}");
    }
}

/// Settings of which systemd-networkd takes or ignores the value.
#[test]
fn values_of_networks() {
    let of = |line: &str| {
        let (kind, setting) = line.split_once(' ').unwrap();
        let (section, setting) = setting.split_once('.').unwrap();
        let found = found(&format!("/etc/systemd/network/x.{kind}.d/x.conf"), &format!("[{section}]\n{setting}\n"));
        // A section may lack other settings.
        found.strip_prefix('1').unwrap_or(&found).trim_start().to_owned()
    };
    let wrong = |lines: &'static str, expected: &str| -> Vec<&str> {
        lines.lines().filter(|line| of(line) != expected).collect()
    };
    assert_eq!(wrong(include_str!("networks-valid.txt"), ""), [""; 0]);
    assert_eq!(wrong(include_str!("networks-ignored.txt"), "2"), [""; 0]);
    assert_eq!(wrong(include_str!("networks-warned.txt"), "~2"), [""; 0]);
}

/// systemd accepts these values, and fails later.
#[test]
fn values_with_which_machines_fail() {
    for (path, text, expected) in [
        (
            "/etc/systemd/system/x.service.d/x.conf",
            "[Service]\nCPUSchedulingPolicy=9\n",
            "a service with CPUSchedulingPolicy=9 does not start",
        ),
        (
            "/etc/systemd/system/x.service.d/x.conf",
            "[Service]\nCPUSchedulingPolicy=4\n",
            "a service with CPUSchedulingPolicy=4 does not start",
        ),
        (
            "/etc/systemd/system/x.service.d/x.conf",
            "[Service]\nIOSchedulingClass=9\n",
            "systemd ignores IOSchedulingClass=9",
        ),
        (
            "/etc/systemd/system/x.service.d/x.conf",
            "[Service]\nIOSchedulingClass=4\n",
            "a service with IOSchedulingClass=4 does not start",
        ),
        (
            "/etc/systemd/network/x.netdev.d/x.conf",
            "[WireGuardPeer]\nPublicKeyFile=/x\nEndpoint=10.0.0.1\n",
            "systemd reads Endpoint=10.0.0.1 as port 0",
        ),
        (
            "/etc/systemd/network/x.network.d/x.conf",
            "[IPv6SendRA]\nDomains=x..y\n",
            "systemd-networkd cannot configure an interface with Domains=x..y",
        ),
        ("/etc/systemd/system/x.socket.d/x.conf", "[Socket]\nDelegate=yes\n", "systemd ignores Delegate= in [Socket]"),
    ] {
        let messages = messages(path, text);
        assert!(messages.starts_with(expected), "{text}: {messages}");
    }
}

/// Names of routing tables, and their definitions in networkd.conf(5).
#[test]
fn routing_tables() {
    let network =
        "[Route]\nTable=blue\n[Route]\nTable=main\nTable=5\n[VRF]\nTable=red\n[RoutingPolicyRule]\nTable=0x10\n";
    let expected = [(2, "blue".to_owned()), (7, "red".to_owned())];
    assert_eq!(route_tables("/etc/systemd/network/x.network", network), expected);
    assert_eq!(route_tables("/etc/x.network", network), []);
    let names = "[Network]\nRouteTable=blue:5 main:7 6:6 x\nRouteTable=red:0 green:0x9\n";
    assert_eq!(named_route_tables("/etc/systemd/networkd.conf.d/x.conf", names), ["blue", "green"]);
    assert_eq!(named_route_tables("/etc/systemd/resolved.conf", names), [""; 0]);
}

/// A kind without a check would accept any value.
#[test]
fn each_setting_has_a_check() {
    let tables = [include_str!("settings.txt"), include_str!("daemons.txt")];
    let settings = tables.iter().flat_map(|table| table.lines()).filter(|line| !line.starts_with(['#', '[', '{']));
    for line in settings {
        let (_, kind) = line.split_once(' ').unwrap();
        let mut words = kind.split(' ');
        let name = words.next().unwrap().split('|').next().unwrap().trim_end_matches('?');
        let is_known = values::is_valid(name, &words.collect::<Vec<_>>(), "x").is_some();
        assert!(is_known || ["ignored", "unsupported"].contains(&name), "{line}");
    }
}

/// `systemd-analyze verify`.
#[test]
fn commands_of_sockets() {
    are_found(
        "/etc/systemd/system/x.socket",
        &[
            ("[Socket]\nListenStream=80\nExecStartPre=/bin/true %%\n", ""),
            ("[Socket]\nListenStream=80\nExecStartPre=a/b\n", "3"),
            ("[Socket]\nListenStream=80\nExecStopPre=/bin/true %z\n", "3"),
        ],
    );
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

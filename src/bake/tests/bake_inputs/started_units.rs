//! Units that a layer brings and that would not work on the machine: what systemd 257 says when it starts them.

use vmbake_common::digest::Digest;
use vmbake_disk::tree::Tree;

use super::keys::with_links;
use super::parts::{bake_layers_onto, bake_onto, base_with, control, deb, package, warnings};

const TARGET: (&str, &str) = ("/usr/lib/systemd/system/a.target", "[Unit]\n");

const ACCOUNTS: [(&str, &str); 3] = [
    ("/etc/passwd", "root:x:0:0::/root:/bin/sh\napp:x:900:900::/:/bin/sh\nmember:x:901:901::/:/bin/sh\n"),
    ("/etc/group", "root:x:0:\napp:x:900:\ncrew:x:800:member\n"),
    ("/usr/lib/sysusers.d/x.conf", "u later - - -\nm later crew\n"),
];

/// The keys of a layer with units: names and texts. Those with `[Install]` are enabled.
fn enabled(units: &[(&str, &str)]) -> String {
    let text = |text: &str| text.replace('\n', "\\n");
    let (templates, plain): (Vec<_>, Vec<_>) = units.iter().partition(|(name, _)| name.contains('@'));
    let plain: Vec<String> = plain.iter().map(|(name, unit)| format!(r#""{name}": "{}""#, text(unit))).collect();
    let file =
        |(name, unit): &(&str, &str)| format!(r#""/etc/systemd/system/{name}": {{"content": "{}"}}"#, text(unit));
    let files: Vec<String> = templates.iter().map(file).collect();
    let files = if files.is_empty() { String::new() } else { format!(r#", "files": {{{}}}"#, files.join(", ")) };
    let enable = units.iter().filter(|(_, text)| text.contains("[Install]"));
    let enable: Vec<String> = enable.map(|(name, _)| format!(r#""{name}""#)).collect();
    format!(r#", "units": {{"files": {{{}}}, "enable": [{}]}}{files}"#, plain.join(", "), enable.join(", "))
}

/// A service with these lines, which is enabled.
fn service(lines: &str) -> String {
    enabled(&[("u.service", &format!("[Service]\n{lines}\n[Install]\nWantedBy=a.target\n"))])
}

fn base(more: &[(&str, &str)]) -> Tree {
    base_with(&[&[TARGET, ("/usr/bin/app", "")], &ACCOUNTS[..], more].concat())
}

/// An empty text is expected of what is not refused.
#[track_caller]
fn expect(found: Result<Tree, String>, expected: &str, case: &str) {
    match found {
        Ok(_) => assert_eq!(expected, "", "{case}"),
        Err(error) => {
            assert!(!expected.is_empty() && error.contains(expected), "{case}: {error}\nexpected: {expected:?}")
        }
    }
}

/// Services that systemd starts, or the line and the reason why it does not.
#[track_caller]
fn services(more: &[(&str, &str)], keys: &str, cases: &[(&str, &str)]) {
    for (lines, expected) in cases {
        expect(bake_onto(base(more), &[], &(service(lines) + keys)), expected, lines);
    }
}

#[test]
fn programs_and_accounts_must_exist() {
    let at = |rest: &str| format!("layer k: unit u.service (/etc/systemd/system/u.service:{rest}");
    let lacks = |program: &str| at(&format!("2) does not start: it runs {program}, which is not in the image"));
    for (lines, expected) in [
        ("ExecStart=/usr/bin/app --x", String::new()),
        ("ExecStart=app\nUser=root", String::new()),
        ("ExecStart=/opt/none a", lacks("/opt/none")),
        ("ExecStart=-/opt/none", String::new()),
        ("ExecStart=/run/made/%i", String::new()),
        ("ExecStart=@!/opt/none none", lacks("/opt/none")),
        ("ExecStart=nothere", lacks("nothere")),
        ("ExecStartPre=/opt/none\nExecStart=app", lacks("/opt/none")),
        ("ExecStart=app\nExecStop=/opt/none", String::new()),
        ("Nice=1", at("1) does not start: systemd does not start a .service without ExecStart=")),
        ("ExecStop=/usr/bin/app\nRemainAfterExit=yes", String::new()),
        (
            "ExecStart=app\nUser=stranger",
            at("3) does not start: User=stranger, but the image does not have the user stranger"),
        ),
        ("ExecStart=app\nUser=stranger\nDynamicUser=yes", String::new()),
        ("ExecStart=app\nUser=later", String::new()),
        ("ExecStart=app\nUser=1000", String::new()),
        ("ExecStart=app\nGroup=nogroup", at("3) does not start: Group=nogroup, but the image does not have the group")),
        (
            "ExecStart=app\nDynamicUser=yes\nSupplementaryGroups=crew gone",
            at("4) does not start: SupplementaryGroups=gone"),
        ),
    ] {
        expect(bake_onto(base(&[]), &[], &service(lines)), &expected, lines);
    }
}

#[test]
fn what_may_come_on_the_machine_is_a_warning() {
    let text = |path: &str, text: &str| format!(r#", "files": {{"{path}": {{"content": "{text}\n"}}}}"#);
    let fetch = text("/usr/local/sbin/fetch", "curl -o /opt/tool/bin/x https://a");
    for (lines, keys, warning) in [
        ("ExecStart=/opt/tool/bin/x", fetch, "it runs /opt/tool/bin/x, which is not in the image"),
        ("ExecStart=app\nUser=stranger", text("/usr/local/sbin/a", "useradd stranger"), "User=stranger"),
        (
            "ExecStartPre=+mkdir -p /srv/x\nExecStart=app\nReadWritePaths=/srv/x",
            String::new(),
            "ReadWritePaths= needs /srv/x",
        ),
    ] {
        let base = base(&[("/usr/bin/mkdir", "")]);
        let found = warnings(base, &[], &(service(lines) + &keys));
        assert!(found.len() == 1 && found[0].contains(warning), "{lines}: {found:?}");
    }
    // A script of a package that is configured on the first boot.
    let script = "#!/bin/sh\nadduser --system stranger\n";
    let part = package("own", deb(&control("own", ""), &[("postinst", script)], &[]));
    let digest = Digest::of(script.as_bytes()).hex();
    let deferred =
        format!(r#", "scripts": [{{"package": "own", "script": "postinst", "sha256": "{digest}", "defer": true}}]"#);
    let found = warnings(base(&[]), &[part], &(service("ExecStart=app\nUser=stranger") + &deferred));
    assert!(found.iter().any(|found| found.contains("User=stranger")), "{found:?}");
    // A unit that is not started, and one of the base.
    let off = r#", "units": {"files": {"u.service": "[Service]\nExecStart=/opt/none\n"}}"#;
    assert_eq!(warnings(base(&[]), &[], off).len(), 1);
    let broken =
        ("/usr/lib/systemd/system/b.service", "[Service]\nExecStart=/opt/none\n[Install]\nWantedBy=a.target\n");
    let tree = with_links(base(&[broken]), &[("/etc/systemd/system/a.target.wants/b.service", broken.0)]);
    assert_eq!(warnings(tree, &[], ""), [""; 0]);
    let waiting = enabled(&[(
        "u.service",
        "[Unit]\nConditionPathExists=/opt/x\n[Service]\nEnvironmentFile=/opt/x\nExecStart=app\n[Install]\nWantedBy=a.target\n",
    )]);
    assert_eq!(warnings(base(&[]), &[], &waiting), [""; 0]);
}

#[test]
fn an_image_without_systemd_starts_no_unit() {
    let mut tree = base(&[]);
    tree.remove(b"/usr/lib/systemd/systemd").unwrap();
    let found = warnings(tree, &[], &service("ExecStart=/opt/none"));
    assert!(found.iter().any(|warning| warning.contains("it runs /opt/none, which is not in the image")), "{found:?}");
}

#[test]
fn programs_and_directories_must_be_reachable() {
    let directory = |mode: &str, group: &str| {
        format!(
            r#", "directories": {{"/opt": {{"mode": "{mode}", "group": "{group}"}}}}, "files": {{"/opt/x": {{"content": "\#!/bin/sh\n", "mode": "0755"}},
            "/opt/s": {{"content": "\#!/bin/sh\n", "mode": "0711"}}, "/opt/n": {{"content": "\#!/bin/sh\n"}}, "/opt/d/y": {{"content": "\n"}}}}"#
        )
        .replace("\\#", "#")
    };
    let closed = "u.service:2) does not start: it runs /opt/x, but app cannot enter /opt: mode 0750 root:crew";
    for (keys, lines, expected) in [
        (directory("0755", "root"), "ExecStart=/opt/x\nUser=app", ""),
        (directory("0750", "crew"), "ExecStart=/opt/x\nUser=app", closed),
        (
            directory("0750", "crew"),
            "ExecStart=/opt/x\nUser=900",
            "/opt/x, but 900 cannot enter /opt: mode 0750 root:crew",
        ),
        (directory("0750", "crew"), "ExecStart=/opt/x\nUser=member", ""),
        (directory("0750", "crew"), "ExecStart=/opt/x\nUser=later", ""),
        (directory("0750", "crew"), "ExecStart=/opt/x\nUser=app\nGroup=crew", ""),
        (directory("0750", "crew"), "ExecStart=/opt/x\nUser=app\nSupplementaryGroups=crew", ""),
        (directory("0750", "crew"), "ExecStart=/opt/x\nDynamicUser=yes", "u cannot enter /opt: mode 0750 root:crew"),
        (directory("0750", "crew"), "ExecStart=/opt/x", ""),
        (directory("0750", "crew"), "ExecStart=+/opt/x\nUser=app", ""),
        (directory("0750", "crew"), "ExecStart=/opt/x\nUser=app\nAmbientCapabilities=CAP_DAC_OVERRIDE", ""),
        (
            directory("0750", "crew"),
            "ExecStart=app\nUser=app\nWorkingDirectory=/opt/d",
            "its working directory is /opt/d, but app cannot enter /opt",
        ),
        (
            directory("0755", "root"),
            "ExecStart=/opt/s\nUser=app",
            "app may not execute it: /opt/s has mode 0711 root:root",
        ),
        (directory("0755", "root"), "ExecStart=/opt/n", "/opt/n\" is not executable"),
        (directory("0755", "root"), "ExecStart=/opt", "it runs /opt, but /opt is a directory"),
    ] {
        expect(bake_onto(base(&[]), &[], &(service(lines) + &keys)), expected, lines);
    }
    // The first boot or tmpfiles.d(5) may change the mode.
    let changed = [("/usr/lib/tmpfiles.d/o.conf", "d /opt 0755 root root\n")];
    services(&changed, &directory("0750", "crew"), &[("ExecStart=/opt/x\nUser=app", "")]);
}

#[test]
fn paths_of_the_sandbox_must_exist_and_show_the_program() {
    let more = [
        ("/home/u/app", ""),
        ("/srv/bin/app", ""),
        ("/srv/data/x", ""),
        ("/var/tmp/app", ""),
        ("/etc/token", ""),
        ("/usr/lib/tmpfiles.d/t.conf", "d /var/made/here 0755\n"),
    ];
    services(
        &more,
        "",
        &[
            (
                "ExecStart=/home/u/app\nProtectHome=yes",
                "u.service:2) does not start: it runs /home/u/app, but ProtectHome=yes hides /home",
            ),
            ("ExecStart=/home/u/app\nProtectHome=tmpfs", "ProtectHome=tmpfs hides /home"),
            ("ExecStart=/home/u/app\nProtectHome=read-only", ""),
            ("ExecStart=/home/u/app\nProtectHome=no", ""),
            ("ExecStart=/home/u/app\nProtectHome=tmpfs\nBindReadOnlyPaths=/home/u", ""),
            (
                "ExecStart=app\nWorkingDirectory=/home/u\nProtectHome=yes",
                "its working directory is /home/u, but ProtectHome=yes hides /home",
            ),
            ("ExecStart=/var/tmp/app\nPrivateTmp=yes", "PrivateTmp=yes hides /var/tmp"),
            ("ExecStart=/srv/bin/app\nInaccessiblePaths=/srv", "InaccessiblePaths=/srv hides /srv"),
            ("ExecStart=/srv/bin/app\nInaccessiblePaths=/srv/data", ""),
            ("ExecStart=/srv/bin/app\nTemporaryFileSystem=/srv:ro", "TemporaryFileSystem=/srv:ro hides /srv"),
            ("ExecStart=/srv/bin/app\nTemporaryFileSystem=/srv:ro\nBindPaths=/srv/bin", ""),
            ("ExecStart=/srv/bin/app\nNoExecPaths=/\nExecPaths=/usr", "NoExecPaths=/ forbids programs in /"),
            ("ExecStart=/srv/bin/app\nNoExecPaths=/\nExecPaths=/usr /srv/bin", ""),
            ("ExecStart=app\nReadWritePaths=/srv/data", ""),
            (
                "ExecStart=app\nReadWritePaths=/srv/gone",
                "u.service:3) does not start: ReadWritePaths= needs /srv/gone, which is not in the image",
            ),
            ("ExecStart=app\nReadWritePaths=-/srv/gone", ""),
            ("ExecStart=app\nReadWritePaths=/var/lib/u\nStateDirectory=u", ""),
            ("ExecStart=app\nReadWritePaths=/run/u /var/made", ""),
            ("ExecStart=app\nInaccessiblePaths=/srv/gone", "InaccessiblePaths= needs /srv/gone"),
            ("ExecStart=app\nBindPaths=/srv/gone:/mnt", "BindPaths= needs /srv/gone"),
            ("ExecStart=app\nWorkingDirectory=/srv/gone", "WorkingDirectory= needs /srv/gone"),
            ("ExecStart=app\nWorkingDirectory=-/srv/gone", ""),
            ("ExecStart=app\nWorkingDirectory=/srv/data\nReadOnlyPaths=/", ""),
            ("ExecStart=app\nRootDirectory=/srv/gone", "RootDirectory= needs /srv/gone"),
            (
                "ExecStart=app\nEnvironmentFile=/etc/none",
                "u.service:3) does not start: EnvironmentFile= needs /etc/none",
            ),
            ("ExecStart=app\nEnvironmentFile=-/etc/none", ""),
            ("ExecStart=app\nEnvironmentFile=/etc/none*", ""),
            ("ExecStart=app\nEnvironmentFile=/etc/none\nEnvironmentFile=", ""),
            ("ExecStart=app\nLoadCredential=t:/etc/token", ""),
            ("ExecStart=app\nLoadCredential=t:/etc/none", "LoadCredential= needs /etc/none"),
            ("ExecStart=app\nLoadCredential=t:/etc/none\nSetCredential=t:x", ""),
            ("ExecStart=app\nLoadCredential=t:name", ""),
        ],
    );
}

#[test]
fn units_that_others_need_must_exist() {
    let run = "[Service]\nExecStart=app\n";
    let install = "[Install]\nWantedBy=a.target\n";
    let needs = |line: &str| format!("[Unit]\n{line}\n{run}{install}");
    let of = |section: &str| format!("{section}\n{install}");
    for (units, expected) in [
        (
            vec![("u.service", needs("Requires=gone.service"))],
            "u.service:2) does not start: Requires= needs gone.service, which is not in the image",
        ),
        (vec![("u.service", needs("BindsTo=gone.mount dev-a.device"))], ""),
        (vec![("u.service", needs("Wants=gone.service\nAfter=gone.service"))], ""),
        (
            vec![("u.service", needs("Requisite=off.service"))],
            "Requisite= needs off.service, which is masked by /etc/systemd/system/off.service",
        ),
        (vec![("u.service", needs("Requires=t@1.service")), ("t@.service", run.to_owned())], ""),
        (vec![("u.service", needs("Requires=old.service"))], ""),
        (vec![("u.service", needs("Requires=made.target"))], ""),
        (vec![("u.service", needs("Requires=cluster@15-main.service rpc_pipefs.target"))], ""),
        (vec![("u.service", needs("Requires=foreign.target"))], "foreign.target, which is not in the image"),
        (
            vec![("s.socket", of("[Socket]\nListenStream=80"))],
            "s.socket:2) does not start: it starts s.service, which is not in the image",
        ),
        (vec![("s.socket", of("[Socket]\nListenStream=80")), ("s.service", run.to_owned())], ""),
        (
            vec![("s.socket", of("[Socket]\nListenStream=80")), ("s@.service", run.to_owned())],
            "s.service, which is not in the image; s@.service needs Accept=yes",
        ),
        (
            vec![("s.socket", of("[Socket]\nListenStream=80\nAccept=yes")), ("s.service", run.to_owned())],
            "s.socket:3) does not start: Accept=yes starts s@.service",
        ),
        (vec![("s.socket", of("[Socket]\nListenStream=80\nAccept=yes")), ("s@.service", run.to_owned())], ""),
        (
            vec![("s.socket", of("[Socket]\nListenStream=80\nService=o.service"))],
            "s.socket:3) does not start: it starts o.service",
        ),
        (vec![("t.timer", of("[Timer]\nOnCalendar=daily"))], "it starts t.service, which is not in the image"),
        (vec![("t.timer", of("[Timer]\nOnCalendar=daily\nUnit=o.service")), ("o.service", run.to_owned())], ""),
        (vec![("p.path", of("[Path]\nPathExists=/x"))], "it starts p.service, which is not in the image"),
        (vec![("mnt.automount", of("[Automount]\nWhere=/mnt"))], "it starts mnt.mount, which is not in the image"),
        (
            vec![
                ("mnt.automount", of("[Automount]\nWhere=/mnt")),
                ("mnt.mount", "[Mount]\nWhat=/dev/a\nWhere=/mnt\n".to_owned()),
            ],
            "",
        ),
        (vec![("data.automount", of("[Automount]\nWhere=/data"))], ""),
    ] {
        let generators = [
            ("/usr/lib/systemd/system-generators/g", "\0/made.target\0ln -s x \"$1/cluster@$version.service\""),
            ("/usr/lib/systemd/system-generators/split", "\x7fELF /rpc_pipefs.targ\0"),
            ("/usr/lib/systemd/system-generators/systemd-split", "\x7fELF /foreign.targ\0"),
        ];
        let files = [
            generators[0],
            generators[1],
            generators[2],
            ("/etc/init.d/old", ""),
            ("/etc/fstab", "/dev/b /data ext4 defaults 0 0\n"),
        ];
        let tree = with_links(base(&files), &[("/etc/systemd/system/off.service", "/dev/null")]);
        let units: Vec<(&str, &str)> = units.iter().map(|(name, text)| (*name, text.as_str())).collect();
        expect(bake_onto(tree, &[], &enabled(&units)), expected, &format!("{units:?}"));
    }
}

#[test]
fn time_zones_of_timers_must_exist() {
    let zones = [
        ("/usr/share/zoneinfo/Europe/Berlin", "TZif2"),
        ("/usr/share/zoneinfo/Europe/notes", "text"),
        ("/etc/localtime", "TZif2 CET\0CEST\0"),
    ];
    let lacks = |zone: &str| format!("OnCalendar=03:00 {zone}: the image does not have the time zone {zone}");
    for (zone, is_known) in [
        ("Europe/Berlin", true),
        ("UTC", true),
        ("CEST", true),
        ("US/Eastern", false),
        ("Europe/notes", false),
        ("EST", false),
    ] {
        let timer = format!("[Timer]\nOnCalendar=03:00 {zone}\n[Install]\nWantedBy=a.target\n");
        let keys = enabled(&[("t.timer", &timer), ("t.service", "[Service]\nExecStart=app\n")]);
        let expected = if is_known { String::new() } else { lacks(zone) };
        expect(bake_onto(base(&zones), &[], &keys), &expected, zone);
    }
}

#[test]
fn settings_of_units_without_effect_are_warnings() {
    let unit = ("/usr/lib/systemd/system/b.service", "[Service]\nExecStart=app\n[Install]\nWantedBy=a.target\n");
    let file = |path: &str, text: &str| format!(r#", "files": {{"{path}": {{"content": "{text}\n"}}}}"#);
    let drop_in = |name: &str| file(&format!("/etc/systemd/system/{name}.d/x.conf"), "[Unit]\\nDescription=x");
    let preset = |line: &str| file("/usr/lib/systemd/system-preset/10-x.preset", line);
    for (keys, expected) in [
        (drop_in("b.service"), None),
        (
            drop_in("gone.service"),
            Some("/etc/systemd/system/gone.service.d/x.conf has no effect: gone.service is not in the image"),
        ),
        (drop_in("service"), None),
        (drop_in("user-.slice"), None),
        (drop_in("data.mount"), None),
        (drop_in("systemd-fsck@dev-a.service"), None),
        (preset("enable b.service"), None),
        (preset("enable *"), None),
        (
            preset("# c\\nenable gone.service"),
            Some("/usr/lib/systemd/system-preset/10-x.preset:2: `enable gone.service` has no effect"),
        ),
    ] {
        let found = warnings(base(&[unit]), &[], &keys);
        assert_eq!(found.len(), expected.iter().count(), "{keys}: {found:?}");
        assert!(
            found.iter().zip(expected).all(|(found, expected)| found.starts_with(&format!("layer k: {expected}"))),
            "{found:?}"
        );
    }
    let enable = r#", "units": {"enable": ["b.service"]}"#;
    let mask = r#", "units": {"mask": ["b.service"]}"#;
    expect(bake_layers_onto(base(&[unit]), &[("k", enable, &[]), ("m", mask, &[])]), "", "masked");
}

//! Layers that make settings of another layer or of the base ineffective or invalid.

use vmbake_disk::tree::Tree;

use super::keys::with_links;
use super::parts::{bake_layers_onto, bake_onto, base_with, warnings};

/// Bakes two layers, of which the second one requires the first.
fn bake(base: Tree, first: (&str, &str), second: (&str, &str)) -> Result<Tree, String> {
    bake_layers_onto(base, &[(first.0, first.1, &[]), (second.0, second.1, &[])])
}

/// Checks that two layers are refused; an empty text for those that are not.
fn expect(found: Result<Tree, String>, expected: &str) {
    match found {
        Ok(_) => assert_eq!(expected, ""),
        Err(error) => assert!(!expected.is_empty() && error.contains(expected), "{error}\nexpected: {expected:?}"),
    }
}

#[test]
fn two_layers_set_a_parameter_to_one_value() {
    let sysctl = |key: &str, value: u8| format!(r#", "sysctl": {{"{key}": {value}}}"#);
    let conflict = |name: &str| format!("{name}: conflicting values in `sysctl` of the layers z and a");
    for (first, second, expected) in [
        (sysctl("vm.swappiness", 1), sysctl("vm.swappiness", 2), conflict("vm.swappiness")),
        (sysctl("vm.swappiness", 1), sysctl("vm/swappiness", 2), conflict("vm.swappiness")),
        (sysctl("net.ipv4.conf.eth0/1.x", 1), sysctl("net/ipv4/conf/eth0.1/x", 2), conflict("net/ipv4/conf/eth0.1/x")),
        (sysctl("net.ipv4.conf.eth0.1.x", 1), sysctl("net/ipv4/conf/eth0.1/x", 2), String::new()),
        (sysctl("vm.swappiness", 1), sysctl("vm/swappiness", 1), String::new()),
    ] {
        expect(bake(base_with(&[]), ("z", &first), ("a", &second)), &expected);
    }
    let both = r#", "sysctl": {"vm.swappiness": 1, "vm/swappiness": 1}"#;
    expect(bake_onto(base_with(&[]), &[], both), r#""vm/swappiness" is the same parameter as "vm.swappiness""#);
}

#[test]
fn a_parameter_of_a_layer_is_not_set_by_a_later_file() {
    let key = r#", "sysctl": {"vm.swappiness": 1}"#;
    let file =
        |name: &str, text: &str| format!(r#", "files": {{"/etc/sysctl.d/{name}.conf": {{"content": "{text}\n"}}}}"#);
    let refused =
        "/etc/sysctl.d/60-z.conf, of layer z: `sysctl` sets vm.swappiness to 1, but /etc/sysctl.d/70-x.conf:1";
    for (name, text, expected) in [
        ("70-x", "vm/swappiness = 9", format!("{refused} of layer a, which is read later, sets it to 9")),
        ("70-x", "-vm.swappiness=1", String::new()),
        ("70-x", "#vm.swappiness=2", String::new()),
        ("50-x", "vm.swappiness=2", String::new()),
    ] {
        expect(bake(base_with(&[]), ("a", &file(name, text)), ("z", key)), &expected);
        // A layer may change what an earlier one sets.
        expect(bake(base_with(&[]), ("z", key), ("a", &file(name, text))), "");
    }
    let base = base_with(&[("/usr/lib/sysctl.d/99-x.conf", "# base\nvm.swappiness=3\n")]);
    expect(
        bake_onto(base, &[], key),
        "`sysctl` sets vm.swappiness to 1, but /usr/lib/sysctl.d/99-x.conf:2 of the base, which is read later, sets it to 3",
    );
    let hidden = base_with(&[("/usr/lib/sysctl.d/99-x.conf", "vm.swappiness=3\n"), ("/etc/sysctl.d/99-x.conf", "")]);
    expect(bake_onto(hidden, &[], key), "");
}

#[test]
fn a_line_of_tmpfiles_counts() {
    let line =
        |name: &str, text: &str| format!(r#", "files": {{"/etc/tmpfiles.d/{name}.conf": {{"content": "{text}\n"}}}}"#);
    let base = || {
        base_with(&[
            ("/usr/lib/tmpfiles.d/tmp.conf", "# c\nd /var/cache/x 0755\n"),
            ("/etc/passwd", "root:x:0:0::/:\n"),
        ])
    };
    let ignored = "systemd-tmpfiles ignores the line: /usr/lib/tmpfiles.d/tmp.conf:2 of the base, which it reads first, has other settings for /var/cache/x";
    for (name, text, expected) in [
        ("z", "d /var/cache/x 0700", ignored),
        ("z", "d /var/cache/x 755", ""),
        ("a", "d /var/cache/x 0700", ""),
        ("tmp", "d /var/cache/x 0700", ""),
        ("z", "z /var/cache/x 0700", ""),
    ] {
        expect(bake_onto(base(), &[], &line(name, text)).map_err(|error| error.replace("layer k: ", "")), expected);
    }
    let (first, second) = (line("b", "d /srv/x 0700"), line("a", "d /srv/x 0755"));
    expect(bake(base(), ("z", &first), ("a", &second)), "");
    expect(bake(base(), ("z", &second), ("a", &first)), "/etc/tmpfiles.d/a.conf:1 of layer z");
}

#[test]
fn files_that_nft_includes_exist() {
    let rules =
        |include: &str| format!(r#", "files": {{"/etc/nftables.conf": {{"content": "include \"{include}\"\n"}}}}"#);
    for (include, expected) in [
        ("/etc/nft/a.nft", ""),
        ("nft/a.nft", ""),
        ("/etc/nft/*.nft", ""),
        ("/etc/none.nft", "/etc/nftables.conf:1"),
        ("none.nft", "nft refuses the file: it includes none.nft, which is not in the image"),
    ] {
        expect(bake_onto(base_with(&[("/etc/nft/a.nft", "")]), &[], &rules(include)), expected);
    }
}

#[test]
fn two_layers_give_an_argument_or_a_list_of_keys_one_value() {
    let arguments = |text: &str| format!(r#", "kernel_arguments": ["{}"]"#, text.replace(' ', "\", \""));
    let conflict = |name: &str| format!("{name}: conflicting values in `kernel_arguments` of the layers z and a");
    for (first, second, expected) in [
        ("panic=1", "panic=2", conflict("panic")),
        ("usb-core.x=1", "usb_core.x=2", conflict("usb_core.x")),
        ("console=tty0 console=ttyS0", "console=ttyS0 console=tty0", conflict("console")),
        ("panic=1 quiet", "quiet panic=1", String::new()),
        ("systemd.mask=a.service", "systemd.mask=b.service", String::new()),
    ] {
        let menu = [("/boot/grub/grub.cfg", "menuentry 'x' {\n  linux /vmlinuz root=/dev/vda1 ro\n  initrd /i\n}\n")];
        expect(bake(base_with(&menu), ("z", &arguments(first)), ("a", &arguments(second))), &expected);
    }
    let key = |name: &str| {
        format!(
            r#", "ssh_authorized_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5OV/zJ {name}"]"#
        )
    };
    let conflict = "conflicting values in `ssh_authorized_keys` of the layers z and a";
    expect(bake(base_with(&[]), ("z", &key("one")), ("a", &key("two"))), conflict);
    expect(bake(base_with(&[]), ("z", &key("one")), ("a", &key("one"))), "");
}

#[test]
fn what_a_layer_gives_a_file_lasts() {
    let setuid = r#", "setuid": ["/usr/bin/x"], "modes": {"/usr/bin/x": {"mode": "4755"}}"#;
    let capable = r#", "setuid": ["/usr/bin/x"], "capabilities": {"/usr/bin/x": "cap_net_raw+ep"}"#;
    let mode = r#", "modes": {"/etc/conf": {"mode": "0600"}}"#;
    let file = |path: &str, mode: &str| format!(r#", "files": {{"{path}": {{"content": "new"{mode}}}}}"#);
    let changed = |path: &str, key: &str, rest: &str| {
        format!("{path}: layer z gives it {key}, but layer a changes it: expected {rest}")
    };
    let program = "/usr/bin/x";
    for (first, second, expected) in [
        (
            setuid,
            file(program, ""),
            changed(
                program,
                "mode 4755 of 0:0 with `modes`",
                "mode 4755 of 0:0, found mode 0755 of 0:0, in a new file",
            ),
        ),
        (
            setuid,
            r#", "modes": {"/usr/bin/x": {"mode": "0755"}}"#.to_owned(),
            changed(program, "mode 4755 with `setuid`", "mode 4755, found mode 0755"),
        ),
        (setuid, setuid.to_owned(), String::new()),
        (setuid, r#", "remove": ["/usr/bin/x"]"#.to_owned(), String::new()),
        (
            capable,
            file(program, ""),
            changed(
                program,
                "its capabilities with `capabilities`",
                "its capabilities, found no capabilities, in a new file",
            ),
        ),
        (
            capable,
            r#", "modes": {"/usr/bin/x": {"mode": "0755", "owner": "daemon"}}"#.to_owned(),
            changed(program, "its capabilities with `capabilities`", "its capabilities, found no capabilities"),
        ),
        (capable, r#", "modes": {"/usr/bin/x": {"mode": "0700"}}"#.to_owned(), String::new()),
        (
            mode,
            file("/etc/conf", ""),
            changed(
                "/etc/conf",
                "mode 0600 of 0:0 with `modes`",
                "mode 0600 of 0:0, found mode 0644 of 0:0, in a new file",
            ),
        ),
        (mode, file("/etc/conf", r#", "mode": "0644""#), String::new()),
        (mode, r#", "modes": {"/etc/conf": {"mode": "0640"}}"#.to_owned(), String::new()),
    ] {
        let passwd = ("/etc/passwd", "root:x:0:0::/:\ndaemon:x:1:1::/:\n");
        let base = base_with(&[(program, "x"), ("/etc/conf", "c"), passwd]);
        expect(bake(base, ("z", first), ("a", &second)), &expected);
    }
}

#[test]
fn a_removed_unit_takes_its_links_along() {
    let unit = "/usr/lib/systemd/system/x.service";
    let wants = "/etc/systemd/system/multi-user.target.wants/x.service";
    let service = "[Service]\nExecStart=/usr/bin/sh\n[Install]\nWantedBy=multi-user.target\n";
    let base = || base_with(&[(unit, service)]);
    let remove = r#", "remove": ["/usr/lib/systemd/system/x.service"]"#;
    let tree = bake_onto(with_links(base(), &[(wants, unit)]), &[], remove).unwrap();
    assert!(tree.lookup(wants.as_bytes()).is_none());
    let enable = r#", "units": {"enable": ["x.service"]}"#;
    expect(
        bake(base(), ("z", enable), ("a", remove)),
        &format!("layer a: unit x.service is removed, but layer z has {wants}, which needs it"),
    );
    let disable = format!(r#", "units": {{"disable": ["x.service"]}}{remove}"#);
    expect(bake(base(), ("z", enable), ("a", &disable)), "");
    // The unit is still there, and systemd takes nothing but its name from the link.
    let own = "/etc/systemd/system/x.service";
    let both = with_links(base_with(&[(unit, service), (own, service)]), &[(wants, own)]);
    let tree = bake_onto(both, &[], r#", "remove": ["/etc/systemd/system/x.service"]"#).unwrap();
    assert!(tree.lookup(wants.as_bytes()).is_some());
}

const UNIT: &str = "/usr/lib/systemd/system/a-b.service";

/// A base with units, and a layer with one drop-in.
fn with_drop_in(files: &[(&str, &str)], path: &str, text: &str) -> Result<Tree, String> {
    let text = text.replace('\n', "\\n");
    let keys = format!(r#", "files": {{"/etc/systemd/system/{path}": {{"content": "{text}"}}}}"#);
    bake_onto(base_with(files), &[], &keys)
}

/// The results are those of `systemd-analyze verify` of systemd 257.
#[test]
fn a_drop_in_is_judged_together_with_its_unit() {
    let start = "[Service]\nExecStart=/usr/bin/sh\n";
    let twice = "is refused by systemd together with its drop-ins: systemd refuses the unit: only a service with Type=oneshot can have several ExecStart=";
    let none = "systemd does not start a .service without ExecStart=";
    let second = "[Service]\nExecStart=/usr/bin/sh -c true\n";
    let reset = "[Service]\nExecStart=\nExecStart=/usr/bin/sh -c true\n";
    for (unit, path, text, expected) in [
        (start, "a-b.service.d/x.conf", second, twice),
        (start, "a-.service.d/x.conf", second, twice),
        (start, "service.d/x.conf", second, twice),
        (start, "a-c.service.d/x.conf", second, ""),
        (start, "a-b.service.d/x.conf", reset, ""),
        (start, "a-b.service.d/x.conf", "[Service]\nExecStart=\n", none),
        (start, "a-b.service.d/x.conf", "[Service]\nType=dbus\n", "Type=dbus needs BusName="),
        (
            start,
            "a-b.service.d/x.conf",
            "[Service]\nType=oneshot\nRestart=always\n",
            "Type=oneshot does not allow Restart=always",
        ),
        ("[Service]\nType=oneshot\nExecStart=/usr/bin/sh\n", "a-b.service.d/x.conf", second, ""),
        ("[Service]\nRestart=always\n", "a-b.service.d/x.conf", second, ""),
    ] {
        expect(with_drop_in(&[(UNIT, unit)], path, text), expected);
    }
    let error = with_drop_in(&[(UNIT, start)], "a-b.service.d/x.conf", second).unwrap_err();
    assert!(error.contains("layer k: unit a-b.service (/etc/systemd/system/a-b.service.d/x.conf:2) "), "{error}");
    let timer = [("/usr/lib/systemd/system/t.timer", "[Timer]\nOnCalendar=daily\n")];
    expect(
        with_drop_in(&timer, "t.timer.d/x.conf", "[Timer]\nOnCalendar=\n"),
        "systemd does not start a .timer without",
    );
    expect(with_drop_in(&timer, "t.timer.d/x.conf", "[Timer]\nOnCalendar=\nOnBootSec=5\n"), "");
}

#[test]
fn drop_ins_are_those_of_all_names_of_a_unit() {
    let start = "[Service]\nExecStart=/usr/bin/sh\n";
    let second = "[Service]\nExecStart=/usr/bin/sh -c true\n";
    let twice = "can have several ExecStart=";
    let template = [("/usr/lib/systemd/system/t@.service", start)];
    expect(with_drop_in(&template, "t@.service.d/x.conf", second), twice);
    expect(with_drop_in(&template, "t@1.service.d/x.conf", second), twice);
    let prefixed = [("/usr/lib/systemd/system/p-t@.service", start)];
    for dir in ["p-@.service.d", "p-.service.d"] {
        let instance = [("/etc/systemd/system/a.target.wants/p-t@1.service", "/usr/lib/systemd/system/p-t@.service")];
        let keys = format!(
            r#", "files": {{"/etc/systemd/system/{dir}/x.conf": {{"content": "{}"}}}}"#,
            second.replace('\n', "\\n")
        );
        expect(bake_onto(with_links(base_with(&prefixed), &instance), &[], &keys), twice);
    }
    // One in /etc hides that of the same name in /usr/lib.
    let hidden = [(UNIT, start), ("/usr/lib/systemd/system/a-b.service.d/x.conf", second)];
    expect(with_drop_in(&hidden, "a-b.service.d/x.conf", "[Service]\nRestart=always\n"), "");
    expect(with_drop_in(&hidden, "a-b.service.d/y.conf", "[Service]\nRestart=always\n"), twice);
    let keys = format!(
        r#", "files": {{"/etc/systemd/system/alias.service.d/x.conf": {{"content": "{}"}}}}"#,
        second.replace('\n', "\\n")
    );
    let alias = [("/etc/systemd/system/alias.service", UNIT)];
    expect(bake_onto(with_links(base_with(&[(UNIT, start)]), &alias), &[], &keys), twice);
    // A base that is at fault itself stays as it is.
    expect(
        bake_onto(base_with(&[(UNIT, start), ("/usr/lib/systemd/system/a-b.service.d/x.conf", second)]), &[], ""),
        "",
    );
}

#[test]
fn programs_and_users_of_drop_ins_are_looked_for() {
    let base = || base_with(&[("/usr/lib/systemd/system/a.service", "[Service]\nExecStart=/usr/bin/sh\n")]);
    let drop_in = |text: &str| {
        format!(r#", "files": {{"/etc/systemd/system/a.service.d/x.conf": {{"content": "[Service]\n{text}\n"}}}}"#)
    };
    for (text, expected) in [
        ("User=stranger", Some(":2) does not start: User=stranger, but the image does not have the user stranger")),
        ("ExecStart=\\nExecStart=/opt/none", Some(":3) does not start: it runs /opt/none, which is not in the image")),
        ("User=root", None),
    ] {
        let expected =
            expected.map(|rest| format!("layer k: unit a.service (/etc/systemd/system/a.service.d/x.conf{rest}"));
        assert_eq!(warnings(base(), &[], &drop_in(text)), expected.as_slice(), "{text}");
    }
}

#[test]
fn unknown_accounts_in_files_are_warnings() {
    let base = || {
        base_with(&[
            ("/usr/lib/sysusers.d/x.conf", "u later - - -\ng crew -\nm root joined\nu other 5:crew\n"),
            ("/etc/passwd", "root:x:0:0::/:\n"),
        ])
    };
    let no = |what: &str, name: &str| format!("the image does not have the {what} {name}");
    for (path, text, expected) in [
        (
            "/etc/tmpfiles.d/x.conf",
            "d /srv/x 0755 gone root",
            vec![("systemd-tmpfiles ignores a line of", no("user", "gone"))],
        ),
        (
            "/etc/tmpfiles.d/x.conf",
            "d /srv/x 0755 later :gone",
            vec![("systemd-tmpfiles ignores a line of", no("group", "gone"))],
        ),
        ("/etc/tmpfiles.d/x.conf", "d /srv/x 0755 later joined\\nd /srv/y - 12 crew\\nd /srv/z", vec![]),
        (
            "/etc/tmpfiles.d/x.conf",
            "d /srv/x 0755 other other",
            vec![("systemd-tmpfiles ignores a line of", no("group", "other"))],
        ),
        ("/etc/logrotate.d/x", "/var/log/x {\\nsu gone root\\n}", vec![("logrotate skips", no("user", "gone"))]),
        (
            "/etc/logrotate.d/x",
            "/var/log/x {\\ncreate 0640 later gone\\n}",
            vec![("logrotate skips", no("group", "gone"))],
        ),
        ("/etc/logrotate.d/x", "/var/log/x {\\ncreate 0640 later 12\\n}", vec![]),
        ("/etc/logrotate.d/x", "/var/log/x {\\ncreate 0640\\npostrotate\\nsu gone gone\\nendscript\\n}", vec![]),
        (
            "/etc/udev/rules.d/9-x.rules",
            "KERNEL==\\\"x\\\", OWNER=\\\"gone\\\", GROUP:=\\\"crew\\\"",
            vec![("udevd ignores an owner in", no("user", "gone"))],
        ),
        ("/etc/udev/rules.d/9-x.rules", "KERNEL==\\\"x\\\", GROUP=\\\"$env{X}\\\", OWNER=\\\"0\\\"", vec![]),
    ] {
        let keys = format!(r#", "files": {{"{path}": {{"content": "{text}\n"}}}}"#);
        let found = warnings(base(), &[], &keys);
        assert_eq!(found.len(), expected.len(), "{text}: {found:?}");
        for (found, (effect, what)) in found.iter().zip(expected) {
            assert!(
                found.starts_with(&format!("layer k: {effect} {path}: line ")) && found.ends_with(&what),
                "{found}"
            );
        }
    }
}

#[test]
fn keys_that_sshd_ignores_are_refused() {
    let base = |config: &str| {
        base_with(&[("/usr/sbin/sshd", ""), ("/etc/ssh/sshd_config", config), ("/etc/passwd", "root:x:0:0::/root:\n")])
    };
    let user = r#", "users": {"u": {"id": 1500, "home": "/home/u", "shell": "/bin/sh", "ssh_authorized_keys": ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGUbvTMsley0Dbzg6VnQ01ne/i3NBkGrNDmNzl5OV/zJ a@b"]}}"#;
    let keys = "/home/u/.ssh/authorized_keys";
    let directory = |path: &str, rest: &str| format!(r#", "directories": {{"{path}": {{{rest}}}}}"#);
    let file = |rest: &str| format!(r#", "files": {{"{keys}": {{"content": "x\n"{rest}}}}}"#);
    let writable = "its group or others can write to it, mode 0775";
    for (second, config, expected) in [
        (String::new(), "", ""),
        (directory("/home/u", r#""mode": "0775", "owner": "u", "group": "u""#), "", writable),
        (directory("/home/u", r#""mode": "0775", "owner": "u", "group": "u""#), "StrictModes no\n", ""),
        (
            directory("/home/u", r#""mode": "0775", "owner": "u", "group": "u""#),
            "Match User u\nStrictModes no\n",
            writable,
        ),
        (directory("/home/u", r#""mode": "0755""#), "", ""),
        (directory("/home/u", r#""mode": "0700""#), "", "u cannot read it, mode 0700"),
        (directory("/home/u/.ssh", r#""mode": "0770", "owner": "u", "group": "u""#), "", "mode 0770"),
        (directory("/home", r#""mode": "0777""#), "", ""),
        (file(r#", "mode": "0600""#), "", "u cannot read it, mode 0600"),
        (file(r#", "mode": "0664", "owner": "u", "group": "u""#), "", "mode 0664"),
        (file(r#", "mode": "0644""#), "", ""),
        (file(r#", "mode": "0664", "owner": "u", "group": "u""#), "AuthorizedKeysFile /etc/keys/%u\n", ""),
    ] {
        expect(bake(base(config), ("a", user), ("b", &second)), expected);
    }
    let error = bake(base(""), ("a", user), ("b", &file(r#", "mode": "0600""#))).unwrap_err();
    assert!(error.contains(&format!("{keys}, of layer b: sshd ignores the keys of u, in {keys}: u cannot")), "{error}");
}

/// The results are those of `apt-get indextargets` of apt 3.0, and of apt 2.6 for Debian 12.
#[test]
fn entries_of_apt_agree_about_keys() {
    let base = "Types: deb\nURIs: http://deb.example/debian\nSuites: trixie trixie-updates\nComponents: main\nSigned-By: /a.gpg /b.gpg\n";
    let sources = "/etc/apt/sources.list.d/debian.sources";
    let list = |name: &str, text: &str| {
        format!(r#", "files": {{"/etc/apt/sources.list.d/{name}.list": {{"content": "{text}\n"}}}}"#)
    };
    let refused = |own: &str| {
        format!(
            "/etc/apt/sources.list.d/x.list:1, of layer k: every command of apt fails: it has {own} for \
             http://deb.example/debian/ trixie, but {sources}:1 of the base has /a.gpg,/b.gpg"
        )
    };
    for (release, name, text, expected) in [
        ("13", "x", "deb-src [signed-by=/b.gpg] http://deb.example/debian/ trixie main", refused("/b.gpg")),
        ("13", "x", "deb [signed-by=/b.gpg,/a.gpg] http://deb.example/debian trixie main", refused("/b.gpg,/a.gpg")),
        ("13", "x", "deb [arch=amd64 signed-by=/a.gpg,/b.gpg] http://deb.example/debian trixie main", String::new()),
        ("13", "x", "#deb [signed-by=/b.gpg] http://deb.example/debian trixie main", String::new()),
        ("13", "x", "deb http://deb.example/debian sid main", String::new()),
        ("13", "x", "deb http://deb.example/debian trixie main", String::new()),
        ("12", "x", "deb http://deb.example/debian trixie main", refused("no Signed-By")),
        // What comes first takes the keys of the second.
        ("12", "a", "deb http://deb.example/debian trixie main", String::new()),
    ] {
        let release = format!("VERSION_ID=\"{release}\"\n");
        let base = base_with(&[(sources, base), ("/usr/lib/os-release", &release)]);
        expect(bake_onto(base, &[], &list(name, text)), &expected);
    }
    let one = list("one", "deb [signed-by=/a.gpg] http://x.example/ s main");
    let two = list("two", "deb [signed-by=/b.gpg] http://x.example s main");
    expect(
        bake(base_with(&[]), ("z", &one), ("a", &two)),
        "two.list:1, of layer a: every command of apt fails: it has /b.gpg for http://x.example/ s, but /etc/apt/sources.list.d/one.list:1 of layer z has /a.gpg",
    );
}

//! Files of layers that the machine would not use as they are written.

use super::parts::{Part, bake_layers_onto, bake_onto, base, base_with, compress, file, tar};

/// The key `files` with one file.
fn with_file(path: &str, text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t");
    format!(r#", "files": {{"{path}": {{"content": "{text}"}}}}"#)
}

/// Checks that a layer is refused on a base; an empty text for one that is not.
#[track_caller]
fn expect(base: &[(&str, &str)], keys: &str, expected: &str) {
    match bake_onto(base_with(base), &[], keys) {
        Ok(_) => assert_eq!(expected, "", "{keys}"),
        Err(error) => {
            assert!(!expected.is_empty() && error.contains(expected), "{keys}\n{error}\nexpected: {expected:?}");
        }
    }
}

/// systemd-fstab-generator of systemd 257.
#[test]
fn file_systems_of_the_base_stay_mounted() {
    let fstab =
        "PARTUUID=a / ext4 rw 0 1\nPARTUUID=b /boot/efi/ vfat defaults 0 0\n/dev/sr0 /media/cdrom udf noauto 0 0\n";
    let base = [("/etc/fstab", fstab)];
    let with = |text: &str| with_file("/etc/fstab", text);
    let missing = "/etc/fstab, of layer k: does not mount";
    expect(&base, &with("PARTUUID=a / ext4 rw 0 1\nUUID=x /boot/efi vfat noauto 0 0\nUUID=y /srv ext4 rw 0 2\n"), "");
    expect(
        &base,
        &with("PARTUUID=b /boot/efi vfat defaults 0 0\n"),
        &format!("{missing} /: expected a line such as \"PARTUUID=a / ext4"),
    );
    expect(&base, &with("PARTUUID=a / ext4 rw 0 1\n"), &format!("{missing} /boot/efi"));
    expect(&base, r#", "remove": ["/etc/fstab"]"#, &format!("{missing} /:"));
    let mask = r#", "units": {"mask": ["boot-efi.mount"]}"#;
    expect(&base, &format!("{}{mask}", with("PARTUUID=a / ext4 rw 0 1\n")), "");
    expect(&[], &with("UUID=y /srv ext4 rw 0 2\n"), "");
}

/// `sshd -T` of OpenSSH 10.0.
#[test]
fn the_first_value_of_sshd_counts() {
    let main = "Include /etc/ssh/sshd_config.d/*.conf\nUsePAM yes\nSubsystem\tsftp\t/usr/lib/openssh/sftp-server\nAcceptEnv LANG\n";
    let base = |text: &'static str| {
        [("/usr/sbin/sshd", ""), ("/etc/ssh/sshd_config", main), ("/etc/ssh/sshd_config.d/20-base.conf", text)]
    };
    let with = |name: &str, text: &str| with_file(&format!("/etc/ssh/sshd_config.d/{name}.conf"), text);
    let cloud = "PasswordAuthentication no\nPort 22\nMatch User x\nPermitRootLogin yes\n";
    for (name, text, expected) in [
        ("10-x", "PasswordAuthentication yes\n", ""),
        ("30-x", "PasswordAuthentication NO\nPort 23\nAcceptEnv A\nPermitRootLogin no\n", ""),
        (
            "30-x",
            "# c\npasswordauthentication yes\n",
            "/etc/ssh/sshd_config.d/30-x.conf:2, of layer k: `passwordauthentication yes` has no effect: sshd keeps `no` of \
             /etc/ssh/sshd_config.d/20-base.conf:1 of the base, which it reads first",
        ),
        ("30-x", "Match User y\nPasswordAuthentication yes\n", ""),
        ("30-x", "Subsystem sftp internal-sftp\nUsePAM no\n", ""),
        (
            "30-x",
            "MaxAuthTries 3\nMaxAuthTries 4\n",
            "30-x.conf:2, of layer k: `MaxAuthTries 4` has no effect: sshd keeps `3`",
        ),
        ("30-x", "HostKey /etc/ssh/ssh_host_rsa_key\n", ""),
        ("30-x", "HostKey /etc/ssh/nope\n", "30-x.conf:1, of layer k: sshd cannot load the host key /etc/ssh/nope"),
    ] {
        expect(&base(cloud), &with(name, text), expected);
    }
    // A layer may override what an earlier one sets, but not the other way round.
    let (first, later) = (with("10-x", "X11Forwarding yes\n"), with("30-x", "X11Forwarding no\n"));
    assert!(bake_layers_onto(base_with(&base("")), &[("a", &later, &[]), ("b", &first, &[])]).is_ok());
    let error =
        bake_layers_onto(base_with(&base("")), &[("a", &first, &[]), ("b", &later, &[])]).map(|_| ()).unwrap_err();
    assert!(
        error.contains(
            "`X11Forwarding no` has no effect: sshd keeps `yes` of /etc/ssh/sshd_config.d/10-x.conf:1 of layer a"
        ),
        "{error}"
    );
}

/// `systemd-sysusers --root` of systemd 257.
#[test]
fn accounts_that_systemd_does_not_create_as_written() {
    let base = [
        ("/etc/passwd", "root:x:0:0::/:/bin/sh\nold:x:800:800::/:/bin/sh\n"),
        ("/etc/group", "root:x:0:\nadm:x:4:\nold:x:800:\n"),
        ("/usr/lib/sysusers.d/base.conf", "g base 700\nu other 701\n"),
    ];
    let path = "/etc/sysusers.d/x.conf";
    for (text, expected) in [
        ("u app 900:4\nu! b 901\nu c -:adm\nu d -:base\nu e 902:700\nu f 903:701\n", ""),
        ("g x 910\nu app 900:910\nu y 911:x\n", ""),
        ("u old 800\ng base 700\nm app adm\n", ""),
        (
            "# c\nu app 900:901\n",
            ":2, of layer k: systemd-sysusers does not create the user app: expected a group 901, found none",
        ),
        (
            "u app 900:x\n",
            ":1, of layer k: systemd-sysusers does not create the user app: expected a group x, found none",
        ),
        ("u app 800\n", ":1, of layer k: systemd-sysusers gives app another id: the user old has the id 800"),
        ("g app 4\n", ":1, of layer k: systemd-sysusers gives app another id: the group adm has the id 4"),
    ] {
        expect(&base, &with_file(path, text), expected);
    }
    let two = r#", "files": {"/etc/sysusers.d/w.conf": {"content": "g foo 999\n"}, "/etc/sysusers.d/x.conf": {"content": "g foo 998\n"}}"#;
    let expected = ":1, of layer k: systemd-sysusers ignores the line: /etc/sysusers.d/w.conf:1 has another id for foo";
    expect(&base, two, expected);
}

/// `logrotate -d` of logrotate 3.22.
#[test]
fn logs_that_two_files_name() {
    let main = "weekly\ninclude /etc/logrotate.d\n";
    let base = [
        ("/usr/sbin/logrotate", ""),
        ("/etc/logrotate.conf", main),
        ("/etc/logrotate.d/base", "/var/log/a.log\n/var/log/b/*.log {\n weekly\n}\n"),
        ("/var/log/old/x", ""),
    ];
    let path = "/etc/logrotate.d/x";
    let skipped = "of layer k: logrotate skips the file";
    for (text, expected) in [
        ("/var/log/c.log {\n weekly\n}\n/var/log/b/a.txt {\n}\n/var/log/b/x*.log {\n}\n", String::new()),
        (
            "\n/var/log/a.log {\n}\n",
            format!(
                "{path}:2, {skipped}: \"/var/log/a.log\" is already covered by \"/var/log/a.log\" in /etc/logrotate.d/base:1 of the base"
            ),
        ),
        (
            "/var/log/b/a.log {\n}\n",
            format!("{path}:1, {skipped}: \"/var/log/b/a.log\" is already covered by \"/var/log/b/*.log\""),
        ),
        ("/var/log/c {\n olddir /var/log/old\n}\n", String::new()),
        ("/var/log/c {\n olddir old\n}\n", String::new()),
        ("/var/log/c {\n createolddir 0755 root root\n olddir new\n}\n", String::new()),
        (
            "/var/log/c {\n olddir new\n}\n",
            format!("{path}:2, {skipped}: the directory /var/log/new of `olddir` does not exist"),
        ),
    ] {
        expect(&base, &with_file(path, text), &expected);
    }
    expect(&base[..1], &with_file(path, "/var/log/a.log {\n}\n"), "");
}

/// `dash -n` and `bash -n`.
#[test]
fn files_of_shells_can_be_read() {
    for path in ["/etc/profile.d/x.sh", "/etc/profile", "/etc/bash.bashrc", "/etc/skel/.bashrc"] {
        expect(&[], &with_file(path, "export A=(1 2)\nif [[ $- == *i* ]]; then\n PS1='$ '\nfi\n"), "");
        let refused = format!("{path}:3, of layer k: shells stop reading it");
        expect(&[], &with_file(path, "export A=1\nexport B=2\nfi\n"), &refused);
    }
    expect(&[], &with_file("/etc/profile.d/x.csh", "if (1) then\nsetenv A 1\n"), "");
}

/// `pamtester` with libpam 1.7, and `getent` of glibc 2.41.
#[test]
fn modules_and_sources_of_logins_are_in_the_image() {
    let base = [
        ("/usr/lib/x86_64-linux-gnu/security/pam_permit.so", ""),
        ("/usr/lib/x86_64-linux-gnu/libnss_systemd.so.2", ""),
        ("/etc/pam.d/common-auth", ""),
    ];
    for (path, text, expected) in [
        (
            "/etc/pam.d/x",
            "@include common-auth\nauth required pam_permit.so\n-auth required pam_nope.so\nauth include common-auth\n",
            "",
        ),
        ("/etc/pam.d/x", "auth required /usr/lib/x86_64-linux-gnu/security/pam_permit.so\n", ""),
        (
            "/etc/pam.d/x",
            "# c\nauth optional pam_nope.so\n",
            "/etc/pam.d/x:2, of layer k: makes logins fail: the image has no module pam_nope.so",
        ),
        (
            "/etc/pam.d/x",
            "@include nope\n",
            "/etc/pam.d/x:1, of layer k: makes logins fail: the image has no file nope",
        ),
        ("/etc/nsswitch.conf", "passwd: files systemd\nhosts: files dns\nnetgroup: nis\n", ""),
        (
            "/etc/nsswitch.conf",
            "passwd: files\nhosts: files mdns4 dns\n",
            "/etc/nsswitch.conf:2, of layer k: mdns4 of hosts has no effect: the image has no libnss_mdns4.so.2",
        ),
    ] {
        expect(&base, &with_file(path, text), expected);
    }
}

#[test]
fn an_error_names_the_file_of_grub_settings() {
    let base = [
        ("/etc/default/grub", "GRUB_TIMEOUT=5\n"),
        ("/boot/grub/grub.cfg", "menuentry 'x' {\n  linux /vmlinuz ro\n}\n"),
    ];
    let file = "/etc/default/grub.d/50-x.cfg";
    let expected = format!("{file}, of layer k: grub-mkconfig cannot read the settings");
    expect(&base, &with_file(file, "GRUB_CMDLINE_LINUX+=\" a=1\"\n"), &expected);
}

/// `tar --strip-components=1` of tar 1.35.
#[test]
fn members_without_a_name_are_dropped() {
    let bytes =
        |members: &[&str]| compress("gz", &tar(&members.iter().map(|name| file(name, "x")).collect::<Vec<_>>()));
    let part = |members: &[&str], more: &str| Part {
        name: "x",
        kind: "tar.gz",
        install: format!(r#"{{"type": "tar", "path": "/opt", "strip": 1{more}}}"#),
        bytes: bytes(members),
    };
    let tree = bake_onto(base(), &[part(&["top", "d/in"], "")], "").unwrap();
    assert!(tree.resolve(b"/opt/in").is_ok() && tree.resolve(b"/opt/top").is_err());
    for part in [part(&["top"], ""), part(&["top", "d/in"], r#", "members": ["top", "d"]"#)] {
        let error = bake_onto(base(), &[part], "").map(|_| ()).unwrap_err();
        assert!(error.contains("has no components left after stripping 1"), "{error}");
    }
}

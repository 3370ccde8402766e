//! Directories of files that systemd and udev read.

use super::{are_found, found, found_in, unescaped};

/// systemd-modules-load 257, and what the kernel refuses for numbers.
#[test]
fn modules_and_parameters() {
    are_found("/etc/modules-load.d/x.conf", &[("# c\n; d\n\n loop \n", ""), ("loop\na b\nloop # c\n", "2 3")]);
    are_found(
        "/etc/sysctl.d/x.conf",
        &[
            ("vm.a = 4\nkernel.core_pattern = |/x %p\nnet.b = 1 2 3\n-x\nkernel.c = 0x4\n", ""),
            ("vm.a = 1 # c\nvm.b = 4M\n", "~1 ~2"),
        ],
    );
}

/// systemd-sysctl, `systemd-tmpfiles --dry-run` and `systemd-sysusers --dry-run` of systemd 257.
#[test]
fn lines_of_systemd() {
    are_found(
        "/usr/lib/sysctl.d/x.conf",
        &[(" a = b\na/b=c\n-net.*=1\n-a\n;x\n\n# x\n=x\na =\n", ""), ("a=b\nnet.ipv4.ip_forward 1\n", "2")],
    );
    let taken = "d /run/x\nD! /x\nd+ /x\nf+ /x\nL /x\nL+ /x - - - - /y\nw+ /x - - - - \"a\nd /run/x :0755 :root :root\nd /run/x ~0755\n\
                 d /run/%b\nd \"/run/a b\" 0755\na+ /x - - - - u:x:r\nf= /x\nf^ /x - - - - cred\nd$ /x\nm /x 0644\nR! /x\n\
                 d /x 07777\nd /run/x 755 1000 1000\nc /dev/x 0600 root root - 1:3\nd /x - - - 10\nd /x - - - ~10d\nd /x - - - bmA:10d\n\
                 d /x - - - 0\nd /x - - - 1d12h\nd /x - - - infinity\nd /x - - - 1.5h\nw /x - - - - 50%\nf /x - - - - %%z\nC /x\nL /x - - - - a/b\n";
    for line in taken.lines() {
        assert_eq!(found("/etc/tmpfiles.d/x.conf", line), "", "{line}");
    }
    let ignored = [
        "d",
        "ff /x",
        "k /x",
        "l /x",
        "y /x",
        "1 /x",
        "dd /x",
        "d!! /x",
        "X",
        "w /x",
        "b /x",
        "c /dev/x",
        "a+ /x",
        "t /x",
        "h /x",
        "d x",
        "d /run/x 0755 \"a b\" -",
        "d /run/x 0755 a:b -",
        "d /run/x 0755 65535 -",
        "d /run/x 0755 4294967295 -",
        "d /run/x 0755 %u -",
        "d /run/x 0755 - %g",
        "d /run/x - - - 10x",
        "d /run/x - - - x:10d",
        "d /run/x - - - :10d",
        "d /run/x - - - never",
        "d /run/%z",
        "x /run/%e",
        "f /run/x - - - - a%zb",
        "L /run/x - - - - /a%z",
        "c /dev/x 0600 root root - 1",
        "c /dev/x 0600 root root - a:b",
        "C /run/x - - - - a/b",
        "d /run/x u+x",
        "d /run/x 755x",
        "d /run/x 0999",
        "d /run/x abc",
        "d /x 17777",
        "d '/run/x",
    ];
    are_found("/etc/tmpfiles.d/x.conf", &ignored.map(|text| (text, "1")));
    let taken = [
        "d /run/x - - - +5",
        "d /run/x - - - 1y2M",
        "d /run/x - - - \"5 d\"",
        "d /run/x - - - .5h",
        "L? /run/x - - - - /y",
        "d /run/x ~:0755",
        "# x",
    ];
    are_found("/etc/tmpfiles.d/x.conf", &taken.map(|text| (text, "")));
    let ignored = [
        "; x",
        "d /run/x - - - 99999999999999999999d",
        "d /run/x - - - 1.5.5d",
        "d /run/x +0755",
        "d /run/x 0755 ::root",
        "d? /run/x",
        "b /dev/x - - - - 99999999:1",
    ];
    are_found("/etc/tmpfiles.d/x.conf", &ignored.map(|text| (text, "1")));
    for directory in ["/etc/xdg", "/usr/local/share", "/usr/share"] {
        let taken = "d %h/.cache/x 0700 - - 10d\nd %t/x\nR! %S/x\nL %C/x - - - - %h\nz %L/x 0600 - -\nx %T/x\nf %V/x - - - - %u %U\n";
        let path = format!("{directory}/user-tmpfiles.d/x.conf");
        are_found(
            &path,
            &[(taken, ""), ("d %Z/x", "1"), ("d .cache/x", "1"), ("d %h/x 99999", "1"), ("d %h/x - - - 1x", "1")],
        );
    }
    are_found("/usr/lib/user-tmpfiles.d/x.conf", &[("none", "")]);
    let taken = "u x\nu! x -\nu x - \"D\"\nu x 10:20\nu x 10:grp\nu x /path\nu x - - /h /s\nu x -:users\ng x 10\ng x -\nm x y\nr - 10-20\nr - 10\nu X\nu _x-1 10:grp\n\
                 u x - \"%\"\nu %b-x\nu x - G /x /bin/sh\nr - 0-10\ng x /p\n";
    for line in taken.lines() {
        assert_eq!(found("/etc/sysusers.d/x.conf", line), "", "{line}");
    }
    let ignored = [
        "u",
        "u 1x",
        "u x.y",
        "u -x",
        "u x@y",
        "u 123",
        "u abcdefghijklmnopqrstuvwxyzabcdef",
        "u x - a:b",
        "u x - G x",
        "u x - G /a:b",
        "u x - G /x y",
        "u x - G /x /bin/sh z",
        "u x 10:",
        "u x :10",
        "u x 0x10",
        "u x 010",
        "u x +10",
        "u x ./path",
        "u x - %z",
        "u %z",
        "g x - d",
        "g x - - /h",
        "g x y",
        "g x 10:20",
        "m x 1y",
        "m 1x y",
        "m x y z",
        "r - 10-",
        "r - -10",
        "r - 10 x",
        "u x 99999999999",
        "u x abc",
        "u - x",
        "uu x",
        "U x",
        "u+ x",
        "g! x",
        "z x",
        "m x",
        "r x 10",
        "r - 20-10",
        "r -",
        "u \"x",
        "; x",
        "u x 4294967295",
        "u x 65535",
    ];
    are_found("/etc/sysusers.d/x.conf", &ignored.map(|text| (text, "1")));
    let details = [
        ("u x - \"a\tb\"\n", "1"),
        ("u x - \"a b\" \"/a b\"\n", ""),
        ("u x - a /home/../x\n", "1"),
        ("u x\t-\ta /x \"/a\tb\"\n", "1"),
    ];
    are_found("/etc/sysusers.d/x.conf", &details);
    assert_eq!(found_in("/etc/sysusers.d/x.conf", b"# \xff\nu x - \"\xff\"\n"), "2");
    assert_eq!(found_in("/etc/tmpfiles.d/x.conf", b"# \xff\nd /run/x\xff\n"), "");
    assert_eq!(found_in("/etc/ssh/sshd_config.d/x.conf", b"# \xff\nBanner /x\xff\n"), "");
}

/// Lines that systemd-tmpfiles and systemd-sysusers of systemd 257 ignore, alone or after others.
#[test]
fn details_of_lines_of_systemd() {
    let path = "/etc/tmpfiles.d/x.conf";
    are_found(
        path,
        &[
            ("f~ /x - - - - aGk=\nf^ /y - - - - name\nf /z - - - - a\\nb\nd /a\\x20b\nr /x - - - - -\n", ""),
            ("f~ /x - - - - x\nC~ /x - - - - /y\nw~ /x - - - - 1:2\n", "1 2 3"),
            ("f^ /x\nf^ /x - - - - 1:2\nw^ /x - - - - /y\n", "1 2 3"),
            ("d /a\\zb\nx /a\\\nf /x - - - - \\x\n", "1 2 3"),
            ("C /x - - - - %%\n", "1"),
            ("d /x - - - - y\nr /x - - - - \"\"\nd /var/run/x\nd /var/runx\n", "~1 ~2 ~3"),
        ],
    );
    are_found(
        "/usr/lib/sysusers.d/x.conf",
        &[
            ("u a 5\nu a 5 - -\nu a \"5\"\ng a 5\nm a b\nm a c\n", ""),
            ("u a 5\nu a 6\ng b\ng b 7\nu! a 5\nu c - x /h\nu c - x /h/ /bin/sh\nu c - y /h\n", "2 4 8"),
            ("u %% \ng a%%b\nu a %H\nu a\\\n", "1 2 3 4"),
        ],
    );
}

/// `systemd-tmpfiles --dry-run` of systemd 257 with `--boot`.
#[test]
fn lines_for_one_path() {
    let path = "/etc/tmpfiles.d/x.conf";
    for (first, second, expected) in [
        ("d /x", "d /x/ - - - -", ""),
        ("d /x", "d /x 0755", "2"),
        ("d /x 0755", "d /x 755 - -", ""),
        ("d /x - root", "d /x - 0", ""),
        ("d /x - root", "d /x", "2"),
        ("d /x - daemon", "d /x - 1", ""),
        ("d /x", "v /x", ""),
        ("d /x", "f /x", "2"),
        ("f /x", "f+ /x - - - - a", "2"),
        ("f! /x", "d /x", "2"),
        ("d /var/run/x", "d /run/x 0700", "~1 2"),
        ("d /x", "z /x 0700", ""),
        ("d /x", "x /x 0700", ""),
        ("x /x*", "x /x* - - - 5d", "2"),
        ("e /x", "x /x 0644", "2"),
        ("w /x - - - - a", "w /x - - - - b", "2"),
        ("w+ /x - - - - a", "w+ /x - - - - b", ""),
        ("w /x - - - - a", "w+ /x - - - - b", "2"),
        ("m /x 0700", "m /x 0600", ""),
        ("L /x", "L /x - - - - /usr/share/factory/x", ""),
        ("L /x - - - - /y", "L+ /x - - - - /z", "2"),
        ("C /x - - - - /etc", "d /x", "~2"),
        ("d /x", "d /y 0700", ""),
        ("q x", "d x", "1 2"),
    ] {
        assert_eq!(found(path, &format!("{first}\n{second}\n")), expected, "{first} | {second}");
    }
}

/// kmod 34.
#[test]
fn commands_of_modprobe() {
    let path = "/etc/modprobe.d/x.conf";
    let taken = "# c \\\nfoo x\nblacklist x # c\noptions x a=1\nalias char-major-10-* x\ninstall x /bin/true\ninstall x  \nsoftdep x pre: a\n\
                 weakdep x a\noptions x \\\n a=1\n  blacklist\tx\n";
    are_found(path, &[(taken, "")]);
    for line in [
        "blacklist",
        "options x",
        "alias a",
        "install x",
        "remove x",
        "softdep x",
        "weakdep x",
        "foo x",
        "Blacklist x",
        "config x",
        "include x",
        "; x",
        "  # c",
        "blacklist x\r",
    ] {
        assert_eq!(found(path, &format!("{line}\n")), "1", "{line:?}");
    }
}

/// `udevadm verify` of systemd 257.
#[test]
fn values_and_operators_of_udev() {
    are_found(
        "/etc/udev/rules.d/x.rules",
        &[
            ("TAG==\"\"\nENV{A}=\"\"\nOPTIONS=\"log_level=debug\"\nOPTIONS=\"log_level=reset\"\n", ""),
            ("TAG+=\"\"\nRUN+=\"\"\nMODE=\"\"\nOWNER=\"\"\nTEST==\"\"\nSECLABEL{x}=\"\"\n", "1 2 3 4 5 6"),
            ("OPTIONS=\"log_level=x\"\nOPTIONS=\"log_level=9\"\n", "1 2"),
            ("NAME+=\"x\"\nENV{A}:=\"x\"\nATTR{a}+=\"x\"\nMODE+=\"0600\"\nSECLABEL{x}:=\"y\"\n", "~1 ~2 ~3 ~4 ~5"),
            ("ATTRS{device/x}==\"a\"\nATTRS{../x}==\"a\"\n", "~1 ~2"),
            ("ENV{A}=e\"a\\nb\"\nENV{A}=e\"a\\zb\"\nLABEL=\"a\", LABEL=\"b\"\n", "2 ~3"),
            ("GOTO=\"b\"\nLABEL=\"a\", LABEL=\"b\"\n", "~2"),
            ("GOTO=\"a\"\nLABEL=\"a\", LABEL=\"b\"\n", "1 ~2"),
            ("GOTO=\"b\", GOTO=\"a\"\nLABEL=\"a\"\n", "~1"),
            ("KERNEL==\"x\",\u{a0}NAME=\"y\"\n", "1"),
        ],
    );
}

/// `udevadm verify` of systemd 257.
#[test]
fn rules_of_udev() {
    let taken = [
        "KERNEL==\"a\", NAME=\"b\"\n",
        "ATTR{x}==\"1\", ATTR{y}=\"2\"\nENV{A}=\"b\", TEST{0644}==\"x\", TEST==\"x\"\n",
        "RUN+=\"x\"\nRUN{program}+=\"x\"\nIMPORT{program}=\"x\"\nPROGRAM=\"x\"\n",
        "KERNEL==\"a\" NAME=\"b\",\n, KERNEL== \"a\" , NAME = \"b\"\n",
        "KERNEL==\"a\", \\\n# c\nNAME=\"b\"\n",
        "KERNEL==e\"a\\\"b\", KERNEL==i\"a\", NAME=\"a\\\"b\"\n",
        "# c\n   # c\n\nGOTO=\"end\"\nLABEL=\"end\"\nMODE:=\"0600\", SECLABEL{selinux}=\"x\", SYSCTL{a/b}=\"1\"\n",
    ];
    are_found("/usr/lib/udev/rules.d/x.rules", &taken.map(|text| (text, "")));
    let ignored = [
        "KERNEL==\"a\n",
        "KERNEL==\"a\", FOO==\"b\"\n",
        "KERNEL=\"a\"\n",
        "ATTR==\"1\"\n",
        "ATTR{}==\"1\"\n",
        "ATTR{x==\"1\"\n",
        "TAG{x}=\"y\"\n",
        "IMPORT=\"x\"\n",
        "KERNEL==x\"a\"\n",
        "KERNEL=='a'\n",
        "KERNEL==a\n",
        "kernel==\"a\"\n",
        "BUS==\"usb\"\n",
        "SYSFS{x}==\"y\"\n",
        "KERNEL==\"a\" # c\n",
        "\"x\"\n",
    ];
    are_found("/etc/udev/rules.d/x.rules", &ignored.map(|text| (text, "1")));
    for line in include_str!("../udev/valid.txt").lines() {
        assert_eq!(found("/etc/udev/rules.d/x.rules", &unescaped(line)), "", "{line}");
    }
    let missed = include_str!("../udev/invalid.txt").lines();
    let missed = missed.filter(|line| found("/etc/udev/rules.d/x.rules", &unescaped(line)).is_empty());
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
    are_found("/etc/udev/rules.d/x.rules", &[("# c\nKERNEL==\"a\", \\\n  FOO=\"b\"\nFOO=\"b\"\n", "2 4")]);
    are_found("/etc/udev/rules.d/x.rules", &[("FOO=\"b\", KERNEL==\"a\", BAR=\"c\"\n", "1 1")]);
}

/// `udevadm verify` of systemd 257. udevd keeps a substitution that it does not know, and drops one without its attribute.
#[test]
fn substitutions_of_udev() {
    for (rule, expected) in [
        (
            r#"RUN+="/x $devnode %N $attr{a} %s{a} $env{A} %E{A} $result{1} %c{2+} $$HOME 50%%", SYMLINK+="%k $kernel_%n""#,
            "",
        ),
        (r#"ENV{A}=="%z", KERNEL=="$nosuch", LABEL="%z""#, ""),
        (r#"SYMLINK+="x%z""#, "~1"),
        (r#"RUN+="/bin/sh -c 'echo $HOME'""#, "~1"),
        (r#"ATTR{%z}=="1""#, "~1"),
        (r#"TEST=="/sys/$nosuch""#, "~1"),
        (r#"IMPORT{program}=="x %q""#, "~1"),
        (r#"NAME="a%""#, "~1"),
        (r#"SYMLINK+="%s""#, "1"),
        (r#"SYMLINK+="$env""#, "1"),
        (r#"SYMLINK+="%E{}""#, "1"),
        (r#"SYMLINK+="$attr{a""#, "1"),
        (r#"SYMLINK+="%c{x}""#, "1"),
    ] {
        assert_eq!(found("/etc/udev/rules.d/x.rules", &format!("{rule}\n")), expected, "{rule}");
    }
}

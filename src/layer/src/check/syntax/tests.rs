//! Texts with the line of each problem, as the programs of Debian 13 found them; warnings have `~` before the line.

use super::{File, TABLE, calendar, problems};
use crate::Ownership;

/// The lines of what is found in a file, separated by blanks; 0 is the whole file.
fn found(path: &str, text: &str) -> String {
    found_in(path, text.as_bytes())
}

fn found_in(path: &str, bytes: &[u8]) -> String {
    let access = Ownership { mode: 0o644, owner: "root".to_owned(), group: "root".to_owned() };
    let text = &String::from_utf8_lossy(bytes);
    let found = problems(&File { path, bytes, text, access, has_drop_ins: false });
    let line = |problem: super::Problem| {
        format!("{}{}", if problem.is_warning { "~" } else { "" }, problem.line.unwrap_or_default())
    };
    found.into_iter().map(line).collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn are_found(path: &str, cases: &[(&str, &str)]) {
    for (text, expected) in cases {
        assert_eq!(found(path, text), *expected, "{path}: {text:?}");
    }
}

/// A text of several lines as the files of cases have it.
fn unescaped(line: &str) -> String {
    line.replace("\\n", "\n").replace("\\r", "\r").replace("\\t", "\t")
}

/// `findmnt --verify` of util-linux 2.41 and systemd-fstab-generator 257.
#[test]
fn lines_of_fstab() {
    are_found(
        "/etc/fstab",
        &[
            ("# c\n\n  # d\nUUID=x / ext4 rw,discard 0 1\n", ""),
            ("x /a ext4\nx /a ext4 d 1\nx /a ext4 d 0 0 # c\nx\t/a\\040b ext4 d -1 2\n", ""),
            ("x none swap sw 0 0\nx swap swap\nx none tmpfs d\nx ignore ignore d\n", ""),
            ("x /a ext4 d\nx /b\n", "2"),
            ("UUID=x mnt ext4 defaults 0 0\n", "1"),
            ("a b c\n", "1"),
            ("x /m\\041x ext4 defaults\n", "1"),
            ("x /a b ext4 defaults 0 0\n", "1"),
            ("x /a ext4 d # c\n", "1"),
            ("x /a ext4 d 0 x\n", "1"),
        ],
    );
}

/// `apt-config dump` of apt 3.0: a file enters, the line of the statement that it refuses leaves.
#[test]
fn settings_of_apt() {
    let path = "/etc/apt/apt.conf.d/90x";
    for line in include_str!("apt/valid.txt").lines() {
        let warned = found(path, &unescaped(line));
        assert!(warned.is_empty() || warned.starts_with('~'), "{line}: {warned}");
    }
    for line in include_str!("apt/invalid.txt").lines() {
        assert_eq!(found(path, &unescaped(line)), "1", "{line}");
    }
    are_found(
        path,
        &[
            ("A \"x\";\nAcquire::http::Proxy=\"http://x\";\n", "2"),
            ("A \"x\"\nB \"y\";\n", "1"),
            ("A {\n  B \"x\";\n", "~1"),
        ],
    );
    assert_eq!(found("/etc/apt/apt.conf.d/x.disabled", "A \"x\"\n"), "");
}

/// `apt-cache policy` of apt 3.0.
#[test]
fn preferences_of_apt() {
    are_found(
        "/etc/apt/preferences.d/x",
        &[
            ("# c\n\nPackage: *\nPin: release a=x\nPin-Priority: 100\n", ""),
            ("Explanation: x\nPackage: a\n b\n# d\nPin: Origin \"\"\nPin-Priority: -32768", ""),
            ("package: src:a\r\npin: version 1.*\r\npin-priority: +5\r\n", ""),
            ("Package: *\nPin: release a=x\nPin-Priority: never\n", ""),
            ("Package: a\nPin: origin x\nPin-Priority: never\n", "1"),
            ("Package: *\nPin: release a=x\n", "1"),
            ("Package: *\nPin-Priority: 100\n", "1"),
            ("Pin: release a=x\nPin-Priority: 100\n", "1"),
            ("Package: a\nPin: origin x\nPin-Priority: 1\n\n\nPackage: b\nPin: origin x\nPin-Priority: 0\n", "6"),
            ("Package: *\nPin: release a=x\nPin-Priority: abc\n", "1"),
            ("Package: *\nPin: release a=x\nPin-Priority: 32768\n", "1"),
            ("Package: *\nPin: version 1.*\nPin-Priority: 100\n", "1"),
            ("Package: a\nPin: foo x\nPin-Priority: 100\n", "1"),
            ("foo bar\n", "1"),
            ("Explanation: x\n\nPackage: *\nPin: origin x\nPin-Priority: 100\n", "1"),
        ],
    );
}

#[test]
fn files_with_all_accounts() {
    for path in ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"] {
        assert_eq!(found(path, "root:x:0:\n"), "0", "{path}");
    }
}

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

/// PyYAML 6.0.
#[test]
fn ends_of_lines_in_yaml() {
    let path = "/etc/cloud/cloud.cfg.d/x.cfg";
    let valid = [
        "a: 'x\u{2028}y'\n",
        "a: x\u{2028}b: y\n",
        "a: x\u{2028} y\n",
        "a:\u{2028}  b: 1\n",
        "a: {k: '|'}\n",
        "a: {k: a|b}\n",
        "---\n...\n",
        "a: 1\n...\n...\n",
    ];
    are_found(path, &valid.map(|text| (text, "")));
    for text in ["a: x\u{2028}y\n", "# x\u{2028}y\na: 1\n", "a: x\u{85}y\n", "...\n", "...\na: 1\n", "# c\n...\n"] {
        assert!(!found(path, text).is_empty(), "{text:?}");
    }
}

/// logrotate 3.22.
#[test]
fn log_files_that_are_named_twice() {
    are_found(
        "/etc/logrotate.d/x",
        &[
            ("/a {\n}\n/b /c\n/d {\n}\n", ""),
            ("/a {\n}\n/a {\n}\n", "3"),
            ("/a /a {\n}\n", "1"),
            ("\"/a\" {\n}\n/b\n/a\n{\n}\n", "4"),
            ("/a {\nignoreduplicates\n}\n/a {\n}\n", ""),
            ("/a {\n}\n/a {\nignoreduplicates\n}\n", "3"),
            ("ignoreduplicates\n/a {\n}\n/a {\n}\n", ""),
        ],
    );
}

/// `sshd -t` of OpenSSH 10.0.
#[test]
fn settings_of_sshd() {
    are_found(
        "/etc/ssh/sshd_config.d/x.conf",
        &[
            ("PermitRootLogin no\n# c\n\n  x11forwarding yes # c\n", ""),
            ("PermitRootLogins no\nPort 22\nFoo", "1 3"),
            ("Port=22\nPort = 22\n\"Port\" 22\nPrintMotd  no\r\n", ""),
            ("\u{c}Port 22\n", "1"),
            ("Port\n", "1"),
            ("PrintMotd=\n", "1"),
            ("\u{feff}Port 22\n", "1"),
            ("Match user x\nPort 22\nPasswordAuthentication no\n", "2"),
            ("Match user x\nPasswordAuthentication no\nMatch all\nPort 22\n", ""),
            ("AuthorizedKeysCommand /x\n", "~1"),
            ("Match user x\nUsePAM yes\nRSAAuthentication yes\n", "2"),
            ("UsePrivilegeSeparation yes\nServerKeyBits 1024\nAFSTokenPassing no\nDebianBanner no\n", ""),
        ],
    );
}

/// Settings that `sshd -t` accepts, and those that it refuses at the last line.
#[test]
fn values_of_sshd() {
    let path = "/etc/ssh/sshd_config.d/x.conf";
    for line in include_str!("sshd/valid.txt").lines() {
        assert_eq!(found(path, &unescaped(line)), "", "{line}");
    }
    for line in include_str!("sshd/invalid.txt").lines() {
        let text = unescaped(line);
        assert_eq!(found(path, &text), text.lines().count().to_string(), "{line}");
    }
}

/// cloud-init 25.1.4 with PyYAML.
#[test]
fn settings_of_cloud_init() {
    let valid = [
        "a: 1\n",
        "",
        "# c\n",
        "#cloud-config\na: 1\n",
        "null\n",
        "{}\n",
        "datasource_list: [ NoCloud ]\n",
        "? a\n: 1\n",
        "---\na: 1\n...\n",
        "é: ü\n",
        "%YAML 1.1\n---\na: 1\n",
        "a: {b: 1,}\n",
        "a: http://x:80\n",
        "\"a\" : 1\n",
        "a: b\r\nc: d\r\n",
        "a: &x 1\nb: *x\n",
        "a: 'a\n\nb'\n",
        "a: \"a\nb: c\"\n",
        "a: [\nb\n]\n",
        "a:\n  - [\n  b\n  ]\n",
        "a: 'x'# y\nb: [x]# y\n",
        "a: 'b\n\tc'\n",
        "a: {\n  b: c\n}\n",
        "a: !!str 1\nb: !!binary YQ==\nc: !!set {x}\nd: ! e\n",
        "x: &x {a: 1}\ny: {<<: *x}\nz: {<<: {a: 1}}\n",
        "a: |\n x\ty\n \tz\nb: \"x\ty\" # \tc\n# \tc\n",
        "a: >-\n x\n\n  y\tz\n\nb: 'x\n  \ty'\n",
        "## template: jinja\na: 1\n",
        "a: !!bool \"yes\"\nb: !!int 0x1_f\nc: !!int 1:20\nd: !!float 1e3\ne: !!null x\nf: !!binary\n",
        "a: 08\nb: 2020-1-1\nc: 2020-02-29\nd: 2001-12-14t21:59:43.10-5\ne: \"2020-13-45\"\nf: !!timestamp 2020-1-1\n",
        "a: &x 1 # R&D\nb: &y [*x] # &x\nc: &z\n  d: *y\n",
        "x: &x [{a: 1}]\nb:\n  <<: *x\nc:\n  <<: [{a: 1}, {b: 2}]\n",
        "a: &x {b: *x}\n",
        "a: !!omap [{b: 1}, {c: 2}]\nd: !!pairs [{b: 1}]\n",
        "=: 1\n",
        "\u{feff}a: 1\n",
        "%YAML 1.2\n---\na: \u{1f600}\n",
    ];
    are_found("/etc/cloud/cloud.cfg.d/x.cfg", &valid.map(|text| (text, "")));
    are_found(
        "/etc/cloud/cloud.cfg.d/x.cfg",
        &[
            ("- a\n", "1"),
            ("a\n", "1"),
            ("a:1\n", "1"),
            ("1\n", "1"),
            ("a: 1\nb: c: d\n", "2"),
            ("a: 1\n---\nb: 2\n", "2"),
            ("a: *x\n", "1"),
            ("a: 1\nb:\n  a: 2\n  c: 3\n  a: 4\n", "~5"),
            ("a: 1\na: 2\n", "~2"),
            ("x: 1\na: b\tc\n", "2"),
            ("a: b\t# c\n", "1"),
            ("x: 1\na: !foo x\n", "2"),
            ("a: !!python/object x\n", "1"),
            ("a: !!seq x\n", "1"),
            ("x: 1\n? [a]\n: b\n", "2"),
            ("{a: b}: c\n", "1"),
            ("a: =\n", "1"),
            ("a: <<\n", "1"),
            ("<<: 1\n", "1"),
            ("a: ]\n", "1"),
            ("x: 1\na: !!bool x\n", "2"),
            ("a: !!bool\n", "1"),
            ("a: !!int \"\"\n", "1"),
            ("a: !!int 08\n", "1"),
            ("a: !!int 1:2x\n", "1"),
            ("a: !!float x\n", "1"),
            ("a: !!timestamp x\n", "1"),
            ("a: !!binary \"a\"\n", "1"),
            ("a: !<tag:yaml.org,2002:bool> x\n", "1"),
            ("a: 0b_\n", "1"),
            ("a: 2020-13-45\n", "1"),
            ("a: 2020-02-30 10:00:00\n", "1"),
            ("a: 2001-12-14t21:59:43.10-25:00\n", "1"),
            ("a: 0000-01-01\n", "1"),
            ("2020-13-45: 1\n", "1"),
            ("a: ! \"2020-13-45\"\n", "1"),
            ("a: &x 1\nb: &x 2\n", "2"),
            ("a: &x\n  b: 1\nc:\n- &x d\n", "4"),
            ("a: &x [1]\nb: {<<: *x}\n", "2"),
            ("a: {<<: [{b: 1}, 2]}\n", "1"),
            ("a: &x {a: 1}\n? *x\n: 2\n", "2"),
            ("a: !!omap [1]\n", "1"),
            ("a: !!pairs [{a: 1, b: 2}]\n", "1"),
            ("x: 1\na: \"\u{7}\"\n", "2"),
            ("a: \u{80}\n", "1"),
            ("a: \u{ffff}\n", "1"),
            ("a: \u{0}b\n", "1"),
        ],
    );
    let bytes: [&[u8]; 4] =
        [b"x: 1\na: \xff\n", b"x: 1\n# \xe4\n", b"## template: jinja\na: \xff\n", b"x: 1\na: \xed\xa0\x80\n"];
    for bytes in bytes {
        assert_eq!(found_in("/etc/cloud/cloud.cfg.d/x.cfg", bytes), "2", "{bytes:?}");
    }
    for text in [
        "a: [1\n",
        "a:\n\tb: 1\n",
        "a: \"x\n",
        "a: @x\n",
        "a: `x`\n",
        "a: 'it's'\n",
        "a: |\n x\ny\n",
        "a: 1 #c\n b: 2\n",
    ] {
        assert_ne!(found("/etc/cloud/cloud.cfg.d/x.cfg", text), "", "{text:?}");
    }
}

/// `apt-get indextargets` of apt 3.0.4.
#[test]
fn sources_of_apt() {
    are_found(
        "/etc/apt/sources.list.d/x.list",
        &[
            ("deb http://x/debian trixie main\n", ""),
            ("# c\n\n   deb http://x/debian trixie main # c\n", ""),
            ("deb http://x/debian ./\ndeb [trusted=yes] http://x/debian /\n", ""),
            ("deb [ arch=amd64 ] http://x/debian trixie main\ndeb []  http://x/debian trixie main\r\n", ""),
            ("deb \"cdrom:[Debian x]/\" trixie main\ndeb cdrom:[Debian x]/ trixie main\n", ""),
            ("deb mirror+file:/etc/apt/mirrors/debian.list trixie main\ndeb http://x/debian $(ARCH)/ \n", ""),
            ("deb http://x/debian trixie\n", "1"),
            ("deb http://x/debian ./ main\n", "1"),
            ("deb http://x/debian\n", "1"),
            ("deb\n", "1"),
            ("rpm http://x trixie main\nDEB http://x trixie main\n", "1 2"),
            ("deb [arch=amd64 http://x/debian trixie main\n", "1"),
            ("deb [arch] http://x/debian trixie main\n", "1"),
            ("deb [signed-by=\"/x\" arch+=amd64 foo=x] http://x/debian trixie main\n", ""),
            ("deb [signed-by=\"\"] http://x/debian trixie main\n", "1"),
            ("deb [arch=amd64 signed-by=] http://x/debian trixie main\n", "1"),
            ("deb [=x] http://x/debian trixie main\n", "1"),
            ("deb [signed-by = /x] http://x/debian trixie main\n", "1"),
            ("deb [arch=amd64]http://x/debian trixie main\n", "1"),
            ("deb x trixie main\ndeb /srv/x trixie main\n", "1 2"),
            ("deb http://x/debian \"trixie main\n", "1"),
            ("deb [arch=\"amd64 i386\"] http://x/debian trixie main\n", ""),
            ("deb [signed-by=\"/x.gpg /y.gpg\"] http://x/debian trixie main\n", ""),
            ("deb [arch=amd64 ]http://x/debian trixie main\n", ""),
            ("deb [signed-by=/a] http://x/debian trixie main\ndeb [signed-by=/b] http://x/debian sid main\n", ""),
            ("deb [signed-by=/a] http://x/debian trixie main\ndeb http://x/debian trixie contrib\n", ""),
            ("deb [signed-by=ABCDEFABCDEFABCDABCDEFABCDEFABCDABCDEFAB!] http://x/debian trixie main\n", ""),
            ("deb [signed-by=x] http://x/debian trixie main\n", "1"),
            ("deb [arch=\"amd64] http://x/debian trixie main\n", "1"),
            ("deb [signed-by=/a] http://x/debian trixie main\ndeb [signed-by=/b] http://x/debian/ trixie main\n", "2"),
            (
                "deb [signed-by=/a] http://x/debian trixie main\ndeb-src [signed-by=/b] http://x/debian trixie main\n",
                "2",
            ),
        ],
    );
    let whole = "Types: deb deb-src\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n";
    are_found(
        "/etc/apt/sources.list.d/x.sources",
        &[
            (whole, ""),
            ("types: deb\r\nuris:\n http://x/debian\n \nsuites: trixie\n# c\ncomponents: main", ""),
            ("\n# c\n", ""),
            ("Types: deb\nURIs: http://x\nSuites: ./\n", ""),
            ("Enabled: no\nTypes: deb\n", ""),
            ("Enabled: no\n", "1"),
            ("URIs: http://x\nSuites: trixie\nComponents: main\n", "1"),
            ("# c\n\nTypes: deb\nSuites: trixie\nComponents: main\n", "3"),
            ("Types: deb\nURIs: http://x\nComponents: main\n", "1"),
            ("Types: deb\nURIs: http://x\nSuites: trixie\n", "1"),
            ("Types: deb\nURIs: http://x\nSuites: ./\nComponents: main\n", "1"),
            ("Types: rpm\nURIs: http://x\nSuites: ./\n", "1"),
            ("Types: deb\nURIs: /srv/x\nSuites: ./\n\n\nTypes: deb\n", "1 6"),
            ("garbage\n", "1"),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n mDMEY865UxYJ\n -----END PGP PUBLIC KEY BLOCK-----\n",
                "",
            ),
            ("Enabled: No\nTypes: deb\n", ""),
            ("Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n\n \n", ""),
            (" x\nTypes: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n", ""),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: /a\n\nTypes: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\n",
                "",
            ),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: /a\n\nTypes: deb\nURIs: http://x/debian\nSuites: sid\nComponents: main\nSigned-By: /b\n",
                "",
            ),
            ("Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nX y\n", "5"),
            ("Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: x y\n", "1"),
            (
                "Types: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: main\nSigned-By: /a\n\nTypes: deb\nURIs: http://x/debian\nSuites: trixie\nComponents: contrib\nSigned-By: /b\n",
                "7",
            ),
        ],
    );
}

/// cron 3.0pl1-197, by the messages that it sends to syslog.
#[test]
fn tables_of_cron() {
    let taken = [
        "* * * * * root true\n",
        "A=b\nPATH = \"x y\"\n'A'='b'\nA=\n* * * * * root true\n",
        "@reboot root true\n@midnight root true\n",
        "0 0 1 jan mon root true\n0 0 * JAN Mon root true\n0 0 * * sat-sun root true\n",
        "*/5 1-3/2 1,2 */2 0-7 root true\n5-3 * * * 7 root true\n",
        "0~5 * * * * root true\n0 0 * * 1#2 root true\n*5 ** * * * root true\n",
        "0\t0\t*\t*\t*\troot\ttrue %\n   * * * * * root true\n",
        "A=b\r\n# c\r\n",
        "* * * * * root true\n# c",
        "* * * * * root true\n  ",
        "* * * * * root \n",
        "",
    ];
    are_found("/etc/cron.d/x", &taken.map(|text| (text, "")));
    let skipped = [
        "* * * * * true\n",
        "61 * * * * root true\n",
        "* * * * * root true",
        "x y\n",
        "* * * root true\n",
        "@foo root true\n",
        "@Daily root true\n",
        "@daily\n",
        "* * * * * root\n",
        "*/0 * * * * root true\n",
        "5/2 * * * * root true\n",
        "0 0 * * 8 root true\n",
        "0 24 * * * root true\n",
        "0 0 0 * * root true\n",
        "0 0 L * * root true\n",
        "FOO\n",
        "A b=c\n",
        "A=\"b\n",
        "A=b",
        "-*/5 * * * * root true\n",
        "0 0 0 1 1 1 root true\n",
        "0 0 * january monday root true\n",
        "0, * * * * root true\n",
        "1- * * * * root true\n",
        "H * * * * root true\n",
        "? * * * * root true\n",
    ];
    are_found("/etc/cron.d/x", &skipped.map(|text| (text, "1")));
    are_found("/etc/crontab", &[("# c\n\n* * * * * true\n", "3")]);
    let with_returns = [
        ("# c\r\n* * * * * root true\r\n* * * * * root true\r\n", "~2"),
        ("# c\r\n\r\n* * * * * root true\r\n", "2"),
        ("* * * * * root true\r\n* * * * * true\r\n", "2"),
    ];
    are_found("/etc/cron.d/x", &with_returns);
    // Another fault, of its name.
    are_found("/etc/cron.d/x.y", &[("x", "")]);
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
    are_found("/etc/tmpfiles.d/x.conf", &[(taken, "")]);
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
    are_found("/etc/sysusers.d/x.conf", &[(taken, "")]);
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
    assert_eq!(found_in("/etc/sysusers.d/x.conf", b"# \xff\nu x - \"\xff\"\n"), "2");
    assert_eq!(found_in("/etc/tmpfiles.d/x.conf", b"# \xff\nd /run/x\xff\n"), "");
    assert_eq!(found_in("/etc/ssh/sshd_config.d/x.conf", b"# \xff\nBanner /x\xff\n"), "");
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
    for line in include_str!("udev/valid.txt").lines() {
        assert_eq!(found("/etc/udev/rules.d/x.rules", &unescaped(line)), "", "{line}");
    }
    let missed = include_str!("udev/invalid.txt").lines();
    let missed = missed.filter(|line| found("/etc/udev/rules.d/x.rules", &unescaped(line)).is_empty());
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
    are_found("/etc/udev/rules.d/x.rules", &[("# c\nKERNEL==\"a\", \\\n  FOO=\"b\"\nFOO=\"b\"\n", "2 4")]);
}

/// `logrotate -d` of logrotate 3.22.
#[test]
fn settings_of_logrotate() {
    are_found(
        "/etc/logrotate.d/x",
        &[
            ("weekly\n/var/log/x {\n weekly\n}\n", ""),
            ("/var/log/x\n/var/log/y {\n weekly\n}", ""),
            ("\"/var/log/x y\" /var/log/z\n{\n weekly\n}\n", ""),
            ("/var/log/x{\n postrotate\n true }\n endscript\n}\n", ""),
            ("/var/log/x\n weekly\n}\n", "1"),
            ("/var/log/x {\n weekly\n}\n}\n", "4"),
            ("/var/log/x {\n postrotate\n true\n}\n", "2"),
            ("/var/log/x {\n /y {\n weekly\n}\n}\n", "2 5"),
        ],
    );
}

/// Lines of a section of logrotate, and files that start with `!`, as `logrotate -d` of logrotate 3.22 accepts or reports them.
#[test]
fn directives_of_logrotate() {
    let path = "/etc/logrotate.d/x";
    let file = |line: &str| match (line.strip_prefix('!'), unescaped(line)) {
        (Some(file), _) => unescaped(file),
        (None, text) => format!("/var/log/x {{\n{text}\n}}\n"),
    };
    for line in include_str!("logrotate/valid.txt").lines() {
        assert_eq!(found(path, &file(line)), "", "{line}");
    }
    let missed = include_str!("logrotate/invalid.txt").lines().filter(|line| found(path, &file(line)).is_empty());
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
}

/// Services that `systemd-analyze verify` of systemd 257 accepts, and those that it refuses or of which it ignores a line.
#[test]
fn services() {
    let path = "/etc/systemd/system/x.service";
    let file = |line: &str| match line.starts_with('[') {
        true => unescaped(line),
        false => format!("[Service]\n{}", unescaped(line)),
    };
    for line in include_str!("units/accepted.txt").lines() {
        let found = found(path, &file(line));
        assert!(["", "~2"].contains(&found.as_str()), "{line}: {found}");
    }
    let missed = include_str!("units/refused.txt").lines().filter(|line| found(path, &file(line)).is_empty());
    assert_eq!(missed.collect::<Vec<_>>(), [""; 0]);
}

/// Settings of which `systemd-analyze verify` of systemd 257 accepts or ignores the value. It says nothing of unknown capabilities.
#[test]
fn values_of_units() {
    let of = |line: &str| {
        let (section, setting) = line.split_once('.').unwrap();
        let kind = match section {
            "Unit" | "Install" => "service".to_owned(),
            section => section.to_lowercase(),
        };
        found(&format!("/etc/systemd/system/x.{kind}.d/x.conf"), &format!("[{section}]\n{setting}\n"))
    };
    let wrong = |lines: &'static str, expected: &str| -> Vec<&str> {
        lines.lines().filter(|line| of(line) != expected).collect()
    };
    assert_eq!(wrong(include_str!("units/values-valid.txt"), ""), [""; 0]);
    assert_eq!(wrong(include_str!("units/values-ignored.txt"), "2"), [""; 0]);
}

/// systemd keeps the backslash of a sequence that it does not know in a command, and says so.
#[test]
fn escapes_in_commands_of_units() {
    for (words, expected) in [
        (r"\d", "~2"),
        (r"'\d'", "~2"),
        (r"\x4", "~2"),
        (r"\x00", "~2"),
        (r"a\;b", "~2"),
        (r"\$", "~2"),
        (r"\1", "~2"),
        (r"\u00", "~2"),
        (r"\x41 \101 \u00e9 \U0001F600", ""),
        (r#"\a\b\f\n\r\t\v\s\"\'\\"#, ""),
        (r"a \; b", ""),
    ] {
        let text = format!("[Service]\nExecStartPre=/usr/bin/echo {words}\n");
        assert_eq!(found("/etc/systemd/system/x.service.d/x.conf", &text), expected, "{words}");
    }
}

/// `%i` is empty in a unit that is not an instance.
#[test]
fn instances_in_values_of_units() {
    for (unit, value, expected) in [
        ("x.service", "User=%i", "2"),
        ("x.service", "Group=%I", "2"),
        ("x.service", "User=x%i", ""),
        ("x.service", "LogNamespace=%i", "2"),
        ("x.service", "BusName=org.foo.%i", "2"),
        ("x.service", "PassEnvironment=%i", "2"),
        ("x.service", "User=%j", ""),
        ("x.service", "WorkingDirectory=/srv/%i", ""),
        ("x@.service", "User=%i", ""),
        ("x@y.service", "User=%i", ""),
        ("x-.service", "User=%i", ""),
        ("service", "User=%i", ""),
    ] {
        let path = format!("/etc/systemd/system/{unit}.d/x.conf");
        assert_eq!(found(&path, &format!("[Service]\n{value}\n")), expected, "{unit} {value}");
    }
}

/// `systemd-analyze verify` of systemd 257.
#[test]
fn units() {
    are_found(
        "/etc/systemd/system/x.service",
        &[
            ("[Unit]\nDescription=x\n[Service]\nExecStart=/bin/true\n[X-Mine]\na=b\n", ""),
            ("[Unit]\nSuccessAction=reboot\n", ""),
            ("", ""),
            ("[Service]\nType=oneshot\n", "~0"),
            ("[Service\nExecStart=/bin/true\n", "1"),
            ("[Sevice]\nExecStart=/bin/true\n", "1"),
            ("[Service]\nExecStart=/bin/true\nfoo\n", "3"),
            ("A=b\n[Service]\nExecStart=/bin/true\n", "1"),
            ("[Service]\nExecStart=/bin/true\nUsre=x\nDescription=x\n[X-A]\nB=c\n[Service]\nX-B=c\n", "3 4"),
            ("[Service]\nExecStart=/bin/true\nType=onesot\nExecStart=/bin/true\n", "3"),
        ],
    );
    are_found("/etc/systemd/system/x.service.d/a.conf", &[("[Service]\nNice=1\n", ""), ("[Timer]\n", "1")]);
    are_found(
        "/etc/systemd/system/x.timer",
        &[
            ("[Timer]\nOnCalendar=daily\n", ""),
            ("[Timer]\nOnCalendar=\nOnBootSec=1\n", ""),
            ("[Timer]\nOnCalendar=dayly\n", "2"),
            ("[Timer]\n", "~0"),
        ],
    );
    are_found(
        "/etc/systemd/system/srv-data.mount",
        &[
            ("[Mount]\nWhat=/dev/x\nWhere=/srv/data\n", ""),
            ("[Mount]\nWhat=/dev/x\nWhere=//srv/./data/\n", ""),
            ("[Mount]\nWhat=/dev/x\n", ""),
            ("[Mount]\nWhat=/dev/x\nWhere=/srv/other\n", "3"),
        ],
    );
    are_found("/etc/systemd/system/srv-my\\x2ddata.mount", &[("[Mount]\nWhat=/dev/x\nWhere=/srv/my-data\n", "")]);
    are_found("/etc/systemd/system/srv-my-data.automount", &[("[Automount]\nWhere=/srv/my-data\n", "2")]);
    are_found(
        "/etc/systemd/system/srv-swap.swap",
        &[("[Swap]\nWhat=/srv/swap\n", ""), ("[Swap]\nWhat=LABEL=x\n", ""), ("[Swap]\nWhat=/swap\n", "2")],
    );
    assert_eq!(found_in("/etc/systemd/system/x.service", b"[Service]\n# \xff\nExecStart=/bin/true\n"), "");
    assert_eq!(found_in("/etc/systemd/system/x.service", b"[Service]\nExecStart=/bin/true \xff\n"), "2");
    are_found("/etc/systemd/system/-.mount", &[("[Mount]\nWhat=/dev/x\nWhere=/\n", "")]);
}

/// `systemd-analyze calendar` of systemd 257.
#[test]
fn times_of_timers() {
    for text in include_str!("calendar/valid.txt").lines() {
        assert!(calendar::is_valid(text), "{text}");
    }
    for text in include_str!("calendar/invalid.txt").lines() {
        assert!(!calendar::is_valid(text), "{text}");
    }
}

#[test]
fn access_of_files() {
    for (path, mode, owner, group, is_found) in [
        ("/etc/logrotate.d/x", 0o644, "root", "root", false),
        ("/etc/logrotate.d/x", 0o755, "root", "adm", false),
        ("/etc/logrotate.d/x", 0o664, "root", "root", true),
        ("/etc/logrotate.d/x", 0o646, "root", "root", true),
        ("/etc/logrotate.d/x", 0o644, "www-data", "root", true),
        ("/etc/systemd/network/x.network", 0o600, "root", "root", true),
        ("/etc/systemd/network/x.netdev", 0o640, "root", "systemd-network", false),
        ("/etc/systemd/network/x.link", 0o600, "root", "root", false),
        ("/etc/polkit-1/rules.d/x.rules", 0o600, "root", "root", true),
        ("/etc/polkit-1/rules.d/x.rules", 0o600, "polkitd", "root", false),
        ("/etc/profile.d/x.sh", 0o640, "root", "root", true),
        ("/etc/profile.d/x.sh", 0o644, "root", "root", false),
    ] {
        let access = Ownership { mode, owner: owner.to_owned(), group: group.to_owned() };
        let found = problems(&File { path, bytes: b"", text: "", access, has_drop_ins: false });
        assert_eq!(!found.is_empty(), is_found, "{path} {mode:o} {owner}:{group}");
    }
}

/// Files in directories of settings that their program does not read.
#[test]
fn files_that_are_not_read() {
    for (path, text, expected) in [
        ("/etc/ssh/sshd_config.d/.x.conf", "x", ""),
        ("/etc/cloud/cloud.cfg.d/.x.cfg", "x", "1"),
        ("/etc/apt/sources.list.d/.x.list", "x", ""),
        ("/etc/apt/sources.list.d/a b.list", "x", ""),
        ("/etc/sysctl.d/.x.conf", "x", ""),
        ("/etc/tmpfiles.d/.x.conf", "x", ""),
        ("/etc/sysusers.d/.x.conf", "x", ""),
        ("/etc/udev/rules.d/.x.rules", "x", ""),
        ("/etc/systemd/system/x.service.bak", "[Service]\nA=b\n", ""),
        ("/etc/systemd/system/.x.service", "[Service]\nA=b\n", ""),
        ("/etc/systemd/system/x.service.d/.x.conf", "[Service]\nA=b\n", ""),
        ("/etc/systemd/system/x.service.d/x.conf.bak", "[Service]\nA=b\n", ""),
        ("/etc/systemd/system/service.d/x.conf", "[Service]\nA=b\n", "2"),
        ("/etc/systemd/system/x-.service.d/x.conf", "[Service]\nA=b\n", "2"),
        ("/etc/systemd/system/x.target.d/x.conf", "[Service]\nA=b\n", "1"),
        ("/etc/logrotate.d/x.dpkg-old", "x", ""),
        ("/etc/logrotate.d/x.bak", "x", ""),
        ("/etc/logrotate.d/x~", "x", ""),
        ("/etc/logrotate.d/.x", "x", "1"),
        ("/etc/logrotate.d/x.old", "x", ""),
        ("/etc/logrotate.d/x.conf", "x", "1"),
    ] {
        assert_eq!(found(path, text), expected, "{path}");
    }
}

/// The page has the same places.
#[test]
fn the_page_has_the_table() {
    let page = include_str!("../../../../../docs/layer-check.md");
    let table = page.split("| path | faults |\n|---|---|\n").nth(1).unwrap();
    let lines: Vec<&str> = table.lines().take_while(|line| line.starts_with('|')).collect();
    assert_eq!(lines.len(), TABLE.len());
    for ((paths, ..), line) in TABLE.iter().zip(lines) {
        let paths: Vec<String> = paths.iter().map(|path| format!("`{path}`")).collect();
        assert!(line.starts_with(&format!("| {} | ", paths.join(", "))), "{paths:?}\n{line}");
    }
}

//! Tests of sudoers rules: accepted and refused lines.

use super::*;

#[test]
fn lines_are_those_of_sudoers() {
    for good in [
        "",
        "# comment\n\n",
        "%ops ALL=(ALL:ALL) NOPASSWD: ALL\n",
        "deploy ALL = (root) NOPASSWD: /usr/bin/systemctl restart app, /usr/bin/journalctl -u app*\n",
        "a,!b, %c,#1000,%#100 h1,!h2 = ALL : h3 = (www-data) /bin/x # why\n",
        "Defaults env_keep += \"A B\", !requiretty\nDefaults:deploy secure_path=\"/usr/bin:/bin\"\n",
        "User_Alias ADMINS = a, b : OTHERS = c\nCmnd_Alias RESTART = /bin/a b, \\\n  /bin/c \"\"\nADMINS ALL = RESTART\n",
        "x ALL = sudoedit /etc/motd, !/bin/su, list\n",
        "x ALL = TIMEOUT=5m CWD=/tmp SETENV: NOEXEC: /bin/a\n",
        "x ALL = sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa /bin/a\n",
        "x ALL=(ALL) /bin/kill --signal=9\n",
        "x ALL=(ALL) /bin/a b\\=c\\,d\\:e\n",
        "@includedir /etc/more\n",
        "\"a b\" ALL=ALL\n",
        "x ::1, fe80::/10, h = ALL : 2001:db8::1 = ALL\n",
        "Defaults fdexec=always, runcwd=~, runchroot=*, sudoers_locale=C\nDefaults !fdexec\n",
    ] {
        assert_eq!(fault(good), None, "{good}");
    }
    for (bad, expected) in [
        ("ops ALL=(ALL:) ALL\n", "expected `(users)`"),
        ("ops ALL=(a:%b) ALL\n", "names of groups without `%`"),
        ("ops ALL=^/bin/(ls$\n", "expected ALL, the name of an alias"),
        ("ops ALL=(a:b:c) ALL\n", "expected `(users)`"),
        ("User_Alias A = a\nUser_Alias A = b\n", "line 2: expected a new name for an alias, found A"),
        ("Cmnd_Alias A = /a\nCmd_Alias A = /b\n", "line 2: expected a new name for an alias, found A"),
        ("User_Alias ALL = a\n", "expected a new name for an alias, found ALL"),
        (
            "Defaults nosuch_option\n",
            "line 1: Defaults: expected a parameter that sudoers(5) lists, found \"nosuch_option\"",
        ),
        ("Defaults mailto\n", "`=` and a value after the parameter"),
        ("Defaults insults=x\n", "a parameter without a value"),
        ("Defaults !passprompt\n", "this one has no negation"),
        ("Defaults timestamp_timeout=abc\n", "expected a number of minutes"),
        ("Defaults syslog=foo\n", "expected one of auth, authpriv"),
        ("Defaults umask=9\n", "expected an octal mode"),
        ("Defaults logfile=rel\n", "expected an absolute path as the value, found \"logfile=rel\""),
        ("Defaults passprompt=x y\n", "one word as the value"),
        ("Defaults insults lecture\n", "a parameter that sudoers(5) lists"),
        ("Defaults insults,\n", "lists, found nothing"),
        ("Defaults@ insults\n", "expected the name of a user, group or host, found nothing"),
        ("Defaults!ls insults\n", "expected ALL, the name of an alias"),
        ("ops ALL=CWD=tmp /bin/a\n", "after `CWD=`, found \"tmp\""),
        ("ops ALL=TIMEOUT=5x /bin/a\n", "a duration such as 30 or 1d2h after `TIMEOUT=`"),
        ("ops ALL=NOTBEFORE=2020 /bin/a\n", "a time as yyyymmddHHMMSSZ"),
        ("#0x ALL=ALL\n", "expected a number after `#`, found \"#0x\""),
        ("ops,%#1x ALL=ALL\n", "expected a number after `#`"),
        ("@include /etc/more\n", "expected rules, found @include"),
        ("#include /etc/more\n", "expected rules, found #include"),
        ("@includedir /etc/sudoers.d\n", "a directory other than /etc/sudoers.d"),
        ("ops ALL=sha224:AAAA /bin/a\n", "expected a digest of 56 hexadecimal digits"),
        ("ops ALL=/usr/bin/sudoedit /etc/x\n", "expected ALL, the name of an alias"),
        ("ops ALL=list /bin/a\n", "expected ALL, the name of an alias"),
        ("ops fe80::1/200=ALL\n", "expected `=`"),
        ("Defaults fdexec=x\n", "expected one of always, digest_only, never"),
        ("Defaults runcwd=x\n", "a path that starts with `/` or `~`, or `*`"),
        ("ops\n", "line 1: expected the name of a user, group or host, found nothing"),
        ("# x\nops ALL ALL\n", "line 2: expected `=`, found \"ALL\""),
        ("ops ALL=(ALL ALL\n", "expected `)` after `(ALL ALL`, found the end of the line"),
        ("ops ALL=systemctl\n", "the absolute path of a command, found \"systemctl\""),
        ("ops ALL=NOPASS: ALL\n", "expected `=`, found nothing"),
        ("ops ALL=\n", "a command, found nothing"),
        ("User_Alias admins = a\n", "expected an alias name that starts with a capital letter"),
        ("Defaults =x\n", "sudoers(5) lists, found \"=x\""),
        ("ops ALL=ALL,\n", "a command, found nothing"),
        ("ops ALL=ALL \\\n", "found the end of the rules"),
        ("ops ALL=ALL : x\n", "expected `=`, found nothing"),
    ] {
        assert!(fault(bad).is_some_and(|found| found.contains(expected)), "{bad}: {:?}", fault(bad));
    }
    for (file, valid) in [("10-ops", true), ("ops.conf", false), ("ops~", false), ("", false), ("a/b", false)] {
        assert_eq!(name(file).is_none(), valid, "{file}");
    }
}

/// What passes is what visudo(8) takes, if it is here.
#[test]
fn visudo_takes_whatever_passes() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rules");
    let parameters = [
        "insults",
        "!!insults",
        "! insults , lecture",
        "lecture=never",
        "!lecture",
        "listpw=all",
        "syslog=local7",
        "!syslog",
        "syslog_badpri=none",
        "timestamp_type=ppid",
        "log_format=json",
        "intercept_type=dso",
        "rlimit_core=infinity",
        "rlimit_core=\"1,2\"",
        "!rlimit_core",
        "command_timeout=1d2h",
        "command_timeout=5",
        "!umask",
        "umask=0022",
        "iolog_mode=600",
        "timestamp_timeout=-1",
        "timestamp_timeout=1.5",
        "passwd_timeout=0",
        "closefrom=3",
        "maxseq=5",
        "passprompt=\"x \\\"y\\\"\"",
        "passprompt=x\\ y",
        "passprompt=%p:",
        "env_keep += \"A B\"",
        "env_keep -= A",
        "env_keep=A",
        "!env_keep",
        "secure_path = /a:/b",
        "!secure_path",
        "editor=/a:/b",
        "!logfile",
        "logfile=/a",
        "mailto=a@b.c",
        "mailerflags=-t",
        "iolog_file=a/b",
        "exempt_group=adm",
        "runas_default=www-data",
        "log_servers=\"a:1 b:2\"",
        "timestamp_timeout = 5",
    ];
    let scopes = ["", ":a,!b", ":%adm", "@h", ">root", "!/bin/ls", "!/bin/ls,/bin/id", "!ALL"];
    let rules = [
        "a ALL=() /bin/a",
        "a ALL=(:adm) /bin/a",
        "a ALL=(b,!c:adm) NOPASSWD: /bin/a, PASSWD: /bin/b",
        "a ALL=CWD=* CHROOT=/x /bin/a",
        "a ALL=CWD=~b/c /bin/a",
        "a ALL=TIMEOUT=1d2h3m4s /bin/a",
        "a ALL=NOTBEFORE=20200101000000Z NOTAFTER=2030123123 /bin/a",
        "a ALL=ROLE=x TYPE=y /bin/a",
        "a ALL=^/bin/(ls|id)[0-9]+$ x",
        "@includedir /etc/more",
        "#1000, %#27, +ng, \"a b\", !c ALL=ALL",
        "a ALL=sha256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU= /bin/a",
    ];
    let defaults = scopes.iter().flat_map(|scope| parameters.iter().map(move |text| format!("Defaults{scope} {text}")));
    for line in defaults.chain(rules.map(str::to_owned)) {
        assert_eq!(fault(&line), None, "{line}");
        std::fs::write(&path, line.clone() + "\n").unwrap();
        let Ok(judged) = std::process::Command::new("visudo").arg("-cf").arg(&path).output() else { return };
        assert!(judged.status.success(), "{line}: {judged:?}");
    }
}

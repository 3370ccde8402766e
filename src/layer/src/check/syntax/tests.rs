//! Texts with the line of each problem, as the programs of Debian 13 found them; warnings have `~` before the line.

mod apt;
mod directories;
mod login;
mod logrotate;
mod sshd;
mod tables;
mod yaml;

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

/// Settings of which `systemd-analyze verify` of systemd 257 accepts or ignores the value. It says nothing of unknown capabilities and bits,
/// of regular expressions, and of numbers that only the kernel refuses.
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
    assert_eq!(wrong(include_str!("units/values-warned.txt"), "~2"), [""; 0]);
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

/// Faults of a file after the first 20 are counted.
#[test]
fn many_faults() {
    for (path, line) in [
        ("/etc/ssh/sshd_config", "PermitRootLogins no\n"),
        ("/etc/logrotate.d/x", "a\\\n"),
        ("/etc/systemd/system/x.service", "[Service]\nUsre=x\n"),
        ("/etc/systemd/journald.conf", "[Journal]\nStorag=x\n"),
    ] {
        let text = line.repeat(10_000);
        let access = Ownership { mode: 0o644, owner: "root".to_owned(), group: "root".to_owned() };
        let file = super::File { path, bytes: text.as_bytes(), text: &text, access, has_drop_ins: false };
        let found = super::limited(problems(&file));
        assert_eq!(found.len(), 21, "{path}");
        assert_eq!(found[20].message, "has 9980 more faults", "{path}");
        assert!(!found[20].is_warning && found[20].line.is_none(), "{path}");
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

//! Tables of fstab(5) and crontab(5), and of accounts.

use super::super::{File, problems};
use super::{are_found, found};
use crate::Ownership;

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
            ("x /a/../b ext4 d\n", "1"),
            ("x /../b//./c/ ext4 d\n", ""),
            ("x /a ext4 d,x-systemd.device-timeout=5min,x-systemd.mount-timeout=infinity\n", ""),
            ("x /a ext4 d,x-systemd.device-timeout=abc\n", "1"),
            ("x /a ext4 x-systemd.automount,x-systemd.idle-timeout=-1\n", "1"),
            ("x none swap x-systemd.device-timeout=\n", "1"),
        ],
    );
}

#[test]
fn files_with_all_accounts() {
    for path in ["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"] {
        assert_eq!(found(path, "root:x:0:\n"), "0", "{path}");
    }
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
    let job = |command: usize| format!("* * * * * root {}\n", "x".repeat(command));
    are_found(
        "/etc/cron.d/x",
        &[
            (&job(998), ""),
            (&job(999), "1"),
            ("\"A=b\n", "1"),
            ("* * * * * *  root true\n", "1"),
            ("* * * * * root:adm true\n", "1"),
            ("* * * * * -root true\n", "1"),
        ],
    );
    for (mode, owner, is_read) in
        [(0o600, "root", true), (0o664, "root", false), (0o646, "root", false), (0o644, "bin", false)]
    {
        let access = Ownership { mode, owner: owner.to_owned(), group: "root".to_owned() };
        let text = "@daily root true\n";
        let file = File { path: "/etc/cron.d/x", bytes: text.as_bytes(), text, access, has_drop_ins: false };
        assert_eq!(problems(&file).is_empty(), is_read, "{mode:o} {owner}");
    }
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

//! Settings of sshd.

use super::{are_found, found, unescaped};

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
            ("\"\n\"Port 22\nPort\" 22\nPo\"rt\" 22\n", "~1 ~2 ~3"),
            ("AllowUsers a \r\nBanner /x\r\r\nPort 22 # c\r\n", ""),
            ("AllowUsers \r\n", "1"),
            ("Port 22\r # c\n", "1"),
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
    for line in include_str!("../sshd/valid.txt").lines() {
        assert_eq!(found(path, &unescaped(line)), "", "{line}");
    }
    for line in include_str!("../sshd/invalid.txt").lines() {
        let text = unescaped(line);
        assert_eq!(found(path, &text), text.lines().count().to_string(), "{line}");
    }
}

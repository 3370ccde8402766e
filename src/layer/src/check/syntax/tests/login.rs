//! Files of logins, of names, of the firewall and of the system log.

use super::are_found;

/// `pamtester` with libpam 1.7.
#[test]
fn rules_of_pam() {
    let path = "/etc/pam.d/x";
    let taken = [
        "# c\naccount required pam_permit.so\n",
        "ACCOUNT Required pam_permit.so a=b # c\n",
        "-account required pam_nope.so\n",
        "account [success=1 default=ignore] pam_permit.so\n",
        "account [success = 1  default=bad] pam_permit.so\n",
        "account [ success=ok ]pam_permit.so\n",
        "account [success=1default=ignore] pam_permit.so\n",
        "account [authtok_lock_busy=ok auth_err=die] pam_permit.so\n",
        "account [required] pam_permit.so\n",
        "[account] required [pam_permit.so]\n",
        "account required \\\n pam_permit.so\n",
        "account [success=ok\\\n default=bad] pam_permit.so\n",
        "# foo \\\naccount required pam_permit.so\n",
        "account required pam_permit.so [a b\n",
        "@include common-account\naccount include common-account\naccount substack /etc/pam.d/x\n",
    ];
    are_found(path, &taken.map(|text| (text, "")));
    let refused = [
        "accnt required pam_permit.so\n",
        "account reqd pam_permit.so\n",
        "account required\n",
        "account [succ=1 default=ignore] pam_permit.so\n",
        "account [success=1 default=ignor] pam_permit.so\n",
        "account [success=0] pam_permit.so\n",
        "account [success=ok pam_permit.so\n",
        "account [SUCCESS=OK] pam_permit.so\n",
        "account [] pam_permit.so\n",
        "account required pam_permit.so\r\n",
        "@include\n",
    ];
    are_found(path, &refused.map(|text| (text, "1")));
    are_found(path, &[("# c\naccount \\\n required \\\n pam_permit.so\nauth x y\n", "5")]);
}

/// `getent` of glibc 2.41.
#[test]
fn sources_of_names() {
    let path = "/etc/nsswitch.conf";
    let taken = [
        "# c\npasswd: files systemd # c\nhosts: files mdns4_minimal [NOTFOUND=return] dns\n",
        "passwd: nope [!UNAVAIL=return] files\n",
        "passwd: nope [notfound = continue  success=return]files\n",
        "passwd:\n",
        "mine: x [y\n",
    ];
    are_found(path, &taken.map(|text| (text, "")));
    let refused = [
        "passwd files\n",
        "passwd: [NOTFOUND=return] files\n",
        "passwd: nope [NOTFOUND=retn] files\n",
        "passwd: nope [NOTFUND=return] files\n",
        "passwd: nope [NOTFOUND=return files\n",
        "passwd: nope [] files\n",
        "pasewd: files\n",
    ];
    are_found(path, &refused.map(|text| (text, "1")));
}

/// pam_limits of libpam 1.7, by the messages that it sends to syslog.
#[test]
fn limits_of_logins() {
    let path = "/etc/security/limits.d/x.conf";
    let taken = [
        "# c\n\n* soft nofile 1024\n",
        "root - nofile 10 x\n",
        "root -\n",
        "@adm HARD NPROC 10 # c\n",
        "root soft nofile infinity\nroot soft nofile -1\nroot soft nofile unlimited\n",
        "root soft nice -5\nroot soft priority 50\nroot soft maxlogins 5\nroot - maxsyslogins 4\n",
        "root soft nonewprivs 1\nroot hard chroot /x\n",
    ];
    are_found(path, &taken.map(|text| (text, "")));
    let ignored = [
        "root sof nofile 1024\n",
        "root soft nofil 1024\n",
        "root soft nofile abc\n",
        "root soft nofile\n",
        "root hard\n",
        "root - -\n",
        "root soft nonewprivs 2\n",
        "root soft rttime 5\n",
        "root soft maxlogins x\n",
        // The number ends at the letter.
        "root soft nofile 1M\n",
        "root soft nofile 0x10\n",
    ];
    are_found(path, &ignored.map(|text| (text, "1")));
}

/// `nft -c -f` of nftables 1.1.
#[test]
fn statements_of_nftables() {
    are_found(
        "/etc/nftables.conf",
        &[
            (
                "#!/usr/sbin/nft -f\nflush ruleset\ntable inet f {\n chain i {\n  type filter hook input priority 0;\n }\n}\n",
                "",
            ),
            (
                "add table inet f\nadd chain inet f c { type filter hook input priority 0; policy accept; }\nadd rule inet f c \\\n tcp dport { 22,\n 80 } accept\n",
                "",
            ),
            (
                "table ip t {\n set s {\n type ipv4_addr\n flags interval\n elements = { 10.0.0.0/8,\n 1.1.1.1 }\n }\n chain c {\n type nat hook input priority mangle + 5; comment \"type x\";\n policy drop\n tcp dport { 1,\n 2 } accept; ip saddr @s \\\n drop\n }\n map m { type ipv4_addr : verdict; }\n ct helper h { type \"ftp\" protocol tcp; }\n}; table ip u { flags dormant; }\n",
                "",
            ),
            ("tables input accept\nlist ruleset\ndelete table ip t # x\n", ""),
            ("fluh ruleset\nflush rulset\ntabl inet f {\n}\n", "1 2 3"),
            ("table inet f {\n chian c {\n }\n ip saddr 1.1.1.1 accept\n}\n", "2 4"),
            ("table inet f {\n chain c {\n type filtr hook input priority 0;\n }\n}\n", "3"),
            ("table inet f {\n chain c {\n type filter hook inptu priority 0;\n }\n}\n", "3"),
            ("table inet f {\n chain c {\n type filter hook input;\n }\n}\n", "3"),
            ("table inet f {\n chain c {\n type filter hook input priority 0 policy drop;\n }\n}\n", "3"),
            ("table inet f {\n chain c { type filter hook input priority 0; policy reject; }\n}\n", "2"),
            ("define x = { 80, 443 }\ntable inet f { comment \"a\n } b\" ; }\n", ""),
            ("table inet f { # } c\n}\n", ""),
            ("table inet f {\n", "1"),
            ("table inet f {\n}\n}\n", "3"),
            ("table inet f {\n chain c {\n tcp dport { 80 accept\n}\n}\n", "1"),
            ("table inet f { chain c { tcp dport 22 accept } }\n", "1"),
            ("table inet f { chain c { } chain d { }\n}\n", "1"),
            ("table inet f { set s { type ipv4_addr; elements = { 1.1.1.1 } } }\n", "1"),
            ("table inet f { counter c { packets 0 bytes 0 }; chain c { accept; drop }; }\n", ""),
            ("table inet f {\n} # x\ntable inet g { chain c { tcp dport { 1, 2 } accept }\n}", ""),
            ("table inet f {\r\n}\r\n", "1"),
            ("\u{feff}table inet f {\n}\n", "1"),
            ("table inet f {\n}\0\n", "2"),
            ("define x = \"a\n", "1"),
            ("tablet inet f {\n}\n", "1"),
            ("define x = 22\ntable inet f { chain c { tcp dport $x accept; }; }\n", ""),
            ("redefine x = 22; define y = $x\n", ""),
            ("table inet f {\n chain c {\n define a-b.c = 22\n tcp dport $a-b.c accept\n }\n}\n", ""),
            ("table inet f {\n chain c {\n tcp dport $x accept\n }\n}\ndefine x = 22\n", "3"),
            ("# $x\ntable inet f { comment \"$x\"; }\n", ""),
            ("include \"/etc/x.nft\"\ndefine y = $x\n", ""),
            ("include '/etc/x.nft'\ninclude /etc/x.nft\n", "1 2"),
        ],
    );
}

/// `rsyslogd -N1` of rsyslog 8.2504.
#[test]
fn objects_of_rsyslog() {
    let taken = [
        "module(load=\"imuxsock\")\n*.* /var/log/x\n",
        "module( LOAD = \"imuxsock\" )\nmodule(\n  load=\"imudp\"\n)\n",
        "if $msg contains \"x\" then /var/log/x\n& stop\n",
        "*.* action(type=\"omfile\"\n  file=\"/x\" # ) {\n)\n",
        "template(name=\"x\" type=\"string\" string=\"%msg%} \\\" (\\n\")\n",
        "$template x,\"%msg% { (\"\n*.* /var/log/x;x\n",
        "template(name=\"x\" type=\"list\") {\n property(name=\"msg\")\n constant(value=\"\\n\")\n}\n",
        "ruleset(name=\"x\") {\n if ($msg == 'a\"b') then { stop } else {\n action(type=\"omfile\" file=\"/x\")\n }\n}\n",
        "auth,AUTHPRIV.=info;mail.!=err;*.none;cron.7\t-/x\n",
        ":msg , !contains , \"a\" /x\n:programname,startswith,\"x\" stop\n:$!x, isequal, \"a\" ~\n",
        "*.* {\n :omusrmsg:*\n}\n",
        "if $msg == \"a\" and not ($HOSTNAME startswith \"x\") or $syslogseverity <= 3 then {\n stop\n}\nset $.x = $msg;\n",
        "action(type = \"omfile\" # name=x\n file= \"/x\" list=[\"a\", \"b\"])\n",
        "/* { ( */\nif prifilt(\"*.info\") or\n re_match($msg, \"(\") then stop\n",
    ];
    let refused = [
        ("module()\n", "1"),
        ("module(loads=\"imudp\")\n", "1"),
        ("modulx(load=\"imuxsock\")\n", "1"),
        ("*.* /a\nmodule(load=\"imuxsock\"\n*.* /var/log/x\n", "2"),
        ("if $msg contains \"x\" then {\n *.* /var/log/x\n", "1"),
        ("*.* /var/log/x\n}\n", "2"),
        ("auht.* /x\n", "1"),
        ("auth.inof /x\n", "1"),
        ("auth,autpriv.* /x\n", "1"),
        ("*.*;auth.nonee /x\n", "1"),
        (":msgg, contains, \"x\" /x\n", "1"),
        (":msg, contians, \"x\" /x\n", "1"),
        (":msg, contains, x /x\n", "1"),
        (":msg contains \"x\" /x\n", "1"),
        (":msg, isempty /x\n", "1"),
        ("if $mssg contains \"x\" then /x\n", "1"),
        ("if $msg contans \"x\" then /x\n", "1"),
        ("if $msg = \"x\" then /x\n", "1"),
        ("module(load=imudp)\n", "1"),
        ("*.* action(type='omfile' file=\"/x\")\n", "1"),
        ("action(type=\"omfile\"\n file=\"/x\" filecreatemode=0640)\n", "2"),
    ];
    for path in ["/etc/rsyslog.conf", "/etc/rsyslog.d/10-x.conf"] {
        are_found(path, &taken.map(|text| (text, "")));
        are_found(path, &refused);
    }
}

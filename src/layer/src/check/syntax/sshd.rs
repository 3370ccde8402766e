//! Settings of sshd(8), as in sshd_config(5): a line that is not valid keeps sshd from starting, so that no login is possible.

use vmbake_common::spelling::near;

use super::Problem;

/// Keywords that a `Match` block may not have. Of OpenSSH 10.0 in Debian 13, with those that are ignored or deprecated.
const GLOBAL: [&str; 62] = [
    "addressfamily",
    "afstokenpassing",
    "checkmail",
    "ciphers",
    "compression",
    "debianbanner",
    "dsaauthentication",
    "fingerprinthash",
    "gssapicleanupcredentials",
    "gssapicleanupcreds",
    "gssapikexalgorithms",
    "gssapikeyexchange",
    "gssapistorecredentialsonrekey",
    "gssapistrictacceptorcheck",
    "gssapiusesessioncredcache",
    "gssusesessionccache",
    "hostcertificate",
    "hostdsakey",
    "hostkey",
    "hostkeyagent",
    "hostkeyalgorithms",
    "ignoreuserknownhosts",
    "keepalive",
    "kerberosgetafstoken",
    "kerberosorlocalpasswd",
    "kerberostgtpassing",
    "kerberosticketcleanup",
    "kexalgorithms",
    "keyregenerationinterval",
    "listenaddress",
    "logingracetime",
    "macs",
    "maxstartups",
    "modulifile",
    "pamauthenticationviakbdint",
    "permitblacklistedkeys",
    "permituserenvironment",
    "persourcemaxstartups",
    "persourcenetblocksize",
    "persourcepenalties",
    "persourcepenaltyexemptlist",
    "pidfile",
    "port",
    "printlastlog",
    "printmotd",
    "protocol",
    "reversemappingcheck",
    "rhostsauthentication",
    "securitykeyprovider",
    "serverkeybits",
    "sshdauthpath",
    "sshdsessionpath",
    "strictmodes",
    "syslogfacility",
    "tcpkeepalive",
    "usedns",
    "uselogin",
    "usepam",
    "useprivilegeseparation",
    "verifyreversemapping",
    "versionaddendum",
    "xauthlocation",
];

/// Keywords that may be anywhere.
const MATCH: [&str; 72] = [
    "acceptenv",
    "allowagentforwarding",
    "allowgroups",
    "allowstreamlocalforwarding",
    "allowtcpforwarding",
    "allowusers",
    "authenticationmethods",
    "authorizedkeyscommand",
    "authorizedkeyscommanduser",
    "authorizedkeysfile",
    "authorizedkeysfile2",
    "authorizedprincipalscommand",
    "authorizedprincipalscommanduser",
    "authorizedprincipalsfile",
    "banner",
    "casignaturealgorithms",
    "challengeresponseauthentication",
    "channeltimeout",
    "chrootdirectory",
    "clientalivecountmax",
    "clientaliveinterval",
    "denygroups",
    "denyusers",
    "disableforwarding",
    "exposeauthinfo",
    "forcecommand",
    "gatewayports",
    "gssapiauthentication",
    "hostbasedacceptedalgorithms",
    "hostbasedacceptedkeytypes",
    "hostbasedauthentication",
    "hostbasedusesnamefrompacketonly",
    "ignorerhosts",
    "include",
    "ipqos",
    "kbdinteractiveauthentication",
    "kerberosauthentication",
    "loglevel",
    "logverbose",
    "match",
    "maxauthtries",
    "maxsessions",
    "pamservicename",
    "passwordauthentication",
    "permitemptypasswords",
    "permitlisten",
    "permitopen",
    "permitrootlogin",
    "permittty",
    "permittunnel",
    "permituserrc",
    "pubkeyacceptedalgorithms",
    "pubkeyacceptedkeytypes",
    "pubkeyauthentication",
    "pubkeyauthoptions",
    "rdomain",
    "refuseconnection",
    "rekeylimit",
    "requiredrsasize",
    "revokedkeys",
    "rhostsrsaauthentication",
    "rsaauthentication",
    "setenv",
    "skeyauthentication",
    "streamlocalbindmask",
    "streamlocalbindunlink",
    "subsystem",
    "trustedusercakeys",
    "unusedconnectiontimeout",
    "x11displayoffset",
    "x11forwarding",
    "x11uselocalhost",
];

/// Blanks at the ends of a line.
const BLANKS: [char; 4] = [' ', '\t', '\r', '\u{c}'];

/// Checks keywords: whether sshd knows them, whether they have an argument, and whether a `Match` block may have them.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let (mut found, mut is_matching) = (Vec::new(), false);
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end_matches(BLANKS).trim_start_matches([' ', '\t']);
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (written, argument) = split(line);
        let keyword = written.to_ascii_lowercase();
        let is_global = GLOBAL.contains(&keyword.as_str());
        let reason = if !is_global && !MATCH.contains(&keyword.as_str()) {
            let near = near(&keyword, GLOBAL.into_iter().chain(MATCH));
            let hint = near.first().map(|near| format!("; did you mean `{near}`?")).unwrap_or_default();
            Some(format!("unknown keyword {written:?}{hint}"))
        } else if argument.is_empty() {
            Some(format!("{written} has no argument"))
        } else {
            (is_global && is_matching).then(|| format!("{written} is not allowed within a `Match` block"))
        };
        found.extend(reason.map(|reason| Problem::error(index + 1, format!("keeps sshd from starting: {reason}"))));
        if keyword == "match" {
            is_matching = !argument.eq_ignore_ascii_case("all");
        }
    }
    found
}

/// The keyword, which may be quoted, and its arguments after blanks or `=`.
fn split(line: &str) -> (&str, &str) {
    let (keyword, rest) = match line.strip_prefix('"').and_then(|line| line.split_once('"')) {
        Some(parts) => parts,
        None => line.split_at(line.find([' ', '\t', '=', '"']).unwrap_or(line.len())),
    };
    let rest = rest.trim_start_matches([' ', '\t']);
    (keyword, rest.strip_prefix('=').unwrap_or(rest).trim_start_matches([' ', '\t']))
}

//! Values of keywords of sshd_config(5) whose sets are fixed.

/// What the arguments of a keyword are.
#[derive(Clone, Copy)]
enum Values {
    /// One of these words, in upper or lower case.
    Words(&'static [&'static str]),
    /// One of these words.
    Exact(&'static [&'static str]),
    /// A decimal number.
    Number,
    /// Numbers with units, such as `1h30m`.
    Time,
    Port,
    /// Any single argument.
    One,
}

const YES_NO: Values = Values::Words(&["yes", "no"]);
const FORWARDING: Values = Values::Words(&["yes", "all", "no", "remote", "local"]);
const LEVELS: &[&str] = &["QUIET", "FATAL", "ERROR", "INFO", "VERBOSE", "DEBUG", "DEBUG1", "DEBUG2", "DEBUG3"];
const FACILITIES: &[&str] = &[
    "DAEMON", "USER", "AUTH", "AUTHPRIV", "LOCAL0", "LOCAL1", "LOCAL2", "LOCAL3", "LOCAL4", "LOCAL5", "LOCAL6",
    "LOCAL7",
];

/// Keywords in lower case, and their values. Deprecated keywords, which sshd ignores, are left out.
const ROWS: [(&[&str], Values); 14] = [
    (
        &[
            "allowagentforwarding",
            "challengeresponseauthentication",
            "debianbanner",
            "disableforwarding",
            "exposeauthinfo",
            "gssapiauthentication",
            "gssapicleanupcredentials",
            "gssapikeyexchange",
            "gssapistorecredentialsonrekey",
            "gssapistrictacceptorcheck",
            "hostbasedauthentication",
            "hostbasedusesnamefrompacketonly",
            "ignoreuserknownhosts",
            "kbdinteractiveauthentication",
            "keepalive",
            "kerberosauthentication",
            "kerberosorlocalpasswd",
            "kerberosticketcleanup",
            "passwordauthentication",
            "permitemptypasswords",
            "permittty",
            "permituserrc",
            "printlastlog",
            "printmotd",
            "pubkeyauthentication",
            "refuseconnection",
            "skeyauthentication",
            "streamlocalbindunlink",
            "strictmodes",
            "tcpkeepalive",
            "usedns",
            "usepam",
            "x11forwarding",
            "x11uselocalhost",
        ],
        YES_NO,
    ),
    (
        &["permitrootlogin"],
        Values::Words(&["yes", "no", "prohibit-password", "without-password", "forced-commands-only"]),
    ),
    (&["allowtcpforwarding", "allowstreamlocalforwarding"], FORWARDING),
    (&["gatewayports"], Values::Words(&["yes", "no", "clientspecified"])),
    (&["compression"], Values::Words(&["yes", "no", "delayed"])),
    (&["ignorerhosts"], Values::Words(&["yes", "no", "shosts-only"])),
    (&["addressfamily"], Values::Words(&["any", "inet", "inet6"])),
    (&["permittunnel"], Values::Exact(&["yes", "no", "point-to-point", "ethernet"])),
    (&["loglevel"], Values::Words(LEVELS)),
    (&["syslogfacility"], Values::Words(FACILITIES)),
    (&["clientalivecountmax", "maxauthtries", "maxsessions", "requiredrsasize", "x11displayoffset"], Values::Number),
    (&["clientaliveinterval", "logingracetime"], Values::Time),
    (&["port"], Values::Port),
    (
        &[
            "authorizedkeyscommanduser",
            "authorizedprincipalsfile",
            "banner",
            "chrootdirectory",
            "hostkey",
            "hostkeyagent",
            "modulifile",
            "pidfile",
            "sshdsessionpath",
            "trustedusercakeys",
            "xauthlocation",
        ],
        Values::One,
    ),
];

/// What is wrong with the arguments of a keyword in lower case, of which there is at least one.
pub(super) fn fault(keyword: &str, arguments: &[String]) -> Option<String> {
    let (_, values) = ROWS.iter().find(|(keywords, _)| keywords.contains(&keyword))?;
    let (first, rest) = arguments.split_first()?;
    values.fault(first).or_else(|| rest.first().map(|extra| format!("expected one argument, also found {extra:?}")))
}

impl Values {
    fn fault(self, text: &str) -> Option<String> {
        let (is_valid, expected) = match self {
            Self::Words(words) => (words.iter().any(|word| word.eq_ignore_ascii_case(text)), one_of(words)),
            Self::Exact(words) => (words.contains(&text), one_of(words)),
            Self::Number => (is_number(text, 0, i32::MAX.unsigned_abs()), "a number".to_owned()),
            Self::Time => (is_time(text), "a time such as 2m".to_owned()),
            // Other words are names of services, such as `ssh`.
            Self::Port => (is_number(text, 1, 65_535) || is_service(text), "a port from 1 to 65535".to_owned()),
            Self::One => (!text.is_empty(), "an argument".to_owned()),
        };
        (!is_valid).then(|| format!("expected {expected}, found {text:?}"))
    }
}

fn one_of(words: &[&str]) -> String {
    let (last, others) = words.split_last().unwrap_or((&"", &[]));
    format!("{} or {last}", others.join(", "))
}

pub(super) fn is_number(text: &str, low: u32, high: u32) -> bool {
    text.parse::<u32>().is_ok_and(|number| (low..=high).contains(&number))
}

pub(super) fn is_service(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
}

/// Whether it is a sequence of numbers, each with a unit from seconds to weeks perhaps.
pub(super) fn is_time(text: &str) -> bool {
    let numbers = text.split_inclusive(|next: char| !next.is_ascii_digit());
    !text.is_empty()
        && numbers.into_iter().all(|part| {
            let digits = part.trim_end_matches(|next: char| "sSmMhHdDwW".contains(next));
            part.len() - digits.len() <= 1 && is_number(digits, 0, i32::MAX.unsigned_abs())
        })
}

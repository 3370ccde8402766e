//! Values of keywords of sshd_config(5) that are lists, or have an own form.

use std::net::{IpAddr, Ipv6Addr};

use super::algorithms::{self, Kind};
use super::conditions::is_pattern;
use super::values::{is_number, is_service, is_time};

/// Names of classes of traffic, and of methods.
const CLASSES: [&str; 26] = [
    "af11",
    "af12",
    "af13",
    "af21",
    "af22",
    "af23",
    "af31",
    "af32",
    "af33",
    "af41",
    "af42",
    "af43",
    "cs0",
    "cs1",
    "cs2",
    "cs3",
    "cs4",
    "cs5",
    "cs6",
    "cs7",
    "ef",
    "le",
    "lowdelay",
    "throughput",
    "reliability",
    "none",
];
const METHODS: [&str; 6] = ["none", "publickey", "password", "keyboard-interactive", "hostbased", "gssapi-with-mic"];
const PENALTIES: [&str; 7] = ["crash", "authfail", "noauth", "grace-exceeded", "refuseconnection", "max", "min"];
const PENALTY_COUNTS: [&str; 2] = ["max-sources4", "max-sources6"];
const PENALTY_OVERFLOWS: [&str; 2] = ["overflow", "overflow6"];

/// What is wrong with the arguments of a keyword in lower case.
pub(super) fn fault(keyword: &str, words: &[String]) -> Option<String> {
    let (first, rest) = words.split_first()?;
    let unknown = |kind| algorithms::unknown(kind, first).map(|name| format!("unknown algorithm {name:?}"));
    let each = |expected: &str, is_valid: &dyn Fn(&str) -> bool| {
        let wrong = words.iter().find(|word| !is_valid(word))?;
        Some(format!("expected {expected}, found {wrong:?}"))
    };
    let (reason, max) = match keyword {
        "ciphers" => (unknown(Kind::Cipher), 1),
        "macs" => (unknown(Kind::Mac), 1),
        "kexalgorithms" => (unknown(Kind::Exchange), 1),
        "casignaturealgorithms" => (unknown(Kind::Signature), 1),
        "hostkeyalgorithms"
        | "pubkeyacceptedalgorithms"
        | "pubkeyacceptedkeytypes"
        | "hostbasedacceptedalgorithms"
        | "hostbasedacceptedkeytypes" => (unknown(Kind::Key), 1),
        "maxstartups" => (expected(is_startups(first), "a number or START:RATE:FULL", first), 1),
        "persourcemaxstartups" => (
            expected(
                first.eq_ignore_ascii_case("none") || is_number(first, 0, i32::MAX.unsigned_abs()),
                "a number or none",
                first,
            ),
            1,
        ),
        "persourcenetblocksize" => (expected(is_block(first), "IPV4[:IPV6]", first), 1),
        "persourcepenalties" => (each("yes, no or NAME:VALUE", &|word| is_penalty(word, words.len())), usize::MAX),
        "ipqos" => (each("a class such as af21", &|word| is_class(word)), 2),
        "rekeylimit" => {
            let is_interval = |word: &String| word == "none" || is_time(word);
            let size = expected(is_amount(first), "a size such as 1G", first);
            (size.or_else(|| rest.first().and_then(|word| expected(is_interval(word), "a time such as 1h", word))), 2)
        }
        "setenv" => (each("NAME=VALUE", &|word| word.contains('=')), usize::MAX),
        "allowusers" | "denyusers" => (each("USER or USER@HOST", &is_user), usize::MAX),
        "rdomain" => (Some("is not supported on Linux".to_owned()), usize::MAX),
        "acceptenv" => (each("a name", &|word| !word.contains('=')), usize::MAX),
        "permitopen" | "permitlisten" => {
            let is_listen = keyword == "permitlisten";
            let is_alone = |word: &str| ["any", "none"].contains(&word);
            let later = rest.iter().find(|word| is_alone(word));
            let reason = later.map(|word| format!("{word:?} must be the first argument"));
            (reason.or_else(|| each("HOST:PORT", &|word| is_alone(word) || is_host_port(word, is_listen))), usize::MAX)
        }
        "listenaddress" => {
            let domain = rest.first().and_then(|word| expected(word.eq_ignore_ascii_case("rdomain"), "rdomain", word));
            (expected(is_listen_address(first), "ADDRESS or ADDRESS:PORT", first).or(domain), 3)
        }
        "authorizedkeyscommand" | "authorizedprincipalscommand" => (
            expected(first.starts_with('/') || first.eq_ignore_ascii_case("none"), "an absolute path or none", first),
            usize::MAX,
        ),
        "fingerprinthash" => {
            let is_hash =
                ["md5", "sha1", "sha256", "sha384", "sha512"].iter().any(|hash| hash.eq_ignore_ascii_case(first));
            (expected(is_hash, "sha256 or md5", first), 1)
        }
        "streamlocalbindmask" => (expected(is_mask(first), "an octal mask such as 0177", first), 1),
        "unusedconnectiontimeout" => {
            (expected(first.eq_ignore_ascii_case("none") || is_time(first), "a time or none", first), 1)
        }
        "channeltimeout" => (each("none or TYPE=TIME", &|word| is_channel(word, words.len())), usize::MAX),
        "pubkeyauthoptions" => {
            let names = ["none", "touch-required", "verify-required"];
            (each("touch-required or verify-required", &|word| names.contains(&word)), usize::MAX)
        }
        "authenticationmethods" => (methods(words), usize::MAX),
        _ => (None, usize::MAX),
    };
    reason.or_else(|| words.get(max).map(|extra| format!("unexpected argument {extra:?}")))
}

/// A pattern of a user, perhaps with a list of hosts after the last `@`.
fn is_user(word: &str) -> bool {
    match word.rsplit_once('@') {
        None => !word.is_empty(),
        Some((_, hosts)) => {
            hosts.split(',').all(|host| !host.strip_prefix('!').unwrap_or(host).is_empty() && is_pattern(host))
        }
    }
}

fn expected(is_valid: bool, what: &str, found: &str) -> Option<String> {
    (!is_valid).then(|| format!("expected {what}, found {found:?}"))
}

/// The number at the start of a text, as scanf(3) reads it, and what follows.
fn scanned(text: &str) -> Option<(i32, &str)> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end = text.len() - digits.trim_start_matches(|next: char| next.is_ascii_digit()).len();
    let (number, rest) = text.split_at(end);
    number.parse().ok().map(|number| (number, rest))
}

fn is_startups(text: &str) -> bool {
    let Some((begin, rest)) = scanned(text) else { return false };
    let Some((rate, rest)) = rest.strip_prefix(':').and_then(scanned) else { return begin > 0 };
    let full = rest.strip_prefix(':').and_then(scanned);
    full.is_some_and(|(full, _)| begin > 0 && begin <= full && (1..=100).contains(&rate))
}

fn is_block(text: &str) -> bool {
    let (v4, v6) = text.split_once(':').map_or((text, None), |(v4, v6)| (v4, Some(v6)));
    is_number(v4, 0, 32) && v6.is_none_or(|v6| is_number(v6, 0, 128))
}

fn is_penalty(word: &str, count: usize) -> bool {
    match word.split_once(':') {
        None => count == 1 && ["yes", "no"].iter().any(|known| known.eq_ignore_ascii_case(word)),
        Some((name, value)) if PENALTY_COUNTS.contains(&name) => is_number(value, 0, i32::MAX.unsigned_abs()),
        Some((name, value)) if PENALTY_OVERFLOWS.contains(&name) => ["permissive", "deny-all"].contains(&value),
        Some((name, value)) => PENALTIES.contains(&name) && is_time(value),
    }
}

/// A class of traffic, or its number.
fn is_class(word: &str) -> bool {
    CLASSES.iter().any(|known| known.eq_ignore_ascii_case(word)) || is_number(word, 0, 255)
}

/// A size of at least 16 bytes, or 0.
fn is_amount(text: &str) -> bool {
    let (number, unit) = text.split_at(text.find(|next: char| next.is_ascii_alphabetic()).unwrap_or(text.len()));
    let is_unit = unit.is_empty() || unit.len() == 1 && "bkmgtpe".contains(&unit.to_ascii_lowercase());
    let is_small = unit.is_empty() && number.parse::<u64>().is_ok_and(|bytes| (1..16).contains(&bytes));
    text == "default" || is_unit && !is_small && number.parse::<f64>().is_ok_and(|number| number >= 0.0)
}

fn is_port(port: &str) -> bool {
    is_number(port, 0, 65_535) || is_service(port)
}

fn is_host_port(word: &str, is_listen: bool) -> bool {
    let is_port = |port: &str| port == "*" || is_port(port);
    let port = match (word.strip_prefix('['), word.split_once(':')) {
        (Some(inside), _) => inside.split_once("]:").map(|(_, port)| port),
        (None, Some((_, port))) => Some(port),
        (None, None) => is_listen.then_some(word),
    };
    port.is_some_and(is_port)
}

/// Names are only known on the machine.
fn is_listen_address(text: &str) -> bool {
    let (host, port) = match text.strip_prefix('[') {
        Some(inside) => match inside.split_once(']') {
            Some((host, rest)) if host.parse::<IpAddr>().is_ok() || host.contains('%') => {
                (host, rest.strip_prefix(':'))
            }
            _ => return false,
        },
        None if text.matches(':').count() > 1 => (text, None),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    let is_dotted = host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let is_host = match host.contains([':', '.']) || is_dotted {
        true if is_dotted => is_legacy(host),
        true if host.contains(':') => host.contains('%') || host.parse::<Ipv6Addr>().is_ok(),
        _ => !host.is_empty(),
    };
    is_host && port.is_none_or(|port| port != "0" && is_port(port))
}

/// Whether it is an address of up to four numbers, of which the last one fills the rest.
fn is_legacy(host: &str) -> bool {
    let parts: Vec<&str> = host.split('.').collect();
    let Some((last, others)) = parts.split_last() else { return false };
    let max = u32::MAX.checked_shr(u32::try_from(others.len() * 8).unwrap_or(u32::MAX)).unwrap_or_default();
    parts.len() <= 4 && is_number(last, 0, max) && others.iter().all(|part| is_number(part, 0, 255))
}

fn is_mask(text: &str) -> bool {
    let end = text.find(|next: char| !next.is_digit(8)).unwrap_or(text.len());
    u32::from_str_radix(&text[..end], 8).is_ok_and(|mask| mask <= 0o777)
}

fn is_channel(word: &str, count: usize) -> bool {
    match word.split_once('=') {
        Some((kind, time)) => !kind.is_empty() && is_time(time),
        None => word.eq_ignore_ascii_case("none") && count == 1,
    }
}

fn methods(words: &[String]) -> Option<String> {
    let is_any = |word: &String| word.eq_ignore_ascii_case("any");
    if words.iter().any(is_any) {
        return (words.len() > 1).then(|| "`any` cannot be combined with other methods".to_owned());
    }
    let names = words.iter().flat_map(|list| list.split(','));
    let unknown = names.into_iter().find(|name| !METHODS.contains(&name.split(':').next().unwrap_or_default()))?;
    Some(format!("expected one of {}, found {unknown:?}", METHODS.join(", ")))
}

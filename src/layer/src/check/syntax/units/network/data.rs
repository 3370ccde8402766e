//! Identifiers, options and other data of networks.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::super::super::directories::id;
use super::super::numbers::integer;
use super::super::words::is_word;
use super::{MAX, is_inside};

/// `[TARGET:]LEVEL`.
pub(super) fn is_level(levels: &[&str], word: &str) -> bool {
    let level = word.split_once(':').map_or(word, |(_, level)| level);
    levels.iter().any(|known| is_word(known, level))
}

/// A type of DHCP unique identifier, optionally with a time.
pub(super) fn is_duid(value: &str) -> bool {
    let (kind, rest) = value.trim_start_matches(':').split_once(':').unwrap_or((value.trim_start_matches(':'), ""));
    let has_time = !rest.trim_start_matches(':').is_empty();
    kind == "link-layer-time"
        || !has_time && (["vendor", "uuid", "link-layer"].contains(&kind) || is_inside(0, 65_535, kind))
}

pub(super) fn is_hexadecimal(most: usize, value: &str) -> bool {
    let value = value.trim();
    let digits = value.strip_prefix('+').unwrap_or(value).trim_start_matches('0');
    let digits = digits.strip_prefix('x').unwrap_or(digits);
    value.contains(|next: char| next.is_ascii_hexdigit())
        && digits.len() <= most
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Hexadecimal digits of as many bytes as the arguments say: at least, and at most.
pub(super) fn is_bytes_of(arguments: &[&str], value: &str) -> bool {
    let digits = value.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let count = digits.clone().count();
    let limit = |at: usize| arguments.get(at).and_then(|limit| limit.parse::<usize>().ok()).unwrap_or(usize::MAX);
    count.is_multiple_of(2)
        && (limit(0)..=limit(1)).contains(&(count / 2))
        && digits.into_iter().all(|byte| byte.is_ascii_hexdigit())
}

/// Hexadecimal bytes with colons between them.
pub(super) fn is_raw(value: &str) -> bool {
    let is_byte = |byte: &str| (1..=2).contains(&byte.len()) && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
    value.split(':').filter(|byte| !byte.is_empty()).all(is_byte)
}

/// `FROM-TO` or one number for both.
pub(super) fn is_mapping(word: &str) -> bool {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    [from, to].iter().all(|number| is_inside(0, MAX, number))
}

/// A firewall mark, optionally with a mask.
pub(super) fn is_mark(value: &str) -> bool {
    let (mark, mask) = value.split_once('/').unwrap_or((value, value));
    [mark, mask].iter().all(|number| is_inside(0, MAX, number))
}

/// `NUMBER:TYPE:VALUE`, a DHCP option; with `vendor`, after an enterprise number.
pub(super) fn is_option(arguments: &[&str], value: &str) -> bool {
    let (enterprise, value) = match arguments.contains(&"vendor") {
        true => value.split_once(':').unwrap_or((value, "")),
        false => ("1", value),
    };
    let most = if arguments.is_empty() { 254 } else { 65_535 };
    let mut parts = value.splitn(3, ':');
    let is_number = parts.next().is_some_and(|number| is_inside(1, most, number)) && is_inside(1, MAX, enterprise);
    let (kind, data) = (parts.next().unwrap_or_default(), parts.next());
    is_number
        && data.filter(|data| !data.is_empty()).is_some_and(|data| match kind {
            "uint8" => is_inside(0, 255, data),
            "uint16" => is_inside(0, 65_535, data),
            "uint32" => is_inside(0, MAX, data),
            "ipv4address" => data.parse::<Ipv4Addr>().is_ok(),
            "ipv6address" => data.parse::<Ipv6Addr>().is_ok(),
            "string" => true,
            _ => false,
        })
}

/// Names of IP protocols with their numbers.
const PROTOCOLS: [(&str, i64); 33] = [
    ("ip", 0),
    ("icmp", 1),
    ("igmp", 2),
    ("ipip", 4),
    ("tcp", 6),
    ("egp", 8),
    ("pup", 12),
    ("udp", 17),
    ("idp", 22),
    ("tp", 29),
    ("dccp", 33),
    ("ipv6", 41),
    ("routing", 43),
    ("fragment", 44),
    ("rsvp", 46),
    ("gre", 47),
    ("esp", 50),
    ("ah", 51),
    ("icmpv6", 58),
    ("none", 59),
    ("dstopts", 60),
    ("mtp", 92),
    ("beetph", 94),
    ("encap", 98),
    ("pim", 103),
    ("comp", 108),
    ("l2tp", 115),
    ("sctp", 132),
    ("mh", 135),
    ("udplite", 136),
    ("mpls", 137),
    ("ethernet", 143),
    ("raw", 255),
];

/// The name of a protocol, or its number: with `is_any`, also one without a name.
pub(super) fn is_protocol(value: &str, is_any: bool) -> bool {
    let number = integer(value).filter(|number| (0..=255).contains(number));
    PROTOCOLS.iter().any(|(name, known)| value.eq_ignore_ascii_case(name) || number == Some(*known))
        || is_any && number.is_some()
}

/// A user id or a range of user ids, without signs and leading zeros.
pub(super) fn is_uids(value: &str) -> bool {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    id(first).zip(id(last)).is_some_and(|(first, last)| first <= last)
}

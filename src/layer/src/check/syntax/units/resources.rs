//! Values of settings that name exit statuses, devices, ports, processors and other resources.

use super::super::directories::is_time;
use super::lexer;
use super::names::is_in;
use super::numbers::{integer, is_rate, is_signal};
use super::words::is_word;

/// Exit statuses and signals between blanks. systemd does not remove quotes here.
pub(super) fn are_statuses(value: &str) -> bool {
    value.split_whitespace().all(|word| {
        is_in("statuses", word) || is_signal(word) || integer(word).is_some_and(|status| (0..=255).contains(&status))
    })
}

/// A device node or class, which may be quoted, and what is allowed.
pub(super) fn is_device(value: &str) -> bool {
    let Some((node, rights)) = first_word(value) else { return false };
    let is_class = node.starts_with("block-") || node.starts_with("char-");
    (is_class || is_node(&node)) && rights.chars().all(|right| "rwm".contains(right))
}

/// The first word, without its quotes and backslashes, and the rest as it is.
fn first_word(value: &str) -> Option<(String, &str)> {
    let (mut word, mut quote) = (String::new(), None);
    let mut chars = value.char_indices();
    while let Some((at, next)) = chars.next() {
        match next {
            '\\' => word.push(chars.next()?.1),
            _ if quote == Some(next) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(next),
            _ if quote.is_none() && next.is_ascii_whitespace() => return Some((word, value[at..].trim())),
            _ => word.push(next),
        }
    }
    quote.is_none().then_some((word, ""))
}

fn is_node(path: &str) -> bool {
    let names: Vec<&str> = path.split('/').filter(|name| !["", "."].contains(name)).collect();
    let is_below = names.starts_with(&["dev"]) || names.starts_with(&["run", "systemd", "inaccessible"]);
    path.starts_with('/') && is_below && !names.contains(&"..")
}

/// A path, and a rate, weight or time for the device that has it.
pub(super) fn is_of_device(what: &str, limits: &[&str], value: &str) -> bool {
    let limit = |at: usize| limits.get(at).and_then(|limit| limit.parse::<i64>().ok()).unwrap_or_default();
    first_word(value).is_some_and(|(path, rest)| {
        let is_value = match what {
            "weight" => integer(rest).is_some_and(|weight| (limit(0)..=limit(1)).contains(&weight)),
            "time" => rest == "infinity" || is_time(rest),
            _ => is_rate(rest),
        };
        !path.is_empty() && !rest.is_empty() && is_value
    })
}

/// Numbers of processors or memory nodes, and ranges of them.
pub(super) fn are_processors(value: &str) -> bool {
    lexer::listed(value).is_some_and(|words| words.iter().all(|word| is_range(word, 8191)))
}

/// `[FAMILY:][PROTOCOL:]PORTS`, of which the last part is any of the three.
pub(super) fn are_ports(value: &str) -> bool {
    let value = value.to_ascii_lowercase();
    let mut parts = value.split(':').peekable();
    for words in [["ipv4", "ipv6"], ["tcp", "udp"]] {
        if parts.next_if(|part| words.contains(part)).is_some() && parts.peek().is_none() {
            return true;
        }
    }
    let is_last = |ports: &str| ports == "any" || is_range(ports, 65_535);
    parts.next().is_some_and(is_last) && parts.next().is_none()
}

pub(super) fn is_range(range: &str, max: i64) -> bool {
    let number = |text: &str| integer(text).filter(|number| (0..=max).contains(number));
    match range.split_once('-') {
        None => number(range).is_some(),
        Some((first, last)) => number(first).zip(number(last)).is_some_and(|(first, last)| first <= last),
    }
}

/// The name of a network interface, which may be longer if it is an alternative one.
pub(super) fn is_interface(name: &str, max: usize) -> bool {
    let is_char = |byte: u8| (33..127).contains(&byte) && !b":/%".contains(&byte);
    (1..=max).contains(&name.len())
        && name.bytes().all(is_char)
        && !name.bytes().all(|byte| byte.is_ascii_digit())
        && !integer(name).is_some_and(|number| (1..=i64::from(i32::MAX)).contains(&number))
        && ![".", "..", "all", "default"].contains(&name)
}

/// A family of netlink by name or number, and perhaps groups.
pub(super) fn is_netlink(value: &str, families: &[&str]) -> bool {
    let mut words = value.split_whitespace();
    let number = |word: &str| integer(word).is_some_and(|number| (0..=i64::from(u32::MAX)).contains(&number));
    let is_family = |word: &str| families.iter().any(|known| is_word(known, word));
    words.next().is_some_and(is_family) && words.next().is_none_or(number) && words.next().is_none()
}

/// `SOURCE:FAMILY:TABLE:SET` of nftables.
pub(super) fn is_set(word: &str, sources: &[&str]) -> bool {
    let is_name = |name: &str| {
        let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"/\\_.".contains(&byte);
        name.starts_with(|first: char| first.is_ascii_alphabetic()) && name.len() <= 31 && name.bytes().all(is_char)
    };
    let parts: Vec<&str> = word.split(':').collect();
    match parts[..] {
        [source, family, table, set] => {
            let is_known = sources.contains(&source);
            let is_family = ["arp", "bridge", "inet", "ip", "ip6", "netdev"].contains(&family);
            word.contains('%') || is_known && is_family && is_name(table) && is_name(set)
        }
        _ => false,
    }
}

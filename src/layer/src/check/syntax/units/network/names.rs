//! Names of hosts, domains, interfaces and routing tables.

use super::super::resources::is_interface;
use super::{MAX, is_inside};

/// The name of a machine: letters, digits, hyphens and dots.
pub(super) fn is_hostname(value: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(is_char)
    };
    value.len() <= 64 && value.split('.').all(is_label)
}

/// The name of a routing table. Text that looks like an address or a signed number is not meant as one.
pub(super) fn is_table(name: &str) -> bool {
    is_name(name) && !name.starts_with(['-', '+']) && !name.contains('/')
}

/// A name that networkd.conf may define for a routing table.
fn is_name(name: &str) -> bool {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && !name.contains(|next: char| next == ':' || next.is_ascii_whitespace())
}

/// Tables that systemd defines itself.
const TABLES: [&str; 3] = ["default", "local", "main"];

/// The name in `NAME:NUMBER`, which defines a routing table.
pub(in super::super) fn named_table(word: &str) -> Option<&str> {
    let (name, number) = word.split_once(':')?;
    (is_name(name) && !TABLES.contains(&name) && is_inside(1, MAX, number)).then_some(name)
}

/// A name of the DNS. Those with other characters than ASCII are left to the machine.
pub(super) fn is_host(name: &str) -> bool {
    if name == "." {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| (1..=63).contains(&label.len());
    !name.is_ascii() || name.len() <= 253 && !has_bad_escape(name) && name.split('.').all(is_label)
}

/// Whether a name has a backslash that escapes neither a dot or backslash, nor a byte in three digits.
fn has_bad_escape(name: &str) -> bool {
    let mut rest = name;
    while let Some((_, after)) = rest.split_once('\\') {
        let byte = after.get(..3).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
        let is_byte = byte.is_some_and(|byte| byte.parse::<u8>().is_ok_and(|byte| (32..127).contains(&byte)));
        rest = match after.strip_prefix(['.', '\\']) {
            Some(rest) => rest,
            None if is_byte => &after[3..],
            None => return true,
        };
    }
    false
}

/// A search domain of router advertisements, whose labels must not be empty, or start or end with a hyphen.
pub(super) fn is_suffix(word: &str) -> bool {
    let is_label = |label: &str| !label.starts_with('-') && !label.ends_with('-');
    let labels = word.strip_suffix('.').unwrap_or(word);
    is_host(word) && word != "." && labels.split('.').all(is_label)
}

/// A search domain or routing domain. `localhost` cannot be one if `is_searched`.
pub(super) fn is_domain(word: &str, is_searched: bool) -> bool {
    let domain = word.strip_prefix('~').unwrap_or(word);
    let is_local = ["localhost", "localhost."].iter().any(|local| domain.eq_ignore_ascii_case(local));
    ["", ".", "*"].contains(&domain) || is_host(domain) && !(is_local && is_searched)
}

/// A pattern of names of interfaces.
pub(super) fn is_pattern(word: &str) -> bool {
    is_interface(word, 127)
}

/// The name of a time zone; whether the machine has it is checked elsewhere.
pub(super) fn is_zone(name: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/".contains(&byte);
    let has_part = name.split('/').all(|part| !part.is_empty());
    !name.is_empty() && has_part && name.bytes().all(is_char)
}

//! Names of hosts, domains, interfaces and tables of routes.

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

/// A name of a table of routes. Those that look like addresses or numbers with signs are not meant as names.
pub(super) fn is_table(name: &str) -> bool {
    is_name(name) && !name.starts_with(['-', '+']) && !name.contains('/')
}

/// A name that networkd.conf may give a table of routes.
fn is_name(name: &str) -> bool {
    let is_number = name.bytes().all(|byte| byte.is_ascii_digit());
    !is_number && !name.contains(|next: char| next == ':' || next.is_ascii_whitespace())
}

/// Names of tables that systemd knows.
const TABLES: [&str; 3] = ["default", "local", "main"];

/// The name of `NAME:NUMBER` for a table of routes.
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

/// Whether a backslash of a name is neither before a dot or another backslash, nor before the three digits of a byte.
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

/// A domain of router advertisements, which cannot have empty labels, nor hyphens at the ends of labels.
pub(super) fn is_suffix(word: &str) -> bool {
    let is_label = |label: &str| !label.starts_with('-') && !label.ends_with('-');
    let labels = word.strip_suffix('.').unwrap_or(word);
    is_host(word) && word != "." && labels.split('.').all(is_label)
}

/// A domain to search, or one whose names are looked up. The name of the machine itself cannot be one if `is_searched`.
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

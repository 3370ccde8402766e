//! Conditions of `Match` in sshd_config(5).

use std::net::IpAddr;

/// Criteria that have an argument.
const CRITERIA: [&str; 8] = ["user", "group", "host", "address", "localaddress", "localport", "rdomain", "version"];

/// What is wrong with the words after `Match`.
pub(super) fn fault(words: &[String]) -> Option<String> {
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let (written, attached) =
            word.split_once('=').map_or((word.as_str(), None), |(name, value)| (name, Some(value)));
        let criterion = written.to_ascii_lowercase();
        match criterion.as_str() {
            "all" if words.len() == 1 => return None,
            "all" => return Some("`all` cannot be combined with other criteria".to_owned()),
            "invalid-user" => continue,
            known if CRITERIA.contains(&known) => {}
            _ => return Some(format!("unknown criterion {written:?}; expected one of {}", CRITERIA.join(", "))),
        }
        let argument = attached.or_else(|| rest.next().map(String::as_str)).filter(|argument| !argument.is_empty());
        let Some(argument) = argument else { return Some(format!("the criterion {written:?} has no argument")) };
        let is_valid = match criterion.as_str() {
            "address" | "localaddress" => argument.split(',').all(is_pattern),
            "localport" => argument.parse::<u16>().is_ok() || argument.starts_with(|c: char| c.is_ascii_alphabetic()),
            _ => true,
        };
        if !is_valid {
            return Some(format!("{argument:?} is not valid for the criterion {written:?}"));
        }
    }
    None
}

/// Whether an entry of a list of addresses is a name, an address or a network without bits behind its mask.
pub(super) fn is_pattern(entry: &str) -> bool {
    let entry = entry.strip_prefix('!').unwrap_or(entry);
    let Some((address, length)) = entry.split_once('/') else { return true };
    let (Ok(address), Ok(length)) = (address.parse::<IpAddr>(), length.parse::<u32>()) else { return true };
    match address {
        IpAddr::V4(address) => length <= 32 && address.to_bits().checked_shl(length).unwrap_or_default() == 0,
        IpAddr::V6(address) => length <= 128 && address.to_bits().checked_shl(length).unwrap_or_default() == 0,
    }
}

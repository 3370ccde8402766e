//! Addresses in settings of units.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::numbers::integer;

/// Names of networks in addition to addresses.
const NETWORKS: [&str; 4] = ["any", "localhost", "link-local", "multicast"];

/// A name, or an address, perhaps with the length of its prefix.
pub(super) fn is_network(word: &str) -> bool {
    let (address, length) = word.split_once('/').map_or((word, None), |(address, length)| (address, Some(length)));
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) => 32,
        Ok(IpAddr::V6(_)) => 128,
        Err(_) => return NETWORKS.contains(&word),
    };
    length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= max))
}

/// An address of a socket.
pub(super) fn is_address(value: &str) -> bool {
    let is_port = |port: &str| integer(port).is_some_and(|port| (1..=65_535).contains(&port));
    let of_v6 = || {
        let (address, rest) = value.strip_prefix('[')?.split_once(']')?;
        let port = rest.strip_prefix(':')?;
        Some(address.parse::<Ipv6Addr>().is_ok() && is_port(port))
    };
    let of_v4 = || {
        let (address, port) = value.rsplit_once(':')?;
        Some(address.parse::<Ipv4Addr>().is_ok() && is_port(port))
    };
    value.starts_with(['/', '@'])
        || value.starts_with("vsock")
        || is_port(value)
        || of_v6().unwrap_or_default()
        || of_v4().unwrap_or_default()
}

//! Addresses in settings of units.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::numbers::integer;

/// Names of networks in addition to addresses.
const NETWORKS: [&str; 4] = ["any", "localhost", "link-local", "multicast"];

/// A name, or an address of one of the families, perhaps with the length of its prefix.
pub(super) fn is_network(word: &str, families: &[&str]) -> bool {
    let (address, length) = word.split_once('/').map_or((word, None), |(address, length)| (address, Some(length)));
    let max = match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(_)) if families != ["6"] => 32,
        Ok(IpAddr::V6(_)) if families != ["4"] => 128,
        Ok(_) => return false,
        Err(_) => return NETWORKS.contains(&word),
    };
    length.is_none_or(|length| length.parse::<u8>().is_ok_and(|length| length <= max))
}

/// `vsock:[ID]:PORT`.
fn is_vsock(value: &str) -> bool {
    let kinds = ["vsock:", "vsock-stream:", "vsock-dgram:", "vsock-seqpacket:"];
    let address = kinds.iter().find_map(|kind| value.strip_prefix(kind));
    let is_number = |text: &str| integer(text).is_some_and(|number| (0..=i64::from(u32::MAX)).contains(&number));
    address
        .and_then(|address| address.split_once(':'))
        .is_some_and(|(id, port)| (id.is_empty() || is_number(id)) && is_number(port))
}

/// An address of a socket, or only of one of the machine itself.
pub(super) fn is_address(value: &str, is_local: bool) -> bool {
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
    let is_ip = || is_port(value) || of_v6().unwrap_or_default() || of_v4().unwrap_or_default() || is_vsock(value);
    value.starts_with(['/', '@']) && value.len() > 1 || !is_local && is_ip()
}

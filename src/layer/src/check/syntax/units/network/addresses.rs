//! Addresses of networks, servers and interfaces.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::numbers::integer;
use super::super::resources::is_interface;
use super::super::words::is_credential;
use super::data::is_bytes_of;
use super::is_inside;
use super::names::is_host;

/// An address of one of the families `4` and `6` in the arguments. Others restrict it: not zero (`some`), link-local (`local`), neither loopback
/// nor link-local (`public`), multicast (`multicast`) or not (`single`).
pub(super) fn is_ip(arguments: &[&str], value: &str) -> bool {
    let family = |address: &IpAddr| if address.is_ipv4() { "4" } else { "6" };
    let is_some = |address: &IpAddr| !arguments.contains(&"some") || !address.is_unspecified();
    let is_local = |address: &IpAddr| !arguments.contains(&"local") || is_link_local(address);
    let is_public =
        |address: &IpAddr| !arguments.contains(&"public") || !address.is_loopback() && !is_link_local_v4(address);
    let address = value.parse::<IpAddr>().ok();
    let is_cast = |address: &IpAddr| match address.is_multicast() {
        true => !arguments.contains(&"single"),
        false => !arguments.contains(&"multicast"),
    };
    address.is_some_and(|address| {
        arguments.contains(&family(&address))
            && is_some(&address)
            && is_local(&address)
            && is_public(&address)
            && is_cast(&address)
    })
}

/// An IPv4 link-local address: one of 169.254.0.0/16.
fn is_link_local_v4(address: &IpAddr) -> bool {
    matches!(address, IpAddr::V4(address) if address.is_link_local())
}

/// A link-local address that a machine may choose: of IPv4, one of 169.254.1.0 to 169.254.254.255 (RFC 3927, section 2.1).
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            (first, second) == (169, 254) && (1..=254).contains(&third)
        }
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// Prefix lengths of NAT64 (RFC 8781, section 4).
const TRANSLATED: [i64; 6] = [32, 40, 48, 56, 64, 96];

/// An address, optionally with a prefix length: required with the argument `length`, not zero with `long`, one of NAT64 with `translated`.
pub(super) fn is_prefix(arguments: &[&str], value: &str) -> bool {
    let (address, length) = match value.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (value, None),
    };
    let max = if address.contains(':') { 128 } else { 32 };
    let least = i64::from(arguments.contains(&"long"));
    let is_length = length.map_or(!arguments.contains(&"length"), |length| is_inside(least, max, length));
    let is_translated = |length: &str| integer(length).is_some_and(|length| TRANSLATED.contains(&length));
    is_ip(arguments, address) && is_length && (!arguments.contains(&"translated") || length.is_some_and(is_translated))
}

/// `ADDRESS[:PORT][%INTERFACE][#NAME]`, with brackets around an IPv6 address before a port.
pub(super) fn is_server(value: &str) -> bool {
    let (address, name) = value.split_once('#').map_or((value, None), |(address, name)| (address, Some(name)));
    let (address, interface) = match address.split_once('%') {
        Some((address, interface)) => (address, Some(interface)),
        None => (address, None),
    };
    is_address_with_port(address, false)
        && name.is_none_or(is_host)
        && interface.is_none_or(|interface| is_interface(interface, 127) || is_inside(1, 2_147_483_647, interface))
}

pub(super) fn is_address_with_port(value: &str, needs_port: bool) -> bool {
    let is_port = |port: &str| is_inside(1, 65_535, port);
    let of_v6 = || {
        let (address, rest) = value.strip_prefix('[')?.split_once(']')?;
        Some(address.parse::<Ipv6Addr>().is_ok() && rest.strip_prefix(':').is_some_and(is_port))
    };
    let of_v4 = || {
        let (address, port) = value.split_once(':')?;
        Some(address.parse::<Ipv4Addr>().is_ok() && is_port(port))
    };
    !needs_port && value.parse::<IpAddr>().is_ok() || of_v6().unwrap_or_default() || of_v4().unwrap_or_default()
}

/// `ADDRESS[@INTERFACE] [WEIGHT]`.
pub(super) fn is_hop(arguments: &[&str], value: &str) -> bool {
    let mut words = value.split_whitespace();
    let (hop, weight) = (words.next().unwrap_or_default(), words.next().unwrap_or("1"));
    let (address, interface) = hop.split_once('@').unwrap_or((hop, "x"));
    let is_some = |address: IpAddr| !arguments.contains(&"some") || !address.is_unspecified();
    address.parse::<IpAddr>().is_ok_and(is_some)
        && (is_interface(interface, 127) || is_inside(1, 2_147_483_647, interface))
        && is_inside(1, 256, weight)
        && words.next().is_none()
}

/// How addresses are generated: a static interface identifier, or the name of a method.
pub(super) fn is_token(value: &str) -> bool {
    let is_some = |address: &str| is_ip(&["6", "some"], address);
    let (kind, rest) = value.split_once(':').unwrap_or((value, ""));
    match kind {
        "eui64" => rest.is_empty(),
        "prefixstable" => {
            let (address, secret) = rest.split_once(',').unwrap_or((rest, ""));
            let is_secret = secret.is_empty() || is_bytes_of(&["16", "16"], &secret.replace('-', ""));
            (address.is_empty() || is_ip(&["6"], address)) && is_secret
        }
        "static" => is_some(rest),
        _ => is_some(value),
    }
}

/// A host and a port, or `@` and the name of a credential.
pub(super) fn is_endpoint(value: &str) -> bool {
    let of_name = || {
        let (name, port) = value.rsplit_once(':')?;
        Some(is_host(name) && is_inside(1, 65_535, port))
    };
    match value.strip_prefix('@') {
        Some(credential) => is_credential(credential),
        None => is_address_with_port(value, true) || of_name().unwrap_or_default(),
    }
}

/// The address of a peer without a port, which systemd accepts and reads as port 0.
pub(in super::super) fn has_no_port(value: &str) -> bool {
    value.parse::<IpAddr>().is_ok()
}

/// Whether an address has host bits, which systemd clears.
pub(in super::super) fn is_unmasked(value: &str) -> bool {
    let Some((address, length)) = value.split_once('/') else { return false };
    let Some(length) = integer(length).and_then(|length| u32::try_from(length).ok()) else { return false };
    match address.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => address.to_bits().checked_shl(length).is_some_and(|rest| rest != 0),
        Ok(IpAddr::V6(address)) => address.to_bits().checked_shl(length).is_some_and(|rest| rest != 0),
        Err(_) => false,
    }
}

/// Six bytes with `:` or `-`, three words with `.`, and other lengths if `any` is one of the arguments.
pub(super) fn is_mac(arguments: &[&str], value: &str) -> bool {
    let parts = |sign: char| value.split(sign).collect::<Vec<_>>();
    let is_part =
        |part: &str, max: usize| (1..=max).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_hexdigit());
    let bytes = [':', '-'].iter().map(|sign| parts(*sign)).find(|parts| parts.len() > 1);
    let of_bytes = bytes.filter(|parts| parts.iter().all(|part| is_part(part, 2))).map(|parts| parts.len());
    let of_words = Some(parts('.')).filter(|parts| parts.len() > 1 && parts.iter().all(|part| is_part(part, 4)));
    let length = of_bytes.or_else(|| of_words.map(|parts| parts.len() * 2));
    let is_any = arguments.contains(&"any");
    let first = value.split([':', '-', '.']).next().unwrap_or_default();
    let first = u16::from_str_radix(first, 16).unwrap_or_default();
    // Multicast, which includes broadcast, and zero.
    let is_group = (if of_bytes.is_some() { first } else { first >> 8 }) & 1 == 1
        || value.bytes().all(|byte| b"0:-.".contains(&byte));
    if arguments.contains(&"single") && is_group {
        return false;
    }
    length.is_some_and(|length| length == 6 || is_any && [4, 16, 20].contains(&length))
        || is_any && value.parse::<IpAddr>().is_ok()
}

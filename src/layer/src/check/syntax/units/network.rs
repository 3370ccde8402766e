//! Values of networks: addresses, names of interfaces and hosts, queues and keys.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::super::directories::microseconds;
use super::numbers::{integer, permyriad, size};
use super::resources::{is_interface, is_range};
use super::service::words;
use super::words::{is_account, is_base64, is_variable, is_word};

/// The largest number of 32 bits.
const MAX: i64 = 4_294_967_295;

/// Whether a value fits a kind of networks; `None` if there is no such kind.
pub(super) fn is_valid(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    is_valid_address(name, arguments, value).or_else(|| is_valid_other(name, arguments, value))
}

fn is_valid_address(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    let each = |is_valid: &dyn Fn(&str) -> bool| value.split_whitespace().all(is_valid);
    Some(match name {
        "ip" => is_ip(arguments, value),
        "ips" => each(&|word| is_ip(arguments, word)),
        "prefix" => is_prefix(arguments, value),
        "prefixes" => each(&|word| is_prefix(arguments, word)),
        "masks" => value.split([',', ' ', '\t']).filter(|word| !word.is_empty()).all(|word| is_prefix(arguments, word)),
        "server" => is_server(value),
        "servers" => each(&is_server),
        "listener" => {
            let address = ["udp:", "tcp:"].iter().find_map(|start| value.strip_prefix(start)).unwrap_or(value);
            is_address_with_port(address, false)
        }
        "endpoint" => is_endpoint(value),
        "hop" => is_hop(value),
        "token" => is_token(value),
        "mac_or_ip" => is_mac(&[], value) || is_ip(arguments, value),
        "link" => is_interface(value, 127) || is_inside(1, 2_147_483_647, value),
        "hostname" => is_hostname(value),
        "host" => is_host(value),
        "hosts" => each(&|word| word.parse::<IpAddr>().is_ok() || is_host(word)),
        "domains" => each(&is_domain),
        "mac" => is_mac(arguments, value),
        "macs" => each(&|word| is_mac(arguments, word)),
        "ifname" => is_interface(value, 15),
        "ifnames" => each(&|word| is_interface(word, 127)),
        "patterns" => value.trim_start_matches('!').split_whitespace().all(is_pattern),
        _ => return None,
    })
}

fn is_valid_other(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    let limit = |at: usize| arguments.get(at).and_then(|limit| limit.parse::<i64>().ok()).unwrap_or(i64::MAX);
    Some(match name {
        "range" => is_range_from(limit(0), limit(1), value),
        "integers" => value.split_whitespace().all(|word| is_inside(limit(0), limit(1), word)),
        "amount" => size(value).is_some_and(|size| is_between(arguments, size)),
        "span" => microseconds(value, "s").is_some_and(|span| is_between(arguments, span)),
        "percentage" => permyriad(value).is_some_and(|share| share <= 10_000),
        "permille" => {
            permyriad(value).is_some_and(|share| share <= 10_000 && share % 10 == 0) && !value.ends_with('\u{2031}')
        }
        "amounts" => value.split_whitespace().all(|word| size(word).is_some_and(|size| is_between(arguments, size))),
        "hexadecimal" => is_hexadecimal(usize::try_from(limit(0)).unwrap_or_default(), value),
        "class" => {
            value.split_once(':').is_some_and(|(major, minor)| is_hexadecimal(4, major) && is_hexadecimal(4, minor))
        }
        "levels" => value.split(',').all(|word| is_level(arguments, word)),
        "metrics" => {
            [1, 3].contains(&value.split(':').count()) && value.split(':').all(|number| is_inside(0, MAX, number))
        }
        "hops" => value.split_whitespace().all(|word| {
            let (id, weight) = word.split_once(':').unwrap_or((word, "1"));
            is_inside(1, MAX, id) && is_inside(1, 256, weight)
        }),
        "users" => is_range_from(0, MAX - 1, value) || !value.contains('-') && is_account(value),
        "table" => is_inside(1, MAX, value) || is_table(value),
        "tables" => value
            .split_whitespace()
            .all(|word| word.split_once(':').is_some_and(|(name, number)| is_table(name) && is_inside(1, MAX, number))),
        "duid" => is_duid(value),
        "properties" => {
            let pairs = words(value.strip_prefix('!').unwrap_or(value));
            pairs.is_some_and(|pairs| pairs.iter().all(|pair| is_variable(pair)))
        }
        "bytes_of" => is_bytes_of(arguments, value),
        "key" => value.len() == 44 && is_base64(value),
        "raw" => is_raw(value),
        "map" => value.split_whitespace().all(is_mapping),
        "mark" => is_mark(value),
        "url" => ["http://", "https://", "file:/"].iter().any(|start| value.starts_with(start)),
        "zone" => is_zone(value),
        "option" => is_option(arguments, value),
        _ => return None,
    })
}

/// Whether a number is between two limits, of which the second one may be missing.
fn is_between(limits: &[&str], number: f64) -> bool {
    let limit = |at: usize| limits.get(at).and_then(|limit| limit.parse::<f64>().ok());
    limit(0).is_none_or(|low| low <= number) && limit(1).is_none_or(|high| number <= high)
}

fn is_inside(low: i64, high: i64, word: &str) -> bool {
    integer(word).is_some_and(|number| (low..=high).contains(&number))
}

fn is_range_from(low: i64, high: i64, value: &str) -> bool {
    let (first, last) = value.split_once('-').unwrap_or((value, value));
    is_range(value, high) && [first, last].iter().all(|number| is_inside(low, high, number))
}

/// An address of a family of `4` and `6`, which is not zero if `some` is one of the arguments.
fn is_ip(arguments: &[&str], value: &str) -> bool {
    let family = |address: &IpAddr| if address.is_ipv4() { "4" } else { "6" };
    let is_some = |address: &IpAddr| !arguments.contains(&"some") || !address.is_unspecified();
    let is_local = |address: &IpAddr| !arguments.contains(&"local") || is_link_local(address);
    let address = value.parse::<IpAddr>().ok();
    let is_cast = |address: &IpAddr| match address.is_multicast() {
        true => !arguments.contains(&"single"),
        false => !arguments.contains(&"multicast"),
    };
    address.is_some_and(|address| {
        arguments.contains(&family(&address)) && is_some(&address) && is_local(&address) && is_cast(&address)
    })
}

/// An address that machines may give themselves: one of 169.254.1.0 to 169.254.254.255.
fn is_link_local(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => {
            let [first, second, third, _] = address.octets();
            (first, second) == (169, 254) && (1..=254).contains(&third)
        }
        IpAddr::V6(address) => address.is_unicast_link_local(),
    }
}

/// An address and perhaps the length of its prefix, which must be there if `length` is one of the arguments.
fn is_prefix(arguments: &[&str], value: &str) -> bool {
    let (address, length) = match value.split_once('/') {
        Some((address, length)) => (address, Some(length)),
        None => (value, None),
    };
    let max = if address.contains(':') { 128 } else { 32 };
    let is_length = length.map_or(!arguments.contains(&"length"), |length| is_inside(0, max, length));
    is_ip(arguments, address) && is_length
}

/// `ADDRESS[:PORT][%INTERFACE][#NAME]`, with brackets around an IPv6 address before a port.
fn is_server(value: &str) -> bool {
    let (address, name) = value.split_once('#').map_or((value, None), |(address, name)| (address, Some(name)));
    let (address, interface) = match address.split_once('%') {
        Some((address, interface)) => (address, Some(interface)),
        None => (address, None),
    };
    is_address_with_port(address, false)
        && name.is_none_or(is_host)
        && interface.is_none_or(|interface| is_interface(interface, 127) || is_inside(1, 2_147_483_647, interface))
}

fn is_address_with_port(value: &str, needs_port: bool) -> bool {
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
fn is_hop(value: &str) -> bool {
    let mut words = value.split_whitespace();
    let (hop, weight) = (words.next().unwrap_or_default(), words.next().unwrap_or("1"));
    let (address, interface) = hop.split_once('@').unwrap_or((hop, "x"));
    address.parse::<IpAddr>().is_ok()
        && (is_interface(interface, 127) || is_inside(1, 2_147_483_647, interface))
        && is_inside(1, 256, weight)
        && words.next().is_none()
}

/// How an address is made: a static part, or the name of a way.
fn is_token(value: &str) -> bool {
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

/// The name of a machine: letters, digits, hyphens and dots.
fn is_hostname(value: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let is_label = |label: &str| {
        !label.is_empty() && !label.starts_with('-') && !label.ends_with('-') && label.bytes().all(is_char)
    };
    value.len() <= 64 && value.split('.').all(is_label)
}

/// `[TARGET:]LEVEL`.
fn is_level(levels: &[&str], word: &str) -> bool {
    let level = word.split_once(':').map_or(word, |(_, level)| level);
    levels.iter().any(|known| is_word(known, level))
}

/// A name of a table of routes, which networkd.conf may give it.
fn is_table(name: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_graphic() && !b":/".contains(&byte);
    !name.is_empty()
        && name.bytes().all(is_char)
        && !name.bytes().all(|byte| byte.is_ascii_digit())
        && !name.starts_with(['-', '+'])
}

/// A type of an identifier of DHCP, perhaps with its time.
fn is_duid(value: &str) -> bool {
    let kind = value.split(':').next().unwrap_or_default();
    let has_time = value.contains(':');
    kind == "link-layer-time"
        || !has_time && (["vendor", "uuid", "link-layer"].contains(&kind) || is_inside(0, 65_535, kind))
}

/// A host and a port, or the name of a credential after `@`.
fn is_endpoint(value: &str) -> bool {
    let of_name = || {
        let (name, port) = value.rsplit_once(':')?;
        Some(is_host(name) && is_inside(1, 65_535, port))
    };
    value.starts_with('@') || is_address_with_port(value, true) || of_name().unwrap_or_default()
}

/// A name of the DNS. Those with other characters than ASCII are left to the machine.
fn is_host(name: &str) -> bool {
    if name == "." {
        return true;
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| (1..=63).contains(&label.len());
    !name.is_ascii() || name.len() <= 253 && name.split('.').all(is_label)
}

fn is_domain(word: &str) -> bool {
    let domain = word.strip_prefix('~').unwrap_or(word);
    let is_local = ["localhost", "localhost."].iter().any(|local| domain.eq_ignore_ascii_case(local));
    ["", ".", "*"].contains(&domain) || is_host(domain) && !is_local
}

/// Six bytes with `:` or `-`, three words with `.`, and other lengths if `any` is one of the arguments.
fn is_mac(arguments: &[&str], value: &str) -> bool {
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
    // That of all machines, and those of groups of them.
    let is_group = (if of_bytes.is_some() { first } else { first >> 8 }) & 1 == 1
        || value.bytes().all(|byte| b"0:-.".contains(&byte));
    if arguments.contains(&"single") && is_group {
        return false;
    }
    length.is_some_and(|length| length == 6 || is_any && [4, 16, 20].contains(&length))
        || is_any && value.parse::<IpAddr>().is_ok()
}

/// A pattern of names of interfaces.
fn is_pattern(word: &str) -> bool {
    let is_char = |byte: u8| (33..127).contains(&byte) && !b":/%".contains(&byte);
    (1..=127).contains(&word.len()) && word.bytes().all(is_char)
}

fn is_hexadecimal(most: usize, value: &str) -> bool {
    let digits = value.trim().trim_start_matches('0');
    let digits = digits.strip_prefix('x').unwrap_or(digits);
    value.contains(|next: char| next.is_ascii_hexdigit())
        && digits.len() <= most
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Hexadecimal digits of as many bytes as the arguments say: at least, and at most.
fn is_bytes_of(arguments: &[&str], value: &str) -> bool {
    let digits = value.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let count = digits.clone().count();
    let limit = |at: usize| arguments.get(at).and_then(|limit| limit.parse::<usize>().ok()).unwrap_or(usize::MAX);
    count.is_multiple_of(2)
        && (limit(0)..=limit(1)).contains(&(count / 2))
        && digits.into_iter().all(|byte| byte.is_ascii_hexdigit())
}

/// Hexadecimal bytes with colons between them.
fn is_raw(value: &str) -> bool {
    let is_byte = |byte: &str| (1..=2).contains(&byte.len()) && byte.bytes().all(|digit| digit.is_ascii_hexdigit());
    value.split(':').filter(|byte| !byte.is_empty()).all(is_byte)
}

/// `FROM-TO` or one number for both.
fn is_mapping(word: &str) -> bool {
    let (from, to) = word.split_once('-').unwrap_or((word, word));
    [from, to].iter().all(|number| is_inside(0, MAX, number))
}

/// A mark of the firewall, perhaps with a mask.
fn is_mark(value: &str) -> bool {
    let (mark, mask) = value.split_once('/').unwrap_or((value, value));
    [mark, mask].iter().all(|number| is_inside(0, MAX, number))
}

/// The name of a time zone; whether the machine has it is checked elsewhere.
fn is_zone(name: &str) -> bool {
    let is_char = |byte: u8| byte.is_ascii_alphanumeric() || b"-_+/".contains(&byte);
    let has_part = name.split('/').all(|part| !part.is_empty());
    !name.is_empty() && has_part && name.bytes().all(is_char)
}

/// `NUMBER:TYPE:VALUE`, an option of DHCP, after the number of an enterprise for `vendor`.
fn is_option(arguments: &[&str], value: &str) -> bool {
    let (enterprise, value) = match arguments.contains(&"vendor") {
        true => value.split_once(':').unwrap_or((value, "")),
        false => ("1", value),
    };
    let most = if arguments.is_empty() { 254 } else { 65_535 };
    let mut parts = value.splitn(3, ':');
    let is_number = parts.next().is_some_and(|number| is_inside(1, most, number)) && is_inside(1, MAX, enterprise);
    let (kind, data) = (parts.next().unwrap_or_default(), parts.next());
    is_number
        && data.is_some_and(|data| match kind {
            "uint8" => is_inside(0, 255, data),
            "uint16" => is_inside(0, 65_535, data),
            "uint32" => is_inside(0, MAX, data),
            "ipv4address" => data.parse::<Ipv4Addr>().is_ok(),
            "ipv6address" => data.parse::<Ipv6Addr>().is_ok(),
            "string" => true,
            _ => false,
        })
}

//! Values of networks: addresses, names of interfaces and hosts, queues and keys.

mod addresses;
mod data;
mod names;

use std::net::IpAddr;

use super::super::directories::microseconds;
use super::lexer;
use super::numbers::{integer, permyriad, rate, size};
use super::resources::{is_interface, is_range};
use super::words::{is_account, is_base64, is_variable};
pub(super) use addresses::{has_no_port, is_unmasked};
use addresses::{is_address_with_port, is_endpoint, is_hop, is_ip, is_mac, is_prefix, is_server, is_token};
use data::{
    is_bytes_of, is_duid, is_hexadecimal, is_level, is_mapping, is_mark, is_option, is_protocol, is_raw, is_uids,
};
pub(super) use names::named_table;
use names::{is_domain, is_host, is_hostname, is_pattern, is_suffix, is_table, is_zone};

/// The largest number of 32 bits.
const MAX: i64 = 4_294_967_295;

/// Whether a value fits a kind of networks; `None` if there is no such kind.
pub(super) fn is_valid(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    is_valid_address(name, arguments, value).or_else(|| is_valid_other(name, arguments, value))
}

fn is_valid_address(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    let each = |is_valid: &dyn Fn(&str) -> bool| {
        lexer::plain(value).is_some_and(|words| words.iter().all(|word| is_valid(word)))
    };
    Some(match name {
        "ip" => is_ip(arguments, value),
        "ips" => each(&|word| arguments.contains(&word) || is_ip(arguments, word)),
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
        "hop" => is_hop(arguments, value),
        "token" => is_token(value),
        "mac_or_ip" => is_mac(&[], value) || is_ip(arguments, value),
        "link" => is_interface(value, 127) || is_inside(1, 2_147_483_647, value),
        "hostname" => is_hostname(value),
        "host" => is_host(value),
        "hosts" => each(&|word| word.parse::<IpAddr>().is_ok() || is_host(word)),
        "domains" => each(&|word| is_domain(word, !arguments.contains(&"any"))),
        "suffixes" => each(&is_suffix),
        "mac" => is_mac(arguments, value),
        "macs" => each(&|word| is_mac(arguments, word)),
        "ifname" => is_interface(value, 15),
        "ifnames" => each(&|word| is_interface(word, 127)),
        "patterns" => lexer::plain(value.strip_prefix('!').unwrap_or(value))
            .is_some_and(|words| words.iter().all(|word| is_pattern(word))),
        _ => return None,
    })
}

fn is_valid_other(name: &str, arguments: &[&str], value: &str) -> Option<bool> {
    let limit = |at: usize| arguments.get(at).and_then(|limit| limit.parse::<i64>().ok()).unwrap_or(i64::MAX);
    Some(match name {
        "range" => is_range_from(limit(0), limit(1), value),
        "integers" => value.split_whitespace().all(|word| is_inside(limit(0), limit(1), word)),
        "rate" => rate(value).is_some_and(|rate| is_between(arguments, rate)),
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
        "users" => {
            is_uids(value) || value.contains(|next: char| !next.is_ascii_digit() && next != '-') && is_account(value)
        }
        "table" => is_inside(1, MAX, value) || is_table(value),
        "tables" => lexer::plain(value).is_some_and(|words| words.iter().all(|word| named_table(word).is_some())),
        "protocol" => is_protocol(value, arguments.contains(&"any")),
        "circuit" => value.starts_with("string:"),
        "duid" => is_duid(value),
        "properties" => {
            let pairs = lexer::escaped(value.strip_prefix('!').unwrap_or(value));
            pairs.is_some_and(|pairs| pairs.iter().all(|pair| is_variable(pair)))
        }
        "bytes_of" => is_bytes_of(arguments, value),
        "key" => value.len() == 44 && is_base64(value),
        "raw" => is_raw(value),
        "map" => value.split_whitespace().all(is_mapping),
        "mark" => is_mark(value),
        "url" => {
            let is_web = ["http://", "https://"].iter().any(|start| value.starts_with(start));
            is_web || !arguments.contains(&"http") && value.starts_with("file:/")
        }
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

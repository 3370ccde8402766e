//! Networks of netplan(5): the text of a file in, the faults out because of which netplan refuses all of its files, so that a machine has no
//! network.
//!
//! Definitions may refer to those of other files, which are not checked.

mod nodes;

use std::net::{Ipv4Addr, Ipv6Addr};

use vmbake_common::spelling::near;

use super::{Problem, yaml};
use nodes::{Node, Value};

/// The keys of `network` and of each kind of definition, as netplan 1.1.2 knows them.
const KEYS: &str = include_str!("netplan/keys.txt");

/// Keys whose values are booleans.
const FLAGS: [&str; 9] =
    ["accept-ra", "critical", "dhcp4", "dhcp6", "emit-lldp", "ignore-carrier", "ipv6-privacy", "optional", "wakeonlan"];

const BOOLEANS: [&str; 8] = ["true", "on", "yes", "y", "false", "off", "no", "n"];

const RENDERERS: [&str; 2] = ["NetworkManager", "networkd"];

/// What is wrong in a line.
type Fault = (usize, String);

/// Checks the structure of a file, and values of common keys.
pub(super) fn check(text: &str) -> Vec<Problem> {
    let found = yaml::check_netplan(text);
    if !found.is_empty() {
        return found;
    }
    let Some(root) = nodes::document(text) else { return Vec::new() };
    let faults = file(&root).err();
    let problem = |(line, reason)| Problem::error(line, format!("is refused by netplan: {reason}"));
    faults.into_iter().map(problem).collect()
}

fn file(root: &Node) -> Result<(), Fault> {
    // netplan takes a list for nothing.
    if matches!(root.value, Value::List(_) | Value::Unknown) {
        return Ok(());
    }
    for (key, network) in root.mapping()? {
        match key.text()? {
            "network" => self::network(network)?,
            other => return Err(unknown(key.line, other, &["network"])),
        }
    }
    Ok(())
}

fn network(node: &Node) -> Result<(), Fault> {
    for (key, value) in node.mapping()? {
        match key.text()? {
            "version" if value.known_text()?.is_some_and(|text| !text.starts_with('2')) => {
                return Err(value.expected("version 2"));
            }
            "version" => {}
            "renderer" => renderer(value)?,
            kind if keys("network").any(|known| known == kind) => {
                // Their values have other forms.
                if kind != "openvswitch" {
                    definitions(kind, value)?;
                }
            }
            other => return Err(unknown(key.line, other, &keys("network").collect::<Vec<_>>())),
        }
    }
    Ok(())
}

fn definitions(kind: &str, node: &Node) -> Result<(), Fault> {
    for (name, definition) in node.mapping()? {
        match name.text()? {
            "renderer" if !matches!(definition.value, Value::Mapping(_)) => renderer(definition)?,
            text if text.contains(['*', '?', '[']) => {
                return Err((name.line, format!("the name {text:?} must not have a pattern; use `match`")));
            }
            text if text.contains(char::is_whitespace) => {
                return Err((name.line, format!("the name {text:?} must not have blanks")));
            }
            _ => self::definition(kind, definition)?,
        }
    }
    Ok(())
}

fn definition(kind: &str, node: &Node) -> Result<(), Fault> {
    let settings = node.mapping()?;
    for (key, value) in settings {
        let name = key.text()?;
        if !keys(kind).any(|known| known == name) {
            return Err(unknown(key.line, name, &keys(kind).collect::<Vec<_>>()));
        }
        setting(name, value)?;
    }
    let line_of = |name: &str| settings.iter().find(|(key, _)| key.text() == Ok(name)).map(|(key, _)| key.line);
    match (line_of("set-name"), line_of("match")) {
        (Some(line), None) => Err((line, "set-name requires match".to_owned())),
        _ => Ok(()),
    }
}

fn setting(name: &str, value: &Node) -> Result<(), Fault> {
    match name {
        "renderer" => renderer(value),
        "mtu" | "ipv6-mtu" => value.known_text()?.map_or(Ok(()), |text| {
            let is_number = text.trim_start().parse::<u32>().is_ok();
            if is_number { Ok(()) } else { Err(value.expected("a number")) }
        }),
        "gateway4" => parsed::<Ipv4Addr>(value, "an IPv4 address"),
        "gateway6" => parsed::<Ipv6Addr>(value, "an IPv6 address"),
        "addresses" => value.list()?.iter().try_for_each(address),
        "nameservers" => value.mapping()?.iter().try_for_each(|(key, value)| name_servers(key, value)),
        "routes" | "routing-policy" => value.list().map(|_| ()),
        "match" => value.mapping()?.iter().try_for_each(|(key, _)| {
            let known = ["driver", "macaddress", "name"];
            let name = key.text()?;
            if known.contains(&name) { Ok(()) } else { Err(unknown(key.line, name, &known)) }
        }),
        name if FLAGS.contains(&name) => match value.known_text()? {
            Some(text) if !BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(text)) => {
                Err(value.expected("true or false"))
            }
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// An address with the length of its prefix, perhaps with options.
fn address(node: &Node) -> Result<(), Fault> {
    let text = match &node.value {
        Value::Mapping(entries) => entries.first().map(|(key, _)| key.text()).transpose()?,
        _ => node.known_text()?,
    };
    let Some(text) = text else { return Ok(()) };
    let is_valid = text.split_once('/').is_some_and(|(address, length)| {
        let digits = length.trim_start();
        let end = digits.find(|next: char| !next.is_ascii_digit()).unwrap_or(digits.len());
        let length = digits[..end].parse::<u32>().unwrap_or_default();
        let most = if address.parse::<Ipv4Addr>().is_ok() { 32 } else { 128 };
        (most == 32 || address.parse::<Ipv6Addr>().is_ok()) && (1..=most).contains(&length)
    });
    if is_valid { Ok(()) } else { Err(node.expected("an address with the length of its prefix, such as 10.0.0.5/24")) }
}

fn name_servers(key: &Node, value: &Node) -> Result<(), Fault> {
    match key.text()? {
        "addresses" => value.list()?.iter().try_for_each(|address| {
            let text = address.known_text()?;
            let is_valid = text.is_none_or(|text| text.parse::<std::net::IpAddr>().is_ok());
            if is_valid { Ok(()) } else { Err(address.expected("an IP address")) }
        }),
        "search" => value.list().map(|_| ()),
        other => Err(unknown(key.line, other, &["addresses", "search"])),
    }
}

fn renderer(node: &Node) -> Result<(), Fault> {
    match node.known_text()? {
        Some(text) if !RENDERERS.contains(&text) => Err(node.expected("the renderer networkd or NetworkManager")),
        _ => Ok(()),
    }
}

fn parsed<T: std::str::FromStr>(node: &Node, what: &str) -> Result<(), Fault> {
    let text = node.known_text()?;
    if text.is_none_or(|text| text.parse::<T>().is_ok()) { Ok(()) } else { Err(node.expected(what)) }
}

/// The keys of a kind of definitions, or those of `network`.
fn keys(kind: &str) -> impl Iterator<Item = &'static str> {
    let line = KEYS.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(": "));
    line.unwrap_or_default().split(' ')
}

fn unknown(line: usize, key: &str, known: &[&str]) -> Fault {
    let hint = near(key, known.iter().copied()).first().map(|near| format!("; did you mean `{near}`?"));
    (line, format!("unknown key {key:?}{}", hint.unwrap_or_default()))
}

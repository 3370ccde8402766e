//! Settings of systemd's daemons, such as journald.conf(5), and of networks (systemd.network(5), systemd.netdev(5), systemd.link(5)).

use std::collections::BTreeSet;

use vmbake_common::spelling::near;

use super::super::accounts::Named;
use super::super::directories::id;
use super::super::{File, Problem};
use super::lexer;
use super::network::named_table;
use super::networks;
use super::numbers::integer;
use super::settings::{Specifiers, Table, Verdict};
use crate::unit_install::{Statement, statements};

/// Tables of settings as in [`Table`], each after a line with the end of the names of its files in braces. Printed by
/// `tools/unit_settings.py`.
const TABLES: &str = include_str!("daemons.txt");

/// Where the files are, as places of [`super::super::TABLE`].
pub(in super::super) const PLACES: [&str; 4] =
    ["systemd/**/*.conf", "systemd/network/*.link", "systemd/network/*.netdev", "systemd/network/*.network"];

/// Checks sections, settings and their values. Other files are left to their programs.
pub(in super::super) fn check(file: &File) -> Vec<Problem> {
    let Some(table) = table(file.path) else { return Vec::new() };
    let statements = match statements(file.bytes) {
        Ok(statements) => statements,
        Err((line, reason)) => return vec![Problem::error(line, format!("systemd stops reading the file: {reason}"))],
    };
    let mut found =
        if file.path.contains("/systemd/network/") { networks::faults(file, &statements) } else { Vec::new() };
    let (mut section, mut domains) = (None::<String>, BTreeSet::new());
    let is_known = |name: &str| table.sections().any(|known| known == name);
    for (line, statement) in statements {
        match statement {
            Statement::Header(name) => {
                if !is_known(&name) && !name.starts_with("X-") {
                    let near = near(&name, table.sections());
                    let hint = near.first().map(|near| format!("; did you mean [{near}]?")).unwrap_or_default();
                    found.push(Problem::error(line, format!("systemd ignores the unknown section [{name}]{hint}")));
                }
                section = Some(name);
            }
            Statement::Assignment(key, value) => match section.as_deref() {
                None => {
                    found.push(Problem::error(line, format!("systemd ignores {key}=, which is not in a section")));
                }
                Some(section) if is_known(section) => {
                    let problem = match table.verdict(section, &key, &value, Specifiers::No) {
                        Verdict::Valid => None,
                        Verdict::Obsolete(reason) => Some(Problem::error(line, reason).warning()),
                        Verdict::Ignored(reason) => Some(Problem::error(line, reason)),
                        Verdict::Unknown => Some(Problem::error(line, table.unknown(section, &key, found.len()))),
                    };
                    found.extend(problem);
                    if SENT_DOMAINS.contains(&section) && key == "Domains" {
                        found.extend(repeated_domain(&mut domains, &value).map(|name| {
                            let message = format!("systemd-networkd does not read the file: Domains= has {name} twice");
                            Problem::error(line, message)
                        }));
                    }
                }
                Some(_) => {}
            },
            Statement::Other(text) => {
                found.push(Problem::error(line, format!("systemd ignores {text:?}, which is not an assignment")));
            }
        }
    }
    found.sort_by_key(|problem| problem.line);
    found
}

/// Sections whose search domains are those of router advertisements.
const SENT_DOMAINS: [&str; 2] = ["IPv6PrefixDelegation", "IPv6SendRA"];

/// A name that `Domains=` has a second time. An empty value takes back the earlier ones.
fn repeated_domain(names: &mut BTreeSet<String>, value: &str) -> Option<String> {
    if value.is_empty() {
        names.clear();
    }
    let words = lexer::plain(value).unwrap_or_default().into_iter();
    words.filter(|word| !names.insert(word.clone())).last()
}

/// The time zones that a file of a network names, with their lines.
pub fn network_zones(path: &str, text: &str) -> Vec<(usize, String)> {
    let is_network = path.contains("/systemd/network/") && [".network", ".conf"].iter().any(|end| path.ends_with(end));
    let zones = if is_network { values(text, &[("DHCPServer", "Timezone")]) } else { Vec::new() };
    zones.into_iter().filter(|(_, zone)| !zone.is_empty()).collect()
}

/// The users in routing policy rules, except ids, which need no account.
pub(in super::super) fn users(text: &str) -> Vec<Named> {
    let is_ids = |value: &str| value.split('-').all(|number| id(number).is_some());
    let users = values(text, &[("RoutingPolicyRule", "User")]).into_iter();
    users.filter(|(_, user)| !user.is_empty() && !is_ids(user)).map(|(line, user)| (line, "user", user)).collect()
}

/// Settings of networks that name a routing table.
const ROUTE_TABLES: [(&str, &str); 8] = [
    ("DHCP", "RouteTable"),
    ("DHCPv4", "RouteTable"),
    ("IPv6AcceptRA", "RouteTable"),
    ("Route", "Table"),
    ("RoutingPolicyRule", "Table"),
    ("VRF", "Table"),
    ("WireGuard", "RouteTable"),
    ("WireGuardPeer", "RouteTable"),
];

/// Values of these settings that are keywords of systemd.
const KEYWORDS: [&str; 7] = ["", "default", "local", "main", "off", "no", "false"];

/// The routing tables that a file of a network names, with their lines. networkd.conf(5) defines them.
pub fn route_tables(path: &str, text: &str) -> Vec<(usize, String)> {
    let is_network =
        path.contains("/systemd/network/") && [".network", ".netdev", ".conf"].iter().any(|end| path.ends_with(end));
    if !is_network {
        return Vec::new();
    }
    let named = values(text, &ROUTE_TABLES).into_iter();
    named.filter(|(_, name)| integer(name).is_none() && !KEYWORDS.contains(&name.as_str())).collect()
}

/// The names of routing tables that a file of networkd.conf(5) defines.
pub fn named_route_tables(path: &str, text: &str) -> Vec<String> {
    let is_settings = path.ends_with("/systemd/networkd.conf") || path.contains("/systemd/networkd.conf.d/");
    let values = if is_settings { values(text, &[("Network", "RouteTable")]) } else { Vec::new() };
    let words = values.iter().filter_map(|(_, value)| lexer::plain(value)).flatten();
    words.filter_map(|word| Some(named_table(&word)?.to_owned())).collect()
}

/// The values of settings, with their lines.
fn values(text: &str, settings: &[(&str, &str)]) -> Vec<(usize, String)> {
    let (mut found, mut section) = (Vec::new(), String::new());
    for (line, statement) in statements(text.as_bytes()).unwrap_or_default() {
        match statement {
            Statement::Header(name) => section = name,
            Statement::Assignment(key, value) if settings.contains(&(&section, &key)) => found.push((line, value)),
            _ => {}
        }
    }
    found
}

/// The settings that a file, or the file of a drop-in, may have.
fn table(path: &str) -> Option<Table> {
    let (_, rest) = path.split_once("/systemd/")?;
    let (is_network, rest) = rest.strip_prefix("network/").map_or((false, rest), |rest| (true, rest));
    let name = match rest.split_once('/') {
        None => rest,
        Some((dir, name)) if !name.contains('/') => dir.strip_suffix(".d")?,
        Some(_) => return None,
    };
    TABLES.split("\n{").skip(1).find_map(|table| {
        let (end, settings) = table.split_once("}\n")?;
        let is_of = if end.starts_with('.') { is_network && name.ends_with(end) } else { !is_network && name == end };
        is_of.then(|| Table::read(settings))
    })
}

//! Network: DHCP on an interface with any name and hardware address.
//!
//! Checks the configuration below `/etc` of systemd-networkd, netplan, ifupdown and NetworkManager. Without
//! any, cloud-init writes one on boot.

use std::collections::BTreeMap;

use super::cloud_init::configuration;
use super::subject::Subject;
use super::{CheckResult, yaml};

/// A directory, suffixes of file names, and their parser.
type ConfigDirectory = (&'static str, &'static [&'static str], fn(&str) -> Found);

const CONFIG_DIRECTORIES: [ConfigDirectory; 4] = [
    ("/etc/systemd/network", &[".network", ".link"], networkd),
    ("/etc/netplan", &[".yaml"], netplan),
    ("/etc/network/interfaces.d", &[""], ifupdown),
    ("/etc/NetworkManager/system-connections", &[".nmconnection"], network_manager),
];

/// Relevant settings of a file.
#[derive(Debug, Default, PartialEq, Eq)]
struct Found {
    /// Hardware address that it matches or sets.
    mac: Option<String>,
    /// Interface name that it matches.
    name: Option<String>,
    dhcp: bool,
    /// Parse error.
    fault: Option<String>,
}

pub(super) fn check(subject: &Subject<'_>) -> CheckResult {
    let mut files: Vec<(String, Found)> = Vec::new();
    for (dir, ends, read) in CONFIG_DIRECTORIES {
        files.extend(subject.texts(dir, ends).into_iter().map(|(path, text)| (path, read(&text))));
    }
    let path = "/etc/network/interfaces";
    files.extend(subject.text(path).map(|text| (path.to_owned(), ifupdown(&text))));
    for (path, found) in &files {
        if let Some(fault) = &found.fault {
            return Err(format!("{path}: cannot parse YAML: {fault}"));
        }
        if let Some(mac) = &found.mac {
            return Err(format!("{path} is for the hardware address {mac}"));
        }
        if let Some(name) = &found.name {
            return Err(format!("{path} is for an interface called {name}"));
        }
    }
    if let Some((path, _)) = files.iter().find(|(_, found)| found.dhcp) {
        return Ok(format!("{path} enables DHCP"));
    }
    let off = configuration(subject).into_iter().rev().find(|(_, text)| turns_off(text));
    let off_by_argument =
        subject.arguments().is_ok_and(|mut words| words.any(|word| word == "network-config=disabled"));
    match off {
        Some((path, _)) => Err(format!("DHCP is not enabled, and {path} keeps cloud-init from enabling it")),
        None if off_by_argument => {
            Err("DHCP is not enabled, and the kernel command line keeps cloud-init from enabling it".to_owned())
        }
        None => Ok("cloud-init enables DHCP".to_owned()),
    }
}

/// Whether the cloud-init configuration has `network: {config: disabled}`.
fn turns_off(text: &str) -> bool {
    let is_off = |(path, value): &(Vec<String>, String)| path[..] == ["network", "config"] && value == "disabled";
    yaml::values(text).is_ok_and(|values| values.iter().any(is_off))
}

/// Whether it is the name of a single hardware interface.
fn is_fixed(name: &str) -> bool {
    name != "lo" && !name.is_empty() && !name.contains(['*', '?', '[', '!'])
}

/// Parses lines `key=value`, without comments.
fn assignments(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with(['#', ';']));
    lines.filter_map(|line| line.split_once('=')).map(|(key, value)| (key.trim(), value.trim()))
}

/// systemd.network(5), systemd.link(5).
fn networkd(text: &str) -> Found {
    let mut found = Found::default();
    for (key, value) in assignments(text) {
        match key {
            "MACAddress" | "PermanentMACAddress" if !value.is_empty() => found.mac = Some(value.to_owned()),
            "Name" | "OriginalName" => {
                let fixed = value.split_whitespace().find(|name| is_fixed(name));
                found.name = found.name.or(fixed.map(str::to_owned));
            }
            "DHCP" => found.dhcp |= ["yes", "true", "ipv4", "1", "on"].contains(&value),
            _ => {}
        }
    }
    found
}

/// netplan, "YAML configuration": an id of `ethernets` is the name of an interface unless something is to `match`.
fn netplan(text: &str) -> Found {
    let mut found = Found::default();
    let values = match yaml::values(text) {
        Ok(values) => values,
        Err(fault) => return Found { fault: Some(fault), ..found },
    };
    // Whether the id has a `match`.
    let mut matching: BTreeMap<&str, bool> = BTreeMap::new();
    for (path, value) in &values {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        if let ["network", "ethernets", id, rest @ ..] = &path[..] {
            *matching.entry(id).or_default() |= rest.first() == Some(&"match");
        }
        match &path[..] {
            [.., "macaddress"] => found.mac = Some(value.clone()),
            [.., "set-name"] => found.name = Some(value.clone()),
            [.., "match", "name"] if is_fixed(value) => found.name = Some(value.clone()),
            [.., "dhcp4"] => found.dhcp |= ["true", "yes", "on", "y"].contains(&&*value.to_ascii_lowercase()),
            _ => {}
        }
    }
    let fixed = matching.into_iter().find(|(id, matches)| !matches && is_fixed(id)).map(|(id, _)| id.to_owned());
    found.name = found.name.or(fixed);
    found
}

/// interfaces(5).
fn ifupdown(text: &str) -> Found {
    let mut found = Found::default();
    for line in text.lines().map(str::trim).filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["iface", name, _, method, ..] => {
                found.dhcp |= method == "dhcp";
                found.name = found.name.or((is_fixed(name) && !name.contains('/')).then(|| name.to_owned()));
            }
            ["hwaddress", .., mac] => found.mac = Some(mac.to_owned()),
            _ => {}
        }
    }
    found
}

/// nm-settings-keyfile(5).
fn network_manager(text: &str) -> Found {
    let mut found = Found::default();
    for (key, value) in assignments(text) {
        match key {
            "mac-address" | "cloned-mac-address" if value.contains(':') => found.mac = Some(value.to_owned()),
            "interface-name" => found.name = is_fixed(value).then(|| value.to_owned()),
            "method" => found.dhcp |= value == "auto",
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_what_they_fix() {
        type Case = (fn(&str) -> Found, &'static str, Option<&'static str>, Option<&'static str>, bool);
        let cases: [Case; 19] = [
            (networkd, "[Match]\nName=en*\n[Network]\nDHCP=yes\n", None, None, true),
            (networkd, "[Match]\nName=eth0\n", None, Some("eth0"), false),
            (networkd, "[Match]\nName=en* eth0\n", None, Some("eth0"), false),
            (networkd, "[Match]\nType=ether\n#Name=eth0\n[Network]\nDHCP=no\n", None, None, false),
            (networkd, "[Match]\nMACAddress = 02:00:00:00:00:01\n", Some("02:00:00:00:00:01"), None, false),
            (
                netplan,
                "network:\n  ethernets:\n    all:\n      match:\n        name: en*\n      dhcp4: true\n",
                None,
                None,
                true,
            ),
            (netplan, "network:\n  ethernets:\n    ens5:\n      dhcp4: true\n", None, Some("ens5"), true),
            (
                netplan,
                "network:\n  ethernets:\n    a:\n      match: {name: 'e*'}\n    ens6:\n      dhcp4: no\n  version: 2\n",
                None,
                Some("ens6"),
                false,
            ),
            (
                netplan,
                "network:\n  ethernets:\n    a:\n      match:\n        macaddress: '02:00:00:00:00:01'\n",
                Some("02:00:00:00:00:01"),
                None,
                false,
            ),
            (
                netplan,
                "network:\n  version: 2\n  ethernets:\n    a:\n      match:\n        driver: ena\n      set-name: eth0\n",
                None,
                Some("eth0"),
                false,
            ),
            (netplan, "network: {version: 2, ethernets: {ens5: {dhcp4: true}}}", None, Some("ens5"), true),
            (netplan, "network: {ethernets: {all: {match: {name: \"e*\"}, dhcp4: yes}}}", None, None, true),
            (
                netplan,
                "{network: {ethernets: {a: {match: {}, macaddress: '02:00:00:00:00:01'}}}}",
                Some("02:00:00:00:00:01"),
                None,
                false,
            ),
            (netplan, "network:\n ethernets:\n  ? ens7\n  : dhcp4: \"true\"\n", None, Some("ens7"), true),
            (ifupdown, "auto lo\niface lo inet loopback\n", None, None, false),
            (ifupdown, "auto eth0\niface eth0 inet dhcp\n", None, Some("eth0"), true),
            (
                ifupdown,
                "iface en* inet dhcp\n hwaddress ether 02:00:00:00:00:01\n",
                Some("02:00:00:00:00:01"),
                None,
                true,
            ),
            (network_manager, "[connection]\ninterface-name=ens5\n[ipv4]\nmethod=auto\n", None, Some("ens5"), true),
            (network_manager, "[ethernet]\nmac-address=02:00:00:00:00:01\n", Some("02:00:00:00:00:01"), None, false),
        ];
        for (read, text, mac, name, dhcp) in cases {
            let expected = Found { mac: mac.map(str::to_owned), name: name.map(str::to_owned), dhcp, fault: None };
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn invalid_yaml_is_reported() {
        for text in ["network: {ethernets: {", "a: &x [*x]\n", "network: a: b"] {
            assert!(netplan(text).fault.is_some(), "{text}");
        }
    }

    #[test]
    fn settings_that_turn_the_network_off_are_seen() {
        for text in
            ["network: {config: disabled}", "network:\n  config: disabled\n", "a: b\nnetwork: { config: \"disabled\" }"]
        {
            assert!(turns_off(text), "{text}");
        }
        for text in
            ["# network: {config: disabled}", "network:\n  version: 2\n", "", "network:\n  # config: disabled\n"]
        {
            assert!(!turns_off(text), "{text}");
        }
    }
}

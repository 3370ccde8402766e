//! Values that systemd accepts, but warns about, reads differently, or fails with later.

use super::super::directories::microseconds;
use super::network::{has_no_port, is_unmasked};
use super::numbers::integer;
use super::words::{BOOLEANS, is_true};

/// The failure that an accepted value causes later.
pub(super) fn failure(section: &str, key: &str, value: &str) -> Option<String> {
    match key {
        "Domains" if section.starts_with("IPv6") && value.contains("..") => {
            Some(format!("systemd-networkd cannot configure an interface with {key}={value}"))
        }
        "CPUSchedulingPolicy" | "IOSchedulingClass" if is_read(key, value) => {
            Some(format!("a service with {key}={value} does not start, as the kernel refuses the number"))
        }
        "Endpoint" if has_no_port(value) => {
            Some(format!("systemd reads {key}={value} as port 0, at which no peer can be reached"))
        }
        _ => None,
    }
}

/// What systemd warns about in a value that it accepts.
pub(super) fn warning(section: &str, key: &str, value: &str) -> Option<String> {
    let reason = match (section, key) {
        (_, "StandardOutput" | "StandardError") if ["syslog", "syslog+console"].contains(&value) => {
            format!("write {}", value.replace("syslog", "journal"))
        }
        (_, "KillMode") if value == "none" => "processes may remain when the unit stops".to_owned(),
        (_, "CPUShares" | "StartupCPUShares") => "use CPUWeight=".to_owned(),
        (_, "MemoryLimit") => "use MemoryMax=".to_owned(),
        (_, key) if key.starts_with("BlockIO") || key.starts_with("StartupBlockIO") => {
            "use settings such as IOWeight=".to_owned()
        }
        ("Network" | "Address", "Address" | "Peer") if !value.is_empty() && !value.contains('/') => {
            format!("it means {value}/{}; write the prefix length", if value.contains(':') { 128 } else { 32 })
        }
        ("Address", "DuplicateAddressDetection") if is_boolean(value) => match is_true(value) {
            true => "it means none; write none".to_owned(),
            false => "it means both; write both".to_owned(),
        },
        ("Network", "IPMasquerade") if is_true(value) => "it means ipv4; write ipv4 or both".to_owned(),
        ("Network", "DHCP") => {
            let words = [("both", "yes"), ("none", "no"), ("v4", "ipv4"), ("v6", "ipv6")];
            let word = words.iter().find(|(old, _)| *old == value)?.1;
            format!("it is deprecated; write {word}")
        }
        ("Network", "IPv4LL") if !value.is_empty() => "it is deprecated; use LinkLocalAddressing=".to_owned(),
        ("WireGuardPeer", "AllowedIPs") if value.split([',', ' ']).any(is_unmasked) => {
            "it clears the host bits".to_owned()
        }
        ("IPv6SendRA", "RouterLifetimeSec")
            if microseconds(value, "s").is_some_and(|time| 0.0 < time && time < 4e6) =>
        {
            "it uses 4s, the shortest time".to_owned()
        }
        _ => return None,
    };
    Some(format!("systemd warns about {key}={value}: {reason}"))
}

/// Whether systemd accepts the number of a class or policy.
fn is_read(key: &str, value: &str) -> bool {
    let most = if key == "IOSchedulingClass" { 8 } else { i64::from(i32::MAX) };
    integer(value).is_some_and(|number| (0..=most).contains(&number))
}

fn is_boolean(value: &str) -> bool {
    BOOLEANS.iter().any(|word| word.eq_ignore_ascii_case(value))
}

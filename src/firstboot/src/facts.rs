//! Facts about the machine, read from files below a root, never from a clock or the network.
//!
//! A missing fact (no manifest, a network that is not up yet) is `null`, not an error.
//! Kernel tables: `/proc/net/route` has addresses as hexadecimal words in host byte order (little-endian on both
//! architectures), `/proc/net/ipv6_route` and `/proc/net/if_inet6` in network byte order.

use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, Ipv6Addr};

use serde_json::{Value, json};

use crate::error::Error;
use crate::json;
use crate::root::Root;

/// The manifest of the image.
const MANIFEST: &str = "/opt/podplane/share/vmconfig-installed.json";

/// Maximum length of a kernel table; a longer routing table is a null fact.
const MAX_TABLE_BYTES: u64 = 4 << 20;

/// `RTF_UP` of linux/route.h.
const RTF_UP: u32 = 0x1;
/// `RTF_REJECT` of linux/route.h: an unreachable route, whose device is meaningless.
const RTF_REJECT: u32 = 0x200;
/// `IFA_F_TEMPORARY | IFA_F_DADFAILED | IFA_F_DEPRECATED | IFA_F_TENTATIVE` of linux/if_addr.h.
const IFA_F_UNFIT: u32 = 0x01 | 0x08 | 0x20 | 0x40;
/// `IPV6_ADDR_LINKLOCAL | IPV6_ADDR_LOOPBACK`: scopes that are unreachable from other networks.
const SCOPE_NARROW: u32 = 0x20 | 0x10;

/// Facts about the machine; `None` if unknown.
pub struct Facts {
    /// `{id, kind, version}` of the image's manifest.
    pub image: Value,
    /// Name of the host.
    pub hostname: Option<String>,
    /// Release of the kernel.
    pub kernel: Option<String>,
    /// The machine ID (machine-id(5)).
    pub machine_id: Option<String>,
    /// Network device of the default route.
    pub device: Option<String>,
    /// Its IPv4 address.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 address with more than link scope.
    pub ipv6: Option<Ipv6Addr>,
}

impl Facts {
    /// Reads the facts below `root`.
    pub fn gather(root: &Root) -> Result<Self, Error> {
        let route = table(root, "/proc/net/route")?;
        let device = default_device(&route).or(default_device6(&table(root, "/proc/net/ipv6_route")?));
        let trie = table(root, "/proc/net/fib_trie")?;
        let inet6 = table(root, "/proc/net/if_inet6")?;
        let is_id = |id: &String| id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(Self {
            image: image(root)?,
            hostname: word(root, "/proc/sys/kernel/hostname")?,
            kernel: word(root, "/proc/sys/kernel/osrelease")?,
            machine_id: word(root, "/etc/machine-id")?.filter(is_id),
            ipv4: device.as_deref().and_then(|device| ipv4(device, &route, &trie)),
            ipv6: device.as_deref().and_then(|device| ipv6(device, &inet6)),
            device,
        })
    }

    /// As JSON for the record.
    pub fn json(&self) -> Value {
        json!({
            "schema": 2,
            "image": self.image,
            "hostname": self.hostname,
            "kernel": self.kernel,
            "machine_id": self.machine_id,
            "network": {
                "device": self.device,
                "ipv4": self.ipv4.map(|address| address.to_string()),
                "ipv6": self.ipv6.map(|address| address.to_string()),
            },
        })
    }
}

/// The ID of the image below `root`; an error if it was not baked.
pub fn installed(root: &Root) -> Result<String, Error> {
    image(root)?["id"].as_str().map(str::to_owned).ok_or(Error::Corrupt {
        path: root.shown(MANIFEST),
        expected: "the manifest of the image",
        found: "none".to_owned(),
    })
}

/// `{id, kind, version}` of the image's manifest; the ID is `<kind>.<os>.<arch>`.
fn image(root: &Root) -> Result<Value, Error> {
    let Some(manifest) = json::object(root, MANIFEST)? else {
        return Ok(json!({ "id": null, "kind": null, "version": null }));
    };
    let vmconfig = manifest.get("vmconfig").unwrap_or(&manifest);
    let text = |pointer: &str| vmconfig.pointer(pointer).and_then(Value::as_str);
    let id = match (text("/kind"), text("/os/name"), text("/os/arch")) {
        (Some(kind), Some(os), Some(arch)) => Some(format!("{kind}.{os}.{arch}")),
        _ => None,
    };
    Ok(json!({ "id": id, "kind": text("/kind"), "version": text("/version") }))
}

fn default_device(route: &str) -> Option<String> {
    let routes = route.lines().skip(1).filter_map(|line| {
        let field: Vec<&str> = line.split_whitespace().collect();
        let [device, "00000000", _, flags, _, _, metric, "00000000", ..] = field[..] else { return None };
        usable(flags)?;
        Some((metric.parse::<u32>().ok()?, device))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, device)| device.to_string())
}

fn default_device6(route: &str) -> Option<String> {
    let routes = route.lines().filter_map(|line| {
        let field: Vec<&str> = line.split_whitespace().collect();
        let [destination, "00", _, _, _, metric, _, _, flags, device] = field[..] else { return None };
        usable(flags)?;
        let any = device != "lo" && destination.bytes().all(|byte| byte == b'0');
        any.then_some((u32::from_str_radix(metric, 16).ok()?, device))
    });
    routes.min_by_key(|(metric, _)| *metric).map(|(_, device)| device.to_string())
}

fn usable(flags: &str) -> Option<()> {
    let flags = u32::from_str_radix(flags, 16).ok()?;
    (flags & RTF_UP != 0 && flags & RTF_REJECT == 0).then_some(())
}

/// The local address in a network that is connected to `device`. The trie does not name devices: if no address is in such
/// a network (a /32 behind a routed gateway), a lone local address is the device's.
fn ipv4(device: &str, route: &str, trie: &str) -> Option<Ipv4Addr> {
    let networks: Vec<(u32, u32)> = route
        .lines()
        .skip(1)
        .filter_map(|line| {
            let field: Vec<&str> = line.split_whitespace().collect();
            let [name, network, "00000000", flags, _, _, _, mask, ..] = field[..] else { return None };
            usable(flags)?;
            let mask = hexadecimal(mask)?;
            (name == device && mask != 0).then_some((hexadecimal(network)?, mask))
        })
        .collect();
    let local = local_addresses(trie);
    let connected = |address: &&Ipv4Addr| networks.iter().any(|(net, mask)| u32::from(**address) & mask == *net);
    local.iter().find(connected).or(if let [lone] = &local[..] { Some(lone) } else { None }).copied()
}

fn hexadecimal(word: &str) -> Option<u32> {
    u32::from_str_radix(word, 16).ok().map(u32::swap_bytes)
}

fn local_addresses(trie: &str) -> Vec<Ipv4Addr> {
    let mut found = Vec::new();
    let mut leaf = None;
    for line in trie.lines().map(str::trim) {
        if let Some(address) = line.strip_prefix("|-- ") {
            leaf = address.parse::<Ipv4Addr>().ok();
        } else if line == "/32 host LOCAL" {
            let address = leaf.filter(|address| !address.is_loopback());
            // Insertion sort: std's sort would add kilobytes to the program.
            if let Some((at, address)) = address.and_then(|one| Some((found.binary_search(&one).err()?, one))) {
                found.insert(at, address);
            }
        }
    }
    found
}

/// The lowest permanent address with more than link scope: the kernel lists them in the order of a salted hash.
fn ipv6(device: &str, inet6: &str) -> Option<Ipv6Addr> {
    let addresses = inet6.lines().filter_map(|line| {
        let field: Vec<&str> = line.split_whitespace().collect();
        let [address, _, _, scope, flags, name] = field[..] else { return None };
        let scope = u32::from_str_radix(scope, 16).ok()?;
        let flags = u32::from_str_radix(flags, 16).ok()?;
        let fit = name == device && scope & SCOPE_NARROW == 0 && flags & IFA_F_UNFIT == 0 && address.len() == 32;
        fit.then_some(u128::from_str_radix(address, 16).ok()?)
    });
    addresses.min().map(Ipv6Addr::from)
}

/// The line of a small file; `None` if missing or empty.
pub(crate) fn word(root: &Root, name: &str) -> Result<Option<String>, Error> {
    let text = table(root, name)?;
    let text = text.trim();
    Ok((!text.is_empty()).then(|| text.to_string()))
}

/// The text of a kernel table; empty if the kernel has none (IPv6 disabled). `/proc/net` is a symbolic link.
pub(crate) fn table(root: &Root, name: &str) -> Result<String, Error> {
    let path = root.shown(name);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(String::new()),
        Err(error) => return Err(Error::io("open", &path)(error)),
    };
    let mut bytes = Vec::new();
    file.take(MAX_TABLE_BYTES).read_to_end(&mut bytes).map_err(Error::io("read", &path))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROUTE: &str = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n\
        ens4\t00000000\t0102000A\t0003\t0\t0\t200\t00000000\t0\t0\t0\n\
        ens3\t00000000\t0202000A\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
        lo\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0\n\
        ens3\t0002000A\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n";
    const TRIE: &str = "Main:\n  |-- 10.0.2.0\n     /24 link UNICAST\nLocal:\n  |-- 10.0.2.15\n     /32 host LOCAL\n  \
        |-- 10.0.2.255\n     /32 link BROADCAST\n  |-- 127.0.0.1\n     /32 host LOCAL\n  |-- 9.9.9.9\n     /32 host LOCAL\n";

    #[test]
    fn default_route_is_the_lowest_metric_that_is_up() {
        assert_eq!(default_device(ROUTE).as_deref(), Some("ens3"));
        assert_eq!(default_device("Iface\nens3\tgarbage\n"), None);
        let zero = "0".repeat(32);
        let routes = format!(
            "{zero} 00 {zero} 00 {zero} ffffffff 1 0 00200200 lo\n{zero} 00 {zero} 00 {zero} 00000400 1 0 00000003 ens5\n"
        );
        assert_eq!(default_device6(&routes).as_deref(), Some("ens5"));
    }

    #[test]
    fn ipv4_is_in_a_connected_network_or_alone() {
        assert_eq!(ipv4("ens3", ROUTE, TRIE), Some(Ipv4Addr::new(10, 0, 2, 15)));
        assert_eq!(ipv4("ens4", ROUTE, TRIE), None);
        let lone = "|-- 10.1.0.2\n/32 host LOCAL\n|-- 127.0.0.1\n/32 host LOCAL\n";
        assert_eq!(ipv4("ens4", ROUTE, lone), Some(Ipv4Addr::new(10, 1, 0, 2)));
    }

    #[test]
    fn ipv6_skips_link_local_temporary_and_other_devices() {
        let table = "fe800000000000000000000000000001 02 40 20 80 ens3\n\
            20010db8000000000000000000000009 02 40 00 01 ens3\n\
            20010db8000000000000000000000003 02 40 00 80 ens3\n\
            20010db8000000000000000000000002 02 40 00 40 ens3\n\
            20010db8000000000000000000000001 03 40 00 80 ens4\n";
        assert_eq!(ipv6("ens3", table).map(|a| a.to_string()).as_deref(), Some("2001:db8::3"));
        assert_eq!(ipv6("lo", table), None);
    }
}

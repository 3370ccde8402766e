//! Settings that are missing, so that systemd ignores a file or a section of it: systemd.network(5), systemd.netdev(5) and
//! systemd.link(5).

use super::super::{File, Problem};
use crate::unit_install::Statement;

/// Sections, and what each needs: one key of each list.
const NEEDED: [(&str, &[&[&str]]); 8] = [
    ("Address", &[&["Address", "Peer"]]),
    ("BridgeMDB", &[&["MulticastGroupAddress"]]),
    ("DHCPServerStaticLease", &[&["MACAddress"], &["Address"]]),
    ("IPv6AddressLabel", &[&["Prefix"]]),
    ("Neighbor", &[&["Address"], &["LinkLayerAddress", "MACAddress"]]),
    ("Route", &[&["Gateway", "Destination", "Source", "PreferredSource"]]),
    ("SR-IOV", &[&["VirtualFunction"]]),
    ("WireGuardPeer", &[&["PublicKey", "PublicKeyFile"]]),
];

/// Kinds of devices, each with the sections that only some kinds have.
const OWN: [(&str, &[&str]); 33] = [
    ("bareudp", &["BareUDP"]),
    ("batadv", &["BatmanAdvanced"]),
    ("bond", &["Bond"]),
    ("bridge", &["Bridge"]),
    ("erspan", &["Tunnel"]),
    ("fou", &["FooOverUDP"]),
    ("geneve", &["GENEVE"]),
    ("gre", &["Tunnel"]),
    ("gretap", &["Tunnel"]),
    ("ip6gre", &["Tunnel"]),
    ("ip6gretap", &["Tunnel"]),
    ("ip6tnl", &["Tunnel"]),
    ("ipip", &["Tunnel"]),
    ("ipoib", &["IPoIB"]),
    ("ipvlan", &["IPVLAN"]),
    ("ipvtap", &["IPVTAP"]),
    ("l2tp", &["L2TP", "L2TPSession"]),
    ("macsec", &["MACsec", "MACsecReceiveChannel", "MACsecTransmitAssociation", "MACsecReceiveAssociation"]),
    ("macvlan", &["MACVLAN"]),
    ("macvtap", &["MACVTAP"]),
    ("sit", &["Tunnel"]),
    ("tap", &["Tap"]),
    ("tun", &["Tun"]),
    ("veth", &["Peer"]),
    ("vlan", &["VLAN"]),
    ("vrf", &["VRF"]),
    ("vti", &["Tunnel"]),
    ("vti6", &["Tunnel"]),
    ("vxcan", &["VXCAN"]),
    ("vxlan", &["VXLAN"]),
    ("wireguard", &["WireGuard", "WireGuardPeer"]),
    ("wlan", &["WLAN"]),
    ("xfrm", &["Xfrm"]),
];

/// A section with its settings that are not empty.
struct Section<'a> {
    line: usize,
    name: &'a str,
    keys: Vec<(&'a str, &'a str)>,
    /// Whether it has any assignment: systemd ignores other sections without a message.
    is_used: bool,
}

/// What is wrong with the sections of a file. An empty file is valid: it masks another one of its name.
pub(super) fn faults(file: &File, statements: &[(usize, Statement)]) -> Vec<Problem> {
    let sections = sections(statements);
    let end = file.path.rsplit('.').next().unwrap_or_default();
    let is_drop_in = end == "conf";
    let mut found: Vec<Problem> = sections.iter().filter_map(missing).collect();
    if is_drop_in || file.bytes.is_empty() || file.has_drop_ins {
        return found;
    }
    let of = |section: &str, key: &str| {
        let named = sections.iter().filter(|known| known.name == section).flat_map(|section| &section.keys);
        named.into_iter().rfind(|(known, _)| key.is_empty() || *known == key).map(|(_, value)| *value)
    };
    match end {
        "link" | "network" if of("Match", "").is_none() => {
            let (program, key) = if end == "link" { ("udevd", "OriginalName") } else { ("systemd-networkd", "Name") };
            let message = format!("is ignored by {program}: [Match] has no setting; {key}=* matches all interfaces");
            found.push(Problem::of_file(message));
        }
        "netdev" => match (of("NetDev", "Kind"), of("NetDev", "Name")) {
            (Some(kind), Some(_)) => found.extend(sections.iter().filter_map(|section| foreign(section, kind))),
            (kind, _) => {
                let key = if kind.is_none() { "Kind" } else { "Name" };
                let message = format!("is ignored by systemd-networkd: [NetDev] has no {key}=");
                found.push(Problem::of_file(message));
            }
        },
        _ => {}
    }
    found
}

fn sections(statements: &[(usize, Statement)]) -> Vec<Section<'_>> {
    let mut sections = Vec::<Section>::new();
    for (line, statement) in statements {
        match (statement, sections.last_mut()) {
            (Statement::Header(name), _) => {
                sections.push(Section { line: *line, name, keys: Vec::new(), is_used: false })
            }
            (Statement::Assignment(key, value), Some(section)) => {
                section.is_used = true;
                // An empty value takes back the earlier ones.
                match value.is_empty() {
                    true => section.keys.retain(|(known, _)| known != key),
                    false => section.keys.push((key, value)),
                }
            }
            _ => {}
        }
    }
    sections
}

/// What a section lacks, without which systemd ignores it.
fn missing(section: &Section) -> Option<Problem> {
    let (_, needed) = NEEDED.iter().find(|(name, _)| *name == section.name).filter(|_| section.is_used)?;
    let has = |keys: &&&[&str]| section.keys.iter().any(|(key, _)| keys.contains(key));
    let keys = needed.iter().find(|keys| !has(keys))?;
    let names: Vec<String> = keys.iter().map(|key| format!("{key}=")).collect();
    let message = format!("systemd ignores [{}], which has no {}", section.name, names.join(" or "));
    Some(Problem::error(section.line, message))
}

/// A section that is not one of the kind of a device.
fn foreign(section: &Section, kind: &str) -> Option<Problem> {
    let own = OWN.iter().find(|(known, _)| *known == kind).map_or(&[][..], |(_, own)| own);
    let name = section.name;
    let is_of_another = OWN.iter().any(|(_, own)| own.contains(&name));
    let is_foreign = is_of_another && !own.contains(&name);
    is_foreign.then(|| {
        Problem::error(section.line, format!("systemd ignores [{name}], which devices of kind {kind} do not have"))
    })
}

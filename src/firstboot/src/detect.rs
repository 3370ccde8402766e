//! Facts for the templates of `detect`.

use crate::error::Error;
use crate::facts::{self, Facts};
use crate::machine;
use crate::root::Root;
use crate::settings::Variables;

pub const NAMES: [&str; 7] = ["kind", "device", "ipv4", "ipv6", "hostname", "fqdn", "instance_id"];

/// Their values; empty if unknown.
pub fn variables(root: &Root) -> Result<Variables, Error> {
    let facts = Facts::gather(root)?;
    let hostname = facts.hostname.unwrap_or_default();
    let values = [
        facts.image["kind"].as_str().unwrap_or_default().to_owned(),
        facts.device.unwrap_or_default(),
        facts.ipv4.map(|address| address.to_string()).unwrap_or_default(),
        facts.ipv6.map(|address| address.to_string()).unwrap_or_default(),
        hostname.clone(),
        full_name(root, &hostname)?,
        facts::word(root, "/var/lib/cloud/data/instance-id")?.unwrap_or_default(),
    ];
    let mut variables = Variables::new();
    variables.extend(NAMES.iter().map(|name| (*name).to_owned()).zip(values));
    Ok(variables)
}

/// The FQDN as hostname(1) finds it, else with the first search domain, else with `localdomain`.
fn full_name(root: &Root, hostname: &str) -> Result<String, Error> {
    if hostname.is_empty() || hostname.contains('.') {
        return Ok(hostname.to_owned());
    }
    let asked = if root.is_system() { canonical_name() } else { None };
    let domain = || -> Result<String, Error> {
        let text = facts::table(root, "/etc/resolv.conf")?;
        let words = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let mut domains = words.filter(|words| matches!(words.first(), Some(&"search" | &"domain")));
        let first =
            domains.next_back().and_then(|words| words.get(1).map(|domain| domain.trim_matches('.').to_owned()));
        Ok(first.filter(|domain| !domain.is_empty()).unwrap_or_else(|| "localdomain".to_owned()))
    };
    asked.map_or_else(|| domain().map(|domain| format!("{hostname}.{domain}")), Ok)
}

/// The result of the system's resolver, if it has a domain.
fn canonical_name() -> Option<String> {
    let output = machine::run_with_timeout(machine::PATIENCE, &["/usr/bin/hostname", "-f"]).ok()?;
    let name = String::from_utf8(output.stdout).ok()?.trim().to_owned();
    (output.status.success() && name.contains('.')).then_some(name)
}

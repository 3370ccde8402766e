//! Names of kernel parameters, as systemd-sysctl(8) compares them, and assignments of files in `sysctl.d`.

use std::collections::BTreeMap;

use crate::Schema;
use crate::findings::Findings;
use crate::position::child;

/// An assignment in a file of sysctl.d(5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SysctlLine {
    /// Counted from 1.
    pub line: usize,
    /// As returned by [`sysctl_name`].
    pub name: String,
    pub value: String,
}

/// The one spelling of a name: the first separator decides whether dots or slashes separate its parts. Only a name with dots in its parts has
/// slashes between them.
pub fn sysctl_name(key: &str) -> String {
    let path: String = match key.find(['/', '.']).and_then(|at| key.get(at..=at)) {
        Some(".") => key.chars().map(swap_separators).collect(),
        _ => key.to_owned(),
    };
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    parts.join(if parts.iter().any(|part| part.contains('.')) { "/" } else { "." })
}

fn swap_separators(char: char) -> char {
    match char {
        '.' => '/',
        '/' => '.',
        other => other,
    }
}

/// The assignments of a file. Lines without a value only exclude a parameter from patterns.
pub fn sysctl_lines(text: &str) -> Vec<SysctlLine> {
    let lines = (1..).zip(text.lines()).map(|(number, line)| (number, line.trim()));
    let lines = lines.filter(|(_, line)| !line.starts_with(['#', ';']));
    let assignments = lines.filter_map(|(number, line)| Some((number, line.split_once('=')?)));
    let read = |(line, (key, value)): (usize, (&str, &str))| {
        let key = key.strip_prefix('-').unwrap_or(key);
        SysctlLine { line, name: sysctl_name(key.trim()), value: value.trim().to_owned() }
    };
    assignments.map(read).collect()
}

/// The parameters that a layer sets by its key `sysctl`.
pub fn sysctl_entries(schema: &Schema) -> Vec<(String, String)> {
    schema.sysctl.iter().map(|(key, value)| (sysctl_name(key), value.to_string().trim().to_owned())).collect()
}

/// Finds two spellings of one parameter.
pub(super) fn check(found: &mut Findings, schema: &Schema) {
    let mut names: BTreeMap<String, &String> = BTreeMap::new();
    for key in schema.sysctl.keys() {
        let first = names.insert(sysctl_name(key), key);
        found.key(child("/sysctl", key), first.map(|first| format!("{key:?} is the same parameter as {first:?}")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_separator_decides() {
        for (key, expected) in [
            ("net.ipv4.ip_forward", "net.ipv4.ip_forward"),
            ("net/ipv4/ip_forward", "net.ipv4.ip_forward"),
            ("/net//ipv4/./ip_forward", "net.ipv4.ip_forward"),
            ("net.ipv4.conf.eth0/1.rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
            ("net/ipv4/conf/eth0.1/rp_filter", "net/ipv4/conf/eth0.1/rp_filter"),
            ("net.ipv4.conf.*.rp_filter", "net.ipv4.conf.*.rp_filter"),
            ("single", "single"),
            ("", ""),
        ] {
            assert_eq!(sysctl_name(key), expected, "{key}");
            assert_eq!(sysctl_name(&sysctl_name(key)), expected, "{key}");
        }
    }

    #[test]
    fn lines_are_assignments() {
        let found = sysctl_lines("# a=1\n;b=2\n\n -vm/x = 3 \nkernel.y=\n-excluded\n");
        let found: Vec<(usize, &str, &str)> =
            found.iter().map(|line| (line.line, line.name.as_str(), line.value.as_str())).collect();
        assert_eq!(found, [(4, "vm.x", "3"), (5, "kernel.y", "")]);
    }
}

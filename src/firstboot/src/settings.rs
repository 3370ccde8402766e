//! Variables with their values: inputs of a plan and derived ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::env;
use crate::error::Error;
use crate::plan::{Assignment, Check, Format, Inputs, Plan, Stage, Variable};
use crate::root::Root;
use crate::template::{self, Machine, Scope, Url, Writing, base64};

/// Maximum lengths of a label and of a name (RFC 1035, section 2.3.4), in bytes.
pub const MAX_LABEL: usize = 63;
const MAX_NAME: usize = 253;

/// Names and their values.
pub type Variables = BTreeMap<String, String>;

/// The variables of a file; `None` if it is missing or empty.
pub fn read(root: &Root, path: &str) -> Result<Option<Variables>, Error> {
    match root.read(path, env::MAX_BYTES)? {
        Some(bytes) if !bytes.is_empty() => env::parse(&root.shown(path), &bytes).map(Some),
        _ => Ok(None),
    }
}

/// Variables of user data.
pub fn user_data(root: &Root, inputs: &Inputs) -> Result<Variables, Error> {
    read(root, &inputs.user_data)?.ok_or_else(|| Error::NotReady { path: root.shown(&inputs.user_data) })
}

/// Reports unused names in user data, which the plan does not have.
pub fn report_unknown(plan: &Plan, inputs: &Inputs, user_data: &Variables) {
    for name in user_data.keys() {
        if !plan.variables.iter().any(|(key, variable)| variable.has_name(key, name)) {
            crate::report(&format!("warning: {}: unknown setting {name}", inputs.user_data));
        }
    }
}

/// All variables of the plan: the value in the last file that has it, under its name or an alias; if that is empty,
/// the default, unless an empty value counts.
pub fn combine(plan: &Plan, files: &[&Variables]) -> Result<Variables, Error> {
    let find = |name: &str| files.iter().rev().find_map(|file| file.get(name));
    let mut variables = Variables::new();
    for assignment in plan.detect.iter().chain(&plan.values) {
        variables.insert(assignment.name.clone(), find(&assignment.name).cloned().unwrap_or_default());
    }
    for (name, variable) in &plan.variables {
        // Name and aliases have the same precedence across files.
        let found = files.iter().rev().find_map(|file| value(name, variable, file));
        let value = found.filter(|value| variable.empty || !value.is_empty()).unwrap_or(&variable.default);
        check_value(name, variable, value)?;
        variables.insert(name.clone(), value.to_owned());
    }
    Ok(variables)
}

/// Variables of user data for the file of mutable variables: all except unlisted ones.
pub fn without_unlisted(plan: &Plan, values: &Variables) -> Variables {
    let is_unlisted = |name: &String| {
        plan.variables.iter().any(|(known, variable)| variable.unlisted && variable.has_name(known, name))
    };
    values.iter().filter(|(name, _)| !is_unlisted(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// The value of a variable under any of its names: the first non-empty one, or else empty if one of them exists.
pub fn value<'a>(name: &str, variable: &Variable, values: &'a Variables) -> Option<&'a str> {
    let names = std::iter::once(name).chain(variable.aliases.iter().map(String::as_str));
    let found: Vec<&str> = names.filter_map(|name| values.get(name)).map(String::as_str).collect();
    found.iter().find(|value| !value.is_empty()).or(found.first()).copied()
}

/// Refuses a value that violates the plan's format.
pub fn check_value(name: &str, variable: &Variable, value: &str) -> Result<(), Error> {
    let expected = if value.is_empty() {
        variable.required.then(|| "a value".to_owned())
    } else if !variable.one_of.is_empty() && !variable.one_of.iter().any(|one| one == value) {
        Some(variable.one_of.join(", "))
    } else {
        let wrong =
            variable.format.filter(|format| !matches(*format, value)).map(|format| described(format).to_owned());
        let above = |max: &u32| value.parse::<u32>().is_ok_and(|number| number > *max);
        wrong.or_else(|| variable.max.filter(above).map(|max| format!("a number from 0 to {max}")))
    };
    match expected {
        Some(expected) => {
            // A key can be given instead of a certificate by mistake.
            let secret = variable.one_of.is_empty() && matches!(variable.format, Some(Format::Base64 | Format::Url));
            let begin: String = value.chars().take(80).collect();
            let found = if secret { "another value".to_owned() } else { format!("{begin:?}") };
            Err(Error::Setting { name: name.to_owned(), expected, found })
        }
        None => Ok(()),
    }
}

fn matches(format: Format, value: &str) -> bool {
    // Kubernetes reads a number with a leading zero as octal.
    let differs = || value.trim_start_matches('0').len() > 1 || value.ends_with(['8', '9']);
    let number = || value.bytes().all(|byte| byte.is_ascii_digit()) && !(value.starts_with('0') && differs());
    match format {
        Format::Boolean => matches!(value, "true" | "false"),
        Format::Number => number() && value.parse::<i32>().is_ok(),
        Format::Port => number() && value.parse::<u16>().is_ok_and(|port| port > 0),
        Format::Hostname => is_host_name(value, MAX_LABEL),
        Format::Host => is_resolvable(value) || value.parse::<Ipv6Addr>().is_ok(),
        Format::HostPort => is_host_port(value),
        Format::Addresses => value.split(',').all(|address| address.trim().parse::<IpAddr>().is_ok()),
        Format::Url => Url::parse(value).is_ok(),
        Format::Base64 => base64(value).is_ok(),
    }
}

/// Whether a text is a valid host name, with labels of at most `longest` bytes, or an IPv4 address.
pub fn is_host_name(value: &str, longest: usize) -> bool {
    let is_label = |label: &str| {
        (1..=longest).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    value.len() <= MAX_NAME && value.split('.').all(is_label)
}

/// Whether getent(1) would resolve a name: unlike in host names, underscores and a dot at the end are valid.
pub fn is_resolvable(name: &str) -> bool {
    let relative = name.strip_suffix('.').unwrap_or(name);
    let is_label = |label: &str| (1..=MAX_LABEL).contains(&label.len());
    !name.starts_with('-')
        && relative.len() <= MAX_NAME
        && relative.split('.').all(is_label)
        && relative.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
}

/// Whether a text is `host:port`, or `[address]:port` for an IPv6 address.
pub fn is_host_port(value: &str) -> bool {
    let is_host = |host: &str| match value.starts_with('[') {
        true => host.parse::<Ipv6Addr>().is_ok(),
        false => is_resolvable(host),
    };
    matches!(template::split_port(value), Some((host, Some(_))) if is_host(host))
}

fn described(format: Format) -> &'static str {
    match format {
        Format::Boolean => "true or false",
        Format::Number => "a decimal number without leading zeros",
        Format::Port => "a port from 1 to 65535 without leading zeros",
        Format::Hostname => "a host name of letters, digits, dots and dashes",
        Format::Host => {
            "a host name of letters, digits, dots, dashes and underscores, or an IP address without brackets"
        }
        Format::HostPort => "host:port or [address]:port",
        Format::Addresses => "IP addresses, separated by commas",
        Format::Url => "an http:// or https:// URL",
        Format::Base64 => "a certificate in PEM or text in base64",
    }
}

/// Sets variables in order; one whose condition does not hold is kept, or becomes empty.
pub fn assign(assignments: &[Assignment], variables: &mut Variables, machine: &dyn Machine) -> Result<(), Error> {
    for assignment in assignments {
        let scope = Scope { variables, machine };
        let fault = Error::fault(&assignment.name);
        let value = match template::holds(assignment.when.as_deref(), &scope).map_err(&fault)? {
            true => template::render(&assignment.value, &scope, Writing::Raw).map_err(&fault)?,
            false if variables.contains_key(&assignment.name) => continue,
            false => String::new(),
        };
        variables.insert(assignment.name.clone(), value);
    }
    Ok(())
}

/// Fails at the first failed check of a stage.
pub fn check<'a>(
    checks: impl IntoIterator<Item = &'a Check>,
    stage: Option<Stage>,
    scope: &Scope,
) -> Result<(), Error> {
    for check in checks.into_iter().filter(|check| stage.is_none_or(|stage| check.at == stage)) {
        let fault = Error::fault(&check.that);
        if template::holds(check.when.as_deref(), scope).map_err(&fault)?
            && !template::holds(Some(&check.that), scope).map_err(&fault)?
        {
            let message = template::render(&check.otherwise, scope, Writing::Raw).map_err(&fault)?;
            return Err(Error::Check { message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_formats() {
        let label = "x".repeat(MAX_LABEL);
        let long = [label.as_str(); 4].join(".");
        let name = &long[..MAX_NAME];
        let cases: [(Format, &[&str], &[&str]); 5] = [
            (
                Format::Port,
                &["1", "6443", "65535", "01", "007"],
                &["0", "65536", "08", "010", "0443", "+1", " 1", "1.0"],
            ),
            (Format::Number, &["0", "24", "2147483647", "02"], &["2147483648", "-1", "024", "08", "0x18", "٣"]),
            (
                Format::Hostname,
                &["a", "A-1.example", "192.0.2.1", &label, name],
                &[
                    "a.",
                    "a_b",
                    ".a",
                    "a..b",
                    "-a",
                    "a-",
                    "a-.b",
                    "a.-b",
                    "..",
                    &format!("{label}x"),
                    &long,
                    "[::1]",
                    "::1",
                    "é",
                ],
            ),
            (
                Format::HostPort,
                &["a:1", "a_b.example.:65535", "10.0.2.2:8993", "[fd00:9::7]:8993", "[::1]:1"],
                &[
                    "nohost",
                    "h:99999",
                    "h:0",
                    "h:",
                    ":1",
                    "a..b:1",
                    "a b:1",
                    "fd00::1:1",
                    "[fd00::1]",
                    "[::1]:0",
                    "[a]:1",
                    "[fe80::1%eth0]:1",
                    "h:+1",
                    "http://h:1",
                    "é:1",
                ],
            ),
            (
                Format::Host,
                &[
                    "a",
                    "a.",
                    "a_b.example",
                    "_a",
                    "a-",
                    "a.-b",
                    "fd00::1",
                    "::ffff:192.0.2.1",
                    &label,
                    &format!("{name}."),
                ],
                &[
                    "[fd00::1]",
                    "fe80::1%eth0",
                    "-a",
                    ".",
                    "a..",
                    ".a",
                    "a..b",
                    "a b",
                    "a:b",
                    &format!("{label}x"),
                    &long,
                    "é",
                ],
            ),
        ];
        for (format, good, bad) in cases {
            for value in good {
                assert!(matches(format, value), "{format:?} {value}");
            }
            for value in bad {
                assert!(!matches(format, value), "{format:?} {value}");
            }
        }
    }

    #[test]
    fn a_number_can_have_a_maximum() {
        let variable = Variable { format: Some(Format::Number), max: Some(32), ..Variable::default() };
        for (value, expected) in [
            ("0", None),
            ("32", None),
            ("", None),
            ("33", Some("A: expected a number from 0 to 32, found \"33\"")),
            ("2147483648", Some("A: expected a decimal number without leading zeros, found \"2147483648\"")),
        ] {
            let found = check_value("A", &variable, value).err().map(|error| error.to_string());
            assert_eq!(found.as_deref(), expected, "{value}");
        }
    }
}

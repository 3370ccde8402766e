//! Variables with their values: inputs of a plan and derived ones.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use crate::env;
use crate::error::Error;
use crate::plan::{Assignment, Check, Format, Inputs, Plan, Stage, Variable};
use crate::root::Root;
use crate::template::{self, Machine, Scope, Url, Writing, base64};

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
        variable.format.filter(|format| !matches(*format, value)).map(|format| described(format).to_owned())
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
    let number = || value.bytes().all(|byte| byte.is_ascii_digit());
    match format {
        Format::Boolean => matches!(value, "true" | "false"),
        Format::Number => number() && value.parse::<i32>().is_ok(),
        Format::Port => number() && value.parse::<u16>().is_ok_and(|port| port > 0),
        Format::Hostname => is_host_name(value),
        Format::Host => is_host_name(value) || value.parse::<Ipv6Addr>().is_ok(),
        Format::Addresses => value.split(',').all(|address| address.trim().parse::<IpAddr>().is_ok()),
        Format::Url => Url::parse(value).is_ok(),
        Format::Base64 => base64(value).is_ok(),
    }
}

/// Whether a text is a valid host name or IPv4 address.
pub fn is_host_name(value: &str) -> bool {
    value.len() <= 253
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.".contains(&byte))
        && value.split('.').all(|label| !label.is_empty() && !label.starts_with('-'))
}

fn described(format: Format) -> &'static str {
    match format {
        Format::Boolean => "true or false",
        Format::Number => "a decimal number",
        Format::Port => "a port from 1 to 65535",
        Format::Hostname => "a host name of letters, digits, dots and dashes",
        Format::Host => "a host name of letters, digits, dots and dashes, or an IP address",
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

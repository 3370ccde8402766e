//! Units of systemd (systemd.unit(5)): what `systemd-analyze verify` says about sections, settings, times of timers and mount points.

mod addresses;
pub(super) mod daemons;
mod expected;
mod lexer;
mod merged;
mod names;
mod network;
mod networks;
mod notes;
mod numbers;
mod paths;
mod resources;
mod service;
mod settings;
mod socket;
mod specifiers;
mod values;
mod words;

use vmbake_common::spelling::near;

pub use daemons::{named_route_tables, network_zones, route_tables};
pub(super) use lexer::sequence;
pub use merged::{UnitRefusal, UnitSetting, unit_refusal, unit_settings};
pub use service::{UnitCommand, unit_commands, unit_words};
pub use words::is_true;
pub(super) use words::{bad_escape, is_base64, is_credential};

use super::{File, Problem};
use crate::unit_install::{Statement, UnitForm, statements, unit_form};
use crate::unit_place::{UnitPlace, UnitRole, unit_place};
use service::Service;
use settings::{Specifiers, UNITS, Verdict};
use socket::Socket;

/// Kinds of units with a section of their own, the settings of it of which a unit needs one, and what systemd says without.
const SECTIONS: [(&str, &str, &[&str]); 9] = [
    ("automount", "Automount", &[]),
    ("mount", "Mount", &["What"]),
    ("path", "Path", &["PathExists", "PathExistsGlob", "PathChanged", "PathModified", "DirectoryNotEmpty"]),
    ("scope", "Scope", &[]),
    ("service", "Service", &[]),
    ("slice", "Slice", &[]),
    (
        "socket",
        "Socket",
        &[
            "ListenStream",
            "ListenDatagram",
            "ListenSequentialPacket",
            "ListenFIFO",
            "ListenSpecial",
            "ListenNetlink",
            "ListenMessageQueue",
            "ListenUSBFunction",
        ],
    ),
    ("swap", "Swap", &["What"]),
    (
        "timer",
        "Timer",
        &[
            "OnCalendar",
            "OnActiveSec",
            "OnBootSec",
            "OnStartupSec",
            "OnUnitActiveSec",
            "OnUnitInactiveSec",
            "OnClockChange",
            "OnTimezoneChange",
        ],
    ),
];

/// Sections of all kinds of units.
const COMMON: [&str; 2] = ["Unit", "Install"];

/// Checks a unit or a drop-in of one.
pub(super) fn check(file: &File) -> Vec<Problem> {
    let Some(place) = unit_place(file.path) else { return Vec::new() };
    let kind = place.unit.rsplit('.').next().unwrap_or_default();
    if !is_read(&place, file.path) {
        return Vec::new();
    }
    let own = SECTIONS.iter().find(|(known, ..)| *known == kind);
    let is_known = |name: &str| COMMON.contains(&name) || own.is_some_and(|(_, own, _)| *own == name);
    // Drop-ins of a kind of units or of units with a prefix are read by templates too.
    let is_plain = unit_form(place.unit) == Some(UnitForm::Plain) && !place.unit.contains("-.");
    let specifiers = if is_plain { Specifiers::Plain } else { Specifiers::Instance };
    let (mut found, mut section, mut keys) = (Vec::new(), None::<String>, Vec::new());
    let statements = match statements(file.bytes) {
        Ok(statements) => statements,
        Err((line, reason)) => return vec![Problem::error(line, format!("is not loaded by systemd: {reason}"))],
    };
    let (mut service, mut socket, mut has_success_action) = (Service::default(), Socket::default(), false);
    // An empty file masks the unit.
    let is_empty = statements.is_empty();
    for (line, statement) in statements {
        match statement {
            Statement::Header(name) => {
                if !is_known(&name) && !name.starts_with("X-") {
                    let near = near(&name, own.iter().map(|(_, own, _)| *own).chain(COMMON));
                    let hint = near.first().map(|near| format!("; did you mean [{near}]?")).unwrap_or_default();
                    found.push(Problem::error(line, format!("systemd ignores the unknown section [{name}]{hint}")));
                }
                section = Some(name);
            }
            Statement::Assignment(key, value) => {
                if section.is_none() {
                    found.push(Problem::error(line, format!("systemd ignores {key}=, which is not in a section")));
                }
                let section = section.as_deref().unwrap_or_default();
                let verdict = match is_known(section) {
                    true => UNITS.verdict(section, &key, &value, specifiers),
                    false => Verdict::Valid,
                };
                let is_valid = matches!(verdict, Verdict::Valid);
                let problem = match verdict {
                    Verdict::Valid => {
                        setting(place.unit, section, &key, &value).map(|reason| Problem::error(line, reason))
                    }
                    Verdict::Obsolete(reason) => Some(warning(line, reason)),
                    Verdict::Ignored(reason) => Some(Problem::error(line, reason)),
                    Verdict::Unknown => Some(Problem::error(line, UNITS.unknown(section, &key, found.len()))),
                };
                found.extend(problem);
                // What is ignored does not replace an earlier value.
                if is_valid && section == "Service" && kind == "service" {
                    found.extend(service.add(line, &key, &value));
                }
                if is_valid && section == "Socket" {
                    found.extend(service::command_problem(line, &key, &value));
                    socket.add(line, &key, &value);
                }
                if key == "SuccessAction" {
                    has_success_action = !["", "none"].contains(&value.as_str());
                }
                if own.is_some_and(|(_, own, _)| *own == section) {
                    keys.push(key);
                }
            }
            Statement::Other(text) => {
                found.push(Problem::error(line, format!("systemd ignores {text:?}, which is not an assignment")));
            }
        }
    }
    if place.role != UnitRole::Unit || is_empty || file.has_drop_ins {
        return found;
    }
    if kind == "service" && found.iter().all(|problem| problem.is_warning) {
        found.extend(service.fault(has_success_action));
    }
    found.extend(socket.fault());
    found.extend(own.and_then(|own| missing(own, &keys)));
    found
}

/// Whether systemd reads a file: one with the name of a unit, or a drop-in of a unit, of units with a prefix or of a kind of units.
fn is_read(place: &UnitPlace, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or_default();
    let is_kind = SECTIONS.iter().any(|(kind, ..)| *kind == place.unit) || ["target", "device"].contains(&place.unit);
    match place.role {
        _ if name.starts_with('.') => false,
        UnitRole::DropIn => (is_kind || unit_form(place.unit).is_some()) && name.ends_with(".conf"),
        _ => unit_form(place.unit).is_some(),
    }
}

/// A warning if a unit has none of the settings of which its kind needs one.
fn missing((kind, section, needed): &(&str, &str, &[&str]), keys: &[String]) -> Option<Problem> {
    let is_complete = needed.is_empty() || keys.iter().any(|key| needed.contains(&key.as_str()));
    let needed: Vec<String> = needed.iter().map(|key| format!("{key}=")).collect();
    let message = format!("systemd does not start a .{kind} without {} in [{section}]", needed.join(" or "));
    (!is_complete).then(|| Problem::of_file(message).warning())
}

fn warning(line: usize, message: String) -> Problem {
    Problem::error(line, message).warning()
}

/// What is wrong with a setting.
fn setting(unit: &str, section: &str, key: &str, value: &str) -> Option<String> {
    match (section, key) {
        ("Mount" | "Automount", "Where") | ("Swap", "What") => {
            let (stem, kind) = unit.rsplit_once('.')?;
            let expected = escape_path(value);
            let is_mismatch = value.starts_with('/') && !value.contains('%') && !stem.contains('@') && expected != stem;
            is_mismatch.then(|| {
                format!("systemd refuses the unit: {key}={value} needs the name {expected}.{kind}, found {unit}")
            })
        }
        _ => None,
    }
}

/// The name of a path in units, as `systemd-escape --path` prints it.
fn escape_path(path: &str) -> String {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if names.is_empty() {
        return "-".to_owned();
    }
    let joined = names.join("/");
    let escaped = joined.bytes().enumerate().map(|(at, byte)| match byte {
        b'/' => "-".to_owned(),
        b'.' if at == 0 => "\\x2e".to_owned(),
        _ if byte.is_ascii_alphanumeric() || b":_.".contains(&byte) => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    escaped.collect()
}

#[cfg(test)]
mod tests;

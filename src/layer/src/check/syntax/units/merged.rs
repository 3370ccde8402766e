//! A unit together with its drop-ins (systemd.unit(5)): files in the order in which systemd reads them in, the reason why it refuses the
//! result out.

use super::service::Service;
use super::socket::Socket;
use super::{SECTIONS, missing};
use crate::unit_install::{Location, Statement, statements};

/// Why systemd refuses or does not start a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitRefusal {
    /// The assignment at fault; `None` if one is missing.
    pub place: Option<Location>,
    pub message: String,
}

/// What the files of a unit say together.
#[derive(Default)]
struct Merged {
    service: Service,
    socket: Socket,
    has_success_action: bool,
    /// Settings of the section of the unit's type.
    keys: Vec<String>,
    /// Where each assignment is. [`Service`] and [`Socket`] count them instead of lines.
    places: Vec<Location>,
}

/// What is wrong with a unit whose files, path and content, are read one after the other.
pub fn unit_refusal(unit: &str, files: &[(String, Vec<u8>)]) -> Option<UnitRefusal> {
    let (_, kind) = unit.rsplit_once('.')?;
    let own = SECTIONS.iter().find(|(known, ..)| *known == kind)?;
    let mut merged = Merged::default();
    for UnitSetting { place, section, key, value } in unit_settings(files) {
        merged.places.push(place);
        merged.assign(own, &section, &key, &value);
    }
    let fault = if kind == "service" { merged.service.fault(merged.has_success_action) } else { None };
    let problem = fault.or_else(|| missing(own, &merged.keys)).or_else(|| merged.socket.fault())?;
    let at = problem.line.and_then(|line| line.checked_sub(1));
    let place = at.and_then(|at| merged.places.get(at)).cloned();
    Some(UnitRefusal { place, message: problem.message })
}

/// An assignment of a unit or of a drop-in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnitSetting {
    pub place: Location,
    pub section: String,
    pub key: String,
    pub value: String,
}

/// The assignments of files, path and content, in the order in which systemd reads them. A file that it cannot read has none.
pub fn unit_settings(files: &[(String, Vec<u8>)]) -> Vec<UnitSetting> {
    let mut found = Vec::new();
    for (path, bytes) in files {
        let mut section = String::new();
        for (line, statement) in statements(bytes).unwrap_or_default() {
            match statement {
                Statement::Header(name) => section = name,
                Statement::Assignment(key, value) => {
                    let place = Location { path: path.clone(), line };
                    found.push(UnitSetting { place, section: section.clone(), key, value });
                }
                Statement::Other(_) => {}
            }
        }
    }
    found
}

impl Merged {
    fn assign(&mut self, (kind, own, needed): &(&str, &str, &[&str]), section: &str, key: &str, value: &str) {
        if section == "Unit" && key == "SuccessAction" {
            self.has_success_action = !["", "none"].contains(&value);
        }
        if section != *own {
            return;
        }
        match *kind {
            "service" => drop(self.service.add(self.places.len(), key, value)),
            "socket" => self.socket.add(self.places.len(), key, value),
            _ => {}
        }
        // An empty value of one setting takes back all of those that a unit needs one of.
        match value.is_empty() && needed.contains(&key) {
            true => self.keys.clear(),
            false => self.keys.push(key.to_owned()),
        }
    }
}

//! Units that are started on the machine: those that others want or need, by links or settings, and those that they start in turn.

use std::collections::BTreeSet;

use super::super::Scope;
use super::super::lookup::{ConfigLinks, Lookup, lookup};
use super::Image;
use super::loaded::Loaded;

/// Settings that name units which are started with this one, or by it.
const STARTS: [(&str, &str); 11] = [
    ("Unit", "Requires"),
    ("Unit", "Requisite"),
    ("Unit", "BindsTo"),
    ("Unit", "Wants"),
    ("Unit", "Upholds"),
    ("Unit", "OnSuccess"),
    ("Unit", "OnFailure"),
    ("Timer", "Unit"),
    ("Path", "Unit"),
    ("Socket", "Service"),
    ("Service", "Sockets"),
];

/// Types of units that start the service of their name.
const TRIGGERS: [&str; 3] = ["path", "socket", "timer"];

/// The names of all units that are started. A template is among them if one of its instances is.
pub(super) fn find(image: &Image) -> BTreeSet<String> {
    let plans = image.layers.iter().filter_map(|layer| layer.schema.first_boot.as_ref());
    let services = plans.flat_map(|plan| &plan.services).map(|service| service.unit.clone());
    let enabled = image.layers.iter().flat_map(|layer| layer.schema.units.enable.iter().cloned());
    let mut todo: Vec<String> =
        super::super::loaded::wanted(image.target).into_iter().chain(services).chain(enabled).collect();
    let mut started = BTreeSet::new();
    while let Some(name) = todo.pop() {
        if started.contains(&name) {
            continue;
        }
        started.insert(name.clone());
        let Ok(Lookup::Unit(found)) = lookup(image.target, Scope::System, &name, ConfigLinks::Follow) else { continue };
        todo.extend([found.name.clone(), vmbake_layer::unit_file(&found.name)]);
        let unit = Loaded::new(&name, &image.names.files(image.target, &name).unwrap_or_default());
        let settings = STARTS.iter().flat_map(|(section, key)| unit.list(section, key));
        todo.extend(settings.flat_map(|setting| setting.value.split_whitespace()).map(str::to_owned));
        if TRIGGERS.contains(&unit.kind()) {
            todo.extend([format!("{}.service", unit.stem()), format!("{}@.service", unit.stem())]);
        }
    }
    started
}

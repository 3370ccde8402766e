//! Reasons why a unit does not work on the machine: units of the finished tree in, an error or warnings out.
//!
//! A unit that is started and that a file of a layer breaks is an error. If it is not started, if a program of the layers may make on the
//! machine what it lacks, or if the line is that of a package or archive, it is a warning.

mod access;
mod accounts;
mod idle;
mod loaded;
mod needed;
mod programs;
mod made;
mod sandbox;
mod started;

use super::super::MergeError;
use super::super::place::Target;
use super::UnitFault;
use super::loaded::{Files, Names};
use loaded::Loaded;
use made::Made;
pub use vmbake_layer::{Layer, Location, UnitRefusal, UnitSetting, unit_refusal};

const REFUSED: &str = "correct the line, or add what is missing; `systemd-analyze verify` reports the same error";

const SYSTEMD: &str = "/usr/lib/systemd/systemd";

/// The finished image, as the checks of units see it.
struct Image<'a> {
    target: &'a Target,
    layers: &'a [Layer],
    names: &'a Names,
    made: Made<'a>,
}

/// What is wrong with a unit.
struct Fault {
    place: Location,
    /// What happens, and why.
    message: String,
    hint: &'static str,
    /// Whether the machine may get what is missing, so that the unit works there.
    may_pass: bool,
}

impl Fault {
    /// The unit does not start because of an assignment.
    fn of(setting: &UnitSetting, message: String, hint: &'static str) -> Self {
        Self { place: setting.place.clone(), message: format!("does not start: {message}"), hint, may_pass: false }
    }

    fn may_pass(self, may_pass: bool) -> Self {
        Self { may_pass, ..self }
    }
}

/// Fails if a unit does not work because of a line of a layer. Returns warnings.
pub(in crate::merge) fn check(target: &Target, layers: &[Layer], names: &Names) -> Result<Vec<String>, MergeError> {
    let image = Image { target, layers, names, made: Made::find(target, layers, names) };
    // An image without it, such as of a container, starts no unit.
    let has_systemd = image.exists(SYSTEMD);
    let started = started::find(&image);
    let mut warnings = Vec::new();
    for unit in names.units() {
        let Some(files) = names.files(target, unit) else { continue };
        // Units of which no layer has a file are not checked.
        if files.iter().all(|(path, _)| target.layer_at(path).is_none()) {
            continue;
        }
        let loaded = Loaded::new(unit, &files);
        let faults = image.faults(&loaded).into_iter().map(|fault| {
            let may_pass = fault.may_pass || !has_systemd;
            fault.may_pass(may_pass)
        });
        for fault in refusal(unit, &files).into_iter().chain(faults) {
            let Some(layer) = target.layer_at(&fault.place.path) else { continue };
            let is_own = target.is_file_of_layer(&fault.place.path);
            let is_enabled = layers.iter().any(|layer| layer.schema.units.enable.contains(unit));
            let Fault { place, message, hint, may_pass } = fault;
            if is_own && started.contains(unit) && !may_pass {
                let fault = UnitFault::Unmet { place, message, hint };
                return Err(MergeError::Unit { layer: layer.to_owned(), unit: unit.clone(), fault });
            }
            if is_own || is_enabled {
                warnings.push(format!("layer {layer}: unit {unit} ({place}) {message}"));
            }
        }
    }
    warnings.extend(idle::warnings(&image));
    Ok(warnings)
}

/// Why systemd refuses a unit.
fn refusal(unit: &str, files: &Files) -> Option<Fault> {
    let UnitRefusal { place, message } = unit_refusal(unit, files)?;
    let place = place.or_else(|| files.first().map(|(path, _)| Location { path: path.clone(), line: 1 }))?;
    Some(Fault { place, message: format!("does not start: {message}"), hint: REFUSED, may_pass: false })
}

impl Image<'_> {
    /// What is wrong with a unit.
    fn faults(&self, unit: &Loaded) -> Vec<Fault> {
        let mut found = self.unmet_units(unit);
        found.extend(self.unknown_zones(unit));
        found.extend(self.unknown_accounts(unit));
        let is_waiting = self.is_waiting(unit);
        if !is_waiting {
            found.extend(self.missing_programs(unit));
            found.extend(self.missing_paths(unit));
        }
        found.extend(self.hidden_paths(unit));
        found.extend(self.denied_paths(unit));
        found
    }

    fn exists(&self, path: &str) -> bool {
        self.target.tree.resolve(path.as_bytes()).is_ok()
    }

    /// Whether a condition waits for a path that the image does not have: then the unit is not started before the path is there.
    fn is_waiting(&self, unit: &Loaded) -> bool {
        let paths = unit.settings("Unit").filter(|setting| {
            let key = setting.key.strip_prefix("Condition").or_else(|| setting.key.strip_prefix("Assert"));
            key.is_some_and(|key| {
                key.starts_with("Path") || matches!(key, "FileNotEmpty" | "FileIsExecutable" | "DirectoryNotEmpty")
            })
        });
        let mut paths = paths.map(|setting| setting.value.trim_start_matches(['|', ' ']));
        paths.any(|path| path.starts_with('/') && !path.contains(['%', '*', '?', '[']) && !self.exists(path))
    }
}

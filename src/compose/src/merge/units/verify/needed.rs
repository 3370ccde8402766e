//! Units without which a unit does not start, and time zones of timers.

use super::super::Scope;
use super::super::lookup::{ConfigLinks, Lookup, lookup};
use super::loaded::Loaded;
use super::{Fault, Image};
use crate::merge::finished::files_in;
use vmbake_layer::{UnitSetting, calendar_zone, is_of_systemd, is_true, path_of_unit};

/// Dependencies without which a unit does not start.
const REQUIRED: [&str; 4] = ["Requires", "Requisite", "BindsTo", "BindTo"];

const REQUIRED_HINT: &str = "install the unit, or use Wants=, which ignores units that do not exist";
const STARTED_HINT: &str = "add the unit to the layer, or correct the name";
const ZONE_HINT: &str =
    "add \"tzdata\" to `packages` of the layer, or \"tzdata-legacy\" for old names of time zones such as US/Eastern";

const GENERATORS: [&str; 3] = [
    "/etc/systemd/system-generators",
    "/usr/local/lib/systemd/system-generators",
    "/usr/lib/systemd/system-generators",
];

const ZONES: &str = "/usr/share/zoneinfo";
const LOCALTIME: &str = "/etc/localtime";

impl Image<'_> {
    /// Why a unit cannot be started, if systemd does not find it and no generator makes it.
    pub(super) fn missing_unit(&self, unit: &str) -> Option<String> {
        match lookup(self.target, Scope::System, unit, ConfigLinks::Follow) {
            Ok(Lookup::Masked { path }) => Some(format!("is masked by {path}")),
            Ok(Lookup::Missing) if !self.is_generated(unit) => Some("is not in the image".to_owned()),
            _ => None,
        }
    }

    /// Whether systemd, a generator or the first boot makes a unit on the machine.
    pub(super) fn is_generated(&self, unit: &str) -> bool {
        let (stem, kind) = unit.rsplit_once('.').unwrap_or_default();
        let is_kind = matches!(kind, "device" | "mount" | "swap" | "slice" | "scope");
        let is_mounted =
            kind == "automount" && path_of_unit(unit).is_some_and(|path| self.target.is_mount_point(&path));
        let is_script = kind == "service" && self.exists(&format!("/etc/init.d/{stem}"));
        is_kind
            || is_mounted
            || is_script
            || is_of_systemd(unit)
            || self.made.has_unit(unit)
            || self.is_of_generator(unit)
    }

    /// Whether a generator (systemd.generator(7)) has the name of a unit, or of its template.
    fn is_of_generator(&self, unit: &str) -> bool {
        let name = unit.split_once('@').map_or(unit, |(prefix, _)| &unit[..=prefix.len()]);
        let stem = unit.rsplit_once('.').map_or(unit, |(stem, _)| stem).split('@').next().unwrap_or_default();
        let mut paths = GENERATORS.iter().flat_map(|dir| files_in(self.target, dir, &[""]));
        paths.any(|path| {
            let bytes = self.target.bytes(&path).unwrap_or_default();
            // A compiler may split a name behind its dot. Generators of systemd have many names that they do not make.
            let is_split = bytes.starts_with(b"\x7fELF") && !path.contains("/systemd-");
            let part = if is_split { format!("/{stem}.") } else { name.to_owned() };
            !stem.is_empty() && bytes.windows(part.len()).any(|text| text == part.as_bytes())
        })
    }

    pub(super) fn unmet_units(&self, unit: &Loaded) -> Vec<Fault> {
        let mut found = Vec::new();
        for setting in REQUIRED.iter().flat_map(|key| unit.list("Unit", key)) {
            for other in setting.value.split_whitespace().filter(|name| !name.contains('%')) {
                if let Some(reason) = self.missing_unit(other) {
                    found.push(Fault::of(
                        setting,
                        format!("{}= needs {other}, which {reason}", setting.key),
                        REQUIRED_HINT,
                    ));
                }
            }
        }
        found.extend(self.triggered(unit));
        found
    }

    /// The unit that a socket, timer, path or automount starts.
    fn triggered(&self, unit: &Loaded) -> Option<Fault> {
        let section = unit.section();
        let fault = |setting: Option<&UnitSetting>, message: String| {
            Some(Fault::of(setting.or_else(|| unit.first())?, message, STARTED_HINT))
        };
        let (setting, name) = match unit.kind() {
            "socket" => {
                let accepts = unit.last(&section, "Accept").filter(|setting| is_true(&setting.value));
                if let Some(accept) = accepts {
                    let template = format!("{}@.service", unit.stem().split('@').next().unwrap_or_default());
                    let reason = self.missing_unit(&template)?;
                    return fault(Some(accept), format!("Accept=yes starts {template}, which {reason}"));
                }
                (unit.last(&section, "Service"), format!("{}.service", unit.stem()))
            }
            "timer" | "path" => (unit.last(&section, "Unit"), format!("{}.service", unit.stem())),
            "automount" => {
                let mount = format!("{}.mount", unit.stem());
                let is_mounted = path_of_unit(&mount).is_some_and(|path| self.target.is_mount_point(&path));
                let is_missing =
                    matches!(lookup(self.target, Scope::System, &mount, ConfigLinks::Follow), Ok(Lookup::Missing));
                let is_made = is_mounted || self.made.has_unit(&mount);
                return (is_missing && !is_made)
                    .then(|| fault(None, format!("it starts {mount}, which is not in the image")))?;
            }
            _ => return None,
        };
        let name = setting.map_or(name, |setting| setting.value.clone());
        let reason = if name.contains('%') { None } else { self.missing_unit(&name) }?;
        let template = format!("{}@.service", name.strip_suffix(".service").unwrap_or(&name));
        let is_template = unit.kind() == "socket" && self.missing_unit(&template).is_none();
        let rest = if is_template { format!("; {template} needs Accept=yes") } else { String::new() };
        fault(setting, format!("it starts {name}, which {reason}{rest}"))
    }

    /// Times of timers in time zones that the image does not have.
    pub(super) fn unknown_zones(&self, unit: &Loaded) -> Vec<Fault> {
        let times = if unit.kind() == "timer" { unit.list("Timer", "OnCalendar") } else { Vec::new() };
        let unknown = times.into_iter().filter_map(|setting| {
            let zone = calendar_zone(&setting.value).filter(|zone| !zone.contains('%') && !self.has_zone(zone))?;
            let message = format!(
                "has a time that systemd ignores: OnCalendar={}: the image does not have the time zone {zone}",
                setting.value
            );
            Some(Fault { place: setting.place.clone(), message, hint: ZONE_HINT, may_pass: false })
        });
        unknown.collect()
    }

    /// Whether the image has a time zone, or its own has that abbreviation.
    fn has_zone(&self, zone: &str) -> bool {
        let bytes = |path: &str| self.target.bytes(path).unwrap_or_default();
        let is_zone = bytes(&format!("{ZONES}/{zone}")).starts_with(b"TZif");
        is_zone || bytes(LOCALTIME).split(|byte| !byte.is_ascii_alphanumeric()).any(|word| word == zone.as_bytes())
    }
}

//! Finds changes to units outside the bundle, according to its layers alone: those that a bake refuses whatever the base contains. Units of
//! the base, of other layers and in archives are checked by the bake.

use std::collections::BTreeSet;

use super::contents::BundleContents;
use vmbake_layer::effects::{Effect, EffectKind};
use vmbake_layer::real_path::{is_below, real};
use vmbake_layer::{
    Layer, UNIT_SCOPES, UnitInstall, UnitRole, is_of_systemd, is_wants, path_of_unit, unit_file, unit_place,
};

/// Directories of units of the system that layers write to.
pub(super) const UNITS: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/usr/local/lib/systemd/system"];

/// Keys whose changes of a unit a bake does not compare: those of machines.
const OF_MACHINES: [&str; 2] = ["first_boot/modes", "first_boot/optional_modes"];

/// Units of others that a layer concerns.
pub(super) fn foreign_units(bundle: &BundleContents, own: &[Effect], layer: &Layer, say: &mut impl FnMut(String)) {
    named(own, layer, say);
    let scopes = UNIT_SCOPES.map(|scope| Scope::new(scope, own));
    let asked: BTreeSet<String> = bundle.document.asks.paths.iter().map(|path| real(path)).collect();
    let of_layer = own.iter().filter(|effect| effect.layer == layer.schema.name && effect.pattern.is_none());
    let is_asked = |path: &str| asked.iter().any(|asked| is_below(path, asked));
    let of_paths = of_layer.clone().filter(|effect| effect.kind == EffectKind::Write && !asked.contains(&effect.value));
    for path in of_paths.map(|effect| &effect.value) {
        let unit = unit_place(path).filter(|place| place.role == UnitRole::Unit).map(|place| place.unit);
        if let Some(of) = unit.and_then(path_of_unit).filter(|of| !is_asked(of)) {
            say(format!("{path}: is for {of}, which is not in `asks/paths`"));
        }
    }
    let mut refuse = |path: &str, unit: &str| {
        say(format!("{path}: configures {unit}, which is not a unit of the bundle, without that path in `asks/paths`"));
    };
    for effect in of_layer {
        let path = &effect.value;
        let Some(place) = unit_place(path).filter(|place| !place.is_named(path, &asked)) else { continue };
        let Some(scope) = scopes.iter().find(|scope| scope.dirs.contains(&place.dir)) else { continue };
        let is_fine = match (effect.kind, place.role) {
            (EffectKind::Change, _) if OF_MACHINES.contains(&effect.key) => true,
            (EffectKind::Change, _) if effect.key != "first_boot/blocks" => is_brought(own, path),
            (EffectKind::Write | EffectKind::Change, UnitRole::Unit) => {
                !is_wants(place.unit) && !is_of_systemd(place.unit)
            }
            (EffectKind::Write | EffectKind::Change, _) => scope.is_own(place.unit) && !place.is_of_many(),
            _ => true,
        };
        if !is_fine {
            refuse(path, place.unit);
            continue;
        }
        let target = layer.schema.symlinks.iter().find(|(link, _)| real(link) == *path).map(|(_, target)| target);
        let target = target.map(|target| resolved(path, target));
        if let Some(target) = target.filter(|target| target != "/dev/null" && !is_brought(own, target)) {
            refuse(path, &target);
        }
    }
    for (path, file) in &layer.files {
        let path = real(path);
        let Some(place) = unit_place(&path).filter(|place| place.role != UnitRole::Wanted) else { continue };
        let Some(scope) = scopes.iter().find(|scope| scope.dirs.contains(&place.dir)) else { continue };
        let mut install = UnitInstall::new(place.unit);
        if install.read(&path, &file.content).is_err() {
            continue;
        }
        for unit in install.also().iter().filter(|unit| !scope.is_own(unit)) {
            if !scope.dirs.iter().any(|dir| asked.contains(&format!("{dir}/{unit}"))) {
                refuse(&format!("{}/{unit}", scope.dirs[0]), unit);
            }
        }
    }
}

/// Directories of units, and the units that the bundle has there.
struct Scope {
    dirs: &'static [&'static str],
    units: BTreeSet<String>,
    /// Whether an archive may contain more units.
    is_open: bool,
}

impl Scope {
    fn new(dirs: &'static [&'static str], own: &[Effect]) -> Self {
        let written = own.iter().filter(|effect| effect.kind == EffectKind::Write);
        let units = written.filter_map(|effect| {
            let place = unit_place(&effect.value)?;
            (place.role == UnitRole::Unit && dirs.contains(&place.dir)).then(|| place.unit.to_owned())
        });
        let units = units.collect();
        let mut unpacked = own.iter().filter(|effect| effect.kind == EffectKind::Unpack);
        let is_open = unpacked.any(|effect| dirs.iter().any(|dir| is_below(dir, &effect.value)));
        Self { dirs, units, is_open }
    }

    fn is_own(&self, unit: &str) -> bool {
        !is_of_systemd(unit) && (self.is_open || self.units.contains(unit) || self.units.contains(&unit_file(unit)))
    }
}

/// Whether the bundle contains a path, or one of its archives may.
fn is_brought(own: &[Effect], path: &str) -> bool {
    own.iter().any(|effect| match effect.kind {
        EffectKind::Write => effect.value == path,
        EffectKind::Unpack => is_below(path, &effect.value),
        EffectKind::Directory => effect.key == "directories" && effect.value == path,
        _ => false,
    })
}

/// Where a link leads, by names alone.
fn resolved(link: &str, target: &str) -> String {
    let directory = link.rsplit_once('/').map_or("", |(directory, _)| directory);
    let path = if target.starts_with('/') { target.to_owned() } else { format!("{directory}/{target}") };
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => drop(names.pop()),
            name => names.push(name),
        }
    }
    real(&format!("/{}", names.join("/")))
}

/// Units of others that keys of a layer name.
fn named(own: &[Effect], layer: &Layer, say: &mut impl FnMut(String)) {
    let schema = &layer.schema;
    let is_own = |unit: &str| {
        own.iter().any(|effect| match effect.kind {
            EffectKind::Write => {
                let is_text = |name: &str| UNITS.iter().any(|folder| effect.value == format!("{folder}/{name}"));
                is_text(unit) || is_text(&unit_file(unit))
            }
            // What an archive has is not known yet; a bake finds out.
            EffectKind::Unpack => UNITS.iter().any(|folder| is_below(folder, &effect.value)),
            _ => false,
        })
    };
    let services = schema.first_boot.iter().flat_map(|plan| plan.services.iter().map(|service| &service.unit));
    let named = [
        ("units/enable", schema.units.enable.iter().collect::<Vec<_>>()),
        ("units/disable", schema.units.disable.iter().collect()),
        ("units/mask", schema.units.mask.iter().collect()),
        ("first_boot/services", services.collect()),
    ];
    for (key, units) in named {
        for unit in units.into_iter().filter(|unit| !is_own(unit)) {
            say(format!("`{key}`: unit {unit} is not a unit of the bundle"));
        }
    }
}

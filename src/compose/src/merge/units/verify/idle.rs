//! What layers set for units and that has no effect: drop-ins and presets of units that the image does not have, and enabled units that are
//! masked.

use super::super::Scope;
use super::super::lookup::{ConfigLinks, Lookup, lookup};
use super::Image;
use vmbake_layer::{UNIT_SCOPES, UnitRole, is_wants, unit_form, unit_place};

pub(super) fn warnings(image: &Image) -> Vec<String> {
    let mut found = Vec::new();
    for layer in image.layers {
        let mut warn = |what: String| found.push(format!("layer {}: {what}", layer.schema.name));
        for path in layer.files.keys() {
            drop_in(image, path).into_iter().for_each(&mut warn);
        }
        let presets = layer.files.iter().filter(|(path, _)| path.contains("/systemd/") && path.ends_with(".preset"));
        for (path, file) in presets {
            presets_of(image, path, &String::from_utf8_lossy(&file.content)).into_iter().for_each(&mut warn);
        }
        for unit in &layer.schema.units.enable {
            if let Ok(Lookup::Masked { path }) = lookup(image.target, Scope::System, unit, ConfigLinks::Follow) {
                let of = image.layers.iter().find(|other| other.schema.units.mask.contains(unit));
                let of = of.map(|other| format!(" of layer {}", other.schema.name)).unwrap_or_default();
                warn(format!("unit {unit} is enabled, but never starts: it is masked by {path}{of}"));
            }
        }
    }
    found
}

/// Why a drop-in has no effect.
fn drop_in(image: &Image, path: &str) -> Option<String> {
    let place = unit_place(path).filter(|place| place.role == UnitRole::DropIn && path.ends_with(".conf"))?;
    if place.is_of_many() || unit_form(place.unit).is_none() || is_wants(place.unit) {
        return None;
    }
    let scope = if UNIT_SCOPES[0].contains(&place.dir) { Scope::System } else { Scope::User };
    let reason = reason(image, scope, place.unit)?;
    // A later layer may have removed the file.
    image.exists(path).then(|| format!("{path} has no effect: {} {reason}", place.unit))
}

fn presets_of(image: &Image, path: &str, text: &str) -> Vec<String> {
    let scope = if path.contains("/user-preset/") { Scope::User } else { Scope::System };
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (verb, unit) = match words.as_slice() {
            [verb @ ("enable" | "disable"), unit, ..] if !unit.contains(['*', '?', '[']) => (verb, unit),
            _ => continue,
        };
        if unit_form(unit).is_some()
            && let Some(reason) = reason(image, scope, unit)
        {
            found.push(format!("{path}:{}: `{verb} {unit}` has no effect: {unit} {reason}", index + 1));
        }
    }
    found
}

/// Why nothing happens with a unit.
fn reason(image: &Image, scope: Scope, unit: &str) -> Option<String> {
    match lookup(image.target, scope, unit, ConfigLinks::Follow) {
        Ok(Lookup::Missing) if !image.is_generated(unit) => Some("is not in the image".to_owned()),
        Ok(Lookup::Masked { path }) => Some(format!("is masked by {path}")),
        _ => None,
    }
}

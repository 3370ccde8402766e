//! Units that a layer enables, disables and masks.

use super::super::findings::{Findings, Found};
use super::super::unit_install::{InstallFault, UnitInstall};
use super::super::{Layer, validate};
use super::executable::UNIT_DIRECTORIES;

pub(super) fn check(found: &mut Findings, layer: &Layer) {
    let units = &layer.schema.units;
    found.list("/units/enable", &units.enable, validate::unit_or_instance);
    found.list("/units/disable", &units.disable, validate::instance);
    found.list("/units/mask", &units.mask, validate::unit_or_instance);
    for (index, entry) in layer.schema.remove.iter().enumerate() {
        let unit = units.mask.iter().find(|unit| entry == &format!("/etc/systemd/system/{unit}"));
        let message = unit.map(|unit| format!("{entry:?} is removed after unit {unit:?} is masked there"));
        found.value(format!("/remove/{index}"), message);
    }
    for (index, unit) in units.enable.iter().enumerate() {
        let pointer = format!("/units/enable/{index}");
        let against = units.disable.contains(unit) || units.mask.contains(unit);
        let against = against.then(|| format!("unit {unit:?} is also disabled or masked"));
        match install(layer, unit) {
            Ok(install) => {
                for ignored in install.iter().flat_map(UnitInstall::ignored) {
                    let (pointer, message) = (pointer.clone(), format!("systemd ignores a line: {ignored}"));
                    found.0.push(Found { pointer, key: false, warning: true, message });
                }
                found.value(pointer, against.or(install.and_then(|install| fault(unit, &install))));
            }
            Err(wrong) => found.value(pointer, Some(format!("unit {unit:?} cannot be enabled: {wrong}"))),
        }
    }
}

/// The `[Install]` sections of a unit whose file the layer has; those of drop-ins alone do not show all of it.
fn install(layer: &Layer, unit: &str) -> Result<Option<UnitInstall>, InstallFault> {
    let template = validate::unit_file(unit);
    let is_final = |path: &String| !layer.schema.expand.contains(path);
    let of_name = |name: &str| UNIT_DIRECTORIES.map(|dir| format!("{dir}/{name}")).into_iter().filter(is_final);
    let file = of_name(unit).chain(of_name(&template)).find_map(|path| Some((layer.files.get(&path)?, path)));
    let Some((file, path)) = file else { return Ok(None) };
    let mut install = UnitInstall::new(unit);
    install.read(&path, &file.content)?;
    let names = if template == unit { vec![unit] } else { vec![unit, &template] };
    for dir in names.into_iter().flat_map(|name| of_name(&format!("{name}.d")).collect::<Vec<_>>()) {
        let drop_ins = layer.files.iter().filter(|(path, _)| {
            let name = path.strip_prefix(&dir).and_then(|rest| rest.strip_prefix('/'));
            name.is_some_and(|name| name.ends_with(".conf") && !name.contains('/'))
        });
        drop_ins.filter(|(path, _)| is_final(path)).try_for_each(|(path, file)| install.read(path, &file.content))?;
    }
    Ok(Some(install))
}

fn fault(unit: &str, install: &UnitInstall) -> Option<String> {
    match install.links() {
        Ok(links) if links.is_empty() && install.also().is_empty() => {
            Some(format!("unit {unit:?} has no [Install] section that would enable it"))
        }
        Ok(_) => None,
        Err(wrong) => Some(format!("unit {unit:?} cannot be enabled: {wrong}")),
    }
}

//! Services: deb-systemd-helper(1p), deb-systemd-invoke(1p), systemctl(1), update-rc.d(8), invoke-rc.d(8).

use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported, words};
use crate::compose::merge::units;

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "deb-systemd-helper" => helper,
        "deb-systemd-invoke" | "invoke-rc.d" | "service" => no_services,
        "systemctl" => systemctl,
        "update-rc.d" => update_rc,
        _ => return None,
    })
}

/// Nothing runs, so that nothing is started or stopped: as with a policy-rc.d that says so.
fn no_services(_system: &mut System<'_, '_>, _call: &mut Call<'_>) -> Done {
    status(0)
}

fn helper(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--quiet").collect();
    let [action, names @ ..] = words.as_slice() else { return unsupported(call) };
    if names.is_empty() || names.iter().any(|name| name.starts_with('-') || name.contains('/')) {
        return unsupported(call);
    }
    let target = &mut system.target();
    match *action {
        "enable" => names.iter().try_for_each(|unit| units::helper_enable(target, unit))?,
        "update-state" => names.iter().try_for_each(|unit| units::helper_record(target, unit))?,
        "was-enabled" => {
            let mut all = true;
            for unit in names {
                all &= units::was_enabled(target, unit)?;
            }
            return status(u8::from(!all));
        }
        "debian-installed" => {
            return status(u8::from(!names.iter().any(|unit| units::has_record(target, unit))));
        }
        "unmask" => names.iter().try_for_each(|unit| units::helper_unmask(target, unit))?,
        _ => return unsupported(call),
    }
    status(0)
}

fn systemctl(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).filter(|word| *word != "--system").collect();
    match words.as_slice() {
        ["daemon-reload" | "daemon-reexec", ..] => status(0),
        _ => unsupported(call),
    }
}

fn update_rc(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [script, "defaults", ..] => units::rc_links(&mut system.target(), script, true)?,
        [script, "defaults-disabled"] => units::rc_links(&mut system.target(), script, false)?,
        _ => return unsupported(call),
    }
    status(0)
}

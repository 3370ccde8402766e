//! systemd-tmpfiles(8) and systemd-sysusers(8).

use vmbake_shell::Call;

use super::{Command, Done, System, status, unsupported, words};
use crate::compose::merge::sysusers;

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "systemd-tmpfiles" => tmpfiles,
        "systemd-sysusers" => create_users,
        _ => return None,
    })
}

/// systemd-tmpfiles-setup.service makes what they say on every boot.
fn tmpfiles(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let [first, names @ ..] = words.as_slice() else { return unsupported(call) };
    if first != "--create" {
        return unsupported(call);
    }
    for name in names {
        sysusers::find_config(&system.target(), "tmpfiles.d", name)?;
    }
    status(0)
}

fn create_users(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    for name in &words {
        sysusers::check_sysusers(&system.target(), system.script.package, name)?;
    }
    status(0)
}

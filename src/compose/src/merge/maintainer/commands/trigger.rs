//! dpkg-trigger(1).

use vmbake_shell::Call;

use super::options::{self, Spec};
use super::{Command, Done, System, fails, status, unsupported};
use crate::merge::triggers;

const PROGRAM: &str = "dpkg-trigger";

const OPTIONS: [Spec; 5] = [
    ("await", None, false),
    ("no-await", None, false),
    ("by-package", None, true),
    ("check-supported", None, false),
    ("no-act", None, false),
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(trigger as Command)
}

fn trigger(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    if options.has("check-supported") {
        return status(0);
    }
    let [name] = &options.operands[..] else { return fails(call, PROGRAM, "takes one argument, the trigger name") };
    if !triggers::is_name(name) {
        return fails(call, PROGRAM, &format!("invalid trigger name '{name}'"));
    }
    let by = options.value("by-package").unwrap_or(system.script.stem).to_owned();
    if !options.has("no-act") {
        triggers::activate_name(&system.target(), system.database, &by, name)?;
    }
    status(0)
}

//! Services: deb-systemd-helper(1p), systemctl(1) and related commands, on a system that is not running.

use vmbake_shell::{Call, Follow, Outcome};

use super::programs::{ends, is_present};
use super::{Command, Done, System, status, systemd, unsupported, words};
use crate::merge::maintainer::files::MACHINE_ID;
use crate::merge::units::{Scope, helper, offline, sysv};

/// What systemctl does to running units alone, which it ignores where nothing runs.
const RUNNING: [&str; 17] = [
    "start",
    "stop",
    "restart",
    "reload",
    "try-restart",
    "reload-or-restart",
    "try-reload-or-restart",
    "condrestart",
    "condreload",
    "force-reload",
    "reload-or-try-restart",
    "kill",
    "isolate",
    "reset-failed",
    "daemon-reload",
    "daemon-reexec",
    "try-reload",
];

pub(super) fn find(name: &str) -> Option<Command> {
    Some(match name {
        "deb-systemd-helper" => deb_systemd_helper,
        "deb-systemd-invoke" | "invoke-rc.d" | "service" => no_services,
        "journalctl" => systemd::journalctl,
        "systemctl" => systemctl,
        "systemd-run" => not_booted,
        "systemd-machine-id-setup" => machine_id_setup,
        "dbus-uuidgen" => dbus_uuidgen,
        "update-rc.d" => update_rc,
        _ => return None,
    })
}

/// Nothing runs, so that nothing is started or stopped: as with a policy-rc.d that says so.
fn no_services(_system: &mut System<'_, '_>, _call: &mut Call<'_>) -> Done {
    status(0)
}

fn not_booted(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    call.stderr.extend_from_slice(b"System has not been booted with systemd as init system (PID 1). Can't operate.\n");
    status(1)
}

/// Creates the file of the machine ID. Images contain it empty: the first boot generates the ID.
fn machine_id_setup(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    if !call.args.is_empty() {
        return unsupported(call);
    }
    if !is_present(call) || call.files.lookup(MACHINE_ID, Follow::Yes).is_ok() {
        return ends(call, Outcome::Status(0));
    }
    if call.files.write(MACHINE_ID, Vec::new(), 0o444).and_then(|()| call.files.set_mode(MACHINE_ID, 0o444)).is_err() {
        return unsupported(call);
    }
    call.stderr.extend_from_slice(b"Initializing machine ID from random generator.\n");
    status(0)
}

/// Copies the machine ID for D-Bus. Images do not contain the copy: systemd-tmpfiles creates a link on each boot.
fn dbus_uuidgen(_system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    match call.args {
        [option] if option == b"--ensure" => ends(call, Outcome::Status(0)),
        _ => unsupported(call),
    }
}

fn deb_systemd_helper(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let (options, words): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let [action, names @ ..] = words.as_slice() else { return unsupported(call) };
    let known = options.iter().all(|option| matches!(*option, "--quiet" | "--user" | "--system" | "--no-enable"));
    if !known || names.is_empty() || names.iter().any(|name| name.contains('/')) {
        return unsupported(call);
    }
    let scope = if options.contains(&"--user") { Scope::User } else { Scope::System };
    let target = &mut system.target();
    let mut unread = Vec::new();
    let mut answer = None;
    for unit in names {
        let read = match *action {
            "enable" => helper::enable(target, scope, unit)?,
            "update-state" => helper::update(target, scope, unit)?,
            "reenable" if !helper::was_enabled(target, scope, unit)? => true,
            "reenable" => helper::enable(target, scope, unit)?,
            "disable" => helper::disable(target, scope, unit).map(|()| true)?,
            "purge" => helper::purge(target, scope, unit).map(|()| true)?,
            "mask" => helper::mask(target, scope, unit).map(|()| true)?,
            "unmask" => helper::unmask(target, scope, unit).map(|()| true)?,
            "was-enabled" => {
                let enabled = helper::was_enabled(target, scope, unit)?;
                answer = Some(answer.unwrap_or(true) && enabled);
                true
            }
            "is-enabled" => {
                let enabled = helper::is_enabled(target, scope, unit)?;
                answer = Some(answer.unwrap_or(true) && enabled.unwrap_or(false));
                enabled.is_some()
            }
            "debian-installed" => {
                answer = Some(answer.unwrap_or(false) || helper::has_record(target, scope, unit));
                true
            }
            _ => return unsupported(call),
        };
        if !read {
            unread.push(*unit);
        }
    }
    for unit in &unread {
        call.stderr.extend_from_slice(format!("deb-systemd-helper: error: unable to read {unit}\n").as_bytes());
    }
    if let Some(enabled) = answer.filter(|_| *action != "debian-installed" && !options.contains(&"--quiet")) {
        call.stderr.extend_from_slice(if enabled { b"enabled\n" } else { b"disabled\n" });
    }
    status(u8::from(!unread.is_empty() || answer == Some(false)))
}

fn systemctl(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let (options, words): (Vec<&str>, Vec<&str>) =
        words.iter().map(String::as_str).partition(|word| word.starts_with('-'));
    let known = [
        "--quiet",
        "-q",
        "--system",
        "--global",
        "--user",
        "--no-reload",
        "--root=/",
        "--now",
        "--force",
        "-f",
        "--no-ask-password",
        "--no-block",
        "--no-pager",
    ];
    // Without a verb, it lists units.
    let (verb, names) = words.split_first().unwrap_or((&"list-units", &[]));
    if !options.iter().all(|option| known.contains(option)) || names.iter().any(|name| name.contains('/')) {
        return unsupported(call);
    }
    let has = |option: &str| options.contains(&option);
    if RUNNING.contains(verb) {
        return status(0);
    }
    match *verb {
        "is-active" | "is-failed" | "list-units" => return not_booted(system, call),
        "is-system-running" => {
            if !has("--quiet") && !has("-q") {
                call.stdout.extend_from_slice(b"offline\n");
            }
            return status(1);
        }
        _ if names.is_empty() => return unsupported(call),
        _ => {}
    }
    let scope = if has("--global") || has("--user") { Scope::User } else { Scope::System };
    let target = &mut system.target();
    let (mut code, mut good) = (0, false);
    for name in names {
        let unit = &if name.contains('.') { (*name).to_owned() } else { format!("{name}.service") };
        let done = match *verb {
            "is-enabled" => {
                let state = offline::state(target, scope, unit)?;
                if !has("--quiet") && !has("-q") {
                    call.stdout.extend_from_slice(format!("{}\n", state.name()).as_bytes());
                }
                good |= state.status() == 0;
                code = state.status();
                Ok(())
            }
            "enable" => offline::enable(target, scope, unit)?,
            "disable" => offline::disable(target, scope, unit).map(Ok)?,
            "reenable" => {
                offline::disable(target, scope, unit)?;
                offline::enable(target, scope, unit)?
            }
            "preset" => offline::preset(target, scope, unit)?,
            "mask" => offline::mask(target, scope, unit)?,
            "unmask" => offline::unmask(target, scope, unit).map(Ok)?,
            _ => return unsupported(call),
        };
        if let Err(message) = done {
            call.stderr.extend_from_slice(format!("{message}\n").as_bytes());
            code = 1;
        }
    }
    status(if good { 0 } else { code })
}

const USAGE: &str = "usage: update-rc.d [-f] <basename> remove
       update-rc.d [-f] <basename> defaults
       update-rc.d [-f] <basename> defaults-disabled
       update-rc.d <basename> disable|enable [S|2|3|4|5]
\t\t-f: force

The disable|enable API is not stable and might change in the future.
";

fn update_rc(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(words) = words(call) else { return unsupported(call) };
    let words: Vec<&str> = words.iter().map(String::as_str).skip_while(|word| *word == "-f").collect();
    let mut told = Vec::new();
    let target = &mut system.target();
    let done = match words.as_slice() {
        ["-h" | "--help", ..] => Err(None),
        [option, ..] if option.starts_with('-') => Err(Some("unknown option")),
        [] | [_] => Err(Some("not enough arguments")),
        [script, "defaults", ..] => Ok(sysv::defaults(target, script, true)?),
        [script, "defaults-disabled", ..] => Ok(sysv::defaults(target, script, false)?),
        [script, "start" | "stop", ..] => {
            let done = sysv::defaults(target, script, true)?;
            let message = "start and stop actions are no longer supported; falling back to defaults";
            told.extend(done.is_ok().then(|| format!("update-rc.d: warning: {message}")));
            Ok(done)
        }
        [script, "remove", ..] => Ok(sysv::remove(target, script).map(Ok)?),
        [script, "enable", levels @ ..] => Ok(sysv::switch(target, script, true, levels, &mut told)?),
        [script, "disable", levels @ ..] => Ok(sysv::switch(target, script, false, levels, &mut told)?),
        _ => Err(None),
    };
    let code = match done {
        Ok(Ok(())) => 0,
        Ok(Err(message)) => {
            told.push(format!("update-rc.d: error: {message}"));
            1
        }
        Err(message) => {
            told.extend(message.map(|message| format!("update-rc.d: error: {message}")));
            told.push(USAGE.trim_end().to_owned());
            1
        }
    };
    call.stderr.extend(told.iter().flat_map(|line| format!("{line}\n").into_bytes()));
    status(code)
}

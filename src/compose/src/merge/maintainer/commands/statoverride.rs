//! dpkg-statoverride(1).

use vmbake_shell::{Call, Commands as _, Follow, fnmatch};

use super::options::{self, Options, Spec};
use super::{Command, Done, System, fails, status, unsupported};
use crate::merge::overrides::Stat;

const PROGRAM: &str = "dpkg-statoverride";

const ACTIONS: [&str; 3] = ["add", "remove", "list"];

const OPTIONS: [Spec; 9] = [
    ("add", None, false),
    ("remove", None, false),
    ("list", None, false),
    ("update", None, false),
    ("quiet", None, false),
    ("force", None, false),
    ("force-all", None, false),
    ("force-statoverride-add", None, false),
    ("force-statoverride-remove", None, false),
];

pub(super) fn find(name: &str) -> Option<Command> {
    (name == PROGRAM).then_some(statoverride as Command)
}

fn statoverride(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(options) = options::parse(call, &OPTIONS) else { return unsupported(call) };
    match options.among(&ACTIONS)[..] {
        ["add"] => add(system, call, &options),
        ["remove"] => remove(system, call, &options),
        ["list"] => list(system, call, &options.operands),
        [] => fails(call, PROGRAM, "need an action option"),
        _ => unsupported(call),
    }
}

fn add(system: &mut System<'_, '_>, call: &mut Call<'_>, options: &Options) -> Done {
    let [user, group, mode, path] = &options.operands[..] else {
        return fails(call, PROGRAM, "--add needs four arguments");
    };
    let path = &absolute(path);
    let Some(uid) = id(user, || system.user_id(&*call.files, user.as_bytes())) else {
        return fails(call, PROGRAM, &format!("user '{user}' does not exist"));
    };
    let Some(gid) = id(group, || system.group_id(&*call.files, group.as_bytes())) else {
        return fails(call, PROGRAM, &format!("group '{group}' does not exist"));
    };
    let Some(mode) = u16::from_str_radix(mode, 8).ok().filter(|mode| *mode <= 0o7777) else {
        return fails(call, PROGRAM, &format!("invalid statoverride mode {mode}"));
    };
    if path.contains('\n') {
        return fails(call, PROGRAM, "file may not contain newlines");
    }
    if set(system, path).is_some() {
        let exists = format!("an override for '{path}' already exists");
        if !forced(options, "force-statoverride-add") {
            return fails(call, PROGRAM, &format!("{exists}; aborting"));
        }
        warn(call, options, &format!("{exists}, but --force specified so will be ignored"));
    }
    if options.has("update") {
        if call.files.lookup(path.as_bytes(), Follow::Yes).is_err() {
            warn(call, options, &format!("--update given but {path} does not exist"));
        } else {
            let done = call.files.set_owner(path.as_bytes(), uid, gid, Follow::Yes);
            if let Err(error) = done.and_then(|()| call.files.set_mode(path.as_bytes(), mode)) {
                return fails(call, PROGRAM, &format!("error setting ownership of '{path}': {error}"));
            }
        }
    }
    let name = |found: Option<Vec<u8>>, id: u32| {
        found.and_then(|name| String::from_utf8(name).ok()).unwrap_or_else(|| format!("#{id}"))
    };
    let user = name(system.user_name(&*call.files, uid), uid);
    let group = name(system.group_name(&*call.files, gid), gid);
    system.database.overrides.set_stat(&mut system.target(), path, Some(Stat { user, group, mode }))?;
    status(0)
}

fn remove(system: &mut System<'_, '_>, call: &mut Call<'_>, options: &Options) -> Done {
    let [path] = &options.operands[..] else { return fails(call, PROGRAM, "--remove needs a single argument") };
    let path = &absolute(path);
    if set(system, path).is_none() {
        warn(call, options, "no override present");
        return status(if forced(options, "force-statoverride-remove") { 0 } else { 2 });
    }
    if options.has("update") {
        warn(call, options, "--update is useless for --remove");
    }
    system.database.overrides.set_stat(&mut system.target(), path, None)?;
    status(0)
}

/// `--list`: fails where nothing fits.
fn list(system: &System<'_, '_>, call: &mut Call<'_>, patterns: &[String]) -> Done {
    let patterns: Vec<String> = match patterns {
        [] => vec!["*".to_owned()],
        patterns => patterns.iter().map(|pattern| trimmed(pattern).to_owned()).collect(),
    };
    let mut found = false;
    for (path, Stat { user, group, mode }) in system.database.overrides.stats() {
        if patterns.iter().any(|pattern| fnmatch(pattern.as_bytes(), path.as_bytes())) {
            call.stdout.extend(format!("{user} {group} {mode:o} {path}\n").bytes());
            found = true;
        }
    }
    status(u8::from(!found))
}

/// What is set for a path.
fn set(system: &System<'_, '_>, path: &str) -> Option<Stat> {
    let all = system.database.overrides.stats();
    all.into_iter().find(|(found, _)| *found == path).map(|(_, stat)| stat.clone())
}

/// An id by number after `#`, or as a name has it.
fn id(name: &str, named: impl FnOnce() -> Option<u32>) -> Option<u32> {
    match name.strip_prefix('#') {
        Some(number) => number.parse().ok(),
        None => named(),
    }
}

fn trimmed(path: &str) -> &str {
    if path.len() > 1 { path.trim_end_matches('/') } else { path }
}

fn absolute(path: &str) -> String {
    format!("/{}", trimmed(path).trim_start_matches('/'))
}

fn forced(options: &Options, name: &str) -> bool {
    options.has("force") || options.has("force-all") || options.has(name)
}

fn warn(call: &mut Call<'_>, options: &Options, message: &str) {
    if !options.has("quiet") {
        call.stderr.extend(format!("{PROGRAM}: warning: {message}\n").bytes());
    }
}

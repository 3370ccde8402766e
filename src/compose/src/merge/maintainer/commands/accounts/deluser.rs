//! deluser(8) and delgroup(8).

use vmbake_shell::Call;

use super::adduser_conf::Conf;
use super::{Done, Known, System, flag, parse, save, status, unsupported, words};
use crate::merge::accounts::{Defs, Tables};

const KNOWN: &[Known] = &[
    flag("system", '\0'),
    flag("group", '\0'),
    flag("only-if-empty", '\0'),
    flag("quiet", 'q'),
    flag("verbose", '\0'),
];

pub(super) fn deluser(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, KNOWN)) else { return unsupported(call) };
    let conf = Conf::read(system)?;
    match parsed.operands.as_slice() {
        [user, group] => part(system, call, &conf, user, group),
        [group] if parsed.has("group") && conf.old => remove_group(system, call, &conf, parsed.has("system"), group),
        [user] => remove_user(system, call, &conf, parsed.has("system"), user),
        _ => unsupported(call),
    }
}

pub(super) fn delgroup(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, KNOWN)) else { return unsupported(call) };
    let conf = Conf::read(system)?;
    let [group] = parsed.operands.as_slice() else { return unsupported(call) };
    if parsed.has("only-if-empty") && !Tables::read(&system.target())?.group.members(group).is_empty() {
        return conf.fatal(call, 41, 5, &format!("The group `{group}' is not empty!"));
    }
    remove_group(system, call, &conf, parsed.has("system"), group)
}

fn part(system: &System<'_, '_>, call: &mut Call<'_>, conf: &Conf, user: &str, group: &str) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if tables.passwd.find(user).is_none() {
        return conf.fatal(call, 12, 2, &format!("The user `{user}' does not exist."));
    }
    if tables.group.find(group).is_none() {
        return conf.fatal(call, 12, 3, &format!("The group `{group}' does not exist."));
    }
    if !tables.group.members(group).iter().any(|member| member == user) {
        return conf.fatal(call, 42, 6, &format!("The user `{user}' is not a member of group `{group}'."));
    }
    tables.part(group, user);
    save(&mut target, &tables)?;
    status(0)
}

fn remove_user(system: &System<'_, '_>, call: &mut Call<'_>, conf: &Conf, only_system: bool, user: &str) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    match tables.passwd.id(user) {
        None if only_system => return status(0),
        None => return conf.fatal(call, 12, 2, &format!("The user `{user}' does not exist.")),
        Some(0) => return conf.fatal(call, 55, 9, "You are just about to delete the root account (uid 0)."),
        Some(uid) if only_system && !(conf.system_uids.0..=conf.system_uids.1).contains(&uid) => {
            return conf.fatal(call, 13, 1, &format!("The user `{user}' is not a system user. Exiting."));
        }
        Some(_) => {}
    }
    tables.remove_user(user, &Defs::read(&target)?);
    save(&mut target, &tables)?;
    status(0)
}

fn remove_group(system: &System<'_, '_>, call: &mut Call<'_>, conf: &Conf, only_system: bool, group: &str) -> Done {
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(gid) = tables.group.id(group) else {
        let message = format!("The group `{group}' does not exist.");
        if !only_system {
            return conf.fatal(call, 12, 3, &message);
        }
        call.stderr.extend_from_slice(format!("warn: {message}\n").as_bytes());
        return status(0);
    };
    if only_system && !(conf.system_gids.0..=conf.system_gids.1).contains(&gid) {
        return conf.fatal(call, 13, 3, &format!("The group `{group}' is not a system group. Exiting."));
    }
    if let Some(user) = tables.primary_user(gid) {
        return conf.fatal(call, 82, 1, &format!("cannot remove the primary group of user '{user}'"));
    }
    tables.group.remove(group);
    tables.gshadow.remove(group);
    save(&mut target, &tables)?;
    status(0)
}

//! groupadd(8), groupmod(8), groupdel(8), gpasswd(1).

use vmbake_shell::Call;

use super::{Done, Known, System, fail, flag, is_field, is_name, parse, save, status, unsupported, value, words};
use crate::merge::accounts::{AccountKind, Defs, Tables, above, below};

pub(super) const GROUPADD: &[Known] =
    &[flag("system", 'r'), flag("force", 'f'), value("gid", 'g'), flag("non-unique", 'o'), value("password", 'p')];
const GROUPMOD: &[Known] = &[value("gid", 'g'), value("new-name", 'n'), flag("non-unique", 'o')];
const GROUPDEL: &[Known] = &[flag("force", 'f')];
const GPASSWD: &[Known] = &[value("add", 'a'), value("delete", 'd')];

pub(super) fn groupadd(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, GROUPADD)) else { return unsupported(call) };
    let ([name], Some(wanted)) = (parsed.operands.as_slice(), number(parsed.value("gid"))) else {
        return unsupported(call);
    };
    let password = parsed.value("password").unwrap_or("!");
    if !is_field(password) {
        return unsupported(call);
    }
    if !is_name(name) {
        return fail(call, 3, &format!("'{name}' is not a valid group name"));
    }
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if tables.group.find(name).is_some() {
        let message = format!("group '{name}' already exists");
        return if parsed.has("force") { status(0) } else { fail(call, 9, &message) };
    }
    let taken = wanted.filter(|gid| tables.group.name(*gid).is_some() && !parsed.has("non-unique"));
    if let Some(gid) = taken.filter(|_| !parsed.has("force")) {
        return fail(call, 4, &format!("GID '{gid}' already exists"));
    }
    let ids = &mut system.database.ids;
    let gid = match wanted.filter(|_| taken.is_none()) {
        Some(gid) => {
            ids.record(AccountKind::Group, name, gid);
            Some(gid)
        }
        None => {
            let defs = Defs::read(&target)?;
            ids.choose(AccountKind::Group, name, &tables, |taken| match parsed.has("system") {
                true => below(taken, defs.system_gids.0, defs.system_gids.1),
                false => above(taken, defs.gids.0, defs.gids.1),
            })?
        }
    };
    let Some(gid) = gid else { return fail(call, 4, "Can't get unique GID (no more available GIDs)") };
    tables.add_group(name, gid, password);
    save(&mut target, &tables)?;
    status(0)
}

/// A number that may be left out; `None` where it is none.
fn number(text: Option<&str>) -> Option<Option<u32>> {
    match text {
        None => Some(None),
        Some(text) => text.parse().ok().map(Some),
    }
}

pub(super) fn groupmod(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, GROUPMOD)) else { return unsupported(call) };
    let ([name], Some(gid)) = (parsed.operands.as_slice(), number(parsed.value("gid"))) else {
        return unsupported(call);
    };
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(old) = tables.group.id(name) else {
        return fail(call, 6, &format!("group '{name}' does not exist"));
    };
    if let Some(gid) = gid.filter(|gid| *gid != old) {
        if tables.group.name(gid).is_some() && !parsed.has("non-unique") {
            return fail(call, 4, &format!("GID '{gid}' already exists"));
        }
        let users: Vec<String> = tables
            .passwd
            .lines()
            .filter(|line| line.get(3) == Some(&old.to_string()))
            .filter_map(|line| line.first().cloned())
            .collect();
        for user in users {
            tables.passwd.set(&user, 3, &gid.to_string());
        }
        tables.group.set(name, 2, &gid.to_string());
        system.database.ids.record(AccountKind::Group, name, gid);
    }
    if let Some(new) = parsed.value("new-name").filter(|new| new != name) {
        if !is_name(new) {
            return fail(call, 3, &format!("invalid group name '{new}'"));
        }
        if tables.group.find(new).is_some() {
            return fail(call, 9, &format!("group '{new}' already exists"));
        }
        tables.group.set(name, 0, new);
        tables.gshadow.set(name, 0, new);
    }
    save(&mut target, &tables)?;
    status(0)
}

pub(super) fn groupdel(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, GROUPDEL)) else { return unsupported(call) };
    let [name] = parsed.operands.as_slice() else { return unsupported(call) };
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(gid) = tables.group.id(name) else {
        return fail(call, 6, &format!("group '{name}' does not exist"));
    };
    if let Some(user) = tables.primary_user(gid).filter(|_| !parsed.has("force")) {
        return fail(call, 8, &format!("cannot remove the primary group of user '{user}'"));
    }
    tables.group.remove(name);
    tables.gshadow.remove(name);
    save(&mut target, &tables)?;
    status(0)
}

pub(super) fn gpasswd(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, GPASSWD)) else { return unsupported(call) };
    let [group] = parsed.operands.as_slice() else { return unsupported(call) };
    let (adds, parts) = (parsed.value("add"), parsed.value("delete"));
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    if tables.group.find(group).is_none() {
        return fail(call, 3, &format!("group '{group}' does not exist in /etc/group"));
    }
    let user = adds.or(parts).unwrap_or_default();
    if adds.is_some() && tables.passwd.find(user).is_none() {
        return fail(call, 3, &format!("user '{user}' does not exist"));
    }
    let member = tables.group.members(group).iter().any(|member| member == user);
    match (adds, parts) {
        (Some(_), None) => {
            call.stdout.extend_from_slice(format!("Adding user {user} to group {group}\n").as_bytes());
            tables.join(group, user);
        }
        (None, Some(_)) => {
            call.stdout.extend_from_slice(format!("Removing user {user} from group {group}\n").as_bytes());
            if !member {
                return fail(call, 3, &format!("user '{user}' is not a member of '{group}'"));
            }
            tables.part(group, user);
        }
        _ => return unsupported(call),
    }
    save(&mut target, &tables)?;
    status(0)
}

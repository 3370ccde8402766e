//! useradd(8) and userdel(8).

use vmbake_shell::Call;

use super::{
    Done, Known, NewUser, Parsed, System, fail, flag, group_id, is_field, is_name, make_home, parse, save, status,
    unsupported, value, words,
};
use crate::merge::MergeError;
use crate::merge::accounts::{AccountKind, Defs, KEYS, Tables, UserDefaults, above, below};

pub(super) const KNOWN: &[Known] = &[
    flag("system", 'r'),
    value("uid", 'u'),
    value("gid", 'g'),
    value("groups", 'G'),
    value("home-dir", 'd'),
    value("home", '\0'),
    value("base-dir", 'b'),
    value("shell", 's'),
    value("comment", 'c'),
    value("password", 'p'),
    flag("create-home", 'm'),
    flag("no-create-home", 'M'),
    flag("user-group", 'U'),
    flag("no-user-group", 'N'),
    flag("non-unique", 'o'),
    flag("no-log-init", 'l'),
    flag("badname", '\0'),
    value("skel", 'k'),
    value("key", 'K'),
];

const USERDEL: &[Known] = &[flag("remove", 'r'), flag("force", 'f')];

pub(super) fn useradd(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, KNOWN)) else { return unsupported(call) };
    let [name] = parsed.operands.as_slice() else { return unsupported(call) };
    if !is_name(name) {
        return fail(call, 19, &format!("invalid user name '{name}': use --badname to ignore"));
    }
    let fields = ["home-dir", "home", "base-dir", "shell", "comment", "password"];
    let settings: Option<String> = parsed.values("key").map(setting).collect();
    let uid = parsed.value("uid").map(str::parse::<u32>);
    if fields.iter().filter_map(|name| parsed.value(name)).any(|text| !is_field(text)) || matches!(uid, Some(Err(_))) {
        return unsupported(call);
    }
    let Some(settings) = settings.filter(|_| parsed.has("create-home") || !parsed.has("skel")) else {
        return unsupported(call);
    };
    let uid = uid.and_then(Result::ok);
    let tables = Tables::read(&system.target())?;
    if tables.passwd.find(name).is_some() {
        return fail(call, 9, &format!("user '{name}' already exists"));
    }
    if let Some(uid) = uid.filter(|uid| tables.passwd.name(*uid).is_some() && !parsed.has("non-unique")) {
        return fail(call, 4, &format!("UID {uid} is not unique"));
    }
    let groups = [parsed.value("gid"), parsed.value("groups")];
    let mut named = groups.into_iter().flatten().flat_map(|list| list.split(',')).filter(|name| !name.is_empty());
    if let Some(missing) = named.find(|group| group_id(&tables, group).is_none()) {
        return fail(call, 6, &format!("group '{missing}' does not exist"));
    }
    let target = system.target();
    let (defs, defaults) = (Defs::with(&target, &settings)?, UserDefaults::read(&target)?);
    drop(target);
    if defaults.mail && !parsed.has("system") {
        return unsupported(call);
    }
    create(system, call, &NewAccount { parsed: &parsed, name, uid, defs, defaults }, tables)
}

/// A line of login.defs(5) for `-K KEY=VALUE`.
fn setting(text: &str) -> Option<String> {
    let (key, value) = text.split_once('=')?;
    let is_known = KEYS.contains(&key) && !value.is_empty() && !value.contains(char::is_whitespace);
    is_known.then(|| format!("{key} {value}\n"))
}

/// What a call asks for, and what the system says of new users.
struct NewAccount<'a> {
    parsed: &'a Parsed,
    name: &'a str,
    uid: Option<u32>,
    defs: Defs,
    defaults: UserDefaults,
}

fn create(system: &mut System<'_, '_>, call: &mut Call<'_>, account: &NewAccount<'_>, mut tables: Tables) -> Done {
    let NewAccount { parsed, name, uid, defs, defaults } = account;
    let (name, uid) = (*name, *uid);
    let mut target = system.target();
    let is_system = parsed.has("system");
    let ids = &mut system.database.ids;
    let uid = match uid {
        Some(uid) => {
            ids.record(AccountKind::User, name, uid);
            Some(uid)
        }
        None => {
            let ((first, last), free) =
                if is_system { (defs.system_uids, below as Free) } else { (defs.uids, above as Free) };
            ids.choose(AccountKind::User, name, &tables, |taken| free(taken, first, last))?
        }
    };
    let Some(uid) = uid else { return fail(call, 4, "can't get unique UID (no more available UIDs)") };
    let wants_group = parsed.has("user-group") || (defs.user_groups && !parsed.has("no-user-group"));
    let gid = match parsed.value("gid").and_then(|group| group_id(&tables, group)) {
        Some(gid) => gid,
        None if wants_group => {
            if tables.group.find(name).is_some() {
                let message = format!("group {name} exists - if you want to add this user to that group, use -g.");
                return fail(call, 9, &message);
            }
            let (first, last) = if is_system { defs.system_gids } else { defs.gids };
            let free = |taken: &std::collections::BTreeSet<u32>| match taken.contains(&uid) {
                false => Some(uid),
                true if is_system => below(taken, first, last),
                true => above(taken, first, last),
            };
            let Some(gid) = ids.choose(AccountKind::Group, name, &tables, free)? else {
                return fail(call, 4, "can't create group");
            };
            tables.add_group(name, gid, "!");
            gid
        }
        None => group_id(&tables, &defaults.group).unwrap_or(100),
    };
    for group in parsed.value("groups").into_iter().flat_map(|list| list.split(',')) {
        join(&mut tables, group, name);
    }
    let default_home = format!("{}/{name}", parsed.value("base-dir").unwrap_or(&defaults.base));
    let user = NewUser {
        name,
        uid,
        gid,
        gecos: parsed.value("comment").unwrap_or_default(),
        home: parsed.value("home-dir").or_else(|| parsed.value("home")).unwrap_or(&default_home),
        shell: parsed.value("shell").unwrap_or(&defaults.shell),
        password: parsed.value("password").unwrap_or("!"),
        aging: &defs.aging(is_system),
    };
    tables.add_user(&user);
    if !is_system {
        tables.subordinate(name, defs);
    }
    save(&mut target, &tables)?;
    let wants_home = defs.homes && !is_system && !parsed.has("no-create-home");
    if parsed.has("create-home") || wants_home {
        make_home(&mut target, &user, defs.home_mode, Some(parsed.value("skel").unwrap_or(&defaults.skeleton)))?;
    }
    status(0)
}

type Free = fn(&std::collections::BTreeSet<u32>, u32, u32) -> Option<u32>;

/// Makes a user a member of a group that is named by its name or its number.
pub(super) fn join(tables: &mut Tables, group: &str, user: &str) {
    let group = match group.parse::<u32>() {
        Ok(id) => tables.group.name(id).map(str::to_owned),
        Err(_) => Some(group.to_owned()),
    };
    if let Some(group) = group {
        tables.join(&group, user);
    }
}

pub(super) fn userdel(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, USERDEL)) else { return unsupported(call) };
    let [name] = parsed.operands.as_slice() else { return unsupported(call) };
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(home) = tables.passwd.field(name, 5).map(str::to_owned) else {
        return fail(call, 6, &format!("user '{name}' does not exist"));
    };
    let own = tables.passwd.field(name, 2).map(str::to_owned);
    tables.remove_user(name, &Defs::read(&target)?);
    save(&mut target, &tables)?;
    if parsed.has("remove") {
        remove_home(&mut target, &home, own.as_deref().unwrap_or_default())?;
    }
    status(0)
}

/// Removes a home directory that belongs to its user.
fn remove_home(target: &mut crate::merge::place::Target, home: &str, owner: &str) -> Result<(), MergeError> {
    let found = target.wrap(target.tree.find(home.as_bytes()))?;
    if found.is_some_and(|id| target.tree.inode(id).meta.uid.to_string() == owner) && home.starts_with('/') {
        target.remove_below(home)?;
    }
    Ok(())
}

//! usermod(8).

use vmbake_disk::tree::Kind;
use vmbake_layer::ATTRIBUTE;
use vmbake_shell::Call;

use super::useradd::join;
use super::{
    Done, Known, Parsed, System, fail, flag, group_id, is_field, is_name, parse, save, status, unsupported, value,
    words,
};
use crate::merge::MergeError;
use crate::merge::accounts::{AccountKind, Tables};
use crate::merge::place::Target;

const KNOWN: &[Known] = &[
    flag("append", 'a'),
    flag("remove", 'r'),
    value("groups", 'G'),
    value("gid", 'g'),
    value("home", 'd'),
    flag("move-home", 'm'),
    value("shell", 's'),
    value("comment", 'c'),
    value("password", 'p'),
    value("uid", 'u'),
    value("login", 'l'),
    flag("lock", 'L'),
    flag("unlock", 'U'),
    value("expiredate", 'e'),
    flag("non-unique", 'o'),
    value("add-subuids", 'v'),
    value("add-subgids", 'w'),
];

/// Fields of passwd(5).
const UID: usize = 2;
const GID: usize = 3;
/// Field of shadow(5): the day on which an account expires.
const EXPIRE: usize = 7;
const FIELDS: [(&str, usize); 3] = [("comment", 4), ("home", 5), ("shell", 6)];

pub(super) fn usermod(system: &mut System<'_, '_>, call: &mut Call<'_>) -> Done {
    let Some(parsed) = words(call).and_then(|words| parse(&words, KNOWN)) else { return unsupported(call) };
    let [name] = parsed.operands.as_slice() else { return unsupported(call) };
    let texts = ["home", "shell", "comment", "password"];
    let bad_id = parsed.value("uid").is_some_and(|uid| uid.parse::<u32>().is_err());
    let bad_name = parsed.value("login").is_some_and(|name| !is_name(name));
    // A day would be one of the account's for ever.
    let expires = parsed.value("expiredate").is_some_and(|day| !day.is_empty());
    if bad_id || bad_name || expires || texts.iter().filter_map(|name| parsed.value(name)).any(|text| !is_field(text)) {
        return unsupported(call);
    }
    let mut target = system.target();
    let mut tables = Tables::read(&target)?;
    let Some(home) = tables.passwd.field(name, 5).map(str::to_owned) else {
        return fail(call, 6, &format!("user '{name}' does not exist"));
    };
    let groups = [parsed.value("gid"), parsed.value("groups")];
    let mut named = groups.into_iter().flatten().flat_map(|list| list.split(',')).filter(|name| !name.is_empty());
    if let Some(missing) = named.find(|group| group_id(&tables, group).is_none()) {
        return fail(call, 6, &format!("group '{missing}' does not exist"));
    }
    if let Some(uid) = parsed.value("uid").and_then(|uid| uid.parse::<u32>().ok()) {
        let other = tables.passwd.name(uid).is_some_and(|found| found != name);
        if other && !parsed.has("non-unique") {
            return fail(call, 4, &format!("UID '{uid}' already exists"));
        }
        if tables.passwd.id(name) != Some(uid) {
            system.database.ids.record(AccountKind::User, name, uid);
            give(&mut target, &home, tables.passwd.id(name), uid)?;
            change(&mut tables, name, UID, &uid.to_string());
        }
    }
    for key in ["add-subuids", "add-subgids"] {
        if let Some(range) = parsed.value(key) {
            let Some(range) = range.split_once('-').and_then(|(first, last)| subordinate(first, last)) else {
                return unsupported(call);
            };
            let table = if key == "add-subuids" { &mut tables.subuid } else { &mut tables.subgid };
            table.push(&format!("{name}:{range}"));
        }
    }
    fields(&mut tables, &parsed, name);
    password(&mut tables, &parsed, name);
    if parsed.value("expiredate").is_some() && tables.shadow.field(name, EXPIRE).is_some_and(|day| !day.is_empty()) {
        tables.shadow.set(name, EXPIRE, "");
    }
    memberships(&mut tables, &parsed, name);
    if let Some(new) = parsed.value("login") {
        if tables.passwd.find(new).is_some() {
            return fail(call, 9, &format!("user '{new}' already exists"));
        }
        rename(&mut tables, name, new);
    }
    save(&mut target, &tables)?;
    match parsed.value("home").filter(|new| parsed.has("move-home") && *new != home) {
        Some(new) => move_home(&mut target, &home, new),
        None => Ok(()),
    }?;
    status(0)
}

/// `FIRST-LAST` as `FIRST:COUNT`
fn subordinate(first: &str, last: &str) -> Option<String> {
    let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
    let count = u64::from(last.checked_sub(first)?) + 1;
    Some(format!("{first}:{count}"))
}

fn change(tables: &mut Tables, name: &str, field: usize, value: &str) {
    if tables.passwd.field(name, field) != Some(value) {
        tables.passwd.set(name, field, value);
    }
}

fn fields(tables: &mut Tables, parsed: &Parsed, name: &str) {
    for (key, field) in FIELDS {
        if let Some(value) = parsed.value(key) {
            change(tables, name, field, value);
        }
    }
    if let Some(gid) = parsed.value("gid").and_then(|group| group_id(tables, group)) {
        change(tables, name, GID, &gid.to_string());
    }
}

fn password(tables: &mut Tables, parsed: &Parsed, name: &str) {
    let old = tables.shadow.field(name, 1).unwrap_or_default().to_owned();
    let new = if parsed.has("lock") {
        if old.starts_with('!') { old } else { format!("!{old}") }
    } else if parsed.has("unlock") {
        match old.strip_prefix('!') {
            Some(rest) if !rest.is_empty() => rest.to_owned(),
            // It would leave the account without a password.
            _ => return,
        }
    } else if let Some(new) = parsed.value("password") {
        new.to_owned()
    } else {
        return;
    };
    tables.shadow.set(name, 1, &new);
    tables.passwd.touch();
}

fn memberships(tables: &mut Tables, parsed: &Parsed, name: &str) {
    let Some(list) = parsed.value("groups") else { return };
    let wanted: Vec<String> = list
        .split(',')
        .filter(|group| !group.is_empty())
        .filter_map(|group| group_id(tables, group).and_then(|id| tables.group.name(id)).map(str::to_owned))
        .collect();
    if parsed.has("remove") {
        wanted.iter().for_each(|group| tables.part(group, name));
        return;
    }
    if !parsed.has("append") {
        for group in tables.groups_of(name).iter().filter(|group| !wanted.contains(group)) {
            tables.part(group, name);
        }
    }
    wanted.iter().for_each(|group| join(tables, group, name));
}

/// Gives a user another name, also as a member of groups.
fn rename(tables: &mut Tables, name: &str, new: &str) {
    for group in tables.groups_of(name) {
        tables.part(&group, name);
        tables.join(&group, new);
    }
    for table in [&mut tables.passwd, &mut tables.shadow, &mut tables.subuid, &mut tables.subgid] {
        table.set(name, 0, new);
    }
}

/// Gives what a user has below its home to the user's new id. As with each change of an owner, files lose capabilities and set-id bits.
fn give(target: &mut Target, home: &str, from: Option<u32>, to: u32) -> Result<(), MergeError> {
    let Some(top) = target.wrap(target.tree.find(home.as_bytes()))?.filter(|_| home != "/") else { return Ok(()) };
    let own: Vec<_> =
        target.tree.walk_from(top).filter(|(.., inode)| Some(inode.meta.uid) == from).map(|(_, id, _)| id).collect();
    for id in own {
        let is_file = matches!(target.tree.inode(id).kind, Kind::File(_));
        let meta = target.tree.meta_mut(id);
        meta.uid = to;
        if is_file {
            meta.xattrs.remove(ATTRIBUTE);
            meta.mode &= if meta.mode & 0o010 == 0 { !0o4000 } else { !0o6000 };
        }
    }
    Ok(())
}

fn move_home(target: &mut Target, from: &str, to: &str) -> Result<(), MergeError> {
    let found = target.wrap(target.tree.find(from.as_bytes()))?;
    if found.is_none() || target.tree.resolve(to.as_bytes()).is_ok() {
        return Ok(());
    }
    target.rename(from, to)
}

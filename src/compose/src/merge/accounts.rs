//! Creates users and groups as useradd(8) and groupadd(8) do, with the ids in the layer. An id below `UID_MIN` of login.defs(5) creates a
//! system user.

mod defs;
mod ids;
mod shadowed;
mod tables;

use vmbake_disk::tree::Metadata;

pub(super) use defs::{Defs, KEYS, UserDefaults};
pub(super) use ids::AccountKind;
pub(super) use ids::{Ids, above, below, lowest};
pub(super) use tables::{NewUser, Table, Tables};

use super::MergeError;
use super::place::Target;
use vmbake_layer::{Account, Ownership, Schema, Subordinate};

/// What new home directories are copied from, unless a command says otherwise.
pub(super) const SKELETON: &str = "/etc/skel";

/// Where keys that may log in are, in a home directory.
pub(super) const AUTHORIZED_KEYS: &str = ".ssh/authorized_keys";

/// Makes the groups and users of a layer, with the users' home directories.
pub(super) fn create(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    if schema.groups.is_empty() && schema.users.is_empty() {
        return Ok(());
    }
    let defs = Defs::read(target)?;
    let users = schema.users.iter().map(|(name, account)| (name, account.id));
    for (name, id) in schema.groups.iter().map(|(name, id)| (name, *id)).chain(users) {
        if !is_there(target, schema, &defs, &Entry { what: "group", file: "/etc/group", name, id })? {
            let mut tables = Tables::read(target)?;
            tables.add_group(name, id, "!");
            tables.write(target, false)?;
        }
    }
    schema.users.iter().try_for_each(|(name, account)| user(target, schema, &defs, name, account))
}

fn user(target: &mut Target, schema: &Schema, defs: &Defs, name: &str, account: &Account) -> Result<(), MergeError> {
    let (id, shell) = (account.id, &account.shell);
    let home = account.home_of(name);
    let hash = account.password_hash.as_deref();
    if is_there(target, schema, defs, &Entry { what: "user", file: "/etc/passwd", name, id })? {
        same_user(target, schema, name, &[&id.to_string(), &home, shell])?;
    } else {
        let aging = defs.aging(id < defs.uids.0);
        let mut tables = Tables::read(target)?;
        let (home, aging, password) = (home.as_str(), aging.as_str(), hash.unwrap_or("!"));
        tables.add_user(&NewUser { name, uid: id, gid: id, gecos: "", home, shell, password, aging });
        tables.write(target, false)?;
    }
    let mut tables = Tables::read(target)?;
    if let Some(hash) = hash {
        tables.set_password(name, hash);
    }
    for group in &account.groups {
        if !tables.join(group, name) {
            let (layer, name) = (schema.name.clone(), group.clone());
            return Err(MergeError::UnknownAccount { layer, what: "group", name });
        }
    }
    for group in &account.optional_groups {
        tables.join(group, name);
    }
    tables.write(target, false)?;
    if let Some(range) = &account.subordinate {
        for file in ["/etc/subuid", "/etc/subgid"] {
            subordinate(target, schema, file, name, range)?;
        }
    }
    let owned = |target: &Target, mode| {
        let mut meta = target.meta(mode);
        (meta.uid, meta.gid) = (id, id);
        meta
    };
    target.check_end(&schema.name, home.as_bytes())?;
    // useradd leaves a directory that is there as it is.
    if target.wrap(target.tree.find(home.as_bytes()))?.is_none() {
        target.directory(&home, owned(target, defs.home_mode))?;
        target.skeleton(SKELETON, &home, id, id)?;
    }
    if account.ssh_authorized_keys.is_empty() {
        return Ok(());
    }
    let keys: String = account.ssh_authorized_keys.iter().map(|key| format!("{key}\n")).collect();
    target.directory(&format!("{home}/.ssh"), owned(target, 0o700))?;
    target.file(&format!("{home}/{AUTHORIZED_KEYS}"), owned(target, 0o600), keys.into_bytes())
}

/// Fails where a user of that name and id has another group, home or shell than the layer says.
fn same_user(target: &Target, schema: &Schema, name: &str, wanted: &[&str; 3]) -> Result<(), MergeError> {
    let text = target.text_or_empty("/etc/passwd")?;
    let found = text.lines().find(|line| line.split(':').next() == Some(name)).unwrap_or_default();
    let fields: Vec<&str> = found.split(':').collect();
    match fields.as_slice() {
        [_, _, _, group, _, home, shell] if [group, home, shell].map(|field| *field) == *wanted => Ok(()),
        [_, _, id, ..] => {
            let (layer, name, found) = (schema.name.clone(), name.to_owned(), found.to_owned());
            Err(MergeError::Account { layer, what: "user", name, id: id.parse().unwrap_or_default(), found })
        }
        _ => Ok(()),
    }
}

/// Adds a range to subuid(5) or subgid(5), unless it is there; it may not overlap with another one.
fn subordinate(
    target: &mut Target,
    schema: &Schema,
    file: &str,
    name: &str,
    range: &Subordinate,
) -> Result<(), MergeError> {
    let end = |start: u32, count: u32| u64::from(start) + u64::from(count);
    let text = target.text_or_empty(file)?;
    let own = format!("{name}:{}:{}", range.start, range.count);
    if text.lines().any(|line| line == own) {
        return Ok(());
    }
    let overlaps = |line: &&str| {
        let mut fields = line.split(':').skip(1).map(str::parse::<u32>);
        match (fields.next(), fields.next()) {
            (Some(Ok(start)), Some(Ok(count))) => {
                u64::from(start) < end(range.start, range.count) && u64::from(range.start) < end(start, count)
            }
            _ => false,
        }
    };
    if let Some(found) = text.lines().find(overlaps) {
        let (layer, found) = (schema.name.clone(), found.to_owned());
        let what = "subordinate ids of";
        return Err(MergeError::Account { layer, what, name: name.to_owned(), id: range.start, found });
    }
    append(target, file, &own)
}

/// Mode and owner of a path, names turned into the image's own ids.
pub(super) fn metadata(target: &Target, schema: &Schema, owner: &Ownership) -> Result<Metadata, MergeError> {
    let id = |what, file, name: &str| {
        lookup(target, file, name)?.ok_or_else(|| MergeError::UnknownAccount {
            layer: schema.name.clone(),
            what,
            name: name.to_owned(),
        })
    };
    let mut meta = target.meta(owner.mode);
    meta.uid = id("user", "/etc/passwd", &owner.owner)?;
    meta.gid = id("group", "/etc/group", &owner.group)?;
    Ok(meta)
}

/// The id of a name in passwd(5) or group(5): the third field of both.
pub(super) fn lookup(target: &Target, file: &str, name: &str) -> Result<Option<u32>, MergeError> {
    Ok(id_in(&target.text_or_empty(file)?, name))
}

/// The id of a name in the text of such a file.
pub(super) fn id_in(text: &str, name: &str) -> Option<u32> {
    let line = text.lines().find(|line| line.split(':').next() == Some(name));
    line.and_then(|line| line.split(':').nth(2)).and_then(|id| id.parse().ok())
}

/// A name with its id, for one of the files.
struct Entry<'a> {
    what: &'static str,
    file: &'static str,
    name: &'a str,
    id: u32,
}

/// Whether the base has the name with that id already, as an image that vmbake baked has. Fails when either of them is taken
/// otherwise, by another layer too, or when the id is outside of the ranges of login.defs(5).
fn is_there(target: &mut Target, schema: &Schema, defs: &Defs, entry: &Entry<'_>) -> Result<bool, MergeError> {
    let Entry { what, file, name, id } = *entry;
    let refused = |found| MergeError::Account { layer: schema.name.clone(), what, name: name.to_owned(), id, found };
    if !(defs.system_uids.0..=defs.uids.1).contains(&id) {
        return Err(refused(format!("the range {} to {} of /etc/login.defs", defs.system_uids.0, defs.uids.1)));
    }
    let number = id.to_string();
    let text = target.text_or_empty(file)?;
    let equal = |line: &str| (line.split(':').next() == Some(name), line.split(':').nth(2) == Some(&number));
    let new = target.accounts.insert((file, name.to_owned()));
    match text.lines().find(|line| matches!(equal(line), (true, false) | (false, true)) || (!new && equal(line).0)) {
        Some(line) => Err(refused(line.to_owned())),
        None => Ok(text.lines().any(|line| equal(line) == (true, true))),
    }
}

fn append(target: &mut Target, file: &str, line: &str) -> Result<(), MergeError> {
    let text = target.text_or_empty(file)?;
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    target.set_text(file, &format!("{text}{end}{line}\n"))
}

//! Users and groups, as useradd(8) and groupadd(8) write them, with the ids that the layer gives: an id that is once given
//! stays the same in every image. Below `UID_MIN` of login.defs(5) a user is made as by `useradd --system`.

use vmbake_disk::tree::Metadata;

use super::MergeError;
use super::place::Target;
use crate::layer::{Account, Ownership, Schema, Subordinate};

/// What login.defs(5) says of new users, with the defaults of useradd(8).
struct Defaults {
    /// The first id of a regular user; those below belong to the system.
    uid_min: u32,
    uid_max: u32,
    sys_uid_min: u32,
    /// Mode of home directories.
    home_mode: u16,
    /// Days between changes of a regular user's password: least, most, and those of the warning before.
    aging: String,
}

impl Defaults {
    fn read(target: &Target) -> Result<Self, MergeError> {
        let text = target.text_or_empty("/etc/login.defs")?;
        let find = |key: &str| {
            let mut lines = text.lines().map(str::split_whitespace);
            lines.find_map(|mut words| if words.next() == Some(key) { words.next() } else { None })
        };
        let number = |key, default: u32| find(key).and_then(|text| text.parse().ok()).unwrap_or(default);
        let mode = find("HOME_MODE").and_then(|text| u16::from_str_radix(text, 8).ok()).unwrap_or(0o700);
        let days = |key, default| find(key).unwrap_or(default);
        Ok(Self {
            uid_min: number("UID_MIN", 1000),
            uid_max: number("UID_MAX", 60_000),
            sys_uid_min: number("SYS_UID_MIN", 101),
            home_mode: mode & 0o7777,
            aging: [days("PASS_MIN_DAYS", ""), days("PASS_MAX_DAYS", ""), days("PASS_WARN_AGE", "")].join(":"),
        })
    }

    /// The fields of shadow(5) after the date of the last change.
    fn aging(&self, id: u32) -> &str {
        if id < self.uid_min { "::" } else { &self.aging }
    }
}

/// Makes the groups and users of a layer, with the users' home directories.
pub(super) fn create(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    if schema.groups.is_empty() && schema.users.is_empty() {
        return Ok(());
    }
    let defaults = Defaults::read(target)?;
    let users = schema.users.iter().map(|(name, account)| (name, account.id));
    for (name, id) in schema.groups.iter().map(|(name, id)| (name, *id)).chain(users) {
        if !is_there(target, schema, &defaults, &Entry { what: "group", file: "/etc/group", name, id })? {
            append(target, "/etc/group", &format!("{name}:x:{id}:"))?;
            append(target, "/etc/gshadow", &format!("{name}:!::"))?;
        }
    }
    schema.users.iter().try_for_each(|(name, account)| user(target, schema, &defaults, name, account))
}

fn user(
    target: &mut Target,
    schema: &Schema,
    defaults: &Defaults,
    name: &str,
    account: &Account,
) -> Result<(), MergeError> {
    let (id, shell) = (account.id, &account.shell);
    let home = account.home.clone().unwrap_or_else(|| format!("/home/{name}"));
    if is_there(target, schema, defaults, &Entry { what: "user", file: "/etc/passwd", name, id })? {
        same_user(target, schema, name, &[&id.to_string(), &home, shell])?;
    } else {
        append(target, "/etc/passwd", &format!("{name}:x:{id}:{id}::{home}:{shell}"))?;
        let days = target.epoch().secs.div_euclid(86_400);
        append(target, "/etc/shadow", &format!("{name}:!:{days}:{}:::", defaults.aging(id)))?;
    }
    for group in &account.groups {
        if !join(target, "/etc/group", group, name)? {
            let (layer, name) = (schema.name.clone(), group.clone());
            return Err(MergeError::UnknownAccount { layer, what: "group", name });
        }
        join(target, "/etc/gshadow", group, name)?;
    }
    for group in &account.optional_groups {
        join(target, "/etc/group", group, name)?;
        join(target, "/etc/gshadow", group, name)?;
    }
    if let Some(range) = &account.subordinate {
        for file in ["/etc/subuid", "/etc/subgid"] {
            subordinate(target, schema, file, name, range)?;
        }
    }
    // useradd leaves a directory that is there as it is.
    if target.wrap(target.tree.find(home.as_bytes()))?.is_some() {
        return Ok(());
    }
    let mut meta = target.meta(defaults.home_mode);
    (meta.uid, meta.gid) = (id, id);
    target.directory(&home, meta)?;
    target.skeleton(&home, id)
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
    let text = target.text_or_empty(file)?;
    let line = text.lines().find(|line| line.split(':').next() == Some(name));
    Ok(line.and_then(|line| line.split(':').nth(2)).and_then(|id| id.parse().ok()))
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
fn is_there(target: &mut Target, schema: &Schema, defaults: &Defaults, entry: &Entry<'_>) -> Result<bool, MergeError> {
    let Entry { what, file, name, id } = *entry;
    let refused = |found| MergeError::Account { layer: schema.name.clone(), what, name: name.to_owned(), id, found };
    if !(defaults.sys_uid_min..=defaults.uid_max).contains(&id) {
        return Err(refused(format!("the range {} to {} of /etc/login.defs", defaults.sys_uid_min, defaults.uid_max)));
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

/// Adds a user to the last field of a group's line; tells whether the group is there.
fn join(target: &mut Target, file: &str, group: &str, user: &str) -> Result<bool, MergeError> {
    let text = target.text_or_empty(file)?;
    let mut found = false;
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.split(':').next() == Some(group) {
            true => {
                found = true;
                match line.rsplit(':').next().is_some_and(|all| all.split(',').any(|member| member == user)) {
                    true => line.to_owned(),
                    false => format!("{line}{}{user}", if line.ends_with(':') { "" } else { "," }),
                }
            }
            false => line.to_owned(),
        })
        .collect();
    if found {
        target.set_text(file, &(lines.join("\n") + "\n"))?;
    }
    Ok(found)
}

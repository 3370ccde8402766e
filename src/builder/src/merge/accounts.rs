//! Users and groups, as useradd(8) and groupadd(8) write them, with the ids that the layer gives.

use vmbake_disk::tree::Metadata;

use super::MergeError;
use super::place::Target;
use crate::layer::{Ownership, Schema};

/// Makes the groups and users of a layer, with the users' home directories.
pub(super) fn create(target: &mut Target, schema: &Schema) -> Result<(), MergeError> {
    let users = schema.users.iter().map(|(name, account)| (name, account.id));
    for (name, id) in schema.groups.iter().map(|(name, id)| (name, *id)).chain(users) {
        check(target, schema, "group", "/etc/group", name, id)?;
        append(target, "/etc/group", &format!("{name}:x:{id}:"))?;
        append(target, "/etc/gshadow", &format!("{name}:!::"))?;
    }
    for (name, account) in &schema.users {
        let (id, home, shell) = (account.id, &account.home, &account.shell);
        check(target, schema, "user", "/etc/passwd", name, id)?;
        append(target, "/etc/passwd", &format!("{name}:x:{id}:{id}::{home}:{shell}"))?;
        let days = target.epoch().secs.div_euclid(86_400);
        append(target, "/etc/shadow", &format!("{name}:!:{days}::::::"))?;
        for group in &account.groups {
            join(target, schema, "/etc/group", group, name)?;
            join(target, schema, "/etc/gshadow", group, name)?;
        }
        let mut meta = target.meta(0o750);
        (meta.uid, meta.gid) = (id, id);
        target.directory(home, meta)?;
    }
    Ok(())
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
fn lookup(target: &Target, file: &str, name: &str) -> Result<Option<u32>, MergeError> {
    let text = target.text_or_empty(file)?;
    let line = text.lines().find(|line| line.split(':').next() == Some(name));
    Ok(line.and_then(|line| line.split(':').nth(2)).and_then(|id| id.parse().ok()))
}

/// Fails when the name or the id is taken.
fn check(
    target: &Target,
    schema: &Schema,
    what: &'static str,
    file: &str,
    name: &str,
    id: u32,
) -> Result<(), MergeError> {
    let number = id.to_string();
    let text = target.text_or_empty(file)?;
    let taken = |line: &&str| line.split(':').next() == Some(name) || line.split(':').nth(2) == Some(&number);
    match text.lines().find(taken) {
        Some(line) => Err(MergeError::Account {
            layer: schema.name.clone(),
            what,
            name: name.to_owned(),
            id,
            found: line.to_owned(),
        }),
        None => Ok(()),
    }
}

fn append(target: &mut Target, file: &str, line: &str) -> Result<(), MergeError> {
    let text = target.text_or_empty(file)?;
    target.set_text(file, &format!("{text}{line}\n"))
}

/// Adds a user to the last field of a group's line.
fn join(target: &mut Target, schema: &Schema, file: &str, group: &str, user: &str) -> Result<(), MergeError> {
    let text = target.text_or_empty(file)?;
    let mut found = false;
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.split(':').next() == Some(group) {
            true => {
                found = true;
                format!("{line}{}{user}", if line.ends_with(':') { "" } else { "," })
            }
            false => line.to_owned(),
        })
        .collect();
    if !found {
        let (layer, name) = (schema.name.clone(), group.to_owned());
        return Err(MergeError::UnknownAccount { layer, what: "group", name });
    }
    target.set_text(file, &(lines.join("\n") + "\n"))
}

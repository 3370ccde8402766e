//! systemd-sysusers(8): creates missing users, groups and memberships of sysusers.d(5). Groups are created before users; an unspecified id
//! is the highest one that neither a user nor a group has.

use super::MergeError;
use super::accounts::{AccountKind, Defs, Ids, NewUser, Tables, lookup};
use super::config::{Config, expand};
use super::place::Target;
use vmbake_common::message;

const NOLOGIN: &str = "/usr/sbin/nologin";

/// A user that a line lists.
#[derive(Debug, Default)]
struct User {
    id: Option<u32>,
    /// The id of the group with the same name.
    own: Option<u32>,
    /// A group of another name.
    group: Option<String>,
    gecos: String,
    home: Option<String>,
    shell: Option<String>,
    /// `u!`: no one can log in.
    locked: bool,
}

/// What the files list.
#[derive(Debug, Default)]
struct SysusersEntries {
    /// In their order, each with its id.
    groups: Vec<(String, Option<u32>)>,
    users: Vec<(String, User)>,
    /// Users and the groups that they belong to.
    members: Vec<(String, String)>,
    ranges: Vec<(u32, u32)>,
}

/// Makes what the files list.
pub(super) fn create(target: &mut Target, ids: &mut Ids, configs: &[Config]) -> Result<(), MergeError> {
    let mut wanted = SysusersEntries::default();
    for config in configs {
        for line in config.lines() {
            let (line, words) = line?;
            wanted.line(target, &words).ok_or_else(|| config.fault(line))?;
        }
    }
    wanted.imply();
    let defs = Defs::read(target)?;
    if wanted.ranges.is_empty() {
        wanted.ranges.push((1, defs.system_uids.1));
    }
    let mut tables = Tables::read(target)?;
    for (name, id) in &wanted.groups {
        wanted.group(&mut tables, ids, name, *id)?;
    }
    for (name, user) in &wanted.users {
        wanted.user(&mut tables, ids, name, user)?;
    }
    for (user, group) in &wanted.members {
        tables.join(group, user);
    }
    tables.write(target, true)
}

impl SysusersEntries {
    /// Reads a line; `None` where it is not understood.
    fn line(&mut self, target: &Target, words: &[String]) -> Option<()> {
        let field = |at: usize| words.get(at).map(String::as_str).filter(|word| !matches!(*word, "" | "-"));
        let name = || field(1).and_then(expand).filter(|name| is_name(name));
        let kind = words.first()?.as_str();
        match kind {
            "u" | "u!" => {
                let (id, own, group) = field(2).map_or(Some((None, None, None)), |text| user_id(target, text))?;
                let text = |at| match field(at) {
                    None => Some(None),
                    Some(text) => expand(text).filter(|text| !text.contains([':', '\n'])).map(Some),
                };
                let (gecos, home, shell) = (text(3)?.unwrap_or_default(), text(4)?, text(5)?);
                let user = User { id, own, group, gecos, home, shell, locked: kind == "u!" };
                let name = name()?;
                if self.users.iter().all(|(found, _)| *found != name) {
                    self.users.push((name, user));
                }
            }
            "g" => {
                let id = field(2).map_or(Some(None), |text| group_id(target, text))?;
                let name = name()?;
                if self.groups.iter().all(|(found, _)| *found != name) {
                    self.groups.push((name, id));
                }
            }
            "m" => {
                let group = field(2).and_then(expand).filter(|name| is_name(name))?;
                self.members.push((name()?, group));
            }
            "r" => {
                let text = field(2)?;
                let (first, last) = text.split_once('-').unwrap_or((text, text));
                self.ranges.push((first.parse().ok()?, last.parse().ok()?));
            }
            _ => return None,
        }
        (words.len() <= 6).then_some(())
    }

    /// Lists what memberships need.
    fn imply(&mut self) {
        for (user, group) in &self.members {
            if self.users.iter().all(|(name, _)| name != user) {
                self.users.push((user.clone(), User::default()));
            }
            let own = self.users.iter().any(|(name, user)| name == group && user.group.is_none());
            if !own && self.groups.iter().all(|(name, _)| name != group) {
                self.groups.push((group.clone(), None));
            }
        }
    }

    /// Makes a group, and gives its id. That of an account is not one that another account has.
    fn group(&self, tables: &mut Tables, ids: &mut Ids, name: &str, id: Option<u32>) -> Result<u32, MergeError> {
        if let Some(id) = tables.group.id(name) {
            return Ok(id);
        }
        let free = |id: &u32| fits(tables, name, *id);
        let chosen = match id.filter(free) {
            Some(id) => {
                ids.record(AccountKind::Group, name, id);
                Some(id)
            }
            None => ids.choose(AccountKind::Group, name, tables, |taken| {
                let free = |id: &u32| free(id) && !taken.contains(id);
                tables.passwd.id(name).filter(free).or_else(|| self.highest(free))
            })?,
        };
        let id = chosen.ok_or_else(|| full("group", name))?;
        tables.add_group(name, id, "!*");
        Ok(id)
    }

    fn user(&self, tables: &mut Tables, ids: &mut Ids, name: &str, user: &User) -> Result<(), MergeError> {
        let gid = match &user.group {
            Some(group) => {
                let number = group.parse::<u32>().ok();
                let found = number.or_else(|| tables.group.id(group));
                found.ok_or_else(|| {
                    MergeError::Message(message!("the group {group} of the user {name} does not exist"))
                })?
            }
            None => self.group(tables, ids, name, user.own)?,
        };
        if tables.passwd.find(name).is_some() {
            return Ok(());
        }
        let free = |id: &u32| fits(tables, name, *id);
        let unused = |id: &u32| tables.passwd.name(*id).is_none();
        // A group of another id is asked for, so that the user's id may be that of a group.
        let given = if user.own == user.id { user.id.filter(free) } else { user.id.filter(unused) };
        let chosen = match given {
            Some(id) => {
                ids.record(AccountKind::User, name, id);
                Some(id)
            }
            None => ids.choose(AccountKind::User, name, tables, |taken| {
                let free = |id: &u32| free(id) && !taken.contains(id);
                Some(gid).filter(free).or_else(|| self.highest(free))
            })?,
        };
        let uid = chosen.ok_or_else(|| full("user", name))?;
        let shell = user.shell.as_deref().unwrap_or(if uid == 0 { "/bin/sh" } else { NOLOGIN });
        let aging = if user.locked { "::::1:" } else { ":::::" };
        let home = user.home.as_deref().unwrap_or("/");
        tables.add_user(&NewUser { name, uid, gid, gecos: &user.gecos, home, shell, password: "!*", aging });
        Ok(())
    }

    /// The highest id of the ranges that fits.
    fn highest(&self, free: impl Fn(&u32) -> bool) -> Option<u32> {
        self.ranges.iter().filter_map(|(first, last)| (*first..=*last).rev().find(&free)).max()
    }
}

/// Whether no other account has an id.
fn fits(tables: &Tables, name: &str, id: u32) -> bool {
    let own = |found: Option<&str>| found.is_none_or(|found| found == name);
    own(tables.passwd.name(id)) && own(tables.group.name(id)) && !matches!(id, 65_535 | u32::MAX)
}

/// `ID`, `ID:GROUP`, `-:GROUP`, or a path whose owner it is
fn user_id(target: &Target, text: &str) -> Option<(Option<u32>, Option<u32>, Option<String>)> {
    if text.starts_with('/') {
        let (uid, gid) = owner(target, text)?.unzip();
        return Some((uid, gid, None));
    }
    let (id, group) = text.split_once(':').map_or((text, None), |(id, group)| (id, Some(group)));
    let id = if id == "-" { None } else { Some(id.parse().ok()?) };
    if group.is_some_and(|group| !is_name(group)) {
        return None;
    }
    let own = if group.is_none() { id } else { None };
    Some((id, own, group.map(str::to_owned)))
}

fn group_id(target: &Target, text: &str) -> Option<Option<u32>> {
    match text.starts_with('/') {
        true => Some(owner(target, text)?.map(|(_, gid)| gid)),
        false => text.parse().ok().map(Some),
    }
}

/// The owner of a file, if there is one.
fn owner(target: &Target, path: &str) -> Option<Option<(u32, u32)>> {
    let path = expand(path)?;
    let found = target.tree.resolve(path.as_bytes()).ok();
    Some(found.map(|id| &target.tree.inode(id).meta).map(|meta| (meta.uid, meta.gid)))
}

/// Names as systemd accepts them.
fn is_name(name: &str) -> bool {
    let good = |char: char| char.is_ascii_alphanumeric() || matches!(char, '_' | '-' | '.');
    let first = name.chars().next().is_some_and(|char| char.is_ascii_alphanumeric() || char == '_');
    first && name.chars().all(good) && name.len() <= 31
}

fn full(what: &'static str, name: &str) -> MergeError {
    MergeError::NoFreeId { what, name: name.to_owned() }
}

/// The id of an account that scripts of a package need. Ids are the layers' to give: they stay the same in every image.
pub(super) fn id(
    target: &Target,
    package: &str,
    what: &'static str,
    file: &str,
    name: &str,
) -> Result<u32, MergeError> {
    let (package, name) = (package.to_owned(), name.to_owned());
    lookup(target, file, &name)?.ok_or(MergeError::Needs { package, what, name })
}

//! The account files: passwd(5), group(5), shadow(5), gshadow(5), subuid(5) and subgid(5). They are read, changed and written together; as
//! with shadow's tools, the previous version is kept in a file with `-` appended to its name.

use std::collections::BTreeSet;

use super::defs::Defs;
use crate::merge::MergeError;
use crate::merge::place::Target;

const SECONDS_PER_DAY: i64 = 86_400;

/// The field of the members of a group, in group(5) and gshadow(5).
const MEMBERS: usize = 3;

/// One file: its lines, each as its fields.
#[derive(Debug)]
pub(in crate::merge) struct Table {
    path: &'static str,
    before: String,
    lines: Vec<Vec<String>>,
    /// Whether it is written again, be it as it was.
    touched: bool,
}

impl Table {
    fn read(target: &Target, path: &'static str) -> Result<Self, MergeError> {
        let before = target.text_or_empty(path)?;
        let lines = before.lines().map(|line| line.split(':').map(str::to_owned).collect()).collect();
        Ok(Self { path, before, lines, touched: false })
    }

    /// The line of a name.
    pub(in crate::merge) fn find(&self, name: &str) -> Option<&[String]> {
        self.lines.iter().find(|line| line.first().is_some_and(|first| first == name)).map(Vec::as_slice)
    }

    /// The lines in their order.
    pub(in crate::merge) fn lines(&self) -> impl Iterator<Item = &[String]> {
        self.lines.iter().map(Vec::as_slice)
    }

    /// A field of the line of a name.
    pub(in crate::merge) fn field(&self, name: &str, field: usize) -> Option<&str> {
        self.find(name)?.get(field).map(String::as_str)
    }

    /// The id of a name, which is the third field of users and of groups.
    pub(in crate::merge) fn id(&self, name: &str) -> Option<u32> {
        self.field(name, 2)?.parse().ok()
    }

    /// The name that has an id.
    pub(in crate::merge) fn name(&self, id: u32) -> Option<&str> {
        let id = id.to_string();
        let line = self.lines.iter().find(|line| line.get(2) == Some(&id))?;
        line.first().map(String::as_str)
    }

    pub(in crate::merge) fn ids(&self) -> BTreeSet<u32> {
        self.lines.iter().filter_map(|line| line.get(2)?.parse().ok()).collect()
    }

    /// Adds a line at the end.
    pub(in crate::merge) fn push(&mut self, line: &str) {
        self.lines.push(line.split(':').map(str::to_owned).collect());
        self.touched = true;
    }

    /// Sets a field of the line of a name, if both are there.
    pub(in crate::merge) fn set(&mut self, name: &str, field: usize, value: &str) {
        let line = self.lines.iter_mut().find(|line| line.first().is_some_and(|first| first == name));
        if let Some(field) = line.and_then(|line| line.get_mut(field)) {
            value.clone_into(field);
            self.touched = true;
        }
    }

    /// Removes the lines of a name.
    pub(in crate::merge) fn remove(&mut self, name: &str) {
        let count = self.lines.len();
        self.lines.retain(|line| line.first().is_none_or(|first| first != name));
        self.touched |= self.lines.len() != count;
    }

    /// The file is written again, even if nothing changes.
    pub(in crate::merge) fn touch(&mut self) {
        self.touched = true;
    }

    /// The members of a group.
    pub(in crate::merge) fn members(&self, group: &str) -> Vec<String> {
        let last = self.field(group, MEMBERS).unwrap_or_default();
        last.split(',').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn set_members(&mut self, group: &str, members: &[String]) {
        self.set(group, MEMBERS, &members.join(","));
    }

    fn write(&self, target: &mut Target, backup: bool) -> Result<(), MergeError> {
        if !self.touched {
            return Ok(());
        }
        if let Some(id) = target.tree.resolve(self.path.as_bytes()).ok().filter(|_| backup) {
            let meta = target.tree.inode(id).meta.clone();
            target.file(&format!("{}-", self.path), meta, self.before.clone().into_bytes())?;
        }
        let text: String = self.lines.iter().map(|line| line.join(":") + "\n").collect();
        // Debian's mode, for a tree that has none yet.
        if self.path.ends_with("shadow") && target.tree.resolve(self.path.as_bytes()).is_err() {
            let meta = target.meta(0o640);
            return target.file(self.path, meta, text.into_bytes());
        }
        target.set_text(self.path, &text)
    }
}

#[derive(Debug)]
pub(in crate::merge) struct NewUser<'a> {
    pub(in crate::merge) name: &'a str,
    pub(in crate::merge) uid: u32,
    pub(in crate::merge) gid: u32,
    pub(in crate::merge) gecos: &'a str,
    pub(in crate::merge) home: &'a str,
    pub(in crate::merge) shell: &'a str,
    /// The encrypted password.
    pub(in crate::merge) password: &'a str,
    /// The fields of shadow(5) after the date of the last change.
    pub(in crate::merge) aging: &'a str,
}

#[derive(Debug)]
pub(in crate::merge) struct Tables {
    pub(in crate::merge) passwd: Table,
    pub(in crate::merge) shadow: Table,
    pub(in crate::merge) group: Table,
    pub(in crate::merge) gshadow: Table,
    pub(in crate::merge) subuid: Table,
    pub(in crate::merge) subgid: Table,
    days: i64,
}

impl Tables {
    pub(in crate::merge) fn read(target: &Target) -> Result<Self, MergeError> {
        let table = |path| Table::read(target, path);
        Ok(Self {
            passwd: table("/etc/passwd")?,
            shadow: table("/etc/shadow")?,
            group: table("/etc/group")?,
            gshadow: table("/etc/gshadow")?,
            subuid: table("/etc/subuid")?,
            subgid: table("/etc/subgid")?,
            days: target.epoch().secs.div_euclid(SECONDS_PER_DAY),
        })
    }

    /// Writes what has changed; with `backup` as the tools do, which keep what was there.
    pub(in crate::merge) fn write(&self, target: &mut Target, backup: bool) -> Result<(), MergeError> {
        let all = [&self.passwd, &self.shadow, &self.group, &self.gshadow, &self.subuid, &self.subgid];
        all.iter().try_for_each(|table| table.write(target, backup))
    }

    /// Adds a user, whose password was last changed at the time of the image.
    pub(in crate::merge) fn add_user(&mut self, new: &NewUser<'_>) {
        let NewUser { name, uid, gid, gecos, home, shell, password, aging } = new;
        self.passwd.push(&format!("{name}:x:{uid}:{gid}:{gecos}:{home}:{shell}"));
        self.shadow.push(&format!("{name}:{password}:{}:{aging}", self.last_change()));
    }

    /// The day of a change of a password. Day 0 would demand another change at the next login (shadow(5)), so that the tools leave it empty.
    pub(super) fn last_change(&self) -> String {
        if self.days == 0 { String::new() } else { self.days.to_string() }
    }

    /// Gives a user another encrypted password, changed at the time of the image, as `chpasswd -e` does.
    pub(in crate::merge) fn set_password(&mut self, user: &str, hash: &str) {
        if self.shadow.field(user, 1).is_some_and(|found| found != hash) {
            self.shadow.set(user, 1, hash);
            self.shadow.set(user, 2, &self.last_change());
        }
    }

    pub(in crate::merge) fn add_group(&mut self, name: &str, gid: u32, password: &str) {
        self.group.push(&format!("{name}:x:{gid}:"));
        self.gshadow.push(&format!("{name}:{password}::"));
    }

    /// Makes a user a member of a group; tells whether the group is there.
    pub(in crate::merge) fn join(&mut self, group: &str, user: &str) -> bool {
        for table in [&mut self.group, &mut self.gshadow] {
            let mut members = table.members(group);
            if !members.iter().any(|member| member == user) {
                members.push(user.to_owned());
                table.set_members(group, &members);
            }
        }
        self.group.find(group).is_some()
    }

    /// Takes a user out of a group.
    pub(in crate::merge) fn part(&mut self, group: &str, user: &str) {
        for table in [&mut self.group, &mut self.gshadow] {
            let mut members = table.members(group);
            if members.iter().any(|member| member == user) {
                members.retain(|member| member != user);
                table.set_members(group, &members);
            }
        }
    }

    /// The names of all groups that have a user as a member.
    pub(in crate::merge) fn groups_of(&self, user: &str) -> Vec<String> {
        let names = self.group.lines().filter_map(|line| line.first());
        names.filter(|name| self.group.members(name).iter().any(|member| member == user)).cloned().collect()
    }
    /// A user whose own group this is.
    pub(in crate::merge) fn primary_user(&self, gid: u32) -> Option<String> {
        let gid = gid.to_string();
        self.passwd.lines().find(|line| line.get(3) == Some(&gid)).and_then(|line| line.first().cloned())
    }

    /// Removes a user everywhere, with the group of its name where no one else has it (userdel(8)).
    pub(in crate::merge) fn remove_user(&mut self, user: &str, defs: &Defs) {
        for table in [&mut self.passwd, &mut self.shadow, &mut self.subuid, &mut self.subgid] {
            table.remove(user);
        }
        for group in self.groups_of(user) {
            self.part(&group, user);
        }
        let own = self.group.id(user).filter(|gid| self.primary_user(*gid).is_none());
        if own.is_some() && defs.user_groups && self.group.members(user).is_empty() {
            self.group.remove(user);
            self.gshadow.remove(user);
        }
    }

    /// Gives a user the first subordinate ids that no one has, as useradd(8) does for a regular one.
    pub(in crate::merge) fn subordinate(&mut self, user: &str, defs: &Defs) {
        for (table, ((first, last), count)) in [(&mut self.subuid, defs.sub_uids), (&mut self.subgid, defs.sub_gids)] {
            let taken = |line: &[String]| {
                let number = |field: usize| line.get(field)?.parse::<u64>().ok();
                let start = number(1)?;
                Some((start, start.checked_add(number(2)?)?))
            };
            let mut ranges: Vec<(u64, u64)> = table.lines().filter_map(taken).collect();
            ranges.sort_unstable();
            let (mut start, count) = (u64::from(first), u64::from(count));
            for (low, high) in ranges {
                if start.saturating_add(count) <= low {
                    break;
                }
                start = start.max(high);
            }
            if count > 0 && start.saturating_add(count) <= u64::from(last).saturating_add(1) {
                table.push(&format!("{user}:{start}:{count}"));
            }
        }
    }
}

//! Passwords in shadow(5) and gshadow(5) instead of passwd(5) and group(5): whether the files agree, and how to make them.

use std::collections::BTreeSet;

use super::tables::{Table, Tables};

/// The password of an entry whose password is in the other file.
const ELSEWHERE: &str = "x";

/// Number of fields of passwd(5), shadow(5), group(5) and gshadow(5).
const FIELDS: [usize; 4] = [7, 9, 4, 4];

impl Tables {
    /// Whether every line has its fields.
    pub(in crate::merge) fn are_whole(&self) -> bool {
        let tables = [&self.passwd, &self.shadow, &self.group, &self.gshadow];
        tables.iter().zip(FIELDS).all(|(table, count)| table.lines().all(|line| line.len() == count))
    }

    /// Whether pwck(8) and grpck(8) would find nothing to report, homes and shells aside.
    pub(in crate::merge) fn agree(&self) -> bool {
        let pairs = [(&self.passwd, &self.shadow), (&self.group, &self.gshadow)];
        let have_ids = |table: &Table, field: usize| {
            table.lines().all(|line| line.get(field).is_some_and(|id: &String| is_id(id)))
        };
        let is_user = |name: &String| self.passwd.find(name).is_some();
        self.are_whole()
            && have_ids(&self.passwd, 2)
            && have_ids(&self.passwd, 3)
            && have_ids(&self.group, 2)
            && pairs.iter().all(|(table, other)| are_unique(table) && are_unique(other) && pair_agrees(table, other))
            && names(&self.group).all(|name| self.group.members(name).iter().all(is_user))
            && names(&self.gshadow).all(|name| self.group.field(name, 3) == self.gshadow.field(name, 3))
    }

    /// Moves the passwords of users to shadow(5), as pwconv(8) does. New entries get the fields `aging` after the date of the last change.
    pub(in crate::merge) fn shadow_users(&mut self, aging: &str) {
        let today = self.last_change();
        forget(&self.passwd, &mut self.shadow);
        for (name, password) in entries(&self.passwd) {
            if self.shadow.find(&name).is_none() {
                self.shadow.push(&format!("{name}:{password}:{today}:{aging}"));
            } else if password == ELSEWHERE {
                continue;
            } else {
                self.shadow.set(&name, 1, &password);
                self.shadow.set(&name, 2, &today);
            }
            self.passwd.set(&name, 1, ELSEWHERE);
        }
    }

    /// Moves the passwords of groups to gshadow(5), as grpconv(8) does, which writes both files in any case.
    pub(in crate::merge) fn shadow_groups(&mut self) {
        forget(&self.group, &mut self.gshadow);
        for (name, password) in entries(&self.group) {
            let members = self.group.field(&name, 3).unwrap_or_default().to_owned();
            if self.gshadow.find(&name).is_none() {
                self.gshadow.push(&format!("{name}:{password}::{members}"));
            } else {
                if password != ELSEWHERE {
                    self.gshadow.set(&name, 1, &password);
                }
                self.gshadow.set(&name, 3, &members);
            }
            self.group.set(&name, 1, ELSEWHERE);
        }
        self.group.touch();
        self.gshadow.touch();
    }
}

/// Names and passwords.
fn entries(table: &Table) -> Vec<(String, String)> {
    table.lines().filter_map(|line| Some((line.first()?.clone(), line.get(1)?.clone()))).collect()
}

/// Removes entries of `other` whose names `table` does not have.
fn forget(table: &Table, other: &mut Table) {
    for (name, _) in entries(other) {
        if table.find(&name).is_none() {
            other.remove(&name);
        }
    }
}

fn names(table: &Table) -> impl Iterator<Item = &String> {
    table.lines().filter_map(|line| line.first())
}

fn is_id(text: &str) -> bool {
    text.parse::<u32>().is_ok_and(|id| id != u32::MAX)
}

/// Whether all names are different, and of characters that every version accepts.
fn are_unique(table: &Table) -> bool {
    let plain = |char: char| char.is_ascii_lowercase() || char.is_ascii_digit() || "_-".contains(char);
    let is_plain = |name: &String| name.starts_with(|char: char| plain(char) && char != '-') && name.chars().all(plain);
    let all: Vec<&String> = names(table).collect();
    let unique: BTreeSet<&String> = all.iter().copied().collect();
    unique.len() == all.len() && all.into_iter().all(is_plain)
}

/// Whether both files have the same names and the passwords are in the second, or that one has nothing.
fn pair_agrees(table: &Table, other: &Table) -> bool {
    let is_shadowed = |name: &String| table.field(name, 1) == Some(ELSEWHERE) && other.find(name).is_some();
    names(other).next().is_none()
        || (names(table).all(is_shadowed) && names(other).all(|name| table.find(name).is_some()))
}

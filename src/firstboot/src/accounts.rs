//! Users and groups by name: `/etc/passwd` and `/etc/group` below the root in, numbers out.
//!
//! Only these files are used, so that another root has separate accounts. As in the C library, invalid lines
//! are skipped, and the first of two entries with the same name counts. `root` is 0 even if the files are missing.

use crate::error::Error;
use crate::root::{Owner, Root};

const PASSWD: &str = "/etc/passwd";
const GROUP: &str = "/etc/group";

/// Usual machines have some 50 lines.
const MAX_BYTES: u64 = 1 << 20;

/// A list: a map would add kilobytes to the program.
type Entries = Vec<(String, u32)>;

/// Names and numbers of users and groups.
#[derive(Debug, Default)]
pub struct Accounts {
    users: Entries,
    groups: Entries,
    /// The files, for their other fields.
    texts: [String; 2],
    /// For messages.
    passwd: std::path::PathBuf,
    group: std::path::PathBuf,
}

impl Accounts {
    /// Reads the files below `root`.
    pub fn read(root: &Root) -> Result<Self, Error> {
        let passwd = root.read(PASSWD, MAX_BYTES)?.unwrap_or_default();
        let group = root.read(GROUP, MAX_BYTES)?.unwrap_or_default();
        Ok(Self {
            users: entries(&passwd),
            groups: entries(&group),
            texts: [passwd, group].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
            passwd: root.shown(PASSWD),
            group: root.shown(GROUP),
        })
    }

    /// Looks up an owner by names.
    pub fn owner(&self, mode: u16, user: &str, group: &str) -> Result<Owner, Error> {
        let missing = |kind, path: &std::path::Path, name: &str| Error::NoAccount {
            path: path.to_path_buf(),
            kind,
            name: name.to_owned(),
        };
        Ok(Owner {
            mode,
            uid: number(&self.users, user).or_else(|| root(user)).ok_or_else(|| missing("user", &self.passwd, user))?,
            gid: number(&self.groups, group)
                .or_else(|| root(group))
                .ok_or_else(|| missing("group", &self.group, group))?,
        })
    }

    /// Whether there is a user of this name.
    pub fn has_user(&self, name: &str) -> bool {
        number(&self.users, name).is_some()
    }

    /// Whether there is a group of this name.
    pub fn has_group(&self, name: &str) -> bool {
        number(&self.groups, name).is_some()
    }

    /// Whether a user has this shell and exactly these secondary groups.
    pub fn is_in<'a>(&'a self, name: &str, shell: &str, groups: &[&str]) -> bool {
        let [passwd, group] = &self.texts;
        let fields = |line: &'a str| line.split(':').collect::<Vec<_>>();
        let user = passwd.lines().map(fields).find(|fields| fields.first() == Some(&name)).unwrap_or_default();
        user.get(6) == Some(&shell)
            && group.lines().map(fields).all(|fields| match fields[..] {
                [group, _, _, members] => members.split(',').any(|member| member == name) == groups.contains(&group),
                _ => true,
            })
    }

    /// Adds a user and group of this name in memory, with the first free numbers from 1000.
    pub fn assume(&mut self, name: &str) {
        let taken = |id: &u32| self.users.iter().chain(&self.groups).any(|(_, other)| other == id);
        if let Some(id) = (1000..u32::MAX).find(|id| !taken(id)) {
            self.users.push((name.to_owned(), id));
            self.groups.push((name.to_owned(), id));
        }
    }

    /// The user's name, or its number if unnamed.
    pub fn user_name(&self, uid: u32) -> String {
        name(&self.users, uid)
    }

    /// The group's name, or its number if unnamed.
    pub fn group_name(&self, gid: u32) -> String {
        name(&self.groups, gid)
    }
}

fn number(of: &Entries, name: &str) -> Option<u32> {
    of.iter().find(|(entry, _)| entry == name).map(|(_, number)| *number)
}

fn root(name: &str) -> Option<u32> {
    (name == "root").then_some(0)
}

fn name(of: &Entries, number: u32) -> String {
    match of.iter().find(|(_, entry)| *entry == number) {
        Some((name, _)) => name.clone(),
        None if number == 0 => "root".to_owned(),
        None => number.to_string(),
    }
}

/// `NAME:PASSWORD:NUMBER:…` in both files.
fn entries(content: &[u8]) -> Entries {
    let mut entries = Entries::new();
    for line in content.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok()) {
        let mut fields = line.split(':');
        let (Some(name), Some(_), Some(number), Some(_)) = (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            continue;
        };
        // The largest number means "no change" to chown.
        let number = number.parse::<u32>().ok().filter(|number| *number != u32::MAX);
        let plain = !name.is_empty() && !name.starts_with(['#', '+', '-']);
        if let (Some(number), true) = (number, plain) {
            // The first of two entries is found.
            entries.push((name.to_owned(), number));
        }
    }
    entries
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn entries_are_read_as_the_c_library_reads_them() {
        let passwd = b"root:x:0:0:root:/root:/bin/bash\nzot:x:991:991::/home/zot:\nzot:x:5:5::/:\n\n# no:x:1:1::\n+nis:x:1:1::\n\
            short:x:3\nbad:x:-1:0::\nlast:x:4294967295:0::\nout:x:4294967296:0::\n\xff:x:7:7::\n:x:8:8::";
        let found = entries(passwd);
        assert_eq!(found, [("root".to_owned(), 0), ("zot".to_owned(), 991), ("zot".to_owned(), 5)]);
        assert_eq!(number(&found, "zot"), Some(991));
    }

    #[test]
    fn a_user_is_in_exactly_the_groups_that_it_should_be_in() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::open(tree.path(), false).unwrap();
        std::fs::create_dir(tree.path().join("etc")).unwrap();
        let is = |passwd: &str, group: &str| {
            std::fs::write(tree.path().join("etc/passwd"), passwd).unwrap();
            std::fs::write(tree.path().join("etc/group"), group).unwrap();
            Accounts::read(&root).unwrap().is_in("zot", "/bin/sh", &["podplane", "adm"])
        };
        let (passwd, group) = ("zot:x:991:990::/:/bin/sh\n", "zot:x:990:\npodplane:x:700:a,zot\nadm:x:4:zot\n\nx\n");
        assert!(is(passwd, group));
        for (passwd, group) in [
            ("zot:x:991:990::/:/bin/bash\n", group),
            ("zot:x:991\n", group),
            ("", group),
            (passwd, "zot:x:990:\npodplane:x:700:a,zot\nadm:x:4:\n"),
            (passwd, "zot:x:990:\npodplane:x:700:a,zot\nadm:x:4:zot\nsudo:x:27:zot\n"),
        ] {
            assert!(!is(passwd, group), "{passwd:?} {group:?}");
        }
    }

    #[test]
    fn owners_are_found_below_the_root_and_root_is_always_there() {
        let tree = tempfile::tempdir().unwrap();
        let root = Root::open(tree.path(), false).unwrap();
        let none = Accounts::read(&root).unwrap();
        assert_eq!(none.owner(0o600, "root", "root").unwrap(), Owner { mode: 0o600, uid: 0, gid: 0 });
        let missing = none.owner(0o600, "zot", "root").unwrap_err().to_string();
        assert_eq!(missing, format!("{}: no user zot", tree.path().join("etc/passwd").display()));

        std::fs::create_dir(tree.path().join("etc")).unwrap();
        std::fs::write(tree.path().join("etc/passwd"), "zot:x:991:990::/:\n").unwrap();
        std::fs::write(tree.path().join("etc/group"), "podplane:x:700:zot\n").unwrap();
        let accounts = Accounts::read(&root).unwrap();
        assert_eq!(accounts.owner(0o640, "zot", "podplane").unwrap(), Owner { mode: 0o640, uid: 991, gid: 700 });
        assert!(matches!(accounts.owner(0o640, "zot", "zot"), Err(Error::NoAccount { kind: "group", .. })));
        assert!(accounts.has_user("zot") && !accounts.has_user("admin"));
        assert_eq!(
            (accounts.user_name(991), accounts.user_name(5), accounts.group_name(0)),
            ("zot".into(), "5".into(), "root".into())
        );
        assert!(Root::open(Path::new("/nonexistent"), false).is_err());
    }
}

//! Accounts that files name in places where a program ignores unknown ones: the path and text of a file in, the names out.

use super::{File, Problem, TMPFILES, cron, directories, is_at, logrotate, udev, units};

/// An account that a file names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedAccount {
    /// Counted from 1.
    pub line: usize,
    /// `user` or `group`.
    pub what: &'static str,
    pub name: String,
    /// The program, and what it does without the account: to the file, and to what of the file.
    pub effect: AccountEffect,
}

/// What a program does without an account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountEffect {
    /// Ends before the path of the file, such as `cron skips`.
    pub before_path: &'static str,
    /// A sentence without the path, such as `cron skips the file`.
    pub alone: &'static str,
}

/// Line, `user` or `group`, and name.
pub(super) type Named = (usize, &'static str, String);

/// Places, as in the table of checks, the names in such a file, and what happens.
type Row = (&'static [&'static str], fn(&str, &str) -> Vec<Named>, AccountEffect);

const TABLE: [Row; 5] = [
    (
        &["/etc/crontab", "/etc/cron.d/*"],
        |path, text| cron::users(path, text).into_iter().map(|(line, name)| (line, "user", name)).collect(),
        AccountEffect { before_path: "cron skips", alone: "cron skips the file" },
    ),
    (
        &["/etc/logrotate.conf", "/etc/logrotate.d/*"],
        |_, text| logrotate::accounts(text),
        AccountEffect { before_path: "logrotate skips", alone: "logrotate skips the file" },
    ),
    (
        &TMPFILES,
        |_, text| directories::tmpfiles_accounts(text),
        AccountEffect { before_path: "systemd-tmpfiles ignores a line of", alone: "systemd-tmpfiles ignores the line" },
    ),
    (
        &["udev/rules.d/*.rules"],
        |_, text| udev::accounts(text),
        AccountEffect { before_path: "udevd ignores an owner in", alone: "udevd ignores the owner" },
    ),
    (
        &["systemd/network/*.network"],
        |_, text| units::daemons::users(text),
        AccountEffect { before_path: "systemd-networkd ignores a user in", alone: "systemd-networkd ignores the user" },
    ),
];

/// The users and groups that a file names.
pub fn named_accounts(path: &str, text: &str) -> Vec<NamedAccount> {
    let rows = TABLE.iter().filter(|(paths, ..)| paths.iter().any(|pattern| is_at(pattern, path)));
    let named = rows.flat_map(|(_, read, effect)| {
        let named = read(path, text).into_iter();
        named.map(move |(line, what, name)| NamedAccount { line, what, name, effect: *effect })
    });
    named.collect()
}

/// Files with all accounts of an image are written by the bake.
pub(super) fn replaced(_: &File) -> Vec<Problem> {
    let message =
        "would replace the accounts of the base, of packages and of other layers: use the keys `users` and `groups`";
    vec![Problem::of_file(message.to_owned())]
}

/// Whether a program takes a name as an id. logrotate does so for ids that have a name.
pub(super) fn is_id(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_digit())
}

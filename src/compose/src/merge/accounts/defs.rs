//! Settings of login.defs(5) for new users and groups, with the defaults of useradd(8).

use crate::merge::MergeError;
use crate::merge::place::Target;

/// A range of ids.
pub(in crate::merge) type Range = (u32, u32);

/// The settings of login.defs(5).
#[derive(Debug)]
pub(in crate::merge) struct Defs {
    /// Regular users; those below belong to the system.
    pub(in crate::merge) uids: Range,
    pub(in crate::merge) gids: Range,
    pub(in crate::merge) system_uids: Range,
    pub(in crate::merge) system_gids: Range,
    /// Subordinate ids of regular users, and how many each gets.
    pub(in crate::merge) sub_uids: (Range, u32),
    pub(in crate::merge) sub_gids: (Range, u32),
    /// Whether each user has a group of the same name.
    pub(in crate::merge) user_groups: bool,
    /// Mode of home directories.
    pub(in crate::merge) home_mode: u16,
    /// Whether regular users get a home directory without being asked.
    pub(in crate::merge) homes: bool,
    /// Days between changes of a regular user's password: least, most, and those of the warning before.
    aging: String,
}

/// Settings that `useradd -K` may have: all that are read here.
pub(in crate::merge) const KEYS: [&str; 19] = [
    "UID_MIN",
    "UID_MAX",
    "GID_MIN",
    "GID_MAX",
    "SYS_UID_MIN",
    "SYS_UID_MAX",
    "SYS_GID_MIN",
    "SYS_GID_MAX",
    "SUB_UID_MIN",
    "SUB_UID_MAX",
    "SUB_UID_COUNT",
    "SUB_GID_MIN",
    "SUB_GID_MAX",
    "SUB_GID_COUNT",
    "USERGROUPS_ENAB",
    "HOME_MODE",
    "PASS_MIN_DAYS",
    "PASS_MAX_DAYS",
    "PASS_WARN_AGE",
];

/// What `/etc/default/useradd` says of new users.
#[derive(Debug)]
pub(in crate::merge) struct UserDefaults {
    /// The directory with the homes.
    pub(in crate::merge) base: String,
    pub(in crate::merge) shell: String,
    pub(in crate::merge) skeleton: String,
    /// The group of users who get none of their own.
    pub(in crate::merge) group: String,
    /// Whether regular users get a file for mail.
    pub(in crate::merge) mail: bool,
}

impl UserDefaults {
    pub(in crate::merge) fn read(target: &Target) -> Result<Self, MergeError> {
        let text = target.text_or_empty("/etc/default/useradd")?;
        let value = |key: &str, default: &str| {
            let mut lines = text.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
            lines.next().unwrap_or(default).trim_end().to_owned()
        };
        Ok(Self {
            base: value("HOME", "/home"),
            shell: value("SHELL", "/bin/sh"),
            skeleton: value("SKEL", "/etc/skel"),
            group: value("GROUP", "users"),
            mail: value("CREATE_MAIL_SPOOL", "no").eq_ignore_ascii_case("yes"),
        })
    }
}

impl Defs {
    pub(in crate::merge) fn read(target: &Target) -> Result<Self, MergeError> {
        Self::with(target, "")
    }

    /// Reads the settings, with lines that come before those of the file.
    pub(in crate::merge) fn with(target: &Target, lines: &str) -> Result<Self, MergeError> {
        let text = format!("{lines}{}", target.text_or_empty("/etc/login.defs")?);
        let find = |key: &str| setting(&text, key);
        let number = |key: &str, default: u32| find(key).and_then(|text| text.parse().ok()).unwrap_or(default);
        let mode = find("HOME_MODE").and_then(|text| u16::from_str_radix(text, 8).ok()).unwrap_or(0o700);
        let days = |key: &str| find(key).unwrap_or_default();
        let (uid_min, gid_min) = (number("UID_MIN", 1000), number("GID_MIN", 1000));
        let range = |low: &str, high: &str, (first, last): Range| (number(low, first), number(high, last));
        let ids = |kind: &str| {
            let key = |end: &str| format!("SUB_{kind}_{end}");
            (range(&key("MIN"), &key("MAX"), (100_000, 600_100_000)), number(&key("COUNT"), 65_536))
        };
        Ok(Self {
            uids: (uid_min, number("UID_MAX", 60_000)),
            gids: (gid_min, number("GID_MAX", 60_000)),
            system_uids: range("SYS_UID_MIN", "SYS_UID_MAX", (101, uid_min.saturating_sub(1))),
            system_gids: range("SYS_GID_MIN", "SYS_GID_MAX", (101, gid_min.saturating_sub(1))),
            sub_uids: ids("UID"),
            sub_gids: ids("GID"),
            user_groups: find("USERGROUPS_ENAB") == Some("yes"),
            home_mode: mode & 0o7777,
            homes: find("CREATE_HOME") == Some("yes"),
            aging: [days("PASS_MIN_DAYS"), days("PASS_MAX_DAYS"), days("PASS_WARN_AGE")].join(":"),
        })
    }

    /// The fields of shadow(5) after the date of the last change.
    pub(in crate::merge) fn aging(&self, system: bool) -> String {
        let days = if system { "::" } else { &self.aging };
        format!("{days}:::")
    }
}

fn setting<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().map(str::split_whitespace);
    lines.find_map(|mut words| if words.next() == Some(key) { words.next() } else { None })
}

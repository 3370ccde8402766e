//! adduser.conf(5), and differences between releases of adduser.

use debversion::Version;
use vmbake_shell::Call;

use super::{Done, System, status};
use crate::merge::MergeError;

/// From this version on adduser has its own exit status for each reason, and writes comments as they are.
const NEW: &str = "3.135";

/// The settings that new users and groups depend on.
#[derive(Debug)]
pub(super) struct Conf {
    /// Whether adduser is that of Debian 12 or older.
    pub(super) old: bool,
    pub(super) shell: String,
    homes: String,
    pub(super) user_groups: bool,
    pub(super) users_gid: u32,
    pub(super) uids: (u32, u32),
    pub(super) gids: (u32, u32),
    pub(super) system_uids: (u32, u32),
    pub(super) system_gids: (u32, u32),
    pub(super) mode: u16,
    pub(super) system_mode: u16,
    pub(super) extra_groups: Vec<String>,
}

impl Conf {
    pub(super) fn read(system: &System<'_, '_>) -> Result<Self, MergeError> {
        let text = system.target().text_or_empty("/etc/adduser.conf")?;
        let find = |key: &str| setting(&text, key);
        let number = |key: &str, default: u32| find(key).and_then(|text| text.parse().ok()).unwrap_or(default);
        let mode = |key: &str, default| find(key).and_then(|text| u16::from_str_radix(text, 8).ok()).unwrap_or(default);
        let range = |kind: &str, id: &str, (first, last): (u32, u32)| {
            (number(&format!("FIRST_{kind}{id}"), first), number(&format!("LAST_{kind}{id}"), last))
        };
        let extra = find("ADD_EXTRA_GROUPS").is_none_or(|value| value != "0");
        let groups = find("EXTRA_GROUPS").unwrap_or("users").split_whitespace().filter(|_| extra);
        Ok(Self {
            old: is_old(system),
            shell: find("DSHELL").unwrap_or("/bin/bash").to_owned(),
            homes: find("DHOME").unwrap_or("/home").to_owned(),
            user_groups: find("USERGROUPS").is_none_or(|value| value != "no"),
            users_gid: number("USERS_GID", 100),
            uids: range("", "UID", (1000, 59_999)),
            gids: range("", "GID", (1000, 59_999)),
            system_uids: range("SYSTEM_", "UID", (100, 999)),
            system_gids: range("SYSTEM_", "GID", (100, 999)),
            mode: mode("DIR_MODE", 0o700) & 0o7777,
            system_mode: mode("SYS_DIR_MODE", 0o755) & 0o7777,
            extra_groups: groups.map(str::to_owned).collect(),
        })
    }

    /// Where a regular user is at home.
    pub(super) fn home(&self, name: &str) -> String {
        format!("{}/{name}", self.homes.trim_end_matches('/'))
    }

    /// Ends as adduser does: with the status of Debian 13's, or that of Debian 12's.
    pub(super) fn fatal(&self, call: &mut Call<'_>, code: u8, old: u8, message: &str) -> Done {
        call.stderr.extend_from_slice(format!("fatal: {message}\n").as_bytes());
        status(if self.old { old } else { code })
    }
}

fn is_old(system: &System<'_, '_>) -> bool {
    let version = system.database.status.package("adduser").and_then(|control| control.get("Version"));
    match (version.and_then(|version| version.parse::<Version>().ok()), NEW.parse::<Version>()) {
        (Some(version), Ok(new)) => version < new,
        _ => false,
    }
}

fn setting<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.trim().split_once('='));
    let (_, value) = lines.find(|(found, _)| found.trim() == key)?;
    Some(value.trim().trim_matches('"'))
}

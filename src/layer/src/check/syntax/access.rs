//! Files that their program skips because of who may read or write them.

use super::{File, Problem};

const READ_BY_GROUP: u16 = 0o040;
const READ_BY_OTHERS: u16 = 0o004;
const WRITTEN_BY_OTHERS: u16 = 0o022;

/// Programs that run commands of files as root skip those that others may write.
pub(super) fn of_program(file: &File, program: &str) -> Option<Problem> {
    let (owner, mode) = (&file.access.owner, file.access.mode);
    let writable = (mode & WRITTEN_BY_OTHERS != 0)
        .then(|| format!("is skipped by {program}: its group or others can write it, mode {mode:04o}"));
    let foreign =
        || (owner != "root").then(|| format!("is skipped by {program}: expected the owner root, found {owner}"));
    writable.or_else(foreign).map(Problem::of_file)
}

/// systemd-networkd runs as a user.
pub(super) fn check_network(file: &File) -> Vec<Problem> {
    unreadable(file, "systemd-networkd", "systemd-network")
}

/// polkitd runs as a user.
pub(super) fn check_polkit(file: &File) -> Vec<Problem> {
    unreadable(file, "polkitd", "polkitd")
}

fn unreadable(file: &File, program: &str, user: &str) -> Vec<Problem> {
    let access = &file.access;
    let is_readable = access.mode & READ_BY_OTHERS != 0
        || access.group == user && access.mode & READ_BY_GROUP != 0
        || access.owner == user && access.mode & 0o400 != 0;
    let message = || {
        let (mode, owner, group) = (access.mode, &access.owner, &access.group);
        format!(
            "is not read: {program} runs as {user}, which cannot read it, mode {mode:04o} {owner}:{group}; give it the group {user} or mode 0644"
        )
    };
    (!is_readable).then(|| Problem::of_file(message())).into_iter().collect()
}

/// Shells of users skip what they cannot read.
pub(super) fn check_profile(file: &File) -> Vec<Problem> {
    let mode = file.access.mode;
    let message = || format!("is read only by the shells of its owner, mode {mode:04o}");
    (mode & READ_BY_OTHERS == 0).then(|| Problem::of_file(message()).warning()).into_iter().collect()
}

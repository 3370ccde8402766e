//! Contents of files that their program would reject: a table of places, each with the check of its format.
//!
//! A check finds less than its program does, and never what the program accepts: what is found would fail on the machine.

mod access;
mod accounts;
mod apt;
mod calendar;
mod cron;
mod directories;
mod fstab;
mod limits;
mod logrotate;
mod modprobe;
mod names;
mod netplan;
mod nftables;
mod pam;
mod rsyslog;
mod sshd;
mod udev;
mod units;
mod yaml;

pub use accounts::{NamedAccount, named_accounts};
pub use apt::{AptSource, apt_sources};
pub use calendar::calendar_zone;
pub use directories::{TmpfilesConflict, tmpfiles_conflicts};
pub use logrotate::{RotatedLog, is_skipped as is_skipped_by_logrotate, rotated_logs};
pub use names::{NameSource, name_sources};
pub use nftables::{NftInclude, includes as nft_includes};
pub use pam::{PamRule, PamTarget, pam_rules};
pub use sshd::{SshdLine, sshd_lines};
pub use units::{
    UnitCommand, UnitRefusal, UnitSetting, is_true, named_route_tables, network_zones, route_tables, unit_commands,
    unit_refusal, unit_settings, unit_words,
};

use std::collections::{BTreeMap, BTreeSet};

use vmbake_common::paths::is_at_or_below;

use super::ignored::ROOTS;
use super::{access as access_of, pointer};
use crate::findings::{Findings, Found};
use crate::processed::fits;
use crate::{Layer, Ownership, settings};

/// A file of a layer.
struct File<'a> {
    path: &'a str,
    bytes: &'a [u8],
    /// The content, with U+FFFD for bytes that are not UTF-8: most programs take any byte in comments and values.
    text: &'a str,
    access: Ownership,
    /// Whether the layer has drop-ins for the unit that it is.
    has_drop_ins: bool,
}

/// What a program does not accept.
struct Problem {
    /// Counted from 1; `None` for the whole file.
    line: Option<usize>,
    is_warning: bool,
    message: String,
}

impl Problem {
    fn error(line: usize, message: String) -> Self {
        Self { line: Some(line), is_warning: false, message }
    }

    fn of_file(message: String) -> Self {
        Self { line: None, is_warning: false, message }
    }

    fn warning(self) -> Self {
        Self { is_warning: true, ..self }
    }
}

/// Faults of one file that are reported; the others are counted.
const MOST: usize = 20;

/// Places as in [`fits`], of which those without a slash at the start are below each of [`ROOTS`], the names that the program skips
/// there, and the check.
type Row = (&'static [&'static str], fn(&str) -> bool, fn(&File) -> Vec<Problem>);

/// Files of tmpfiles.d(5), of the system and of its users.
const TMPFILES: [&str; 4] = [
    "tmpfiles.d/*.conf",
    "/etc/xdg/user-tmpfiles.d/*.conf",
    "/usr/local/share/user-tmpfiles.d/*.conf",
    "/usr/share/user-tmpfiles.d/*.conf",
];

/// `docs/layer-check.md` has the same table.
const TABLE: [Row; 27] = [
    (&["/etc/ssh/sshd_config", "/etc/ssh/sshd_config.d/*.conf"], is_hidden, |file| sshd::check(file.text)),
    (&["/etc/cloud/cloud.cfg", "/etc/cloud/cloud.cfg.d/*.cfg"], is_never, |file| yaml::check(file.bytes)),
    (&["/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list"], is_skipped_by_apt, |file| {
        apt::check_list(file.text)
    }),
    (&["/etc/apt/sources.list.d/*.sources"], is_skipped_by_apt, |file| apt::check_sources(file.text)),
    (&["/etc/apt/apt.conf", "/etc/apt/apt.conf.d/*"], is_skipped_as_part, |file| apt::check_config(file.bytes)),
    (&["/etc/apt/preferences", "/etc/apt/preferences.d/*"], is_skipped_as_part, |file| {
        apt::check_preferences(file.text)
    }),
    (&["/etc/fstab"], is_never, |file| fstab::check(file.text)),
    (&["/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow"], is_never, accounts::replaced),
    (&["/etc/crontab", "/etc/cron.d/*"], is_never, cron::check),
    (&["sysctl.d/*.conf"], is_hidden, |file| directories::check_sysctl(file.text)),
    (&["modules-load.d/*.conf"], is_hidden, |file| directories::check_modules(file.text)),
    (&TMPFILES, is_hidden, |file| directories::check_tmpfiles(file.text)),
    (&["sysusers.d/*.conf"], is_hidden, directories::check_sysusers),
    (&["udev/rules.d/*.rules"], is_hidden, |file| udev::check(file.text)),
    (&["systemd/system/**", "systemd/user/**"], is_never, units::check),
    (&units::daemons::PLACES, is_hidden, units::daemons::check),
    (&["systemd/network/*.network", "systemd/network/*.netdev"], is_hidden, access::check_network),
    (&["/etc/logrotate.conf", "/etc/logrotate.d/*"], logrotate::is_skipped, logrotate::check),
    (&["/etc/polkit-1/rules.d/*.rules", "/usr/share/polkit-1/rules.d/*.rules"], is_never, access::check_polkit),
    (&["/etc/profile.d/*.sh"], is_hidden, access::check_profile),
    (&["/etc/netplan/*.yaml"], is_never, |file| netplan::check(file.text)),
    (&["modprobe.d/*.conf"], is_hidden, |file| modprobe::check(file.text)),
    (&["/etc/nftables.conf"], is_never, |file| nftables::check(file.text)),
    (&["/etc/pam.d/*"], is_never, pam::check),
    (&["/etc/rsyslog.conf", "/etc/rsyslog.d/*.conf"], is_hidden, |file| rsyslog::check(file.text)),
    (&["/etc/nsswitch.conf"], is_never, |file| names::check(file.text)),
    (&["/etc/security/limits.conf", "/etc/security/limits.d/*.conf"], is_hidden, |file| limits::check(file.text)),
];

/// Checks the files of a layer. Those with words that only a bake replaces are left out, and those of keys whose own values are wrong.
pub(super) fn check(found: &mut Findings, layer: &Layer) {
    let keys = settings::files(&layer.schema).into_iter().filter(|setting| !is_of_files(&setting.pointer));
    let keys: BTreeMap<String, String> = keys.map(|setting| (setting.path, setting.pointer)).collect();
    let is_wrong =
        |pointer: &String| found.0.iter().any(|known| !known.warning && is_at_or_below(&known.pointer, pointer));
    let wrong: BTreeSet<&String> = keys.iter().filter(|(_, pointer)| is_wrong(pointer)).map(|(path, _)| path).collect();
    for (path, content) in layer.files.iter().filter(|(path, _)| !wrong.contains(path)) {
        if layer.schema.expand.contains(path) {
            continue;
        }
        let drop_ins = format!("{path}.d/");
        let file = File {
            path,
            bytes: &content.content,
            text: &String::from_utf8_lossy(&content.content),
            access: access_of(layer, path),
            has_drop_ins: layer.files.keys().any(|other| other.starts_with(&drop_ins)),
        };
        for Problem { line, is_warning, message } in limited(problems(&file)) {
            let line = line.map(|line| format!(": line {line}")).unwrap_or_default();
            let message = format!("{path:?}{line}: {message}");
            let (pointer, key) =
                keys.get(path).map_or_else(|| (pointer(layer, path), true), |key| (key.clone(), false));
            found.0.push(Found { pointer, key, warning: is_warning, message });
        }
    }
}

/// The first problems, and how many more there are.
fn limited(mut problems: Vec<Problem>) -> Vec<Problem> {
    let more = problems.split_off(problems.len().min(MOST));
    if !more.is_empty() {
        let is_warning = more.iter().all(|problem| problem.is_warning);
        problems.push(Problem { line: None, is_warning, message: format!("has {} more faults", more.len()) });
    }
    problems
}

/// Whether a pointer leads to a key whose values are files.
fn is_of_files(pointer: &str) -> bool {
    ["/files", "/units/files"].iter().any(|files| is_at_or_below(pointer, files))
}

/// What the program of a file does not accept.
fn problems(file: &File) -> Vec<Problem> {
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let rows = TABLE
        .iter()
        .filter(|(paths, is_skipped, _)| !is_skipped(name) && paths.iter().any(|pattern| is_at(pattern, file.path)));
    rows.flat_map(|(.., check)| check(file)).collect()
}

/// For programs that read all names of a place, or whose check knows the names.
fn is_never(_: &str) -> bool {
    false
}

fn is_hidden(name: &str) -> bool {
    name.starts_with('.')
}

fn is_skipped_by_apt(name: &str) -> bool {
    is_hidden(name) || !has_name_of_apt(name)
}

/// Names with an extension are those that [`super::ignored`] knows.
fn is_skipped_as_part(name: &str) -> bool {
    let extension = name.rsplit_once('.').map(|(_, extension)| extension);
    is_skipped_by_apt(name) || extension.is_some_and(|extension| !["conf", "pref"].contains(&extension))
}

/// Whether a name has only characters of names that apt reads from a directory.
pub(super) fn has_name_of_apt(name: &str) -> bool {
    name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-:".contains(&byte))
}

fn is_at(pattern: &str, path: &str) -> bool {
    match pattern.starts_with('/') {
        true => fits(pattern, path.as_bytes()),
        false => ROOTS.iter().any(|root| fits(&format!("{root}{pattern}"), path.as_bytes())),
    }
}

#[cfg(test)]
mod tests;

//! Validates single values of a layer: names, paths, modes, units. Each function returns an error message, or `None`.

use vmbake_common::escape;
use vmbake_common::paths::is_below;

/// Longest path of Linux (`PATH_MAX` without the NUL byte at its end), in bytes.
const PATH_MAX: usize = 4095;

/// Longest name of a file (`NAME_MAX`), in bytes.
const NAME_MAX: usize = 255;

/// Longest name that useradd(8) takes, in bytes.
const ACCOUNT_MAX: usize = 32;

/// Kinds of units (systemd.unit(5)) that can be enabled, disabled or masked.
const UNIT_KINDS: [&str; 9] = ["service", "socket", "timer", "path", "target", "mount", "automount", "swap", "slice"];

/// Users and groups that a Debian cloud image has in addition to those of base-passwd, by its packages of systemd, openssh, dbus,
/// polkit and cloud-init.
const SYSTEM: [&str; 15] = [
    "systemd-journal",
    "systemd-network",
    "systemd-resolve",
    "systemd-timesync",
    "messagebus",
    "polkitd",
    "sshd",
    "_ssh",
    "_apt",
    "dhcpcd",
    "input",
    "sgx",
    "clock",
    "kvm",
    "render",
];

/// The groups of base-passwd.
const GROUPS: [&str; 38] = [
    "root", "daemon", "bin", "sys", "adm", "tty", "disk", "lp", "mail", "news", "uucp", "man", "proxy", "kmem",
    "dialout", "fax", "voice", "cdrom", "floppy", "tape", "sudo", "audio", "dip", "www-data", "backup", "operator",
    "list", "irc", "src", "shadow", "utmp", "video", "sasl", "plugdev", "staff", "games", "users", "nogroup",
];

/// The users of base-passwd.
const USERS: [&str; 18] = [
    "root", "daemon", "bin", "sys", "sync", "games", "man", "lp", "mail", "news", "uucp", "proxy", "www-data",
    "backup", "list", "irc", "_apt", "nobody",
];

/// Whether Debian's base system has that user.
pub(super) fn is_base_user(name: &str) -> bool {
    USERS.contains(&name) || SYSTEM.contains(&name)
}

/// Whether Debian's base system has that group.
pub(super) fn is_base_group(name: &str) -> bool {
    GROUPS.contains(&name) || SYSTEM.contains(&name)
}

/// The name of a layer, of an operating system or of an artifact: it becomes part of messages, records and file names.
pub(super) fn name(name: &str) -> Option<String> {
    let valid = (1..=NAME_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-+._".contains(&byte));
    (!valid).then(|| format!("name {name:?} is invalid: expected lowercase letters, digits, `-`, `+`, `.` and `_`"))
}

/// The name of a package (Debian Policy 5.6.7), which comes for the architecture of the image.
pub(super) fn package(name: &str) -> Option<String> {
    if let Some((package, arch)) = name.split_once(':') {
        return Some(format!(
            "{name:?} names the architecture {arch:?}: images only contain packages of their architecture, so use {package:?}"
        ));
    }
    let valid = (2..=NAME_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first.is_ascii_digit())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"+-.".contains(&byte));
    (!valid).then(|| {
        format!(
            "{name:?} is not a valid package name: expected at least two lowercase letters, digits, `+`, `-` or `.`"
        )
    })
}

/// Checks a package version (deb-version(7)), in which `*` matches any characters.
pub(super) fn version(pattern: &str) -> Option<String> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b".+-~:*".contains(&byte);
    let valid = !pattern.is_empty() && pattern.bytes().all(known);
    (!valid)
        .then(|| format!("version {pattern:?} is invalid: expected letters, digits, `.`, `+`, `-`, `~`, `:` and `*`"))
}

/// The name of a user or group, as adduser(8) takes it.
pub(super) fn account(name: &str) -> Option<String> {
    let valid = (1..=ACCOUNT_MAX).contains(&name.len())
        && name.starts_with(|first: char| first.is_ascii_lowercase() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte));
    (!valid).then(|| format!("name {name:?} is not valid for useradd"))
}

/// One line of text for people or for a file of lines.
pub(super) fn line(text: &str) -> Option<String> {
    (text.trim().is_empty() || text.chars().any(char::is_control)).then(|| format!("{text:?} is not one line of text"))
}

/// An absolute path of the image: no `.`, `..`, empty name or slash at its end, and nothing that cannot stand in a line.
pub(super) fn path(path: &str) -> Option<String> {
    let Some(rest) = path.strip_prefix('/') else {
        return Some(format!("path {path:?} is not absolute or contains `..`"));
    };
    below(rest).map(|reason| format!("path {path:?} {reason}"))
}

/// The manifest in an image.
pub const MANIFEST: &str = vmbake_manifest::INSTALLED;

/// The record of origins in an image.
pub const ORIGINS: &str = "/opt/podplane/share/vmbake-origin.json";

/// Files that a bake writes itself, after all layers.
pub const GENERATED: [&str; 3] = [MANIFEST, ORIGINS, vmbake_firstboot::plan::PATH];

/// The fault of the path of such a file.
pub(super) fn generated(path: &str) -> Option<String> {
    GENERATED.contains(&path).then(|| format!("path {path:?} is written by the bake itself"))
}

/// Where machines mount other file systems, which hide what an image has there, and the links that lead there; [`AGED`] as well.
const MOUNTS: [&str; 8] = ["/dev", "/proc", "/run", "/sys", "/tmp", "/var/lock", "/var/run", AGED];

/// On the root file system, but the layer `hygiene` empties it, and systemd-tmpfiles of Debian 13 deletes files of 30 days.
const AGED: &str = "/var/tmp";

/// Why a file of an image does not last at a place of [`hidden_by`], or at a mount point of fstab(5).
pub fn hidden_because(mount: &str) -> String {
    match mount {
        AGED => format!("the layer `hygiene` empties {AGED}, and machines delete old files there"),
        _ => format!("machines mount another file system at {mount}"),
    }
}

/// The directory of `MOUNTS` that `path` is below.
pub fn hidden_by(path: &str) -> Option<&'static str> {
    MOUNTS.into_iter().find(|mount| is_below(path, mount))
}

/// The fault of a path below one of them.
pub(super) fn visible(path: &str) -> Option<String> {
    let mount = hidden_by(path)?;
    Some(format!(
        "path {path:?} is below {mount}, but {}: use a file in /etc/tmpfiles.d to create files there at each boot",
        hidden_because(mount)
    ))
}

/// A path below a directory, as members of archives and files of layers have it: what is wrong about it.
pub(super) fn below(path: &str) -> Option<String> {
    let mut names = path.split('/');
    let reason = if path.len() >= PATH_MAX {
        format!("is longer than {PATH_MAX} bytes")
    } else if path.chars().any(escape::is_unsafe) {
        "contains a control, bidirectional or zero-width character".to_owned()
    } else if names.clone().any(|name| name == "..") {
        "is not absolute or contains `..`".to_owned()
    } else if names.clone().any(|name| name.is_empty() || name == ".") {
        "contains an empty name or `.`".to_owned()
    } else if names.any(|name| name.len() > NAME_MAX) {
        format!("has a name of more than {NAME_MAX} bytes")
    } else {
        return None;
    };
    Some(reason)
}

/// The target of a symbolic link.
pub(super) fn target(target: &str) -> Option<String> {
    let valid = !target.is_empty() && target.len() <= PATH_MAX && !target.chars().any(escape::is_unsafe);
    (!valid).then(|| format!("target {target:?} is not a valid target of a symbolic link"))
}

/// Default permissions of a file: 0755 in a directory of programs, else 0644.
pub fn default_mode(path: &str) -> u16 {
    let program = path.rsplit('/').nth(1).is_some_and(|parent| matches!(parent, "bin" | "sbin"));
    if program { 0o755 } else { 0o644 }
}

/// Permissions of something that is not a directory: a world-writable file must not have set-id bits.
pub(super) fn file_mode(mode: u16) -> Option<String> {
    let dangerous = mode & 0o7000 != 0 && mode & 0o002 != 0;
    dangerous
        .then(|| format!("mode {mode:04o} makes a file with set-uid, set-gid or sticky bits writable by all users"))
}

/// Permissions of a directory: in a world-writable directory, only the sticky bit keeps one from deleting another's files, and
/// set-gid would hand out the group.
pub(super) fn directory_mode(mode: u16) -> Option<String> {
    let dangerous = mode & 0o6000 != 0 && mode & 0o002 != 0;
    dangerous.then(|| format!("mode {mode:04o} makes a directory with set-uid or set-gid bits writable by all users"))
}

/// The name of a unit; templates need an instance, which has a place to write to.
pub(super) fn unit(unit: &str) -> Option<String> {
    let (stem, kind) = unit.rsplit_once('.').unwrap_or((unit, ""));
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b":-_.\\".contains(&byte);
    if !UNIT_KINDS.contains(&kind) {
        return Some(format!(
            "unit {unit:?} does not end with {}",
            UNIT_KINDS.map(|kind| format!(".{kind}")).join(", ")
        ));
    }
    if stem.contains('@') {
        return Some(format!("unit {unit:?} is a template or its instance; name a unit"));
    }
    (stem.is_empty() || unit.len() > NAME_MAX || !stem.bytes().all(plain))
        .then(|| format!("unit {unit:?} is not a valid unit name"))
}

/// The name of a unit, a template or an instance.
pub(super) fn unit_or_instance(unit: &str) -> Option<String> {
    let Some((prefix, rest)) = unit.split_once('@') else { return self::unit(unit) };
    let (instance, kind) = rest.rsplit_once('.').unwrap_or((rest, ""));
    // An instance may have one more character (`VALID_CHARS_WITH_AT` of systemd).
    let plain = instance.replace('@', "-");
    let separator = if plain.is_empty() { "" } else { "-" };
    self::unit(&format!("{prefix}{separator}{plain}.{kind}"))
        .or_else(|| (prefix.is_empty() || unit.len() > NAME_MAX).then(String::new))
        .map(|_| format!("unit {unit:?} is not a valid unit name"))
}

/// The same, without templates.
pub(super) fn instance(unit: &str) -> Option<String> {
    let template = unit.contains("@.").then(|| format!("unit {unit:?} is a template; name its instances"));
    template.or_else(|| unit_or_instance(unit))
}

/// The file that has the text of a unit: that of an instance is its template.
pub fn unit_file(unit: &str) -> String {
    match unit.split_once('@').and_then(|(prefix, rest)| Some((prefix, rest.rsplit_once('.')?.1))) {
        Some((prefix, kind)) => format!("{prefix}@.{kind}"),
        None => unit.to_owned(),
    }
}

/// Whether a unit says what enabling it means.
pub(super) fn has_install(text: &[u8]) -> bool {
    text.split(|byte| *byte == b'\n').any(|line| line.trim_ascii() == b"[Install]")
}

/// A SHA-256, as scripts are named.
pub(super) fn sha256(text: &str) -> Option<String> {
    let valid = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    (!valid).then(|| format!("{text:?} is not a SHA-256 in lowercase hexadecimal digits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words() {
        let long = format!("/{}", "x".repeat(256));
        type Case<'a> = (fn(&str) -> Option<String>, &'a [&'a str], &'a [&'a str]);
        let cases: [Case<'_>; 10] = [
            (name, &["kube-apiserver", "libpq5", "g++", "0"], &["", "A", "-a", "a/b", "a b", "a\n", "é"]),
            (account, &["root", "_ssh", "systemd-journal"], &["", "0a", "a:b", "a.b", "A", &"a".repeat(33)]),
            (line, &["One sentence."], &["", " ", "a\nb", "a\0"]),
            (
                path,
                &["/a", "/a/.b", "/a/b..c", "/a b"],
                &[
                    "",
                    "/",
                    "a",
                    "/a/",
                    "//a",
                    "/a/./b",
                    "/../a",
                    "/a\nb",
                    "/a\0",
                    "/a\u{202e}b",
                    "/a\u{200b}",
                    "/\u{2066}a",
                    "/a\u{ad}b",
                    &long,
                ],
            ),
            (below, &["a", "a/b"], &["", "/a", "a/../b", "a/"]),
            (target, &["../a", "/"], &["", "a\0b", "a\u{202e}b"]),
            (
                unit,
                &["a.service", "a-b.timer", "dev-sda\\x2d1.mount"],
                &["a", ".service", "a b.service", "a@.service", "a/b.path", "a.conf"],
            ),
            (
                unit_or_instance,
                &["a.service", "serial-getty@ttyS1.service", "x@.service", "x@a@b.service", "x@a:b-c.timer"],
                &["@a.service", "x@a", "x@a b.service", "x@a/b.service", "x@a.conf"],
            ),
            (instance, &["a.service", "x@a.service"], &["x@.service", "@a.service"]),
            (sha256, &[&"0f".repeat(32)], &["", &"0F".repeat(32), &"0".repeat(63)]),
        ];
        for (rule, good, bad) in cases {
            for word in good {
                assert_eq!(rule(word), None);
            }
            for word in bad {
                assert!(rule(word).is_some(), "{word:?}");
            }
        }
        for (mode, file, directory) in [
            (0o4755, false, false),
            (0o1777, true, false),
            (0o2775, false, false),
            (0o6777, true, true),
            (0o0777, false, false),
        ] {
            assert_eq!((file_mode(mode).is_some(), directory_mode(mode).is_some()), (file, directory), "{mode:o}");
        }
    }
}

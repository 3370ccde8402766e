//! Directories that no layer may remove: the system needs them to start, or the kernel and systemd mount file systems on them.

use vmbake_common::glob::matches;
use vmbake_common::paths::is_at_or_below;

/// The last component of a pattern for the regular files below a directory, at any depth.
pub const FILES_BELOW: &str = "**";

/// Neither removed nor emptied. [`in_usr`] adds the names that they have in `/`.
const NEEDED: [&str; 16] = [
    "/",
    "/boot",
    "/etc",
    "/etc/systemd",
    "/usr",
    "/usr/bin",
    "/usr/lib",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib/systemd",
    "/usr/lib/systemd/system",
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib64",
    "/usr/sbin",
    "/usr/share",
    "/var",
    "/var/lib",
];

/// Not removed, but what is in them may be: machines mount file systems there, or root logs in there.
const PLACES: [&str; 6] = ["/dev", "/proc", "/root", "/run", "/sys", "/tmp"];

/// The system directory that an entry of `remove` would delete or empty.
pub fn system_directory(pattern: &str) -> Option<&'static str> {
    let pattern = in_usr(pattern);
    let (parent, last) = pattern.rsplit_once('/')?;
    let parent = if parent.is_empty() { "/" } else { parent };
    let takes_all = last == FILES_BELOW || (!last.is_empty() && last.bytes().all(|byte| byte == b'*'));
    let emptied = NEEDED.into_iter().find(|directory| takes_all && *directory == parent);
    // The root has an empty name, which no pattern but itself fits.
    let removed = |directory: &&str| {
        let (above, name) = directory.rsplit_once('/').unwrap_or_default();
        let above = if above.is_empty() { "/" } else { above };
        let is_one = above == parent && name.is_empty() == last.is_empty();
        is_one && last != FILES_BELOW && matches(last.as_bytes(), name.as_bytes())
    };
    emptied.or_else(|| NEEDED.into_iter().chain(PLACES).find(removed))
}

/// The path below `/usr` to which `/bin`, `/lib`, `/lib64` and `/sbin` lead.
fn in_usr(path: &str) -> String {
    let mut links = ["/bin", "/lib", "/lib64", "/sbin"].into_iter();
    if links.any(|link| is_at_or_below(path, link)) { format!("/usr{path}") } else { path.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::system_directory;

    #[test]
    fn patterns() {
        for (pattern, expected) in [
            ("/", Some("/")),
            ("/*", Some("/")),
            ("/**", Some("/")),
            ("/u*", Some("/usr")),
            ("/usr", Some("/usr")),
            ("/usr/*", Some("/usr")),
            ("/usr/**", Some("/usr")),
            ("/usr/l*", Some("/usr/lib")),
            ("/bin", Some("/usr/bin")),
            ("/lib64", Some("/usr/lib64")),
            ("/lib/*", Some("/usr/lib")),
            ("/lib/systemd", Some("/usr/lib/systemd")),
            ("/etc/***", Some("/etc")),
            ("/tmp", Some("/tmp")),
            ("/tmp/*", None),
            ("/root/**", None),
            ("/r*", Some("/root")),
            ("/usr/share/doc", None),
            ("/usr/share/doc/*", None),
            ("/etc/*-", None),
            ("/var/log/**", None),
            ("/library", None),
            ("/srv", None),
            ("/opt/usr", None),
        ] {
            assert_eq!(system_directory(pattern), expected, "{pattern}");
        }
    }
}

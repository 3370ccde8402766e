//! Known properties of a new machine with Debian 13 on which scripts rely. A request for anything else stops the import.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Kind, Metadata, Origin, OriginId, Timestamp, Tree};
use vmbake_shell::{Errno, Files, Follow, NodeKind, TreeFiles};

use super::runtime::unknown_text;
use vmbake_common::paths::is_below;

/// In its place, a script runs: its commands count as those of the caller.
pub(super) const SUDO: &str = "/usr/bin/sudo";
/// Directories of base-files, apt, systemd and cloud-init, each after the one that it is in, with their modes.
const DIRECTORIES: [(&str, u16); 42] = [
    ("/boot", 0o755),
    ("/dev", 0o755),
    ("/etc", 0o755),
    ("/home", 0o755),
    ("/media", 0o755),
    ("/mnt", 0o755),
    ("/opt", 0o755),
    ("/proc", 0o555),
    ("/root", 0o700),
    ("/run", 0o755),
    ("/srv", 0o755),
    ("/sys", 0o555),
    ("/tmp", 0o1777),
    ("/usr", 0o755),
    ("/var", 0o755),
    ("/etc/apt", 0o755),
    ("/etc/apt/apt.conf.d", 0o755),
    ("/etc/apt/keyrings", 0o755),
    ("/etc/apt/preferences.d", 0o755),
    ("/etc/apt/sources.list.d", 0o755),
    ("/etc/cloud", 0o755),
    ("/etc/cloud/cloud.cfg.d", 0o755),
    ("/etc/default", 0o755),
    ("/etc/profile.d", 0o755),
    ("/etc/systemd", 0o755),
    ("/etc/systemd/system", 0o755),
    ("/usr/bin", 0o755),
    ("/usr/lib", 0o755),
    ("/usr/local", 0o755),
    ("/usr/local/bin", 0o755),
    ("/usr/local/etc", 0o755),
    ("/usr/local/games", 0o755),
    ("/usr/local/include", 0o755),
    ("/usr/local/lib", 0o755),
    ("/usr/local/sbin", 0o755),
    ("/usr/local/src", 0o755),
    ("/usr/sbin", 0o755),
    ("/var/cache", 0o755),
    ("/var/lib", 0o755),
    ("/var/log", 0o755),
    ("/var/spool", 0o755),
    ("/var/tmp", 0o1777),
];
/// Directories of packages that most machines have: files can be put into them, and nothing may ask whether they are there.
const ASSUMED: [&str; 14] = [
    "/etc/default/grub.d",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/netplan",
    "/etc/security",
    "/etc/ssh",
    "/etc/ssh/sshd_config.d",
    "/etc/sudoers.d",
    "/etc/sysctl.d",
    "/etc/udev",
    "/etc/udev/rules.d",
    "/usr/local/share",
    "/usr/local/share/ca-certificates",
    "/usr/share",
];
const LINKS: [(&str, &str); 6] = [
    ("/bin", "usr/bin"),
    ("/sbin", "usr/sbin"),
    ("/lib", "usr/lib"),
    ("/var/run", "/run"),
    ("/etc/os-release", "../usr/lib/os-release"),
    ("/usr/bin/sh", "dash"),
];
/// Programs of dash, bash, dpkg, apt, systemd and cloud-init, which scripts look for before they call them.
const PROGRAMS: [&str; 8] = [
    "/usr/bin/apt",
    "/usr/bin/apt-get",
    "/usr/bin/bash",
    "/usr/bin/cloud-init",
    "/usr/bin/dash",
    "/usr/bin/dpkg",
    "/usr/bin/hostnamectl",
    "/usr/bin/systemctl",
];
/// A file of the base that is empty unless something else fills it, so that scripts may change it.
const ENVIRONMENT: &str = "/etc/environment";
/// Where the system says which one it is.
pub(super) const RELEASE: &str = "/usr/lib/os-release";
/// What runs in its place.
pub(super) const SUDO_SCRIPT: &str =
    "#!/bin/sh\nexport HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\nexec \"$@\"\n";
/// The text of base-files, but for the point release.
const RELEASE_TEXT: [&str; 2] = [
    "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"13\"\nVERSION=\"13 (trixie)\"\n\
     VERSION_CODENAME=trixie\nDEBIAN_VERSION_FULL=",
    "\nID=debian\nHOME_URL=\"https://www.debian.org/\"\nSUPPORT_URL=\"https://www.debian.org/support\"\n\
     BUG_REPORT_URL=\"https://bugs.debian.org/\"\n",
];
/// Directories to which no package of Debian brings files: a machine has no name there but those that it has created itself.
const VACANT: [&str; 5] = ["/opt", "/tmp", "/usr/local/bin", "/usr/local/sbin", "/var/tmp"];
/// Directories for temporary files, in which systemd and cloud-init make names with these prefixes when a machine starts.
const TEMPORARY: [&str; 2] = ["/tmp/", "/var/tmp/"];
const TEMPORARY_NAMES: [&str; 4] = [".", "cloud-init", "snap", "systemd-"];
/// Names that systems have in the root directory, in addition to those of the tree; packages may not bring others.
const ROOT: [&str; 16] = [
    ".dockerenv",
    "core",
    "efi",
    "initrd",
    "initrd.img",
    "initrd.img.old",
    "lib32",
    "lib64",
    "libo32",
    "libx32",
    "lost+found",
    "nix",
    "snap",
    "swapfile",
    "vmlinuz",
    "vmlinuz.old",
];
/// The file that has the name of a machine. Clouds that name their machines themselves give them none.
pub(super) const NAME: &str = "/etc/machine-name";
/// What OSM marks its phases with, and what only a machine that has started has.
const ABSENT: [&str; 3] = ["/etc/bootstrap-complete", "/etc/cloud/cloud-init.disabled", NAME];
/// Directories that packages or cloud-init make with another owner or mode, or as links: `mkdir -p` would not give what a machine has.
const SPECIAL: [&str; 16] = [
    "/etc/polkit-1/rules.d",
    "/etc/ssl/private",
    "/home",
    "/root/.ssh",
    "/var/cache/ldconfig",
    "/var/cache/private",
    "/var/lib/polkit-1",
    "/var/lib/private",
    "/var/local",
    "/var/lock",
    "/var/log/audit",
    "/var/log/journal",
    "/var/log/private",
    "/var/mail",
    "/var/spool/cron",
    "/var/spool/mail",
];
/// Files that every system has with a special mode or content, or as links: writing a new one would not give what a machine has.
const PROTECTED: [&str; 20] = [
    "/etc/debian_version",
    "/etc/fstab",
    "/etc/group",
    "/etc/gshadow",
    "/etc/hostname",
    "/etc/localtime",
    "/etc/machine-id",
    "/etc/mtab",
    "/etc/passwd",
    "/etc/resolv.conf",
    "/etc/security/opasswd",
    "/etc/shadow",
    "/etc/subgid",
    "/etc/subuid",
    "/etc/sudoers",
    "/usr/bin/awk",
    "/usr/bin/editor",
    "/usr/bin/pager",
    "/usr/lib/os-release",
    "/var/lib/dpkg/status",
];
/// Largest file that a profile makes, in bytes.
pub(super) const LARGEST: usize = 4 << 20;

/// Files of the tree that are whole, so that a script may change them. Of the others a machine has more than stands here.
pub(super) const WHOLE: [&str; 1] = [ENVIRONMENT];

/// What of a node of the base is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Basis {
    /// That it is there, what it is, and its mode.
    Exists,
    /// Its content as well.
    Content,
    /// Everything; it may be changed.
    Whole,
    /// Nothing, but files are put into it.
    Assumed,
}

/// A path, and what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) path: String,
    pub(super) mode: u16,
    pub(super) owner: (u32, u32),
    pub(super) content: Content,
}

/// What is at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Content {
    Directory,
    File(Vec<u8>),
    Link(String),
    Other,
}

/// The tree of a new machine.
pub(super) fn tree() -> Result<Tree, Errno> {
    let mut tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
    let origin = tree.first_origin();
    let mut files = TreeFiles::new(&mut tree, Timestamp::default(), origin);
    for (path, mode) in DIRECTORIES.into_iter().chain(ASSUMED.map(|path| (path, 0o755))) {
        files.create_dir(path.as_bytes(), mode)?;
    }
    for (path, target) in LINKS {
        files.symlink(target.as_bytes(), path.as_bytes())?;
    }
    for path in PROGRAMS {
        files.write(path.as_bytes(), Vec::new(), 0o755)?;
    }
    files.write(SUDO.as_bytes(), SUDO_SCRIPT.as_bytes().to_vec(), 0o755)?;
    files.set_mode(SUDO.as_bytes(), 0o4755)?;
    files.write(RELEASE.as_bytes(), release().into_bytes(), 0o644)?;
    files.write(ENVIRONMENT.as_bytes(), Vec::new(), 0o644)?;
    Ok(tree)
}

/// A mark in place of the point release, which differs between images.
fn point_release() -> String {
    unknown_text("DEBIAN_VERSION_FULL")
}

/// The text of [`RELEASE`].
pub(super) fn release() -> String {
    RELEASE_TEXT.join(&point_release())
}

/// Whether a node is one of those that every machine has, of the same type.
pub(super) fn is_fixed(path: &[u8], kind: &Kind) -> bool {
    let Ok(path) = str::from_utf8(path) else { return false };
    match kind {
        Kind::Directory(_) => DIRECTORIES.iter().any(|(known, _)| *known == path) || ASSUMED.contains(&path),
        Kind::Symlink(found) => LINKS.iter().any(|(known, target)| *known == path && target.as_bytes() == found),
        Kind::File(_) => PROGRAMS.contains(&path) || [SUDO, RELEASE, ENVIRONMENT].contains(&path),
        _ => false,
    }
}

/// What is known of a node of the tree, by its path; the root has an empty one.
pub(super) fn basis(path: &[u8]) -> Option<Basis> {
    let path = str::from_utf8(path).ok()?;
    match path {
        ENVIRONMENT => Some(Basis::Whole),
        RELEASE => Some(Basis::Content),
        path if ASSUMED.contains(&path) => Some(Basis::Assumed),
        _ => Some(Basis::Exists),
    }
}

/// Whether the base has nothing at a path.
pub(super) fn is_vacant(path: &[u8]) -> bool {
    let is_new = |name: &[u8]| !name.contains(&b'/') && !ROOT.iter().any(|known| known.as_bytes() == name);
    let is_temporary = |directory: &str| {
        let name = path.strip_prefix(directory.as_bytes());
        name.is_some_and(|name| TEMPORARY_NAMES.iter().any(|prefix| name.starts_with(prefix.as_bytes())))
    };
    path.strip_prefix(b"/").is_some_and(is_new)
        || (VACANT.iter().any(|root| is_below(path, root)) && !TEMPORARY.into_iter().any(is_temporary))
        || ABSENT.iter().any(|absent| absent.as_bytes() == path)
}

/// Whether a pattern fits a name that a system may have in its root directory.
pub(super) fn fits_root(fits: &dyn Fn(&[u8]) -> bool) -> bool {
    ROOT.iter().any(|name| fits(name.as_bytes()))
}

/// Whether a path is that of a file which a new one must not replace.
pub(super) fn is_protected(path: &[u8]) -> bool {
    PROTECTED.iter().any(|protected| protected.as_bytes() == path)
}

/// Whether a path is that of a directory which systems have in another way than a new one, or below it.
pub(super) fn is_special(path: &[u8]) -> bool {
    SPECIAL.iter().any(|special| {
        let rest = path.strip_prefix(special.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

/// What of a tree comes from an origin, sorted.
pub(super) fn walk_origin(files: &TreeFiles<'_>, origin: OriginId) -> Result<Vec<(u64, Found)>, Errno> {
    let own = files.tree().walk().filter(|(path, _, inode)| inode.origin == origin && !path.is_empty());
    let mut found = Vec::new();
    for (path, ..) in own {
        found.push(look(files, &String::from_utf8(path).map_err(|_| Errno::Einval)?)?);
    }
    found.sort_by(|(_, one), (_, other)| one.path.cmp(&other.path));
    Ok(found)
}

/// Two names of one file.
pub(super) fn hard_links(all: &[(u64, Found)]) -> Option<[String; 2]> {
    let mut names = BTreeMap::new();
    for (id, found) in all {
        if found.content != Content::Directory
            && let Some(first) = names.insert(id, &found.path)
        {
            return Some([first.clone(), found.path.clone()]);
        }
    }
    None
}

/// Everything below the root, sorted, with the number of each node.
pub(super) fn walk_with_ids(files: &dyn Files) -> Result<Vec<(u64, Found)>, Errno> {
    let (mut todo, mut all) = (vec![String::new()], Vec::new());
    while let Some(directory) = todo.pop() {
        let list = if directory.is_empty() { files.list(b"/")? } else { files.list(directory.as_bytes())? };
        for name in list {
            let path = format!("{directory}/{}", String::from_utf8(name).map_err(|_| Errno::Einval)?);
            let (id, found) = look(files, &path)?;
            if found.content == Content::Directory {
                todo.push(path);
            }
            all.push((id, found));
        }
    }
    all.sort_by(|(_, one), (_, other)| one.path.cmp(&other.path));
    Ok(all)
}

/// What is at a path, with the number of the node.
fn look(files: &dyn Files, path: &str) -> Result<(u64, Found), Errno> {
    let node = files.lookup(path.as_bytes(), Follow::No)?;
    let content = match node.kind {
        NodeKind::Directory => Content::Directory,
        NodeKind::File => Content::File(files.read(path.as_bytes(), LARGEST)?),
        NodeKind::Symlink => {
            Content::Link(String::from_utf8(files.read_link(path.as_bytes())?).map_err(|_| Errno::Einval)?)
        }
        _ => Content::Other,
    };
    Ok((node.id, Found { path: path.to_owned(), mode: node.mode, owner: (node.uid, node.gid), content }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_places_that_packages_leave_alone_are_known_to_be_vacant() {
        for (path, expected) in [
            ("/etc/fstab", false),
            ("/etc/kubernetes/admin.conf", false),
            ("/etc/systemd/system/x.service", false),
            ("/lib64", false),
            ("/data", true),
            ("/data/x", false),
            ("/opt/bin/x", true),
            ("/optional/x", false),
            ("/etc/machine-name", true),
            ("/etc/machine-name/x", false),
            ("/usr/local/bin/x", true),
            ("/usr/local/lib/x", false),
            ("/tmp/x", true),
            ("/tmp/.X11-unix", false),
            ("/var/tmp/systemd-private-x", false),
        ] {
            assert_eq!(is_vacant(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn a_new_machine_has_what_the_lists_say() {
        let mut tree = tree().unwrap();
        let origin = tree.first_origin();
        let found = walk_with_ids(&TreeFiles::new(&mut tree, Timestamp::default(), origin)).unwrap();
        assert_eq!(found.len(), DIRECTORIES.len() + ASSUMED.len() + LINKS.len() + PROGRAMS.len() + 3);
    }
}

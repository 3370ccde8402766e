//! What a new machine of Debian 13 has before a profile comes: as much of it as scripts rely on. Whatever else they ask of the system
//! is not known here, and stops the import.

use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};
use vmbake_shell::{Errno, Files, Follow, NodeKind, TreeFiles};

/// The script that stands for sudo: its commands are those of whoever calls it.
pub(super) const SUDO: &str = "/usr/bin/sudo";
/// Directories, each after the one that it is in.
const DIRECTORIES: [&str; 47] = [
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/media",
    "/mnt",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/srv",
    "/sys",
    "/tmp",
    "/usr",
    "/var",
    "/etc/apt",
    "/etc/apt/apt.conf.d",
    "/etc/apt/keyrings",
    "/etc/apt/preferences.d",
    "/etc/apt/sources.list.d",
    "/etc/cloud",
    "/etc/cloud/cloud.cfg.d",
    "/etc/default",
    "/etc/default/grub.d",
    "/etc/modprobe.d",
    "/etc/modules-load.d",
    "/etc/netplan",
    "/etc/profile.d",
    "/etc/security",
    "/etc/ssh",
    "/etc/ssh/sshd_config.d",
    "/etc/sudoers.d",
    "/etc/sysctl.d",
    "/etc/systemd",
    "/etc/systemd/system",
    "/etc/udev",
    "/etc/udev/rules.d",
    "/usr/bin",
    "/usr/lib",
    "/usr/local",
    "/usr/local/bin",
    "/usr/local/sbin",
    "/usr/sbin",
    "/usr/share",
    "/var/lib",
    "/var/log",
    "/var/tmp",
];
/// Links.
const LINKS: [(&str, &str); 4] =
    [("/bin", "usr/bin"), ("/sbin", "usr/sbin"), ("/lib", "usr/lib"), ("/var/run", "/run")];
/// Programs that scripts look for before they call them.
const PROGRAMS: [&str; 15] = [
    "/usr/bin/apt",
    "/usr/bin/apt-get",
    "/usr/bin/bash",
    "/usr/bin/cloud-init",
    "/usr/bin/dpkg",
    "/usr/bin/hostnamectl",
    "/usr/bin/ip",
    "/usr/bin/lsb_release",
    "/usr/bin/networkctl",
    "/usr/bin/sh",
    "/usr/bin/systemctl",
    "/usr/sbin/modprobe",
    "/usr/sbin/netplan",
    "/usr/sbin/swapoff",
    "/usr/sbin/sysctl",
];
/// Files.
const FILES: [(&str, &str); 5] = [
    ("/etc/debian_version", "13.0\n"),
    ("/etc/environment", ""),
    ("/etc/group", "root:x:0:\n"),
    (
        "/etc/os-release",
        "PRETTY_NAME=\"Debian GNU/Linux 13 (trixie)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"13\"\nVERSION=\"13 (trixie)\"\nVERSION_CODENAME=trixie\nID=debian\n",
    ),
    ("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\n"),
];
/// Places that are empty on a new machine, or only of the profile's own.
const EMPTY: [&str; 8] = ["/opt", "/srv", "/mnt", "/media", "/tmp", "/var/tmp", "/usr/local", "/etc/systemd/system"];
/// Files of /etc that a new machine does not have: what OSM marks its phases with, and what it writes only for some providers.
const ABSENT: [&str; 4] =
    ["/etc/bootstrap-complete", "/etc/cloud/cloud-init.disabled", "/etc/crictl.yaml", "/etc/machine-name"];
/// A program that no shell can read.
const COMPILED: &[u8] = b"\x7fELF";
/// Largest file that a profile makes, in bytes.
pub(super) const LARGEST: usize = 4 << 20;

/// Files of the tree that are whole, so that a script may change them. Of the others a machine has more than stands here.
pub(super) const WHOLE: [&str; 1] = ["/etc/environment"];

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
    for path in DIRECTORIES {
        files.create_dir(path.as_bytes(), 0o755)?;
    }
    for (path, target) in LINKS {
        files.symlink(target.as_bytes(), path.as_bytes())?;
    }
    for path in PROGRAMS {
        files.write(path.as_bytes(), COMPILED.to_vec(), 0o755)?;
    }
    // Its commands are those of whoever calls it.
    files.write(SUDO.as_bytes(), b"#!/bin/sh\nexec \"$@\"\n".to_vec(), 0o755)?;
    for (path, text) in FILES {
        files.write(path.as_bytes(), text.as_bytes().to_vec(), 0o644)?;
    }
    Ok(tree)
}

/// Whether a path that is not in the tree may be there on a machine all the same.
pub(super) fn is_of_base(path: &str) -> bool {
    let is_below = |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.starts_with('/'));
    if ABSENT.contains(&path) || EMPTY.iter().any(|root| is_below(root)) {
        return false;
    }
    match path.strip_prefix("/etc/").and_then(|rest| rest.split_once('/')) {
        // A directory that only a profile makes.
        Some((first, _)) => DIRECTORIES.contains(&format!("/etc/{first}").as_str()) || KNOWN.contains(&first),
        None => true,
    }
}

/// Further directories in /etc that a cloud image has.
const KNOWN: [&str; 16] = [
    "alternatives",
    "apparmor.d",
    "cron.d",
    "cron.daily",
    "dbus-1",
    "dhcp",
    "init.d",
    "initramfs-tools",
    "kernel",
    "ld.so.conf.d",
    "logrotate.d",
    "network",
    "pam.d",
    "polkit-1",
    "ssl",
    "X11",
];

/// Everything below the root, sorted.
pub(super) fn walk(files: &dyn Files) -> Result<Vec<Found>, Errno> {
    let (mut todo, mut found) = (vec![String::new()], Vec::new());
    while let Some(directory) = todo.pop() {
        let list = if directory.is_empty() { files.list(b"/")? } else { files.list(directory.as_bytes())? };
        for name in list {
            let path = format!("{directory}/{}", String::from_utf8(name).map_err(|_| Errno::Einval)?);
            let node = files.lookup(path.as_bytes(), Follow::No)?;
            let content = match node.kind {
                NodeKind::Directory => {
                    todo.push(path.clone());
                    Content::Directory
                }
                NodeKind::File => Content::File(files.read(path.as_bytes(), LARGEST)?),
                NodeKind::Symlink => {
                    Content::Link(String::from_utf8(files.read_link(path.as_bytes())?).map_err(|_| Errno::Einval)?)
                }
                _ => Content::Other,
            };
            found.push(Found { path, mode: node.mode, owner: (node.uid, node.gid), content });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_profiles_make_is_known_to_be_absent() {
        for (path, expected) in [
            ("/etc/fstab", true),
            ("/etc/ssl/certs/x.pem", true),
            ("/etc/ssh/sshd_config", true),
            ("/usr/share/x", true),
            ("/var/lib/dpkg/status", true),
            ("/etc/kubernetes/admin.conf", false),
            ("/opt/bin/x", false),
            ("/etc/machine-name", false),
            ("/etc/systemd/system/x.service", false),
            ("/usr/local/bin/x", false),
        ] {
            assert_eq!(is_of_base(path), expected, "{path}");
        }
    }

    #[test]
    fn a_new_machine_has_what_the_lists_say() {
        let mut tree = tree().unwrap();
        let origin = tree.first_origin();
        let found = walk(&TreeFiles::new(&mut tree, Timestamp::default(), origin)).unwrap();
        assert_eq!(found.len(), DIRECTORIES.len() + LINKS.len() + PROGRAMS.len() + FILES.len() + 1);
    }
}

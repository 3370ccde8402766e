//! Files that scripts find on a machine with a known base image: the tree of the image, except paths that change before scripts run.
//!
//! Before the commands of a profile, the kernel mounts file systems, systemd creates directories, links of units and identifiers, and
//! cloud-init writes accounts, addresses, keys and repositories. Packages may change anything else: after a command that installs packages,
//! no more is known than without a base image.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, InodeId, Kind, OriginId, Tree, TreeError};

use super::base::{self, Basis};
use vmbake_common::paths::is_below;

/// Directories whose entries differ between the image and a machine.
const DIRECTORIES: [&str; 41] = [
    // File systems of the kernel, and what is mounted.
    "/dev",
    "/media",
    "/mnt",
    "/proc",
    "/run",
    "/sys",
    // Kernels and menus, and what a check of the file system finds.
    "/boot",
    "/lost+found",
    // Homes, which cloud-init makes with keys.
    "/home",
    "/root",
    // Temporary files, logs, caches and state.
    "/tmp",
    "/var",
    // What cloud-init configures: repositories, the network, clocks, ssh, certificates and rights of the default user.
    "/etc/NetworkManager",
    "/etc/apt",
    "/etc/chrony",
    "/etc/cloud",
    "/etc/netplan",
    "/etc/network",
    "/etc/ntp",
    "/etc/ntpsec",
    "/etc/resolvconf",
    "/etc/rsyslog.d",
    "/etc/ssh",
    "/etc/ssl/certs",
    "/etc/sudoers.d",
    "/etc/udev/rules.d",
    "/usr/lib/locale",
    "/usr/local/share/ca-certificates",
    // Identifiers that services make when they start.
    "/etc/iscsi",
    "/etc/lvm",
    "/etc/nvme",
    // Units that presets enable on the first boot.
    "/etc/init.d",
    "/etc/rc0.d",
    "/etc/rc1.d",
    "/etc/rc2.d",
    "/etc/rc3.d",
    "/etc/rc4.d",
    "/etc/rc5.d",
    "/etc/rc6.d",
    "/etc/rcS.d",
    "/etc/systemd",
];
/// Files that differ, or that only a machine has.
const FILES: [&str; 39] = [
    // Accounts.
    "/etc/.pwd.lock",
    "/etc/group",
    "/etc/group-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/passwd",
    "/etc/passwd-",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/subgid",
    "/etc/subgid-",
    "/etc/subuid",
    "/etc/subuid-",
    "/etc/sudoers",
    // Names, addresses and identifiers.
    "/etc/hostname",
    "/etc/hosts",
    "/etc/machine-id",
    "/etc/machine-info",
    "/etc/resolv.conf",
    // Locale, keyboard and time.
    "/etc/adjtime",
    "/etc/default/keyboard",
    "/etc/default/locale",
    "/etc/locale.conf",
    "/etc/locale.gen",
    "/etc/localtime",
    "/etc/ntp.conf",
    "/etc/timezone",
    "/etc/vconsole.conf",
    // Disks and swap.
    "/etc/crypttab",
    "/etc/fstab",
    "/etc/mtab",
    "/swap",
    "/swap.img",
    "/swapfile",
    // Caches, certificates and marks of updates.
    "/etc/.updated",
    "/etc/ca-certificates.conf",
    "/etc/ld.so.cache",
    "/etc/rsyslog.conf",
    "/etc/udev/hwdb.bin",
];

/// Whether a machine may have something else at a path than the image.
pub(super) fn is_changing(path: &[u8]) -> bool {
    FILES.iter().any(|file| file.as_bytes() == path) || DIRECTORIES.iter().any(|directory| is_below(path, directory))
}

/// Whether a machine may have a name that the image does not have, and if it is that of a directory, other entries than the image.
pub(super) fn may_appear(path: &[u8]) -> bool {
    is_changing(path) || DIRECTORIES.iter().any(|directory| directory.as_bytes() == path)
}

/// Whether a machine may have entries in a directory that the tree of the image lacks, with names that fit.
pub(super) fn may_gain(tree: &Tree, directory: &[u8], fits: &dyn Fn(&[u8]) -> bool) -> bool {
    may_appear(directory)
        || FILES.iter().chain(&DIRECTORIES).any(|path| {
            let (parent, name) = path.rsplit_once('/').unwrap_or_default();
            let parent = if parent.is_empty() { "/" } else { parent };
            parent.as_bytes() == directory && fits(name.as_bytes()) && tree.lookup(path.as_bytes()).is_none()
        })
}

/// Takes away what differs on a machine, and tells what of the other nodes is known.
pub(super) fn prepare(tree: &mut Tree) -> Result<BTreeMap<InodeId, Basis>, TreeError> {
    let changing = tree.walk().filter(|(path, _, inode)| is_changing(path) && !base::is_fixed(path, &inode.kind));
    let changing: Vec<Vec<u8>> = changing.map(|(path, ..)| path).collect();
    for path in changing.iter().rev() {
        tree.remove(path)?;
    }
    set_text(tree, base::SUDO, base::SUDO_SCRIPT);
    let known = tree.walk().map(|(path, id, _)| {
        let is_whole = !is_changing(&path) && path != base::SUDO.as_bytes();
        (id, if is_whole { Basis::Whole } else { Basis::Exists })
    });
    Ok(known.collect())
}

/// Directories that have on a machine what they have in the image, and names that [`may_gain`] knows.
pub(super) fn complete(tree: &Tree) -> BTreeSet<InodeId> {
    let directories =
        tree.walk().filter(|(path, _, inode)| matches!(inode.kind, Kind::Directory(_)) && !may_appear(path));
    directories.map(|(_, id, _)| id).collect()
}

/// Takes away what packages may have changed; what scripts wrote stays, in directories of which nothing else is known.
pub(super) fn forget(tree: &mut Tree, origin: OriginId, known: &mut BTreeMap<InodeId, Basis>) -> Result<(), TreeError> {
    let is_own = |id: InodeId, inode: &Inode, known: &BTreeMap<InodeId, Basis>| {
        !known.contains_key(&id) || inode.origin == origin
    };
    let mut needed = BTreeSet::new();
    for (path, id, inode) in tree.walk() {
        if is_own(id, inode, known) {
            let ends = path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
            needed.extend(ends.map(|at| path.get(..at).unwrap_or_default().to_vec()));
            needed.insert(path);
        }
    }
    let mut gone = Vec::new();
    for (path, id, inode) in tree.walk() {
        if path.is_empty() || base::is_fixed(&path, &inode.kind) {
            known.entry(id).and_modify(|basis| *basis = base::basis(&path).unwrap_or(Basis::Exists));
        } else if needed.contains(&path) {
            known.entry(id).and_modify(|basis| *basis = Basis::Assumed);
        } else {
            gone.push(path);
        }
    }
    for path in gone.iter().rev() {
        tree.remove(path)?;
    }
    set_text(tree, base::RELEASE, &base::release());
    Ok(())
}

/// Gives a file another text, if it exists. It still counts as a file of the image.
fn set_text(tree: &mut Tree, path: &str, text: &str) {
    if let Some(id) = tree.lookup(path.as_bytes()) {
        let source = tree.sources_mut().add(Arc::new(text.as_bytes().to_vec()));
        // Anything but a file stays as it is.
        let _ = tree.set_content(id, Map::whole(source, 0, text.len() as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changes_before_scripts_run_is_not_known() {
        for (path, expected) in [
            ("/etc/passwd", true),
            ("/etc/passwd.d", false),
            ("/etc/ssh", false),
            ("/etc/ssh/sshd_config", true),
            ("/etc/crontab", false),
            ("/var/lib/dpkg/status", true),
            ("/usr/bin/ls", false),
        ] {
            assert_eq!(is_changing(path.as_bytes()), expected, "{path}");
        }
        let mut tree = base::tree().unwrap();
        let fits = |end: &'static str| move |name: &[u8]| name.ends_with(end.as_bytes());
        assert!(may_gain(&tree, b"/etc", &fits(".conf")) && !may_gain(&tree, b"/etc", &fits(".cfg")));
        assert!(may_gain(&tree, b"/etc/ssh", &|_| false) && may_gain(&tree, b"/var/lib", &|_| false));
        assert!(may_gain(&tree, b"/", &fits("swap")) && !may_gain(&tree, b"/etc/profile.d", &|_| true));
        let known = prepare(&mut tree).unwrap();
        let is_whole = |path: &str| known.get(&tree.lookup(path.as_bytes()).unwrap()) == Some(&Basis::Whole);
        assert!(is_whole("/etc") && is_whole("/usr/bin") && !is_whole(base::SUDO));
        assert!(complete(&tree).contains(&tree.lookup(b"/usr/bin").unwrap()));
        assert!(!complete(&tree).contains(&tree.lookup(b"/etc/ssh").unwrap()));
    }
}

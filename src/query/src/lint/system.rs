//! Finds modes and owners of system files that Debian packages do not ship. dpkg does not record them, so the tree is compared with built-in
//! lists.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Inode, Kind, Tree};

use super::check::{MAX_TEXT, Violation, below};
use super::modes::{packaged, violation, with_privileges};

/// Files of Debian 13 that have set-uid or set-gid bits or capabilities, from packages or their scripts.
const SHIPPED: [&str; 57] = [
    "/usr/bin/Xorg.wrap",
    "/usr/bin/arping",
    "/usr/bin/at",
    "/usr/bin/bsd-write",
    "/usr/bin/chage",
    "/usr/bin/chfn",
    "/usr/bin/chsh",
    "/usr/bin/clockdiff",
    "/usr/bin/crontab",
    "/usr/bin/dotlockfile",
    "/usr/bin/dumpcap",
    "/usr/bin/expiry",
    "/usr/bin/fping",
    "/usr/bin/fping6",
    "/usr/bin/fusermount",
    "/usr/bin/fusermount3",
    "/usr/bin/gpasswd",
    "/usr/bin/mlocate",
    "/usr/bin/mount",
    "/usr/bin/mtr-packet",
    "/usr/bin/newgidmap",
    "/usr/bin/newgrp",
    "/usr/bin/newuidmap",
    "/usr/bin/ntfs-3g",
    "/usr/bin/passwd",
    "/usr/bin/ping",
    "/usr/bin/pkexec",
    "/usr/bin/plocate",
    "/usr/bin/screen",
    "/usr/bin/ssh-agent",
    "/usr/bin/su",
    "/usr/bin/sudo",
    "/usr/bin/sudoedit",
    "/usr/bin/traceroute6.iputils",
    "/usr/bin/umount",
    "/usr/bin/wall",
    "/usr/bin/write",
    "/usr/lib/chromium/chrome-sandbox",
    "/usr/lib/dbus-1.0/dbus-daemon-launch-helper",
    "/usr/lib/openssh/ssh-keysign",
    "/usr/lib/polkit-1/polkit-agent-helper-1",
    "/usr/lib/snapd/snap-confine",
    "/usr/lib/xorg/Xorg.wrap",
    "/usr/libexec/camel-lock-helper-1.2",
    "/usr/libexec/lxc/lxc-user-nic",
    "/usr/libexec/sssd/krb5_child",
    "/usr/libexec/sssd/ldap_child",
    "/usr/libexec/sssd/proxy_child",
    "/usr/libexec/sssd/selinux_child",
    "/usr/sbin/exim4",
    "/usr/sbin/mount.cifs",
    "/usr/sbin/mount.ecryptfs_private",
    "/usr/sbin/mount.nfs",
    "/usr/sbin/postdrop",
    "/usr/sbin/postqueue",
    "/usr/sbin/pppd",
    "/usr/sbin/unix_chkpwd",
];
/// Names of such files in architecture-dependent directories.
const SHIPPED_NAMES: [&str; 4] = ["/gst-ptp-helper", "/utempter/utempter", "/virtiofsd", "/xtables-multi"];
/// Overrides of dpkg-statoverride(1): user, group, mode, path.
const OVERRIDES: &[u8] = b"/var/lib/dpkg/statoverride";
/// Directories in which Debian ships only files that are writable by root alone.
const SYSTEM: &[&str] = &[
    "/boot",
    "/etc/apt",
    "/etc/cron.d",
    "/etc/cron.daily",
    "/etc/group",
    "/etc/ld.so.conf.d",
    "/etc/ld.so.preload",
    "/etc/pam.d",
    "/etc/passwd",
    "/etc/profile.d",
    "/etc/ssh",
    "/etc/systemd",
    "/etc/udev",
    "/usr/bin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/sbin",
];

/// Files of packages with privileges that Debian does not ship.
pub(super) fn privileges(tree: &Tree) -> Vec<Violation> {
    let recorded = recorded(tree);
    let is_shipped = |path: &[u8]| {
        SHIPPED.iter().any(|known| known.as_bytes() == path)
            || SHIPPED_NAMES.iter().any(|name| path.starts_with(b"/usr/lib/") && path.ends_with(name.as_bytes()))
    };
    let mut found = with_privileges(tree);
    found.retain(|(path, inode)| !is_shipped(path) && !recorded.contains(&(path.clone(), inode.meta.mode)));
    let packaged = match found.is_empty() {
        true => BTreeSet::new(),
        false => packaged(tree, found.iter().map(|(path, _)| path.as_slice()).collect()),
    };
    let found = found.into_iter().filter(|(path, _)| packaged.contains(path));
    found.map(|(path, inode)| violation(&path, inode)).collect()
}

/// System files that are writable by a user or group other than root.
pub(super) fn writable(tree: &Tree) -> Vec<Violation> {
    let is_open = |inode: &Inode| {
        let meta = &inode.meta;
        let by_owner = meta.uid != 0 && meta.mode & 0o200 != 0;
        let by_group = meta.gid != 0 && meta.mode & 0o020 != 0;
        matches!(inode.kind, Kind::File(_)) && meta.mode & 0o6000 == 0 && (by_owner || by_group)
    };
    let paths = below(tree, SYSTEM, is_open).into_iter();
    let found = paths.filter_map(|path| Some((tree.find(&path).ok().flatten()?, path)));
    found.map(|(id, path)| violation(&path, tree.inode(id))).collect()
}

/// Paths with overridden modes.
fn recorded(tree: &Tree) -> Vec<(Vec<u8>, u16)> {
    let text = tree.read(OVERRIDES, MAX_TEXT).unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| str::from_utf8(line).ok());
    let entry = |line: &str| {
        let mut words = line.splitn(4, ' ').skip(2);
        let mode = u16::from_str_radix(words.next()?, 8).ok()?;
        let (path, _) = tree.real_path(words.next()?.as_bytes(), false).ok().flatten()?;
        Some((path, mode))
    };
    lines.filter_map(entry).collect()
}

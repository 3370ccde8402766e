//! Finds files and directories whose modes grant users root's rights.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Inode, Kind, Tree};

use super::check::{MAX_TEXT, Violation, below, matches};
use vmbake_common::escape;

/// The extended attribute of file capabilities (capabilities(7)).
const CAPABILITY: &[u8] = b"security.capability";
/// Maximum length of a file that is searched for a private key; RSA keys with 16,384 bits have 13 KiB.
const MAX_KEY: u64 = 64 << 10;
/// Marker of private keys in all text formats (RFC 7468 and OpenSSH).
const KEY_MARK: &[u8] = b"PRIVATE KEY-----";
/// Directories with keys. Below /usr are examples and test data of packages.
const KEY_PLACES: &[&str] = &["/etc", "/root", "/home", "/opt", "/srv", "/var/lib"];

/// Password files: writable only by root, readable by group `shadow`.
pub(super) fn shadow(tree: &Tree) -> Vec<Violation> {
    let paths =
        matches(tree, &["/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/security/opasswd"]);
    let is_link = |path: &&Vec<u8>| {
        let inode = tree.find(path).ok().flatten().map(|id| tree.inode(id));
        inode.is_some_and(|inode| !matches!(inode.kind, Kind::File(_)))
    };
    // Anything but a regular file is replaced by a file with another mode when a password changes, or links to one.
    let mut found: Vec<Violation> = paths.iter().filter(is_link).map(|path| other_kind(tree, path)).collect();
    let readers = [Some(0), group(tree, b"shadow")];
    found.extend(violations(tree, paths, |Inode { meta, kind, .. }| {
        let is_group = meta.mode & 0o040 != 0 && !readers.contains(&Some(meta.gid));
        matches!(kind, Kind::File(_)) && (meta.mode & 0o037 != 0 || meta.uid != 0 || is_group)
    }));
    found
}

fn group(tree: &Tree, name: &[u8]) -> Option<u32> {
    let text = tree.read(b"/etc/group", MAX_TEXT).ok()?;
    let mut lines = text.split(|byte| *byte == b'\n').map(|line| line.split(|byte| *byte == b':'));
    let mut fields = lines.find_map(|mut fields| (fields.next() == Some(name)).then_some(fields))?;
    fields.nth(1).and_then(|id| str::from_utf8(id).ok()?.parse().ok())
}

fn other_kind(tree: &Tree, path: &[u8]) -> Violation {
    let kind = tree.find(path).ok().flatten().map_or("unreadable", |id| tree.inode(id).kind.name());
    Violation { path: escape::name(path), evidence: format!("{kind} instead of a regular file") }
}

/// The rules of sudo, which ignores files that others can write.
pub(super) fn sudoers(tree: &Tree) -> Vec<Violation> {
    let paths = matches(tree, &["/etc/sudoers", "/etc/sudoers.d", "/etc/sudoers.d/*"]);
    violations(tree, paths, |inode| inode.meta.mode & 0o022 != 0 || inode.meta.uid != 0)
}

/// World-writable files, and world-writable directories without the sticky bit.
pub(super) fn world_writable(tree: &Tree) -> Vec<Violation> {
    let is_open = |inode: &Inode| match inode.kind {
        Kind::File(_) => inode.meta.mode & 0o002 != 0,
        Kind::Directory(_) => inode.meta.mode & 0o1002 == 0o002,
        _ => false,
    };
    tree.walk().filter(|(.., inode)| is_open(inode)).map(|(path, _, inode)| violation(&path, inode)).collect()
}

/// Files with set-uid or set-gid bits or file capabilities.
pub(super) fn with_privileges(tree: &Tree) -> Vec<(Vec<u8>, &Inode)> {
    let has = |inode: &Inode| {
        matches!(inode.kind, Kind::File(_))
            && (inode.meta.mode & 0o6000 != 0 || inode.meta.xattrs.contains_key(CAPABILITY))
    };
    tree.walk().filter(|(.., inode)| has(inode)).map(|(path, _, inode)| (path, inode)).collect()
}

/// Files that do not belong to a package.
pub(super) fn privileged(tree: &Tree) -> Vec<Violation> {
    let mut found = with_privileges(tree);
    if !found.is_empty() {
        let packaged = packaged(tree, found.iter().map(|(path, _)| path.as_slice()).collect());
        found.retain(|(path, _)| !packaged.contains(path));
    }
    found.into_iter().map(|(path, inode)| violation(&path, inode)).collect()
}

/// The `paths` that a package lists, also by names through links such as /bin.
pub(super) fn packaged(tree: &Tree, paths: BTreeSet<&[u8]>) -> BTreeSet<Vec<u8>> {
    let mut found = BTreeSet::new();
    let names: BTreeSet<&[u8]> = paths.iter().filter_map(|path| path.rsplit(|byte| *byte == b'/').next()).collect();
    for list in matches(tree, &["/var/lib/dpkg/info/*.list"]) {
        let text = tree.read(&list, MAX_TEXT).unwrap_or_default();
        for line in text.split(|byte| *byte == b'\n') {
            // Only lines with a matching last component are looked up.
            if line.rsplit(|byte| *byte == b'/').next().is_some_and(|name| names.contains(name))
                && let Ok(Some((real, _))) = tree.real_path(line, false)
            {
                found.insert(real);
            }
        }
    }
    found
}

/// World-readable private keys.
pub(super) fn keys(tree: &Tree) -> Vec<Violation> {
    let is_readable =
        |inode: &Inode| matches!(&inode.kind, Kind::File(map) if map.len() <= MAX_KEY) && inode.meta.mode & 0o004 != 0;
    let mut paths = below(tree, KEY_PLACES, is_readable);
    paths.retain(|path| is_key_name(path) && is_key(&tree.read(path, MAX_KEY).unwrap_or_default()));
    violations(tree, paths, |_| true)
}

/// Whether a file name can be that of a key.
fn is_key_name(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or(path);
    let is_host_key = name.starts_with(b"ssh_host_") && name.ends_with(b"_key");
    is_host_key
        || name.ends_with(b".key")
        || name.ends_with(b".pem")
        || (name.starts_with(b"id_") && !name.ends_with(b".pub"))
}

fn is_key(content: &[u8]) -> bool {
    content.windows(KEY_MARK.len()).any(|window| window == KEY_MARK)
}

/// The `paths` that are `bad`, except links.
fn violations(tree: &Tree, paths: Vec<Vec<u8>>, bad: impl Fn(&Inode) -> bool) -> Vec<Violation> {
    let inode = |path: &Vec<u8>| tree.find(path).ok().flatten().map(|id| tree.inode(id));
    let found = paths.into_iter().filter_map(|path| inode(&path).map(|inode| (path, inode)));
    let found = found.filter(|(_, inode)| !matches!(inode.kind, Kind::Symlink(_)) && bad(inode));
    found.map(|(path, inode)| violation(&path, inode)).collect()
}

pub(super) fn violation(path: &[u8], inode: &Inode) -> Violation {
    let meta = &inode.meta;
    let capabilities = if meta.xattrs.contains_key(CAPABILITY) { ", file capabilities" } else { "" };
    let evidence = format!("{}, {:04o} {}:{}{capabilities}", inode.kind.name(), meta.mode, meta.uid, meta.gid);
    Violation { path: escape::name(if path.is_empty() { b"/" } else { path }), evidence }
}

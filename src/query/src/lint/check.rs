//! Checks for the rules. A file that cannot be read is a violation.

use vmbake_disk::tree::{Inode, Kind, Tree, components};

use vmbake_common::escape;
use vmbake_common::glob;
use vmbake_image::inspect::os_release;

/// Maximum length of a checked file; account files have a few KiB.
pub(super) const MAX_TEXT: u64 = 1 << 20;

/// A violation: path and evidence.
#[derive(Debug)]
pub(super) struct Violation {
    pub(super) path: String,
    pub(super) evidence: String,
}

/// The check of a rule. Symbolic links to directories are followed inside the tree.
pub(super) enum Check {
    /// No path may match these patterns.
    Absent(&'static [&'static str]),
    /// Regular files below these must be empty.
    NoContent(&'static [&'static str]),
    /// Only directories may exist at and below these.
    NoFiles(&'static [&'static str]),
    /// A custom check with the paths it covers.
    Custom(&'static str, fn(&Tree) -> Vec<Violation>),
}

impl Check {
    /// The paths that the check covers.
    pub(super) fn subject(&self) -> String {
        match self {
            Self::Absent(patterns) | Self::NoContent(patterns) | Self::NoFiles(patterns) => patterns.join(" "),
            Self::Custom(path, _) => (*path).to_owned(),
        }
    }

    pub(super) fn run(&self, tree: &Tree) -> Vec<Violation> {
        match self {
            Self::Absent(patterns) => violations(tree, matches(tree, patterns)),
            Self::NoContent(patterns) => {
                let has_content = |inode: &Inode| matches!(&inode.kind, Kind::File(map) if !map.is_empty());
                violations(tree, below(tree, patterns, has_content))
            }
            Self::NoFiles(patterns) => {
                violations(tree, below(tree, patterns, |inode| !matches!(inode.kind, Kind::Directory(_))))
            }
            Self::Custom(_, check) => check(tree),
        }
    }
}

/// `/etc/machine-id` must be empty, or contain `uninitialized`, which has the same effect.
pub(super) fn machine_id(tree: &Tree) -> Vec<Violation> {
    match tree.read(b"/etc/machine-id", MAX_TEXT) {
        Ok(content) if content.trim_ascii().is_empty() || content.trim_ascii() == b"uninitialized" => Vec::new(),
        Ok(content) => violation("/etc/machine-id", format!("set, {} bytes", content.len())),
        Err(error) => violation("/etc/machine-id", error.to_string()),
    }
}

pub(super) fn dbus_machine_id(tree: &Tree) -> Vec<Violation> {
    let paths = matches(tree, &["/var/lib/dbus/machine-id"]).into_iter();
    let is_link = |path: &Vec<u8>| match tree.find(path).ok().flatten().map(|id| &tree.inode(id).kind) {
        Some(Kind::Symlink(target)) => components(target).eq(components(b"/etc/machine-id")),
        _ => false,
    };
    violations(tree, paths.filter(|path| !is_link(path)).collect())
}

/// Package lists. `lock` and the directories that apt creates may remain, if empty.
pub(super) fn apt_lists(tree: &Tree) -> Vec<Violation> {
    let may_stay = [b"lock".as_slice(), b"partial", b"auxfiles"];
    let mut paths = matches(tree, &["/var/lib/apt/lists/*"]);
    paths.retain(|path| !components(path).next_back().is_some_and(|name| may_stay.contains(&name)));
    paths.extend(matches(tree, &["/var/lib/apt/lists/partial/*", "/var/lib/apt/lists/auxfiles/*"]));
    violations(tree, paths)
}

pub(super) fn image_name(tree: &Tree) -> Vec<Violation> {
    let path = "/etc/os-release";
    let values = match os_release(tree) {
        Ok(values) => values,
        Err(error) => return violation(path, error.to_string()),
    };
    let unset = |key: &&str| values.get(*key).is_none_or(String::is_empty);
    let missing: Vec<&str> = ["IMAGE_ID", "IMAGE_VERSION"].into_iter().filter(unset).collect();
    if missing.is_empty() { Vec::new() } else { violation(path, format!("{} not set", missing.join(" and "))) }
}

/// Evidence for a password hash.
const HASH: &str = "has a password hash";

/// The evidence of an account's password.
pub(super) fn has_hash(account: &str) -> String {
    format!("account {account} {HASH}")
}

/// No account may have a password, not even a locked or empty one. Backup files are checked as well.
pub(super) fn passwords(tree: &Tree) -> Vec<Violation> {
    let mut found = Vec::new();
    for path in matches(tree, &["/etc/shadow", "/etc/shadow-", "/etc/passwd", "/etc/passwd-"]) {
        let shown = escape::name(&path);
        let content = match tree.read(&path, MAX_TEXT) {
            Ok(content) => content,
            Err(error) => {
                found.extend(violation(&shown, error.to_string()));
                continue;
            }
        };
        for line in content.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let mut fields = line.split(|byte| *byte == b':');
            let account = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
            if password(fields.clone().next().unwrap_or_default()) == Some(HASH) {
                found.extend(violation(&shown, has_hash(&account)));
                continue;
            }
            found.extend(
                password(fields.next().unwrap_or_default())
                    .into_iter()
                    .flat_map(|what| violation(&shown, format!("account {account} {what}"))),
            );
        }
    }
    found
}

/// The password field that systemd writes for root if a password can be set on first boot (`PASSWORD_UNPROVISIONED` in
/// `user-util.h`). It is locked and not a hash, although it is as long as a DES hash.
const UNPROVISIONED: &[u8] = b"!unprovisioned";

/// Evidence for an invalid password field (shadow(5)): `x` refers to shadow, `!` and `*` match no password.
fn password(field: &[u8]) -> Option<&'static str> {
    if field == UNPROVISIONED {
        return None;
    }
    let locked = field.iter().take_while(|byte| matches!(byte, b'!' | b'*')).count();
    match (&field[locked..], locked) {
        (b"x", 0) => None,
        (b"", 0) => Some("needs no password"),
        (b"", _) => None,
        (_, 0) => Some(HASH),
        (_, _) => Some("has a locked password hash"),
    }
}

fn violation(path: &str, evidence: String) -> Vec<Violation> {
    vec![Violation { path: path.to_owned(), evidence }]
}

fn violations(tree: &Tree, paths: Vec<Vec<u8>>) -> Vec<Violation> {
    let show = |path: Vec<u8>| {
        let kind = tree.find(&path).ok().flatten().map(|id| &tree.inode(id).kind);
        let evidence = match kind {
            Some(Kind::File(map)) => format!("regular file, {} bytes", map.len()),
            Some(Kind::Symlink(target)) => format!("symbolic link to {}", escape::name(target)),
            Some(Kind::Directory(entries)) => format!("directory, {} entries", entries.len()),
            Some(other) => other.name().to_owned(),
            None => "unreadable".to_owned(),
        };
        Violation { path: escape::name(&path), evidence }
    };
    paths.into_iter().map(show).collect()
}

/// All paths that match a pattern; a link in the last component is not followed.
pub(super) fn matches(tree: &Tree, patterns: &[&str]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for pattern in patterns {
        let mut paths = vec![Vec::new()];
        for part in components(pattern.as_bytes()) {
            let entries = paths.iter().flat_map(|path| {
                names(tree, path)
                    .filter(|name| glob::matches(part, name))
                    .map(|name| [path.as_slice(), b"/", name].concat())
            });
            paths = entries.collect();
        }
        found.extend(paths);
    }
    found
}

/// The names in the directory at `path`; empty if it is not a directory.
fn names<'a>(tree: &'a Tree, path: &[u8]) -> impl Iterator<Item = &'a [u8]> + use<'a> {
    let entries = match tree.resolve(path).map(|id| &tree.inode(id).kind) {
        Ok(Kind::Directory(entries)) => Some(entries),
        _ => None,
    };
    entries.into_iter().flat_map(|entries| entries.keys().map(Vec::as_slice))
}

/// Paths at or below the patterns that are `bad`.
pub(super) fn below(tree: &Tree, patterns: &[&str], bad: impl Fn(&Inode) -> bool) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    for path in matches(tree, patterns) {
        let Ok(Some(id)) = tree.find(&path) else { continue };
        let inner = tree.walk_from(id).filter(|(_, _, inode)| bad(inode));
        found.extend(inner.map(|(inner, _, _)| [path.as_slice(), &inner].concat()));
    }
    found
}

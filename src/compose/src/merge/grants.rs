//! Compares the tree before and after a layer with grants, and fails at the first change outside them.
//!
//! Whole trees are compared, by paths without symbolic links: this covers every key of a layer and every link on the way.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Inode, InodeId, Kind, ROOT, Tree};

use vmbake_common::escape;

use super::MergeError;
use super::place::Target;
use super::place::limits::{landing, privilege};
use super::unit_grants::BundleLayers;
use vmbake_manifest::LayerGrants;

/// Files that list accounts. `users` and `groups` of a layer, which are granted by name, add to them.
const ACCOUNTS: [&[u8]; 6] =
    [b"/etc/passwd", b"/etc/group", b"/etc/shadow", b"/etc/gshadow", b"/etc/subuid", b"/etc/subgid"];

/// Mode of missing directories above a granted path.
const DIRECTORY_MODE: u16 = 0o755;

/// The part of a layer whose changes are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Its users and groups.
    Accounts,
    /// Everything else.
    Content,
}

impl Target {
    /// A copy of the tree, if `layer` has grants.
    pub(super) fn snapshot(&self, layer: &str) -> Option<Tree> {
        self.grants.contains_key(layer).then(|| self.tree.clone())
    }

    /// The layer that brought a node; empty for those of the base.
    pub(super) fn layer_of(&self, id: InodeId) -> &str {
        &self.tree.origin(self.tree.inode(id).origin).layer
    }

    /// Fails if `layer` changed anything since `before` outside its grants.
    pub(super) fn check_changes(
        &self,
        layer: &str,
        before: Option<&Tree>,
        step: Step,
        bundles: &BundleLayers,
    ) -> Result<(), MergeError> {
        let (Some(grants), Some(before)) = (self.grants.get(layer), before) else { return Ok(()) };
        let check = GrantCheck { grants, layer, step };
        differences(before, &self.tree, |change| {
            check.check(&change)?;
            let old = change.before.map(|old| (change.path.as_slice(), old));
            old.map_or(Ok(()), |old| bundles.check_change(layer, grants, before, old))
        })
    }

    /// Fails if a file that the first boot gives a `mode` would have privileges that are not granted; `path` contains no links.
    pub(super) fn check_mode(&self, layer: &str, path: &[u8], mode: u16) -> Result<(), MergeError> {
        let is_listed = |grants: &LayerGrants| grants.setuid.iter().any(|listed| listed.as_bytes() == path);
        match mode & 0o7000 == 0 || self.grants.get(layer).is_none_or(is_listed) {
            true => Ok(()),
            false => Err(refused(layer, "gives privileges to", path)),
        }
    }

    /// Fails if a file that `layer` writes to `path` would be outside its grants.
    /// Otherwise tells where it would be.
    pub(super) fn check_landing(&self, layer: &str, path: &[u8]) -> Result<Vec<u8>, MergeError> {
        let landing = self.wrap(landing(&self.tree, path))?;
        self.check_real(layer, &landing)?;
        Ok(landing)
    }

    /// Fails if what `path` leads to is outside the grants of `layer`, or would be.
    pub(super) fn check_end(&self, layer: &str, path: &[u8]) -> Result<(), MergeError> {
        match self.wrap(self.tree.real_path(path, true))? {
            Some((real, _)) => self.check_real(layer, &real),
            // A link to what is not there may lead anywhere later.
            None if self.grants.contains_key(layer) && self.wrap(self.tree.find(path))?.is_some() => {
                Err(refused(layer, "writes", path))
            }
            None => self.check_landing(layer, path).map(drop),
        }
    }

    /// Fails if `path`, which contains no links, is outside the grants of `layer`.
    pub(super) fn check_real(&self, layer: &str, path: &[u8]) -> Result<(), MergeError> {
        match self.grants.get(layer).is_none_or(|grants| is_granted(&grants.paths, path)) {
            true => Ok(()),
            false => Err(refused(layer, "writes", path)),
        }
    }
}

/// A node that was created, changed or removed.
struct Change<'a> {
    path: Vec<u8>,
    before: Option<&'a Inode>,
    after: Option<&'a Inode>,
}

struct GrantCheck<'a> {
    grants: &'a LayerGrants,
    layer: &'a str,
    step: Step,
}

impl GrantCheck<'_> {
    fn check(&self, change: &Change<'_>) -> Result<(), MergeError> {
        let Change { path, before, after } = change;
        if !is_granted(&self.grants.paths, path) && !self.is_parent(change) && !self.is_account(change) {
            let verb = match (before, after) {
                (None, _) => "creates",
                (Some(_), None) => "removes",
                (Some(_), Some(_)) => "changes",
            };
            return Err(refused(self.layer, verb, path));
        }
        if before.is_none() && String::from_utf8_lossy(path).chars().any(escape::is_unsafe) {
            let (layer, path) = (self.layer.to_owned(), escape::name(path));
            return Err(MergeError::HiddenCharacter { layer, path });
        }
        let got = after.is_some_and(|inode| privilege(&inode.meta, &inode.kind).is_some() || gets_bits(*before, inode));
        let is_listed = || self.grants.setuid.iter().any(|listed| listed.as_bytes() == path);
        if got && !is_listed() {
            return Err(refused(self.layer, "gives privileges to", path));
        }
        Ok(())
    }

    /// A missing directory above a granted path, created with default metadata.
    fn is_parent(&self, change: &Change<'_>) -> bool {
        let Change { path, before: None, after: Some(inode) } = change else { return false };
        let meta = &inode.meta;
        let is_plain = (meta.mode, meta.uid, meta.gid) == (DIRECTORY_MODE, 0, 0) && meta.xattrs.is_empty();
        let leads = |granted: &String| is_granted(&[String::from_utf8_lossy(path).into_owned()], granted.as_bytes());
        is_plain && matches!(inode.kind, Kind::Directory(_)) && self.grants.paths.iter().any(leads)
    }

    /// An account file whose lines changed, and not its metadata.
    fn is_account(&self, change: &Change<'_>) -> bool {
        let Some(Inode { meta, kind: Kind::File(_), .. }) = change.after else { return false };
        let is_kept = match change.before {
            Some(Inode { meta: old, kind: Kind::File(_), .. }) => {
                (old.mode, old.uid, old.gid, &old.xattrs) == (meta.mode, meta.uid, meta.gid, &meta.xattrs)
            }
            Some(_) => false,
            None => meta.mode & 0o022 == 0,
        };
        self.step == Step::Accounts && is_kept && ACCOUNTS.contains(&change.path.as_slice())
    }
}

/// Whether a directory has set-uid, set-gid or sticky bits that it did not have.
fn gets_bits(before: Option<&Inode>, after: &Inode) -> bool {
    let bits = |inode: &Inode| inode.meta.mode & 0o7000;
    let is_same = before.is_some_and(|before| matches!(before.kind, Kind::Directory(_)) && bits(before) == bits(after));
    matches!(after.kind, Kind::Directory(_)) && bits(after) != 0 && !is_same
}

/// Calls `each` for every changed node, directories before their entries. A removed directory is one change.
fn differences<'a>(
    before: &'a Tree,
    after: &'a Tree,
    mut each: impl FnMut(Change<'a>) -> Result<(), MergeError>,
) -> Result<(), MergeError> {
    let mut todo: Vec<(Vec<u8>, Option<InodeId>, Option<InodeId>)> = vec![(Vec::new(), Some(ROOT), Some(ROOT))];
    while let Some((path, old, new)) = todo.pop() {
        let (was, is) = (old.map(|id| before.inode(id)), new.map(|id| after.inode(id)));
        let mut names: BTreeSet<&[u8]> = names(is).collect();
        names.extend(self::names(was.filter(|_| is.is_some())));
        for name in names.into_iter().rev() {
            let [old, new] = [(before, old), (after, new)].map(|(tree, dir)| tree.entry(dir?, name));
            todo.push(([path.as_slice(), b"/", name].concat(), old, new));
        }
        if old != new || !was.zip(is).is_some_and(|(was, is)| is_same(was, is)) {
            each(Change { path, before: was, after: is })?;
        }
    }
    Ok(())
}

fn names(inode: Option<&Inode>) -> impl Iterator<Item = &[u8]> {
    let entries = match inode.map(|inode| &inode.kind) {
        Some(Kind::Directory(entries)) => Some(entries),
        _ => None,
    };
    entries.into_iter().flat_map(|entries| entries.keys().map(Vec::as_slice))
}

/// Whether two nodes are equal, apart from the entries of directories.
fn is_same(a: &Inode, b: &Inode) -> bool {
    a.meta == b.meta
        && match (&a.kind, &b.kind) {
            (Kind::Directory(_), Kind::Directory(_)) => true,
            (a, b) => a == b,
        }
}

/// Whether `path` is at or below a granted path.
fn is_granted(granted: &[String], path: &[u8]) -> bool {
    granted.iter().any(|parent| {
        let rest = path.strip_prefix(parent.trim_end_matches('/').as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
    })
}

fn refused(layer: &str, verb: &'static str, path: &[u8]) -> MergeError {
    let path = if path.is_empty() { b"/" } else { path };
    MergeError::NotGranted { layer: layer.to_owned(), verb, path: vmbake_common::escape::name(path) }
}

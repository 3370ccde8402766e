//! Places nodes in the merged tree, each with its origin.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::source::{Map, ReadAt, SourceId};
use vmbake_disk::tree::{Inode, InodeId, Kind, Metadata, Origin, OriginId, Timestamp, Tree, TreeError, components};

use vmbake_shell::TreeFiles;

use super::extracted::BaseAccounts;
use super::unit_grants::BundleLayers;
use super::{ContentFault, MAX_TEXT, MergeError};
use limits::{CAPABILITY, Limits};
use vmbake_manifest::LayerGrants;

pub(super) mod limits;
mod members;
mod removed;

/// Table of file systems that are mounted at boot.
pub(super) const FSTAB: &str = "/etc/fstab";

const ROOT: &str = "/";

/// A line of fstab(5) with a mount point.
pub(super) struct Mount {
    /// Without a slash at its end.
    pub(super) point: String,
    pub(super) line: String,
    /// Whether it is mounted at boot.
    pub(super) is_automatic: bool,
}

/// The lines of fstab(5) that mount something at a path.
pub(super) fn mounts_of(text: &str) -> Vec<Mount> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let mounts = lines.filter_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let point = words.next().filter(|point| point.starts_with('/'))?;
        let options = words.nth(1).unwrap_or_default();
        let point = match point.trim_end_matches('/') {
            "" => ROOT.to_owned(),
            point => point.replace("\\040", " "),
        };
        let is_automatic = !options.split(',').any(|option| option == "noauto");
        Some(Mount { point, line: line.to_owned(), is_automatic })
    });
    mounts.collect()
}

/// The tree that is being made, and who is writing to it.
pub(super) struct Target {
    pub(super) tree: Tree,
    epoch: Timestamp,
    origin: OriginId,
    /// The artifact that wrote each path that is not a directory.
    written: BTreeMap<InodeId, String>,
    /// The users and groups of the layers so far: the file that has them, and the name.
    pub(super) accounts: BTreeSet<(&'static str, String)>,
    /// Artifacts that were chosen as packages by name: the archive answers for their privileges.
    pub(super) by_name: BTreeSet<String>,
    /// What they have got so, by path.
    pub(super) granted: RefCell<BTreeMap<String, String>>,
    /// Which of them gave it last, by path without links.
    pub(super) granters: RefCell<BTreeMap<Vec<u8>, Origin>>,
    /// What the layers that are named here may change.
    pub(super) grants: BTreeMap<String, LayerGrants>,
    /// The layers of each bundle.
    pub(super) bundles: BundleLayers,
    /// Paths that `remove` keeps, without links.
    pub(super) kept: BTreeSet<Vec<u8>>,
    pub(super) base_accounts: BaseAccounts,
    /// The file systems of the base's fstab(5).
    mounts: Vec<Mount>,
    limits: Limits,
}

impl Target {
    pub(super) fn new(mut tree: Tree, epoch: Timestamp) -> Self {
        let origin = tree.add_origin(Origin::default());
        let base_accounts = BaseAccounts::of(&tree);
        let (written, accounts, limits) = (BTreeMap::new(), BTreeSet::new(), Limits::new(origin));
        Self {
            tree,
            epoch,
            origin,
            written,
            accounts,
            by_name: BTreeSet::new(),
            granted: RefCell::default(),
            granters: RefCell::default(),
            grants: BTreeMap::new(),
            bundles: BundleLayers::default(),
            kept: BTreeSet::new(),
            base_accounts,
            mounts: Vec::new(),
            limits,
        }
    }

    /// Takes the file systems that fstab(5) of the tree has.
    pub(super) fn read_mounts(&mut self) -> Result<(), MergeError> {
        self.mounts = mounts_of(&self.text_or_empty(FSTAB)?);
        Ok(())
    }

    /// The file systems that fstab(5) of the base has.
    pub(super) fn mounts(&self) -> &[Mount] {
        &self.mounts
    }

    /// Whether fstab(5) of the base mounts a file system there, other than the root.
    pub(super) fn is_mount_point(&self, path: &str) -> bool {
        path != ROOT && self.mounts.iter().any(|mount| mount.point == path)
    }

    /// From now on, nodes come from `origin`.
    pub(super) fn enter(&mut self, origin: Origin) {
        self.origin = self.tree.add_origin(origin);
    }

    /// The layer that has written or changed a node; `None` if it is as in the base.
    pub(super) fn layer_of_change(&self, id: InodeId) -> Option<&str> {
        let is_base = self.limits.is_base(self.tree.inode(id).origin);
        (!is_base).then(|| self.layer_of(id))
    }

    /// The same for what is at a path.
    pub(super) fn layer_at(&self, path: &str) -> Option<&str> {
        self.layer_of_change(self.tree.resolve(path.as_bytes()).ok()?)
    }

    /// Whether a path is a file or setting of a layer itself, and not of a package or archive.
    pub(super) fn is_file_of_layer(&self, path: &str) -> bool {
        let id = self.tree.resolve(path.as_bytes()).ok().filter(|id| self.layer_of_change(*id).is_some());
        id.is_some_and(|id| self.tree.origin(self.tree.inode(id).origin).artifact.is_none())
    }

    /// The tree as scripts see it: what they change comes from the current origin.
    pub(super) fn files(&mut self) -> TreeFiles<'_> {
        TreeFiles::new(&mut self.tree, self.epoch, self.origin)
    }

    pub(super) fn origin(&self) -> &Origin {
        self.tree.origin(self.origin)
    }

    /// Owned by root, with the time of the image.
    pub(super) fn meta(&self, mode: u16) -> Metadata {
        Metadata::root(mode, self.epoch)
    }

    /// The image's time, in whole seconds and nanoseconds.
    pub(super) fn epoch(&self) -> Timestamp {
        self.epoch
    }

    pub(super) fn wrap<T>(&self, result: Result<T, TreeError>) -> Result<T, MergeError> {
        result.map_err(|source| MergeError::Tree { layer: self.origin().layer.clone(), source })
    }

    /// Makes the directories above `path` that are missing; every new name comes by here.
    fn parents(&mut self, path: &[u8]) -> Result<(), MergeError> {
        self.check_way(path)?;
        let names: Vec<&[u8]> = components(path).collect();
        let Some((_, parents)) = names.split_last() else { return Ok(()) };
        let (meta, origin) = (self.meta(0o755), self.origin);
        let made = self.tree.make_dirs(&parents.join(&b'/'), &meta, origin);
        self.wrap(made).map(|_| ())
    }

    /// Writes a node of a layer; what stood there is replaced.
    pub(super) fn place(&mut self, path: &[u8], meta: Metadata, kind: Kind) -> Result<InodeId, MergeError> {
        self.parents(path)?;
        let inode = Inode { meta, kind, origin: self.origin };
        let placed = self.tree.place(path, inode);
        self.wrap(placed)
    }

    /// Writes a file of a layer; what stood there is replaced.
    pub(super) fn file(&mut self, path: &str, meta: Metadata, content: Vec<u8>) -> Result<(), MergeError> {
        let len = content.len() as u64;
        let source = self.tree.sources_mut().add(Arc::new(content));
        self.place(path.as_bytes(), meta, Kind::File(Map::whole(source, 0, len))).map(|_| ())
    }

    /// Writes a file whose content is read when the image is.
    pub(super) fn source_file(
        &mut self,
        path: &str,
        meta: Metadata,
        source: Arc<dyn ReadAt>,
    ) -> Result<(), MergeError> {
        let len = source.len();
        let source = self.tree.sources_mut().add(source);
        self.place(path.as_bytes(), meta, Kind::File(Map::whole(source, 0, len))).map(|_| ())
    }

    /// Writes a file that is an artifact.
    pub(super) fn artifact_file(
        &mut self,
        path: &str,
        mode: u16,
        source: SourceId,
        len: u64,
    ) -> Result<(), MergeError> {
        self.claim(path.as_bytes(), "regular file")?;
        self.check_case(path.as_bytes())?;
        let meta = self.meta(mode);
        let id = self.place(path.as_bytes(), meta, Kind::File(Map::whole(source, 0, len)))?;
        self.written.insert(id, self.origin().artifact.clone().unwrap_or_default());
        Ok(())
    }

    /// Makes a directory, or gives an existing one this metadata. A symbolic link in its place is refused.
    pub(super) fn directory(&mut self, path: &str, meta: Metadata) -> Result<(), MergeError> {
        self.place(path.as_bytes(), meta, Kind::directory()).map(|_| ())
    }

    /// Makes a directory unless the path leads to one.
    pub(super) fn ensure_directory(&mut self, path: &str, meta: Metadata) -> Result<(), MergeError> {
        let found = self.tree.resolve(path.as_bytes()).ok();
        match found.map(|id| &self.tree.inode(id).kind) {
            Some(Kind::Directory(_)) => Ok(()),
            _ => self.directory(path, meta),
        }
    }

    /// Gives a file that exists another owner and mode; links are followed. A file of the base that has
    /// another one then counts as the writer's.
    pub(super) fn set_mode(&mut self, path: &str, meta: &Metadata) -> Result<(), MergeError> {
        let id = self.wrap(self.tree.resolve(path.as_bytes()))?;
        self.check_privileges(path.as_bytes(), meta, &self.tree.inode(id).kind)?;
        self.set_meta(id, meta);
        Ok(())
    }

    /// Gives a node another owner and mode.
    pub(super) fn set_meta(&mut self, id: InodeId, meta: &Metadata) {
        let node = self.tree.meta_mut(id);
        let same = (node.mode, node.uid, node.gid) == (meta.mode, meta.uid, meta.gid);
        // As the kernel does when the owner changes.
        if (node.uid, node.gid) != (meta.uid, meta.gid) {
            node.xattrs.remove(CAPABILITY);
        }
        (node.mode, node.uid, node.gid) = (meta.mode, meta.uid, meta.gid);
        if !same && self.limits.is_base(self.tree.inode(id).origin) {
            self.tree.set_origin(id, self.origin);
        }
    }

    /// Gives a file an extended attribute. A file of the base then counts as the writer's.
    pub(super) fn set_attribute(&mut self, id: InodeId, name: &[u8], value: Vec<u8>) {
        let before = self.tree.meta_mut(id).xattrs.insert(name.to_vec(), value.clone());
        if before != Some(value) && self.limits.is_base(self.tree.inode(id).origin) {
            self.tree.set_origin(id, self.origin);
        }
    }

    /// Copies what is in a skeleton directory into a home directory, as useradd(8) does.
    pub(super) fn skeleton(&mut self, skeleton: &str, home: &str, uid: u32, gid: u32) -> Result<(), MergeError> {
        let found = self.wrap(self.tree.find(skeleton.as_bytes()))?;
        let is_directory = |id: &InodeId| matches!(self.tree.inode(*id).kind, Kind::Directory(_));
        let Some(skel) = found.filter(is_directory) else { return Ok(()) };
        let below: Vec<(Vec<u8>, Inode)> =
            self.tree.walk_from(skel).skip(1).map(|(path, _, inode)| (path, inode.clone())).collect();
        for (path, Inode { mut meta, kind, .. }) in below {
            (meta.uid, meta.gid) = (uid, gid);
            let kind = if matches!(kind, Kind::Directory(_)) { Kind::directory() } else { kind };
            self.place(&[home.as_bytes(), &path].concat(), meta, kind)?;
        }
        Ok(())
    }

    /// Copies a file, or a directory with all that is in it.
    pub(super) fn copy_below(&mut self, from: InodeId, to: &str) -> Result<(), MergeError> {
        let below: Vec<(Vec<u8>, Inode)> =
            self.tree.walk_from(from).map(|(path, _, inode)| (path, inode.clone())).collect();
        for (path, Inode { meta, kind, .. }) in below {
            self.check_privileges(&[to.as_bytes(), &path].concat(), &meta, &kind)?;
            let kind = if matches!(kind, Kind::Directory(_)) { Kind::directory() } else { kind };
            self.place(&[to.as_bytes(), &path].concat(), meta, kind)?;
        }
        Ok(())
    }

    /// Makes a symbolic link.
    pub(super) fn symlink(&mut self, path: &str, target: &str) -> Result<(), MergeError> {
        let meta = self.meta(0o777);
        self.place(path.as_bytes(), meta, Kind::Symlink(target.as_bytes().to_vec())).map(|_| ())
    }

    /// Fails if another artifact wrote `path`, or if the existing node has another type.
    fn claim(&self, path: &[u8], wanted: &'static str) -> Result<(), MergeError> {
        let found = self.wrap(self.tree.find(path))?;
        let Some(id) = found else { return Ok(()) };
        let shown = || vmbake_common::escape::name(path);
        let artifact = self.origin().artifact.clone().unwrap_or_default();
        if let Some(first) = self.written.get(&id) {
            return Err(MergeError::Message(message!("{}: written by both {first} and {artifact}", shown())));
        }
        match &self.tree.inode(id).kind {
            found @ Kind::Directory(_) => {
                Err(MergeError::Occupied { path: shown(), artifact, found: found.name(), wanted })
            }
            _ => Ok(()),
        }
    }

    /// Gives up a path that an earlier package wrote and that a later one may replace.
    pub(super) fn release(&mut self, path: &[u8]) {
        if let Ok(Some(id)) = self.tree.find(path) {
            self.written.remove(&id);
        }
    }

    /// The text of a file of the tree.
    pub(super) fn text(&self, path: &str) -> Result<String, MergeError> {
        String::from_utf8(self.bytes(path)?).map_err(|_| MergeError::content(path, ContentFault::NotUtf8))
    }

    /// The content of a file that is no larger than a text may be.
    pub(super) fn bytes(&self, path: &str) -> Result<Vec<u8>, MergeError> {
        self.wrap(self.tree.read(path.as_bytes(), MAX_TEXT))
    }

    /// The text of a file, empty when there is none.
    pub(super) fn text_or_empty(&self, path: &str) -> Result<String, MergeError> {
        let found = self.wrap(self.tree.find(path.as_bytes()))?;
        if found.is_some() { self.text(path) } else { Ok(String::new()) }
    }

    /// Replaces the content of a file, which keeps owner and mode; a new one is 0644. A symbolic link becomes a file like
    /// the one that it leads to: its own mode is 0777.
    pub(super) fn set_text(&mut self, path: &str, text: &str) -> Result<(), MergeError> {
        let found = self.tree.resolve(path.as_bytes()).ok();
        let mut meta = found.map_or_else(|| self.meta(0o644), |id| self.tree.inode(id).meta.clone());
        meta.mtime = self.epoch;
        self.file(path, meta, text.as_bytes().to_vec())
    }
}

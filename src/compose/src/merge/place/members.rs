//! Places the members of packages and archives.

use std::collections::BTreeMap;

use vmbake_common::paths::is_below;
use vmbake_disk::source::{Map, SourceId};
use vmbake_disk::tree::{Inode, InodeId, Kind, Metadata};
use vmbake_layer::{hidden_because, hidden_by};

use super::limits::landing;
use super::{ROOT, Target};
use crate::merge::MergeError;
use crate::stage::{Member, MemberKind};

impl Target {
    /// Places the members of a package or archive. An existing directory keeps its owner and mode, as in dpkg and tar. `is_archive` enables
    /// checks that packages do not need.
    pub(in crate::merge) fn entries(
        &mut self,
        entries: &[Member],
        source: SourceId,
        is_archive: bool,
    ) -> Result<(), MergeError> {
        let mut placed: BTreeMap<&[u8], InodeId> = BTreeMap::new();
        for entry in entries {
            let path = &entry.path;
            let meta = entry.meta.clone();
            if is_archive {
                self.check_case(path)?;
                self.check_visible(path)?;
            }
            let kind = match &entry.kind {
                MemberKind::Directory => {
                    self.check_privileges(path, &meta, &Kind::directory())?;
                    self.shared_directory(path, meta)?;
                    continue;
                }
                MemberKind::HardLink(to) => {
                    self.claim(path, "hard link")?;
                    if let Some(id) = placed.get(to.as_slice()).copied() {
                        let Inode { meta, kind, .. } = self.tree.inode(id);
                        self.check_privileges(path, meta, kind)?;
                        self.hard_link(path, id)?;
                        placed.insert(path, id);
                    }
                    continue;
                }
                MemberKind::File { offset, len } => Kind::File(Map::whole(source, *offset, *len)),
                MemberKind::Symlink(to) => Kind::Symlink(to.clone()),
                MemberKind::CharDevice(major, minor) => Kind::CharDevice { major: *major, minor: *minor },
                MemberKind::BlockDevice(major, minor) => Kind::BlockDevice { major: *major, minor: *minor },
                MemberKind::Fifo => Kind::Fifo,
            };
            self.claim(path, kind.name())?;
            self.check_privileges(path, &meta, &kind)?;
            let id = self.place(path, meta, kind)?;
            self.written.insert(id, self.origin().artifact.clone().unwrap_or_default());
            placed.insert(path, id);
        }
        Ok(())
    }

    /// Fails if a path is, or leads through links, where machines mount another file system.
    pub(in crate::merge) fn check_visible(&self, path: &[u8]) -> Result<(), MergeError> {
        let path = [b"/", path.strip_prefix(b"/").unwrap_or(path)].concat();
        for path in [self.wrap(landing(&self.tree, &path))?, path] {
            let path = vmbake_common::escape::name(&path);
            let mount = self.mounts.iter().map(|mount| &mount.point);
            let mount = mount.filter(|point| *point != ROOT).find(|point| is_below(&path, point));
            let mount = hidden_by(&path).map(str::to_owned).or_else(|| mount.cloned());
            if let Some(mount) = mount {
                let reason = hidden_because(&mount);
                return Err(MergeError::Hidden { path, layer: self.origin().layer.clone(), reason });
            }
        }
        Ok(())
    }

    fn hard_link(&mut self, path: &[u8], id: InodeId) -> Result<(), MergeError> {
        self.parents(path)?;
        let located = self.wrap(self.tree.locate(path))?;
        let Some((dir, name)) = located else { return Ok(()) };
        let linked = self.tree.link(dir, name, id);
        self.wrap(linked)
    }

    fn shared_directory(&mut self, path: &[u8], meta: Metadata) -> Result<(), MergeError> {
        match self.tree.resolve(path).map(|id| &self.tree.inode(id).kind) {
            Ok(Kind::Directory(_)) => Ok(()),
            Ok(found) => Err(MergeError::Occupied {
                path: vmbake_common::escape::name(path),
                artifact: self.origin().artifact.clone().unwrap_or_default(),
                found: found.name(),
                wanted: "directory",
            }),
            Err(_) => self.place(path, meta, Kind::directory()).map(|_| ()),
        }
    }
}

//! Restrictions for artifacts and layers: they must not write through a symbolic link of another artifact or layer, contain a set-uid file
//! that no layer lists, or a name that differs only in case.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_common::message;
use vmbake_disk::tree::{InodeId, Kind, Metadata, Origin, OriginId, ROOT, Tree, TreeError, components};

use super::Target;
use crate::merge::MergeError;
use vmbake_layer::Schema;

/// The extended attribute of file capabilities (capabilities(7)).
pub(super) const CAPABILITY: &[u8] = b"security.capability";

/// Directories in `/` that are links to those of the same name in `/usr` on a system with a merged `/usr`.
const MERGED: [&[u8]; 7] = [b"bin", b"lib", b"lib32", b"lib64", b"libo32", b"libx32", b"sbin"];

/// Most symbolic links on one path, as `MAXSYMLINKS` of Linux; the tree refuses more.
const MAX_SYMLINKS: usize = 40;

/// What is remembered to keep the rules.
pub(super) struct Limits {
    /// The origins before this one are the base's.
    own: OriginId,
    /// The files that the current layer lists in `setuid`.
    setuid: BTreeSet<String>,
    /// The path of each file of an archive or of a single file, by the path in small letters, with its artifact.
    folded: BTreeMap<Vec<u8>, (Vec<u8>, String)>,
}

impl Limits {
    /// Keeps the rules against all origins from `own` on.
    pub(super) fn new(own: OriginId) -> Self {
        Self { own, setuid: BTreeSet::new(), folded: BTreeMap::new() }
    }

    /// Whether it is the origin of something of the base.
    pub(super) fn is_base(&self, origin: OriginId) -> bool {
        origin < self.own
    }
}

impl Target {
    /// From now on, the files that `schema` lists may be set-uid, which are returned; `multiarch` is Debian's name of the architecture in paths.
    pub(in crate::merge) fn enter_layer(&mut self, schema: &Schema, multiarch: &str) -> BTreeSet<String> {
        self.limits.setuid = schema.setuid.iter().map(|path| path.replace("{multiarch}", multiarch)).collect();
        self.limits.setuid.clone()
    }

    /// Fails when a file that the layer lists in `setuid` is not what the list says.
    /// What the first boot gives them is not there yet.
    pub(in crate::merge) fn leave_layer(&self, schema: &Schema) -> Result<(), MergeError> {
        let later: BTreeSet<&String> =
            schema.first_boot_modes().filter(|(.., mode)| mode & 0o7000 != 0).map(|(_, path, _)| path).collect();
        for path in self.limits.setuid.iter().filter(|path| !later.contains(path)) {
            let found = self.tree.find(path.as_bytes()).ok().flatten().map(|id| self.tree.inode(id));
            if let Some(Kind::Symlink(to)) = found.map(|inode| &inode.kind) {
                let real = self.tree.real_path(path.as_bytes(), true).ok().flatten().map(|(path, _)| path);
                let (layer, to) = (self.origin().layer.clone(), show(real.as_ref().unwrap_or(to)));
                return Err(MergeError::LinkPrivilege { layer, path: path.clone(), to });
            }
            if found.is_none_or(|inode| privilege(&inode.meta, &inode.kind).is_none()) {
                return Err(MergeError::NoPrivilege { layer: self.origin().layer.clone(), path: path.clone() });
            }
        }
        Ok(())
    }

    /// Fails when one of `paths`, which the bake writes itself, exists, except in the base. Links above it are followed.
    pub(in crate::merge) fn check_generated(&self, paths: &[&str]) -> Result<(), MergeError> {
        for path in paths {
            let found = self.wrap(self.tree.find(path.as_bytes()))?;
            if let Some(origin) =
                found.map(|id| self.tree.inode(id).origin).filter(|origin| !self.limits.is_base(*origin))
            {
                let (path, writer) = ((*path).to_owned(), describe(self.tree.origin(origin)));
                return Err(MergeError::Generated { path, writer });
            }
        }
        Ok(())
    }

    /// Fails when `path` leads through a symbolic link that the writer may not use: artifacts use those of the base and of a merged `/usr`,
    /// layers also those of layers, unless what that one may change is limited: its links are for itself.
    pub(in crate::merge) fn check_way(&self, path: &[u8]) -> Result<(), MergeError> {
        for (link, id) in links(&self.tree, path) {
            if is_merged(&link, &self.tree.inode(id).kind) {
                continue;
            }
            let (origin, writer) = (self.tree.inode(id).origin, self.origin());
            let owner = self.tree.origin(origin);
            let is_limited = owner.layer != writer.layer && self.grants.contains_key(&owner.layer);
            let of_layers = owner.artifact.is_none() && writer.artifact.is_none() && !is_limited;
            if origin >= self.limits.own && !of_layers {
                let (path, writer, owner) = (show(path), describe(writer), describe(owner));
                return Err(MergeError::Through { path, writer, link: show(&link), owner });
            }
        }
        Ok(())
    }

    /// Fails when an artifact brings a file with privileges that the layer does not list, unless it was chosen as a package by name: then
    /// that is noted.
    pub(in crate::merge) fn check_privileges(
        &self,
        path: &[u8],
        meta: &Metadata,
        kind: &Kind,
    ) -> Result<(), MergeError> {
        let Some(artifact) = self.origin().artifact.clone() else { return Ok(()) };
        let path = format!("/{}", show(path).trim_start_matches('/'));
        if let Some(name) = meta.xattrs.keys().find(|name| *name != CAPABILITY && !name.starts_with(b"user.")) {
            return Err(MergeError::Message(message!(
                "{path}: artifact {artifact} sets the extended attribute {}",
                show(name)
            )));
        }
        match privilege(meta, kind) {
            Some(privilege) if self.by_name.contains(&artifact) => {
                let landing = self.wrap(landing(&self.tree, path.as_bytes()))?;
                self.granters.borrow_mut().insert(landing, self.origin().clone());
                self.granted.borrow_mut().insert(path, privilege);
                Ok(())
            }
            Some(privilege) if !self.limits.setuid.contains(&path) => {
                let layer = self.origin().layer.clone();
                Err(MergeError::Privilege { path, artifact, layer, privilege })
            }
            _ => Ok(()),
        }
    }

    /// Fails when an archive or single file has brought a path that differs from this one only in case: two files on the
    /// image, but one wherever the artifact was unpacked to look at it.
    pub(super) fn check_case(&mut self, path: &[u8]) -> Result<(), MergeError> {
        let artifact = self.origin().artifact.clone().unwrap_or_default();
        let whole = components(path).collect::<Vec<_>>().join(&b'/');
        // The directories above it too: they would become one.
        let ends = whole.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at).chain([whole.len()]);
        for path in ends.map(|end| &whole[..end]) {
            match self.limits.folded.get(&path.to_ascii_lowercase()) {
                Some((found, first)) if *found != path => {
                    return Err(MergeError::Message(message!(
                        "{} of {artifact} differs only in case from {} of {first}",
                        show(path),
                        show(found)
                    )));
                }
                Some(_) => {}
                None => {
                    self.limits.folded.insert(path.to_ascii_lowercase(), (path.to_vec(), artifact.clone()));
                }
            }
        }
        Ok(())
    }
}

/// What makes a file run as another user, if anything does.
pub(in crate::merge) fn privilege(meta: &Metadata, kind: &Kind) -> Option<String> {
    match kind {
        Kind::File(_) if meta.xattrs.contains_key(CAPABILITY) => Some("file capabilities".to_owned()),
        Kind::File(_) if meta.mode & 0o7000 != 0 => Some(format!("mode {:04o}", meta.mode)),
        _ => None,
    }
}

/// Resolves the links on the way to `path`, as far as it exists.
pub(in crate::merge) fn landing(tree: &Tree, path: &[u8]) -> Result<Vec<u8>, TreeError> {
    let names: Vec<&[u8]> = components(path).collect();
    let Some((last, parents)) = names.split_last() else { return Ok(Vec::new()) };
    for end in (0..=parents.len()).rev() {
        if let Some((real, _)) = tree.real_path(&parents[..end].join(&b'/'), true)? {
            let rest = parents[end..].iter().chain([last]);
            return Ok(rest.fold(real, |path, name| match *name {
                b".." => path[..path.iter().rposition(|byte| *byte == b'/').unwrap_or_default()].to_vec(),
                name => [&path[..], b"/", name].concat(),
            }));
        }
    }
    Ok(path.to_vec())
}

/// The symbolic links that a look-up of `path` follows on the way to its last name, with their own paths.
pub(in crate::merge) fn links(tree: &Tree, path: &[u8]) -> Vec<(Vec<u8>, InodeId)> {
    let mut todo: Vec<&[u8]> = components(path).rev().skip(1).collect();
    let mut way: Vec<(&[u8], InodeId)> = Vec::new();
    let mut links = Vec::new();
    while let Some(name) = todo.pop() {
        if name == b".." {
            way.pop();
            continue;
        }
        let dir = way.last().map_or(ROOT, |(_, id)| *id);
        let Some(id) = tree.entry(dir, name) else { break };
        let Kind::Symlink(target) = &tree.inode(id).kind else {
            way.push((name, id));
            continue;
        };
        let names = way.iter().map(|(name, _)| *name).chain([name]);
        links.push((names.flat_map(|name| [b"/", name].concat()).collect(), id));
        if links.len() > MAX_SYMLINKS {
            break;
        }
        if target.starts_with(b"/") {
            way.clear();
        }
        todo.extend(components(target).rev());
    }
    links
}

/// Whether it is a link of a merged `/usr`, as `/lib` to `usr/lib`: all names below mean the same without it.
fn is_merged(link: &[u8], kind: &Kind) -> bool {
    let Kind::Symlink(target) = kind else { return false };
    let name = link.strip_prefix(b"/").unwrap_or(link);
    MERGED.contains(&name) && target.strip_prefix(b"/").unwrap_or(target).strip_prefix(b"usr/") == Some(name)
}

fn describe(origin: &Origin) -> String {
    match &origin.artifact {
        Some(artifact) => format!("artifact {artifact} of layer {}", origin.layer),
        None => format!("layer {}", origin.layer),
    }
}

fn show(path: &[u8]) -> String {
    vmbake_common::escape::name(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use vmbake_disk::tree::Timestamp;

    #[test]
    fn parents_of_missing_directories_count() {
        let root = Metadata::root(0o755, Timestamp::default());
        let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
        let meta = target.meta(0o755);
        target.directory("/opt", meta).unwrap();
        for (path, expected) in [
            ("/opt/u/x", "/opt/u/x"),
            ("/opt/u/../x", "/opt/x"),
            ("/opt/u/../../etc/cron.d/x", "/etc/cron.d/x"),
            ("/opt/u/v/../../../../etc/x", "/etc/x"),
        ] {
            let found = landing(&target.tree, path.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(found).unwrap(), expected, "{path}");
        }
    }

    /// An artifact may write through `/lib` of another one, and through no other link of it.
    #[test]
    fn links_of_a_merged_usr_are_those_of_the_system() {
        for (link, to, expected) in [
            ("/lib", "usr/lib", true),
            ("/sbin", "/usr/sbin", true),
            ("/lib", "usr/bin", false),
            ("/lib", "../usr/lib", false),
            ("/opt", "usr/opt", false),
            ("/usr/lib64", "usr/lib64", false),
        ] {
            let root = Metadata::root(0o755, Timestamp::default());
            let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
            let artifact = |name: &str| Origin { layer: "l".into(), artifact: Some(name.into()), digest: None };
            target.enter(artifact("first"));
            target.symlink(link, to).unwrap();
            target.enter(artifact("second"));
            assert_eq!(target.check_way(format!("{link}/file").as_bytes()).is_ok(), expected, "{link} -> {to}");
        }
    }
}

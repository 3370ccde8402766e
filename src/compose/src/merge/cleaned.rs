//! Checks removed paths: the bake stops if `hygiene` removes or empties a path of a layer, and warns about entries of `remove` that match nothing.

use std::collections::BTreeMap;

use vmbake_disk::tree::{InodeId, Kind};

use super::MergeError;
use super::place::Target;
use crate::stage::{StagedArtifact, StagedContent};
pub use vmbake_layer::{HYGIENE, Install, Layer, Schema};

/// The paths of layers, with symbolic links resolved.
pub(super) struct Brought(BTreeMap<Vec<u8>, Node>);

/// What a layer has at a path.
struct Node {
    layer: String,
    kind: &'static str,
    has_content: bool,
}

impl Node {
    fn new(target: &Target, layer: &str, id: InodeId) -> Self {
        Self { layer: layer.to_owned(), kind: target.tree.inode(id).kind.name(), has_content: has_content(target, id) }
    }
}

impl Brought {
    /// The files, links and directories of the layers and of archives. Without those of packages, whose scripts leave
    /// logs, and those that a later layer has removed.
    pub(super) fn find(target: &Target, layers: &[Layer], archives: &[String]) -> Result<Self, MergeError> {
        let mut found = BTreeMap::new();
        for layer in layers.iter().filter(|layer| layer.schema.name != HYGIENE) {
            let schema = &layer.schema;
            let installed = schema.installs().filter_map(|(_, _, install)| match install {
                Install::File { path, .. } => Some(path),
                _ => None,
            });
            let own = layer.files.keys().chain(schema.symlinks.keys()).chain(schema.directories.keys());
            let own = own.chain(&schema.empty).chain(&schema.images).chain(schema.homes());
            let own = own.chain(schema.swap.as_ref().map(|swap| &swap.path));
            for path in own.chain(installed) {
                if let Some((real, id)) = target.wrap(target.tree.real_path(path.as_bytes(), false))? {
                    found.insert(real, Node::new(target, &schema.name, id));
                }
            }
            let images = schema.images.as_ref().map(|path| target.wrap(target.tree.real_path(path.as_bytes(), true)));
            if let Some((real, id)) = images.transpose()?.flatten() {
                for (below, id, _) in target.tree.walk_from(id) {
                    found.insert([&real[..], &below].concat(), Node::new(target, &schema.name, id));
                }
            }
        }
        if !archives.is_empty() {
            for (path, id, inode) in target.tree.walk() {
                let origin = target.tree.origin(inode.origin);
                if origin.artifact.as_ref().is_some_and(|artifact| archives.contains(artifact)) {
                    found.insert(path, Node::new(target, &origin.layer, id));
                }
            }
        }
        Ok(Self(found))
    }

    /// Each path that is not a directory, with its layer.
    pub(super) fn paths(&self) -> impl Iterator<Item = (&[u8], &str)> {
        let files = self.0.iter().filter(|(_, node)| node.kind != "directory");
        files.map(|(path, node)| (path.as_slice(), node.layer.as_str()))
    }

    /// Fails if one of them is gone, empty, or something else.
    pub(super) fn check(&self, target: &Target) -> Result<(), MergeError> {
        for (path, node) in &self.0 {
            let verb = match target.tree.lookup(path) {
                None => "removes",
                Some(id) if target.tree.inode(id).kind.name() != node.kind => "replaces",
                Some(id) if node.has_content && !has_content(target, id) => "empties",
                Some(_) => continue,
            };
            return Err(MergeError::Cleaned {
                path: vmbake_common::escape::name(path),
                layer: node.layer.clone(),
                verb,
            });
        }
        Ok(())
    }
}

/// The names of artifacts that are archives.
pub(super) fn archives(artifacts: &[StagedArtifact]) -> Vec<String> {
    let archives = artifacts.iter().filter(|artifact| matches!(artifact.content, StagedContent::Members(..)));
    archives.map(|artifact| artifact.name.clone()).collect()
}

/// The paths that `hygiene` keeps, without links: those that layers list in `keep`.
pub(super) fn kept<'a>(target: &Target, paths: impl Iterator<Item = &'a String>) -> Result<Vec<Vec<u8>>, MergeError> {
    let real = |path: &String| target.wrap(target.tree.real_path(path.as_bytes(), false)).transpose();
    paths.filter_map(real).map(|found| found.map(|(path, _)| path)).collect()
}

/// Warnings about paths that a layer removes and that nothing has brought. A pattern with `*` may fit nothing.
pub(super) fn not_there(target: &Target, schema: &Schema) -> Result<Vec<String>, MergeError> {
    let mut found = Vec::new();
    for path in schema.remove.iter().filter(|path| !path.contains('*')) {
        if target.wrap(target.tree.real_path(path.as_bytes(), false))?.is_none() {
            let name = &schema.name;
            found.push(format!(
                "layer {name}: `remove` lists {path}, which is not in the image: correct or remove the entry; a pattern such as {path}* may match nothing"
            ));
        }
    }
    Ok(found)
}

fn has_content(target: &Target, id: InodeId) -> bool {
    matches!(&target.tree.inode(id).kind, Kind::File(map) if !map.is_empty())
}

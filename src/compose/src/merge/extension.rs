//! Creates the tree of a system extension: staged artifacts and files of layers in, a tree without a base out.
//!
//! The caller checks that the layers have no other keys.

use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use super::MergeError;
use super::merging::place;
use super::place::Target;
use crate::stage::{Staged, StagedArtifact, StagedContent};
pub use vmbake_layer::default_mode;

/// Places artifacts, directories, files and links of all layers, and last the file `release`, a path and a text. What layers bring gets the
/// time `epoch`, and belongs to root.
pub fn merge(staged: Staged, release: (String, String), epoch: Timestamp) -> Result<Tree, MergeError> {
    let root = Metadata::root(0o755, epoch);
    let mut target = Target::new(Tree::new(root, Origin::default()), epoch);
    let Staged { layers, artifacts, .. } = staged;
    let mut artifacts: Vec<_> = artifacts.into_iter().map(Some).collect();
    for (index, layer) in layers.iter().enumerate() {
        let own = || Origin { layer: layer.schema.name.clone(), ..Origin::default() };
        let mine = artifacts.iter_mut().filter_map(|slot| slot.take_if(|artifact| artifact.layer == index));
        let mut mine: Vec<StagedArtifact> = mine.collect();
        mine.sort_by_key(|artifact| matches!(artifact.content, StagedContent::File { .. }));
        for artifact in mine {
            let (name, digest) = (Some(artifact.name.clone()), Some(artifact.digest.clone()));
            target.enter(Origin { artifact: name, digest, ..own() });
            place(&mut target, artifact)?;
        }
        target.enter(own());
        for (path, rule) in &layer.schema.directories {
            let meta = target.meta(rule.ownership().mode);
            target.directory(path, meta)?;
        }
        for (path, file) in &layer.files {
            let rule = layer.schema.files.get(path);
            let meta = target.meta(rule.map_or_else(|| default_mode(path), |rule| rule.ownership(path).mode));
            target.file(path, meta, file.content.clone())?;
        }
        for (path, to) in &layer.schema.symlinks {
            target.symlink(path, to)?;
        }
    }
    let (path, text) = release;
    let meta = target.meta(0o644);
    target.file(&path, meta, text.into_bytes())?;
    Ok(target.tree)
}

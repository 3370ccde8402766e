//! Creates the record of origins, from what earlier stages noted and from the merged tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use vmbake_disk::source::Map;
use vmbake_disk::tree::{Inode, Kind, Metadata, Origin, Timestamp, Tree, TreeError};

use super::record::{
    ArtifactOrigin, BaseImage, KeptOrigin, LayerOrigin, PathOrigin, Record, RecordError, inside_record,
};
use super::{BASE, RECORD};
use crate::merge::{self, Merged, SatisfiedPackage};
use crate::stage::Staged;
use vmbake_common::digest::InvalidDigest;
use vmbake_common::escape;
use vmbake_common::glob::matches;
use vmbake_common::hint::Hint;
use vmbake_common::paths::is_below;
use vmbake_layer::{FILES_BELOW, Layer};
use vmbake_manifest::Manifest;

/// Why no record of origins can be made.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    #[error("artifact {artifact} has no usable digest")]
    Digest { artifact: String, source: InvalidDigest },
    #[error("{path}: origin {layer:?} is not a layer of the image")]
    Layer { path: String, layer: String },
    #[error("the base cannot be used")]
    Base(#[source] RecordError),
    #[error(
        "the base was baked with layer {layer}, which this image lacks: packages that it deferred to the first boot would be lost"
    )]
    Lost { layer: String },
    #[error("cannot place the record of origins")]
    Place(#[source] TreeError),
    #[error("cannot write the record of origins as JSON")]
    Json(#[source] serde_json::Error),
}

impl Hint for OriginError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Lost { layer } => Some(format!(
                "require {layer} in a layer of the kind, or use the base image that this base was baked from"
            )),
            _ => None,
        }
    }

    vmbake_common::causes!(Base, Place; Digest);
}

/// What goes into an image, noted before it is merged.
#[derive(Debug)]
pub struct Ingredients {
    record: Record,
    /// What the layers remove: name of the layer and pattern, in their order.
    removals: Vec<(String, String)>,
    /// Every path of the base.
    base: Vec<Vec<u8>>,
}

impl Ingredients {
    /// Records the pins of `manifest`, the paths of `staged` and the properties of `base`.
    pub fn note(manifest: &Manifest, staged: &Staged, base: &Tree) -> Result<Self, OriginError> {
        let pinned = manifest.content().os.image.as_ref().map(|image| BaseImage {
            version: image.version.clone(),
            url: image.url.clone(),
            digest: image.digest,
        });
        let mut record = Record::new(manifest.digest(), pinned);
        let mut removals = Vec::new();
        for layer in &staged.layers {
            let (name, version) = (&layer.schema.name, layer.schema.version.clone());
            record.layers.insert(name.clone(), LayerOrigin { version, digest: layer.digest });
            removals.extend(layer.schema.remove.iter().map(|pattern| (name.clone(), pattern.clone())));
        }
        for artifact in &staged.artifacts {
            let layer = staged.layers[artifact.layer].schema.name.clone();
            list_artifact(&mut record, &layer, &artifact.name, &artifact.digest)?;
        }
        Ok(Self { record, removals, base: base.walk().map(|(path, ..)| path).collect() })
    }

    /// The layer that says last that it removes `path`.
    fn remover(&self, path: &[u8]) -> Option<String> {
        let (dir, name) = split(path);
        let removes = |pattern: &str| {
            let (pattern_dir, last) = split(pattern.as_bytes());
            if last == FILES_BELOW.as_bytes() {
                return is_below(path, pattern_dir);
            }
            pattern_dir == dir && matches(last, name)
        };
        self.removals.iter().rev().find(|(_, pattern)| removes(pattern)).map(|(layer, _)| layer.clone())
    }
}

/// Fails where `base` was baked with a layer that is not among `layers`: its plan of the first boot is replaced, and nothing
/// would carry out that layer's part of it. What else a base says about itself is not believed.
pub fn check_base(base: &Tree, layers: &[Layer]) -> Result<(), OriginError> {
    let Some((record, _)) = inside_record(base).map_err(OriginError::Base)? else { return Ok(()) };
    let there = |name: &String| layers.iter().any(|layer| layer.schema.name == *name);
    match record.layers.into_keys().find(|name| !there(name)) {
        Some(layer) => Err(OriginError::Lost { layer }),
        None => Ok(()),
    }
}

/// The text of the record of what was merged. Where the tree has the record of the first-boot layer, this one is placed
/// next to it, with the time `epoch`, and lists itself as a file of that layer.
pub fn record(ingredients: &Ingredients, merged: &mut Merged, epoch: Timestamp) -> Result<Vec<u8>, OriginError> {
    let Merged { tree, kept, deferred, privileged, logins, .. } = merged;
    let mut record = collect(ingredients, tree)?;
    for SatisfiedPackage { artifact, layer, package, version } in kept.iter().cloned() {
        // Nothing of it is in the image.
        record.artifacts.remove(&artifact);
        record.kept.insert(artifact, KeptOrigin { layer, package, version });
    }
    record.deferred = deferred.iter().cloned().map(|found| (found.package, found.reason)).collect();
    record.privileged.clone_from(privileged);
    record.logins.clone_from(logins);
    let node = tree.find(merge::RECORD.as_bytes()).map_err(OriginError::Place)?;
    let Some(origin) = node.map(|id| tree.inode(id).origin) else {
        return record.to_text().map_err(OriginError::Json);
    };
    let layer = tree.origin(origin).layer.clone();
    record.paths.insert(RECORD.to_owned(), PathOrigin { layer, artifact: None });
    let text = record.to_text().map_err(OriginError::Json)?;
    let len = text.len() as u64;
    let source = tree.sources_mut().add(Arc::new(text.clone()));
    let kind = Kind::File(Map::whole(source, 0, len));
    let inode = Inode { meta: Metadata::root(0o644, epoch), kind, origin };
    tree.place(RECORD.as_bytes(), inode).map_err(OriginError::Place)?;
    Ok(text)
}

fn collect(ingredients: &Ingredients, tree: &Tree) -> Result<Record, OriginError> {
    let mut record = ingredients.record.clone();
    for (path, _, inode) in tree.walk() {
        let Origin { layer, artifact, digest } = tree.origin(inode.origin);
        if layer == BASE {
            continue;
        }
        let path = escape::path(&path);
        if !record.layers.contains_key(layer) {
            return Err(OriginError::Layer { path, layer: layer.clone() });
        }
        if let Some(name) = artifact.as_ref().filter(|name| !record.artifacts.contains_key(*name)) {
            list_artifact(&mut record, layer, name, digest.as_deref().unwrap_or_default())?;
        }
        record.paths.insert(path, PathOrigin { layer: layer.clone(), artifact: artifact.clone() });
    }
    record.removed = removed(ingredients, tree);
    Ok(record)
}

/// The topmost paths of the base that the tree does not have.
fn removed(ingredients: &Ingredients, tree: &Tree) -> BTreeMap<String, Option<String>> {
    let gone = |path: &[u8]| tree.lookup(path).is_none();
    let topmost = ingredients.base.iter().filter(|path| gone(path) && !gone(split(path).0));
    topmost.map(|path| (escape::path(path), ingredients.remover(path))).collect()
}

fn list_artifact(record: &mut Record, layer: &str, name: &str, digest: &str) -> Result<(), OriginError> {
    let digest = digest.parse().map_err(|source| OriginError::Digest { artifact: name.to_owned(), source })?;
    record.artifacts.insert(name.to_owned(), ArtifactOrigin { layer: layer.to_owned(), digest });
    Ok(())
}

/// The directory of a path and its last name.
fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (&[], path),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use vmbake_layer::{Layer, Layers};
    use vmbake_manifest::PinnedAccounts;

    fn layers() -> Vec<Layer> {
        let dir = tempfile::tempdir().unwrap();
        for (name, rest) in [("a", r#""remove": ["/x/*-", "/y"]"#), ("hygiene", r#""remove": ["/x/a*", "/files/**"]"#)]
        {
            std::fs::create_dir(dir.path().join(name)).unwrap();
            let text = format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"], {rest}}}"#);
            std::fs::write(dir.path().join(name).join("layer.json"), text).unwrap();
        }
        Layers::load(&vmbake_common::catalog::Catalog::only(dir.path())).unwrap().resolve("a", "o").unwrap()
    }

    fn put(tree: &mut Tree, path: &str, layer: &str, kind: Kind) {
        let origin = tree.add_origin(Origin { layer: layer.to_owned(), ..Origin::default() });
        let inode = Inode { meta: Metadata::default(), kind, origin };
        tree.place(path.as_bytes(), inode).unwrap();
    }

    /// The record of a base with `paths`, of which `gone` are removed, after which `layer` places `/new`.
    fn record_of(paths: &[&str], gone: &[&str], layer: &str) -> Result<Record, OriginError> {
        let text = br#"{"vmconfig": {"version": "dev", "kind": "a", "os": {"name": "o", "arch": "amd64"}}}"#;
        let manifest = Manifest::parse(Path::new("m"), text.to_vec()).unwrap();
        let mut tree = Tree::new(Metadata::default(), Origin { layer: BASE.to_owned(), ..Origin::default() });
        for path in paths {
            put(&mut tree, path, BASE, Kind::directory());
        }
        let staged = Staged { layers: layers(), artifacts: Vec::new(), images: None };
        let ingredients = Ingredients::note(&manifest, &staged, &tree)?;
        for path in gone {
            assert!(tree.remove(path.as_bytes()).unwrap());
        }
        put(&mut tree, "/new", layer, Kind::Fifo);
        let mut merged = Merged {
            tree,
            kept: Vec::new(),
            deferred: Vec::new(),
            warnings: Vec::new(),
            accounts: PinnedAccounts::default(),
            setuid: std::collections::BTreeSet::new(),
            keep: std::collections::BTreeSet::new(),
            privileged: BTreeMap::new(),
            logins: BTreeMap::new(),
        };
        let text = record(&ingredients, &mut merged, Timestamp::default())?;
        assert_eq!(merged.tree.lookup(RECORD.as_bytes()), None, "no manifest is inside");
        Ok(Record::parse("r", &text).unwrap())
    }

    #[test]
    fn removals_are_those_of_the_base_and_name_the_last_layer() {
        let paths = ["/x", "/x/a-", "/x/b-", "/x/c", "/y", "/y/deep", "/z", "/z/kept"];
        let record = record_of(&paths, &["/x/a-", "/x/b-", "/x/c", "/y"], "a").unwrap();
        let removed: Vec<_> = record.removed.iter().map(|(path, layer)| (path.as_str(), layer.as_deref())).collect();
        assert_eq!(removed, [("/x/a-", Some("hygiene")), ("/x/b-", Some("a")), ("/x/c", None), ("/y", Some("a"))]);
        assert_eq!(record.paths.keys().collect::<Vec<_>>(), ["/new"]);
    }

    #[test]
    fn files_below_a_directory_are_removed_by_who_says_so() {
        let paths = ["/files", "/files/a", "/files/b", "/files/b/c", "/filesystem"];
        let record = record_of(&paths, &["/files/a", "/files/b/c", "/filesystem"], "a").unwrap();
        let removed: Vec<_> = record.removed.iter().map(|(path, layer)| (path.as_str(), layer.as_deref())).collect();
        assert_eq!(removed, [("/files/a", Some("hygiene")), ("/files/b/c", Some("hygiene")), ("/filesystem", None)]);
    }

    #[test]
    fn an_origin_that_is_no_layer_is_refused() {
        let error = record_of(&[], &[], "").unwrap_err().to_string();
        assert_eq!(error, "/new: origin \"\" is not a layer of the image");
    }
}

//! Compares two images: root file systems in, a [`Difference`] out; or disks in, a [`BlockDifference`] out. Nothing is mounted,
//! and the images need not be baked by vmbake.
//!
//! Metadata are compared first; contents are read, as streams and by several threads, only if two regular files have the
//! same length.

mod content;
mod paths;
mod report;
mod blocks;
mod cells;
mod owners;
mod shares;

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::tree::Tree;

pub use blocks::diff_blocks;
pub use report::{Change, Difference, PathChange, Property};
pub use shares::{BlockDifference, DifferingClusters, Outside, Share};

use crate::explain::inside_manifest;
use crate::packages::installed;
use vmbake_common::parallel::for_each;
use vmbake_compose::origin::inside_record;
use vmbake_image::disk::InspectError;
use vmbake_image::inspect::open_tree;
use vmbake_manifest::{ContainerImage, Dependency};

/// Error of a comparison of images.
#[derive(Debug, thiserror::Error)]
pub enum DiffError {
    #[error("{image}: cannot be compared")]
    Image { image: PathBuf, source: InspectError },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for DiffError {
    vmbake_common::causes!(Message; Image);
}

/// Options of a comparison.
#[derive(Clone, Copy, Debug)]
pub struct DiffOptions {
    /// Partition number in both images; `None` for the root partition of each.
    pub partition: Option<u32>,
    /// Whether to compare modification times.
    pub times: bool,
    /// Number of reading threads.
    pub threads: NonZeroUsize,
}

pub fn diff(from: &Path, to: &Path, options: DiffOptions) -> Result<Difference, DiffError> {
    let same = identity(from)? == identity(to)?;
    let open = |image: &Path| match open_tree(image, options.partition) {
        Ok(tree) => Ok(Facts::new(image, tree)),
        Err(source) => Err(DiffError::Image { image: image.to_owned(), source }),
    };
    let mut opened = for_each(vec![from, to], options.threads, open).into_iter();
    let (Some(from), Some(to)) = (opened.next(), opened.next()) else { return Ok(Difference::default()) };
    let (from, to) = (from?, to?);
    let mut paths = paths::compare(&from.tree, &to.tree, options.times);
    content::compare(&from.tree, &to.tree, &mut paths, same, options.threads)?;
    Ok(Difference {
        paths: paths.into_iter().filter_map(paths::Pair::into_change).collect(),
        packages: changes(&from.packages, &to.packages),
        artifacts: changes(&from.artifacts, &to.artifacts),
        layers: changes(&from.layers, &to.layers),
        notes: [from.notes, to.notes].concat(),
    })
}

/// Identifies the file at a path.
fn identity(image: &Path) -> Result<(u64, u64), DiffError> {
    let found = std::fs::metadata(image);
    let found =
        found.map_err(|source| DiffError::Message(message!("{}: cannot be opened", image.display()).by(source)))?;
    Ok((found.dev(), found.ino()))
}

/// An image with its packages, artifacts and layers. Unusable records are noted; files can be compared nevertheless.
struct Facts {
    tree: Tree,
    packages: BTreeMap<String, String>,
    artifacts: BTreeMap<String, String>,
    layers: BTreeMap<String, String>,
    notes: Vec<String>,
}

impl Facts {
    fn new(image: &Path, tree: Tree) -> Self {
        let mut facts = Self {
            packages: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            layers: BTreeMap::new(),
            notes: Vec::new(),
            tree,
        };
        match installed(&facts.tree) {
            Ok(found) => {
                let named = found.into_iter().map(|((name, arch), version)| (format!("{name}:{arch}"), version));
                facts.packages = named.collect();
            }
            Err(error) => facts.note(image, "packages", &error),
        }
        match inside_manifest(&facts.tree) {
            Ok(Some(manifest)) => {
                let content = manifest.content();
                let text = |pinned: &Dependency| format!("{} {}", pinned.version, pinned.digest);
                facts.artifacts =
                    content.dependencies.iter().map(|(name, found)| (name.clone(), text(found))).collect();
                let image = |pinned: &ContainerImage| format!("{} {}", pinned.platform, pinned.digest);
                facts.artifacts.extend(content.images.iter().map(|found| (found.image.clone(), image(found))));
                facts.artifacts.extend(content.os.image.as_ref().map(|found| ("os.image".to_owned(), text(found))));
            }
            Ok(None) => {}
            Err(error) => facts.note(image, "artifacts", &error),
        }
        match inside_record(&facts.tree) {
            Ok(Some((record, _))) => {
                let layers = record.layers.into_iter();
                facts.layers =
                    layers.map(|(name, found)| (name, format!("{} {}", found.version, found.digest))).collect();
            }
            Ok(None) => {}
            Err(error) => facts.note(image, "layers", &error),
        }
        facts
    }

    fn note(&mut self, image: &Path, what: &str, error: &dyn std::error::Error) {
        let mut text = format!("{}: its {what} are unknown: {error}", image.display());
        let mut cause = error.source();
        while let Some(error) = cause {
            text = format!("{text}: {error}");
            cause = error.source();
        }
        self.notes.push(text);
    }
}

/// Entries that are in one only, or have different values.
pub(super) fn changes(from: &BTreeMap<String, String>, to: &BTreeMap<String, String>) -> Vec<Change> {
    let mut names: Vec<&String> = from.keys().chain(to.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let change =
        |name: &String| Change { name: name.clone(), from: from.get(name).cloned(), to: to.get(name).cloned() };
    names.into_iter().filter(|name| from.get(*name) != to.get(*name)).map(change).collect()
}

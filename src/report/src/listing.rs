//! All paths of an image with their origins: a tree and its record of origins in, a [`Listing`] out.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{Inode, Kind, Tree};

use vmbake_common::escape;
use vmbake_compose::origin::Record;
use vmbake_query::owned_files;

/// Name for the layer of the base image.
const BASE: &str = "base";
/// Name for the layer without a record.
const UNRECORDED: &str = "image, origin not recorded";

pub(super) struct Listing<'a> {
    /// Layers, indexed by [`Listed::layer`].
    pub(super) layers: Vec<String>,
    /// Artifacts of layers, and packages of the base image. The first entry stands for none.
    pub(super) artifacts: Vec<String>,
    /// In the order of [`Tree::walk`].
    pub(super) entries: Vec<Listed<'a>>,
}

/// One path.
pub(super) struct Listed<'a> {
    /// Escaped by [`escape::path`].
    pub(super) path: String,
    pub(super) inode: &'a Inode,
    pub(super) layer: usize,
    pub(super) artifact: usize,
    /// Bytes of data; 0 for further hard links and for other types.
    pub(super) bytes: u64,
}

/// Interns texts in order of first use.
#[derive(Default)]
struct Names {
    places: BTreeMap<String, usize>,
    names: Vec<String>,
}

impl Names {
    fn place(&mut self, name: &str) -> usize {
        if let Some(place) = self.places.get(name) {
            return *place;
        }
        self.names.push(name.to_owned());
        self.places.insert(name.to_owned(), self.names.len() - 1);
        self.names.len() - 1
    }
}

impl<'a> Listing<'a> {
    pub(super) fn read(tree: &'a Tree, record: Option<&Record>, notes: &mut Vec<String>) -> Self {
        let packages = owned_files(tree).unwrap_or_else(|error| {
            notes.push(format!("owners of files are unknown: {}", escape::chain(&error)));
            BTreeMap::new()
        });
        let (mut layers, mut artifacts) = (Names::default(), Names::default());
        artifacts.place("");
        let mut seen = BTreeSet::new();
        let entry = |(bytes, id, inode): (Vec<u8>, _, &'a Inode)| {
            let path = escape::path(&bytes);
            let origin = record.and_then(|record| record.paths.get(&path));
            let layer = match (record, origin) {
                (_, Some(origin)) => layers.place(&origin.layer),
                (Some(_), None) => layers.place(BASE),
                (None, None) => layers.place(UNRECORDED),
            };
            let artifact = match origin {
                Some(origin) => origin.artifact.as_deref().unwrap_or_default(),
                None => packages.get(&bytes).map(String::as_str).unwrap_or_default(),
            };
            let artifact = artifacts.place(artifact);
            let bytes = match &inode.kind {
                Kind::File(map) if seen.insert(id) => map.data_len(),
                _ => 0,
            };
            Listed { path, inode, layer, artifact, bytes }
        };
        let entries = tree.walk().map(entry).collect();
        Self { layers: layers.names, artifacts: artifacts.names, entries }
    }
}

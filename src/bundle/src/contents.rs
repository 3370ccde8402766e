//! The documents and layers of a bundle, read from a source directory or a packed bundle.

use std::path::Path;

use serde_json::Value;

use super::document::{BundleDocument, MAX_DOCUMENT};
use super::error::BundleError;
use vmbake_common::catalog::Catalog;
use vmbake_common::message::FileError;
use vmbake_layer::{Layer, Layers, without_comments};
use vmbake_proof::sigstore::json;

/// Its description.
pub const DOCUMENT: &str = "bundle.json";
/// The folder of its layers.
pub const LAYERS: &str = "layers";
/// Sources of its artifacts other than those of its layers.
pub const SOURCES: &str = "sources.json";

/// What a bundle says and does, without its artifacts.
#[derive(Clone, Debug)]
pub struct BundleContents {
    /// Its description.
    pub document: BundleDocument,
    /// Its layers, sorted by name.
    pub own: Vec<Layer>,
    /// The text of its sources, if it has any.
    pub sources: Option<Vec<u8>>,
    /// The same, as a value.
    pub(super) fragment: Option<Value>,
    /// Whether `bundle.json` names its layers with their digests.
    pub(super) is_packed: bool,
}

impl BundleContents {
    /// Reads the folder that a bundle is made in. Its layers may require those of `catalog`.
    pub fn of_folder(folder: &Path, catalog: &Catalog) -> Result<Self, BundleError> {
        let path = folder.join(DOCUMENT);
        let document = BundleDocument::parse(&path, &without_comments(&read(&path)?))?;
        for (key, is_there) in [
            ("layers", !document.layers.is_empty()),
            ("artifacts", !document.artifacts.is_empty()),
            ("evidence", !document.evidence.is_empty()),
        ] {
            if is_there {
                let what = "is written by `vmbake bundle pack`".to_owned();
                return Err(BundleError::Document { path, key: key.to_owned(), what });
            }
        }
        let sources = folder.join(SOURCES);
        let sources = if sources.symlink_metadata().is_ok() { Some(read(&sources)?) } else { None };
        Self::new(document, &folder.join(LAYERS), sources, catalog, false)
    }

    /// The contents of a bundle whose layers are in the folder `layers`.
    pub(super) fn new(
        document: BundleDocument,
        layers: &Path,
        sources: Option<Vec<u8>>,
        catalog: &Catalog,
        is_packed: bool,
    ) -> Result<Self, BundleError> {
        let all = Layers::load(&catalog.with(layers.to_owned()))?.complete()?;
        // Another root may have the same layer, which then counts for that one.
        let is_own = |layer: &&Layer| layers.join(&layer.schema.name).join("layer.json").symlink_metadata().is_ok();
        let own = all.iter().filter(is_own).cloned().collect();
        let path = Path::new(SOURCES);
        let fragment = sources.as_deref().map(json::parse).transpose();
        let fragment = fragment.map_err(|error| BundleError::syntax(path, &error))?;
        Ok(Self { document, own, sources, fragment, is_packed })
    }

    /// The names of its layers.
    pub fn own_names(&self) -> impl Iterator<Item = String> {
        self.own.iter().map(|layer| layer.schema.name.clone())
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>, BundleError> {
    vmbake_bake::release::read(path, MAX_DOCUMENT)
        .map_err(|source| BundleError::File(FileError::new(path, "read", source)))
}

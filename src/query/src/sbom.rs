//! SBOMs: the tree of an image and its record of origins in, an SPDX 2.3 or CycloneDX 1.6 document out.
//!
//! The same image gives the same document, during a bake and later: names and times are derived from the contents. Missing
//! information is noted in the document as a comment.

mod purl;
mod status;
mod licence;
mod copyright;
mod golang;
mod files;
mod inventory;
mod parts;
mod collect;
mod identity;
mod spdx;
mod cyclonedx;

use std::fmt;
use std::num::NonZeroUsize;
use std::path::Path;

use vmbake_disk::tree::{Tree, TreeError};

pub use collect::Knowledge;
pub use inventory::Inventory;
pub use parts::PartRow;

use crate::explain::{self, ExplainError};
use crate::packages::PackageError;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_compose::origin::{RECORD, Record, RecordError, inside_record};
use vmbake_image::disk::InspectError;
use vmbake_image::elf::ElfError;
use vmbake_image::inspect::open_tree;
use vmbake_manifest::{Manifest, ManifestError};

/// Error while creating an SBOM.
#[derive(Debug, thiserror::Error)]
pub enum SbomError {
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error("cannot read the records in the image")]
    Tree(#[source] TreeError),
    #[error(transparent)]
    Package(#[from] PackageError),
    #[error("{path}: cannot read")]
    Elf {
        /// Path in the image.
        path: String,
        source: ElfError,
    },
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error("the manifest of the image is invalid")]
    Manifest(#[from] ManifestError),
    #[error(transparent)]
    Origins(#[from] ExplainError),
    #[error("cannot serialize the SBOM as JSON")]
    Json(#[from] serde_json::Error),
}

impl Hint for SbomError {
    vmbake_common::causes!(Inspect, Tree, Package, Record, Manifest, Origins; Elf);
}

/// SBOM format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SbomFormat {
    Spdx,
    /// CycloneDX 1.6.
    CycloneDx,
}

impl fmt::Display for SbomFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Spdx => "SPDX 2.3",
            Self::CycloneDx => "CycloneDX 1.6",
        })
    }
}

/// The SBOMs to write next to an image of `tree`, baked with this manifest and record of origins: [SPDX, CycloneDX].
pub fn sidecars(tree: &Tree, manifest: &Manifest, origins: &[u8]) -> Result<[Vec<u8>; 2], SbomError> {
    let record = Record::parse(RECORD, origins)?;
    let known = Knowledge { file_name: "", record: Some(&record), manifest: Some(manifest) };
    let inventory = Inventory::of_tree(tree, known)?;
    Ok([inventory.text(SbomFormat::Spdx)?.into_bytes(), inventory.text(SbomFormat::CycloneDx)?.into_bytes()])
}

impl Inventory {
    /// Collects the components of `tree`.
    pub fn of_tree(tree: &Tree, known: Knowledge<'_>) -> Result<Self, SbomError> {
        collect::collect(tree, known)
    }

    /// Adds the files of the image; reads all of them.
    pub fn add_files(&mut self, tree: &Tree, threads: NonZeroUsize) -> Result<(), SbomError> {
        self.files = files::hashed(tree, threads).map_err(SbomError::Tree)?;
        Ok(())
    }

    /// Collects the components of the image at `path`, by its root partition or the `chosen` one. Uses the record and manifest in the image, else
    /// those next to it. Lists files if there are threads to read them.
    pub fn of_image(path: &Path, chosen: Option<u32>, files: Option<NonZeroUsize>) -> Result<Self, SbomError> {
        let tree = open_tree(path, chosen)?;
        let record = image_record(path, &tree)?;
        let mut inventory = Self::of_opened(path, &tree, record.as_ref())?;
        if let Some(threads) = files {
            inventory.add_files(&tree, threads)?;
        }
        Ok(inventory)
    }

    /// As [`Self::of_image`], for a tree and record that were already read.
    pub fn of_opened(path: &Path, tree: &Tree, record: Option<&Record>) -> Result<Self, SbomError> {
        // Without a record, the manifest cannot be matched to the image.
        let manifest = record.map(|_| explain::image_manifest(path, tree)).transpose()?.flatten();
        if let (Some(record), Some(manifest)) = (record, &manifest) {
            explain::check(record, manifest)?;
        }
        let file_name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = Knowledge { file_name: &file_name, record, manifest: manifest.as_ref() };
        Self::of_tree(tree, known)
    }

    /// Renders the document.
    pub fn text(&self, format: SbomFormat) -> Result<String, SbomError> {
        let text = |id: &str| match format {
            SbomFormat::Spdx => escape::json(&spdx::document(self, id)),
            SbomFormat::CycloneDx => escape::json(&cyclonedx::document(self, id)),
        };
        // Different contents need different identifiers.
        let id = identity::uuid(text("")?.as_bytes());
        Ok(text(&id)?)
    }
}

/// The record of origins in an image, else the one next to it.
pub fn image_record(image: &Path, tree: &Tree) -> Result<Option<Record>, SbomError> {
    if let Some((record, _)) = inside_record(tree)? {
        return Ok(Some(record));
    }
    Ok(explain::record_beside(image)?)
}

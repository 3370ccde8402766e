//! The bills of materials of an image that is being baked: its tree and what is recorded of it enter, both documents leave.

use vmbake_disk::tree::Tree;

use crate::compose::origin::{RECORD, Record};
use crate::manifest::Manifest;
use crate::query::sbom::{Inventory, Knowledge, SbomError, SbomFormat};

/// As SPDX and as CycloneDX: what `vmbake sbom` prints of the finished image.
pub(super) fn documents(tree: &Tree, manifest: &Manifest, origins: &[u8]) -> Result<[Vec<u8>; 2], SbomError> {
    let record = Record::parse(RECORD, origins)?;
    let known = Knowledge { file_name: "", record: Some(&record), manifest: Some(manifest) };
    let inventory = Inventory::of_tree(tree, known)?;
    Ok([inventory.text(SbomFormat::Spdx)?.into_bytes(), inventory.text(SbomFormat::CycloneDx)?.into_bytes()])
}

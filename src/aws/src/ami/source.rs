//! Where a disk comes from: a file, or a bake that wrote none; and the documents about it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_disk::disk::Disk;
use vmbake_disk::source::ReadAt;

use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::verify::image_name;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_distribute::publish::blocks::open;

use super::error::AmiError;

/// Documents beside an image whose digests are tags.
const DOCUMENTS: [(&str, Sidecar); 2] = [("vmbake:provenance", Sidecar::Provenance), ("vmbake:sbom", Sidecar::Spdx)];
/// Longest document whose digest is taken.
const MAX_DOCUMENT: u64 = 256 << 20;

/// A disk that is to be published.
pub struct DiskSource {
    /// What it is called in messages.
    pub path: PathBuf,
    /// Its bytes.
    pub disk: Arc<dyn ReadAt>,
    /// Digests of documents about it, as tags.
    pub documents: Vec<(String, String)>,
}

impl DiskSource {
    /// An image in a file, with what lies beside it.
    pub fn open(path: &Path) -> Result<Self, AmiError> {
        Ok(Self { path: path.to_owned(), disk: open(path)?, documents: documents(path) })
    }

    /// A disk that was baked and is in no file.
    pub fn baked(name: &str, disk: Disk, sidecars: &BTreeMap<Sidecar, Digest>) -> Self {
        let documents =
            DOCUMENTS.iter().filter_map(|(tag, sidecar)| Some(((*tag).to_owned(), sidecars.get(sidecar)?.to_string())));
        Self { path: PathBuf::from(name), disk: Arc::new(disk), documents: documents.collect() }
    }
}

/// Tags with the digests of what lies beside an image that a bake wrote.
fn documents(path: &Path) -> Vec<(String, String)> {
    let name = path.file_name().and_then(|file| file.to_str()).and_then(image_name);
    let digest = |document: Sidecar| {
        let beside = path.with_file_name(document.file_name(name?));
        let content = input::read(&beside, MAX_DOCUMENT).ok()?;
        Some(Digest::of(&content).to_string())
    };
    DOCUMENTS.into_iter().filter_map(|(tag, document)| Some((tag.to_owned(), digest(document)?))).collect()
}

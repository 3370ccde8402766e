//! The source of a disk: a file, or a bake without output file; and its documents.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_disk::disk::Disk;
use vmbake_disk::source::ReadAt;

use crate::ebs::blocks::{BlocksError, open};
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::verify::image_name;
use vmbake_common::digest::Digest;
use vmbake_common::input;

/// Documents next to an image whose digests become tags.
const DOCUMENTS: [(&str, Sidecar); 2] = [("vmbake:provenance", Sidecar::Provenance), ("vmbake:sbom", Sidecar::Spdx)];
/// Maximum length of a document.
const MAX_DOCUMENT: u64 = 256 << 20;

/// A disk to publish.
pub struct DiskSource {
    /// Its name in messages.
    pub path: PathBuf,
    pub disk: Arc<dyn ReadAt>,
    /// Digests of its documents, as tags.
    pub documents: Vec<(String, String)>,
}

impl DiskSource {
    /// An image file with the documents next to it.
    pub fn open(path: &Path) -> Result<Self, BlocksError> {
        Ok(Self { path: path.to_owned(), disk: open(path)?, documents: documents(path) })
    }

    /// A baked disk without a file.
    pub fn baked(name: &str, disk: Disk, sidecars: &BTreeMap<Sidecar, Digest>) -> Self {
        let documents =
            DOCUMENTS.iter().filter_map(|(tag, sidecar)| Some(((*tag).to_owned(), sidecars.get(sidecar)?.to_string())));
        Self { path: PathBuf::from(name), disk: Arc::new(disk), documents: documents.collect() }
    }
}

/// Tags with the digests of the documents next to an image.
fn documents(path: &Path) -> Vec<(String, String)> {
    let name = path.file_name().and_then(|file| file.to_str()).and_then(image_name);
    let digest = |document: Sidecar| {
        let sidecar = path.with_file_name(document.file_name(name?));
        let content = input::read(&sidecar, MAX_DOCUMENT).ok()?;
        Some(Digest::of(&content).to_string())
    };
    DOCUMENTS.into_iter().filter_map(|(tag, document)| Some((tag.to_owned(), digest(document)?))).collect()
}

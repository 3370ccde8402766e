//! An image to compare, with its records of bakes in the store.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use vmbake_disk::image::{Format, Image};
use vmbake_disk::write::{ClusterSums, FileDigest};

use super::DeltaError;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::incremental::record::BakeRecord;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_store::store::Store;

pub(super) struct KnownImage {
    pub(super) path: PathBuf,
    pub(super) image: Image,
    /// fs-verity digest of its disk, if recorded.
    pub(super) verity: Option<Digest>,
    /// SHA-256 of a qcow2 file, if recorded.
    sha256: Option<Digest>,
    /// An unchanged qcow2 file of the same disk, with its index of stored clusters.
    pub(super) index: Option<(Image, ClusterSums)>,
}

impl KnownImage {
    /// Opens the image at `path`.
    pub(super) fn open(path: &Path, store: &Store) -> Result<Self, DeltaError> {
        let image = Image::open(path)?;
        let mut known = Self { path: path.to_owned(), image, verity: None, sha256: None, index: None };
        let record = store.running_program().and_then(|program| BakeRecord::load(store, path, &program));
        let Some(record) = record.filter(|record| record.image.open().is_some()) else { return Ok(known) };
        let is_same = |other: &BakeRecord| other.disk == record.disk;
        for other in BakeRecord::list(store, &record.program, is_same) {
            // The same disk was written before, so its digests are known.
            if let Checksum::Verity(digest) = other.image.checksum {
                known.verity = Some(digest);
            }
            let file = if other.clusters.is_empty() { None } else { other.image.open() };
            if known.index.is_none()
                && let Some(image) = file.and_then(|file| Image::of(file, &other.image.path).ok())
            {
                known.index = Some((image, other.clusters.sums()));
            }
        }
        if let (Format::Qcow2, Some(FileDigest::Sha256(sha256))) =
            (known.image.format(), record.image.checksum.file_digest())
        {
            known.sha256 = Some(Digest::Sha256(sha256));
        }
        Ok(known)
    }

    /// SHA-256 of the file, if it is qcow2.
    pub(super) fn sha256(&self, store: &Store) -> Result<Option<Digest>, DeltaError> {
        if self.sha256.is_some() || self.image.format() == Format::Raw {
            return Ok(self.sha256);
        }
        let digest = input::open_regular(&self.path).and_then(|file| store.digest(&self.path, &file, &Digest::of(b"")));
        let (digest, _) = digest.map_err(|source| DeltaError::Read { path: self.path.clone(), source })?;
        Ok(Some(digest))
    }
}

/// SHA-256 of both files, computed concurrently.
pub(super) fn sha256(
    old: &KnownImage,
    new: &KnownImage,
    store: &Store,
    threads: NonZeroUsize,
) -> Result<[Option<Digest>; 2], DeltaError> {
    let mut digests =
        vmbake_common::parallel::for_each(vec![old, new], threads, |image| image.sha256(store)).into_iter();
    let mut next = || digests.next().transpose().map(Option::flatten);
    Ok([next()?, next()?])
}

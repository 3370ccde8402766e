//! The previous bake with the same output directory: used to save work, without affecting the bytes of the outputs.
//!
//! If inputs and outputs are unchanged, nothing is done. If the disk was written before, anywhere, its digests are
//! known. Clusters with the same content IDs are copied from unchanged qcow2 files in the same directory: those of the
//! last bake, and images of other kinds.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use vmbake_disk::write::{Clusters, EarlierFile, KnownFile};

use crate::incremental::build_inputs::BuildInputs;
use crate::incremental::published::{Published, Sidecar};
use crate::incremental::record::BakeRecord;
use crate::outputs::WrittenFile;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_store::store::Store;

/// The index of each needs a thousandth of its disk size in memory.
const MAX_QCOW2: usize = 8;

/// The results of the last bake.
pub(crate) struct PreviousBake<'a> {
    store: &'a Store,
    /// Digest of the running program.
    program: Digest,
    records: BTreeMap<OutputFormat, BakeRecord>,
}

/// Results of earlier bakes that save work.
#[derive(Default)]
pub(crate) struct Reusable {
    /// Disk images of the same disk.
    pub(crate) same: Vec<KnownFile>,
    /// Unchanged qcow2 files.
    pub(crate) qcow2: Vec<ReusableFile>,
}

/// A qcow2 file that was written before.
pub(crate) struct ReusableFile {
    file: File,
    clusters: Clusters,
    compression: Qcow2Compression,
}

impl ReusableFile {
    /// The file in the form that the writer takes.
    pub(crate) fn earlier(&self) -> EarlierFile<'_> {
        EarlierFile { file: &self.file, clusters: &self.clusters, compression: self.compression.into() }
    }
}

impl<'a> PreviousBake<'a> {
    /// Loads the records of outputs written by `program`.
    pub(crate) fn look(store: &'a Store, program: Digest, outputs: &BTreeMap<OutputFormat, PathBuf>) -> Self {
        let record =
            |(format, path): (&OutputFormat, &PathBuf)| Some((*format, BakeRecord::load(store, path, &program)?));
        Self { store, program, records: outputs.iter().filter_map(record).collect() }
    }

    /// Digest of the running program.
    pub(crate) fn program(&self) -> Digest {
        self.program
    }

    /// Whether there is a record of each of `count` outputs.
    pub(crate) fn is_complete(&self, count: usize) -> bool {
        self.records.len() == count
    }

    /// The published files of the last bake, if `inputs` would give the same and they are unchanged.
    pub(crate) fn unchanged(&self, inputs: &BuildInputs) -> Option<Published> {
        let sidecars = self.records.values().next()?.sidecars.clone();
        let document = sidecars.get(&Sidecar::Inputs)?;
        let before = BuildInputs::parse(&document.path, &document.read()?).ok()?;
        let is_same = |record: &BakeRecord| record.sidecars == sidecars && record.holds();
        if !before.covers(inputs) || !self.records.values().all(is_same) {
            return None;
        }
        let images = self.records.iter().map(|(format, record)| (*format, record.image.clone())).collect();
        Some(Published { sidecars, images })
    }

    /// The data that a writer of the disk `id` to qcow2 or raw files in `folder` can reuse.
    pub(crate) fn reusable(&self, id: Option<Digest>, folder: &Path) -> Reusable {
        let mut reusable = Reusable::default();
        let Ok(folder) = std::path::absolute(folder) else { return reusable };
        let is_same = |record: &BakeRecord| Some(record.disk) == id;
        let is_near = |record: &BakeRecord| record.image.path.parent() == Some(&folder);
        for record in BakeRecord::list(self.store, &self.program, |record| is_same(record) || is_near(record)) {
            if is_same(&record) {
                reusable.same.extend(known(&record));
            }
            if is_near(&record)
                && !record.clusters.is_empty()
                && reusable.qcow2.len() < MAX_QCOW2
                && let Some(file) = record.image.open()
            {
                reusable.qcow2.push(ReusableFile { file, clusters: record.clusters, compression: record.compression });
            }
        }
        reusable
    }

    /// Records published files of the disk with that ID for the next bake.
    pub(crate) fn note(
        self,
        disk: Digest,
        compression: Qcow2Compression,
        published: &Published,
        written: Vec<WrittenFile>,
    ) {
        let program = self.program;
        for WrittenFile { format, clusters, .. } in written {
            let Some(image) = published.images.get(&format).cloned() else { continue };
            let sidecars = published.sidecars.clone();
            BakeRecord { program, disk, format, compression, image, sidecars, clusters }.save(self.store);
        }
    }
}

fn known(record: &BakeRecord) -> Option<KnownFile> {
    let (format, digest) = (record.format.disk()?, record.image.checksum.file_digest()?);
    let file_len = record.image.size();
    Some(KnownFile { format, compression: record.compression.into(), digest, file_len })
}

/// Digest of a file, with the algorithm of `like` or SHA-256; `None` if it cannot be read.
pub(crate) fn file_digest(store: &Store, path: &Path, like: Option<Digest>) -> Option<Digest> {
    let like = like.unwrap_or_else(|| Digest::of(b""));
    let (digest, _) = store.digest(path, &input::open_regular(path).ok()?, &like).ok()?;
    Some(digest)
}

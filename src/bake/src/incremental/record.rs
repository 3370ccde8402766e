//! Records of bakes: what a bake needs to know about the previous one with the same output.
//!
//! The record of an output is `bakes/<SHA-256 of its absolute path>` in the store: a line of JSON, the cluster index of
//! a qcow2 file, and the SHA-256 of both. It is written after the output has its name, and is valid only while that
//! file is unchanged. A record that is missing, corrupt, or of another program only costs time, so failures to read or
//! write one are not errors.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use vmbake_disk::write::Clusters;

use crate::incremental::published::{PublishedFile, Sidecar};
use vmbake_common::digest::Digest;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_store::file_identity::{open_record, read_record, write_record};
use vmbake_store::store::{BAKES, Store};

/// Bytes of a SHA-256.
const SUM: usize = 32;

/// The record of one output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BakeRecord {
    /// The program that baked it: another one may write other bytes.
    pub program: Digest,
    /// The content ID of its disk (see [`vmbake_disk::source::ReadAt::content_id`]).
    pub disk: Digest,
    pub format: OutputFormat,
    /// The cluster compression of a qcow2 file.
    #[serde(default)]
    pub compression: Qcow2Compression,
    pub image: PublishedFile,
    /// The documents published next to it.
    pub sidecars: BTreeMap<Sidecar, PublishedFile>,
    /// The clusters of a qcow2 file.
    #[serde(skip)]
    pub clusters: Clusters,
}

impl BakeRecord {
    /// The record of the image `output`, if the same program has written it and the store is trusted.
    pub fn load(store: &Store, output: &Path, program: &Digest) -> Option<Self> {
        if !store.is_trusted() {
            return None;
        }
        let record = Self::read(&place(store, output)?, program)?;
        (std::path::absolute(output).ok()? == record.image.path).then_some(record)
    }

    /// The records of images by the same program for which `wanted`, called without their clusters, returns true;
    /// sorted by name.
    pub fn list(store: &Store, program: &Digest, wanted: impl Fn(&Self) -> bool) -> Vec<Self> {
        let mut paths = if store.is_trusted() { paths(store) } else { Vec::new() };
        paths.retain(|path| head(path).is_some_and(|record| record.program == *program && wanted(&record)));
        paths.iter().filter_map(|path| Self::read(path, program)).collect()
    }

    fn read(path: &Path, program: &Digest) -> Option<Self> {
        let bytes = read_record(path)?;
        let (content, sum) = bytes.split_last_chunk::<SUM>()?;
        if Sha256::digest(content)[..] != sum[..] {
            return None;
        }
        let end = content.iter().position(|byte| *byte == b'\n')?;
        let clusters = Clusters::parse(&content[end + 1..])?;
        let record = Self { clusters, ..serde_json::from_slice(&content[..end]).ok()? };
        (record.program == *program).then_some(record)
    }

    /// Saves the record for the next bake. Without one, that starts from scratch.
    pub fn save(&self, store: &Store) {
        let Some(target) = place(store, &self.image.path).filter(|_| store.is_trusted()) else { return };
        self.files().for_each(PublishedFile::wait);
        write_record(&target, |out| {
            let mut out = Summed { out, sum: Sha256::new() };
            serde_json::to_writer(&mut out, self)?;
            out.write_all(b"\n")?;
            self.clusters.entries().try_for_each(|entry| out.write_all(&entry))?;
            let Summed { out, sum } = out;
            out.write_all(&sum.finalize())
        });
    }

    /// Whether the published files are unchanged.
    pub fn holds(&self) -> bool {
        self.files().all(|file| file.open().is_some())
    }

    fn files(&self) -> impl Iterator<Item = &PublishedFile> {
        self.sidecars.values().chain([&self.image])
    }
}

/// Records of missing outputs, and files left by killed processes.
pub fn stale(store: &Store) -> Vec<PathBuf> {
    let mut paths = paths(store);
    paths.retain(|path| {
        let image = head(path).map(|record| record.image.path);
        !image.is_some_and(|image| image.exists() && place(store, &image).as_ref() == Some(path))
    });
    paths
}

/// All records, sorted.
fn paths(store: &Store) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(store.root().join(BAKES)).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    paths
}

/// A record without its clusters, and with an unverified checksum.
fn head(path: &Path) -> Option<BakeRecord> {
    let mut line = Vec::new();
    BufReader::new(open_record(path)?).read_until(b'\n', &mut line).ok()?;
    serde_json::from_slice(&line).ok()
}

/// The path of the record of an output.
fn place(store: &Store, output: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(output).ok()?;
    Some(store.root().join(BAKES).join(Digest::of(path.as_os_str().as_encoded_bytes()).hex()))
}

/// Hashes what it writes.
struct Summed<W> {
    out: W,
    sum: Sha256,
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let len = self.out.write(buf)?;
        self.sum.update(&buf[..len]);
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

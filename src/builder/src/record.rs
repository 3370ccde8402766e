//! Records of what was baked: what a bake needs to know of the last one to the same place leaves, and comes back then.
//!
//! The record of an output is `bakes/<SHA-256 of its absolute path>` in the store: a line of JSON, the index of the
//! clusters of a qcow2 file, and the SHA-256 of all that. It is written when the output has its name, and speaks of
//! that very file: what was touched since is not believed. A record that is missing, damaged, or of another program only
//! costs time, so that no failure to read or write one is an error.

use std::fs::{File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};
use vmbake_disk::write::Clusters;

use crate::manifest::Digest;
use crate::store::Store;

/// Folder of the store.
const FOLDER: &str = "bakes";

/// Bytes of a SHA-256.
const SUM: usize = 32;

/// The most by which the times that a file system gives are behind the clock: a tick of a kernel that counts 100 a second,
/// twice.
const TICK: Duration = Duration::from_millis(20);

/// How the system describes a file that was synced. It does so for as long as nobody has written to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Stamp {
    inode: u64,
    len: u64,
    /// Seconds and nanoseconds since 1970.
    mtime: (i64, i64),
    ctime: (i64, i64),
}

/// A file that a bake has published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// Where it is.
    pub path: PathBuf,
    /// What it holds.
    pub digest: Digest,
    stamp: Stamp,
}

impl Kept {
    /// A file that was just published, still open.
    pub fn note(path: &Path, file: &File, digest: Digest) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        Ok(Self { path, digest, stamp: Stamp::of(file)? })
    }

    /// Opens the file if nobody has touched it.
    pub fn open(&self) -> Option<File> {
        // Before it is opened, as opening a pipe would wait for whoever writes to it.
        self.path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
        let file = File::open(&self.path).ok()?;
        (Stamp::of(&file).ok()? == self.stamp).then_some(file)
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.len
    }

    /// Waits until every change from now on gives the file another time.
    fn settle(&self) {
        let (secs, nanos) = self.stamp.ctime;
        let since = Duration::new(u64::try_from(secs).unwrap_or_default(), u32::try_from(nanos).unwrap_or_default());
        if let Ok(age) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH + since) {
            std::thread::sleep(TICK.saturating_sub(age));
        }
    }
}

impl Stamp {
    fn of(file: &File) -> io::Result<Self> {
        let meta = file.metadata()?;
        Ok(Self {
            inode: meta.ino(),
            len: meta.len(),
            mtime: (meta.mtime(), meta.mtime_nsec()),
            ctime: (meta.ctime(), meta.ctime_nsec()),
        })
    }
}

/// What is known of one output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// The program that baked it: another one may write other bytes.
    pub program: Digest,
    /// All that it was baked from.
    pub inputs: Digest,
    /// The disk in it, by its name (see [`vmbake_disk::source::ReadAt::name`]).
    pub disk: Digest,
    /// The image's format.
    pub format: String,
    /// The image.
    pub image: Kept,
    /// What was published with it: the manifest, then the record of origins.
    pub beside: [Kept; 2],
    /// The clusters of a qcow2 file.
    #[serde(skip)]
    pub clusters: Clusters,
}

impl Record {
    /// The record of the image `output`, if the same program has written it.
    pub fn load(store: &Store, output: &Path, program: &Digest) -> Option<Self> {
        let bytes = std::fs::read(place(store, output)?).ok()?;
        let (content, sum) = bytes.split_last_chunk::<SUM>()?;
        if Sha256::digest(content)[..] != sum[..] {
            return None;
        }
        let end = content.iter().position(|byte| *byte == b'\n')?;
        let clusters = Clusters::parse(&content[end + 1..])?;
        let record = Self { clusters, ..serde_json::from_slice(&content[..end]).ok()? };
        let is_its = record.program == *program && std::path::absolute(output).ok()? == record.image.path;
        is_its.then_some(record)
    }

    /// Keeps the record for the next bake. Without one, that starts from nothing.
    pub fn save(&self, store: &Store) {
        let Some(target) = place(store, &self.image.path) else { return };
        self.beside.iter().chain([&self.image]).for_each(Kept::settle);
        if self.write(&target).is_err() {
            // The store is read-only or full: what the old record says of the image is over.
            let _gone = std::fs::remove_file(target);
        }
    }

    /// Whether nobody has touched what was published.
    pub fn holds(&self) -> bool {
        self.beside.iter().chain([&self.image]).all(|file| file.open().is_some())
    }

    fn write(&self, target: &Path) -> io::Result<()> {
        let folder = target.parent().ok_or(io::ErrorKind::NotFound)?;
        std::fs::create_dir_all(folder)?;
        // Whoever shares the store may bake to the same place.
        let mode = Permissions::from_mode(0o644);
        let file = tempfile::Builder::new().prefix(".").permissions(mode).tempfile_in(folder)?;
        let mut out = Summed { out: BufWriter::new(file), sum: Sha256::new() };
        serde_json::to_writer(&mut out, self)?;
        out.write_all(b"\n")?;
        self.clusters.entries().try_for_each(|entry| out.write_all(&entry))?;
        let Summed { mut out, sum } = out;
        out.write_all(&sum.finalize())?;
        out.into_inner()?.persist(target)?;
        Ok(())
    }
}

/// Records of outputs that are not there any more, and what was left by a kill.
pub(crate) fn stale(store: &Store) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(store.root().join(FOLDER)).into_iter().flatten();
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| {
        let text = std::fs::read(path).unwrap_or_default();
        let head = text.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let image = serde_json::from_slice(head).map(|record: Record| record.image.path);
        !image.is_ok_and(|image| image.exists() && place(store, &image).as_ref() == Some(path))
    });
    paths.sort();
    paths
}

/// Where the record of an output is.
fn place(store: &Store, output: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(output).ok()?;
    Some(store.root().join(FOLDER).join(Digest::of(path.as_os_str().as_encoded_bytes()).hex()))
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

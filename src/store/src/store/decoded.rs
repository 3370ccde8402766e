//! Cached decoded forms of blobs: the tar of a compressed archive, the raw disk of a qcow2 base.
//!
//! `decoded/<digest of the blob>.<form>` is named when it is complete, followed by `<name>.json` with its file
//! identity. Only an unchanged file is used: one that was modified, truncated, copied or left by a killed process is
//! decoded again. Concurrent processes decode a form once. In a read-only or untrusted store, forms are unnamed
//! temporary files.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Store, StoreError, create_dir, files, partial};
use crate::file_identity::{FileIdentity, read_record, write_record};
use vmbake_common::digest::Digest;
use vmbake_common::ownership;

/// Directory in the store.
pub(super) const FOLDER: &str = "decoded";

/// A decoded form of a blob. Increase the number when the same blob would be decoded to other bytes, or would be
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecodedForm {
    /// The archive inside a compressed one.
    Tar,
    /// The members of a zip file, as a tar archive.
    Zip,
    /// The content of a compressed file.
    File,
    /// The data archive of a Debian package.
    DebData,
    /// The disk inside an image, with holes for zeros.
    Disk,
}

impl DecodedForm {
    const ALL: [Self; 5] = [Self::Tar, Self::Zip, Self::File, Self::DebData, Self::Disk];

    /// The suffix of the file names.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tar => "tar-1",
            Self::Zip => "zip-1",
            Self::File => "file-1",
            Self::DebData => "deb-1",
            Self::Disk => "disk-2",
        }
    }
}

/// A cached decoded form, or a file to decode to.
#[derive(Debug)]
pub enum Decoded {
    /// It is cached.
    Found(File),
    /// It must be decoded.
    Missing(Spool),
}

/// A file that becomes a decoded form when complete; otherwise it is deleted on drop.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// Its temporary and final name.
    names: Option<(PathBuf, PathBuf)>,
}

impl Store {
    /// The decoded form of a blob, or an empty file to decode to. Blocks while another process decodes it.
    ///
    /// Only for blobs with a verified digest, since the name states the digest.
    pub fn decoded(&self, blob: &Digest, form: DecodedForm) -> std::io::Result<Decoded> {
        let target = self.form(blob, form);
        if !self.is_trusted() {
            return Spool::unnamed().map(Decoded::Missing);
        }
        if let Some(file) = intact(&target) {
            return Ok(Decoded::Found(file));
        }
        let Ok((file, path)) = self.start(&target) else { return Spool::unnamed().map(Decoded::Missing) };
        let spool = Spool { file, names: Some((path, target.clone())) };
        // Another process may have decoded it while this one waited for the lock.
        Ok(intact(&target).map_or_else(|| Decoded::Missing(spool), Decoded::Found))
    }

    /// Whether the store has that decoded form, unchanged.
    pub fn has_decoded(&self, blob: &Digest, form: DecodedForm) -> bool {
        intact(&self.form(blob, form)).is_some()
    }

    /// The path of the decoded form of a blob, whether or not it exists.
    pub fn form(&self, blob: &Digest, form: DecodedForm) -> PathBuf {
        self.root.join(FOLDER).join(format!("{}.{}", blob.hex(), form.name()))
    }

    fn start(&self, target: &Path) -> Result<(File, PathBuf), StoreError> {
        let name = target.file_name().unwrap_or_default();
        let path = self.root.join("partial").join(name);
        [self.root.join("partial"), self.root.join(FOLDER)].iter().try_for_each(|folder| create_dir(folder))?;
        let write = |source| StoreError::Write { path: path.clone(), source };
        let file = partial::lock(&path).map_err(write)?;
        // For a file truncated to zero, ext4 would flush all data on close.
        if file.metadata().map_err(write)?.len() > 0 {
            file.set_len(0).map_err(write)?;
        }
        Ok((file, path))
    }
}

impl Spool {
    /// An empty file that never gets a name.
    pub fn unnamed() -> std::io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, names: None })
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether it would be kept in the store.
    pub fn is_named(&self) -> bool {
        self.names.is_some()
    }

    /// Keeps the complete file in the store, if possible.
    pub fn keep(mut self) -> std::io::Result<File> {
        let file = self.file.try_clone()?;
        if let Some((path, target)) = self.names.take()
            && publish(&file, &path, &target).is_err()
        {
            let _gone = [path, target].map(std::fs::remove_file);
        }
        Ok(file)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Some((path, _)) = &self.names {
            let _gone = std::fs::remove_file(path);
        }
    }
}

/// The record is written last and describes the file that has the name by then: a file that replaces it in between is
/// not trusted.
fn publish(file: &File, path: &Path, target: &Path) -> std::io::Result<()> {
    std::fs::rename(path, target)?;
    file.set_permissions(Permissions::from_mode(0o444))?;
    if let Some(identity) = FileIdentity::backdated(file)? {
        write_record(&record(target), |out| Ok(serde_json::to_writer(out, &identity)?));
    }
    // Processes that wait for the lock look for the record.
    file.unlock()
}

fn record(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// The file, if it is unchanged since it was decoded.
fn intact(target: &Path) -> Option<File> {
    let identity: FileIdentity = serde_json::from_slice(&read_record(&record(target))?).ok()?;
    let file = ownership::open(target).ok()?;
    (FileIdentity::of_private(&file, target)? == identity).then_some(file)
}

/// Decoded forms whose blob is not among those kept, or whose version is outdated.
pub(super) fn needless(store: &Store, keep: impl Fn(&str) -> bool) -> Result<Vec<PathBuf>, StoreError> {
    let mut paths = files(store.root.join(FOLDER))?;
    paths.retain(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let (hex, form) = name.strip_suffix(".json").unwrap_or(name).split_once('.').unwrap_or_default();
        let used = DecodedForm::ALL.iter().any(|known| known.name() == form) && keep(hex);
        let file = path.with_file_name(format!("{hex}.{form}"));
        !used || intact(&file).is_none()
    });
    Ok(paths)
}

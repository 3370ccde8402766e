//! Decoded forms of blobs: the tar of a compressed archive, the raw disk of a qcow2 base. Made once, used in place.
//!
//! `decoded/<digest of the blob>.<form>` gets its name when it is complete, and then a record of how the system describes it,
//! `<name>.json`. Only what is still described so is used: what was touched, cut, copied or left by a kill is made
//! again. Two processes that want the same form make it once. In a store that cannot be written, forms are files
//! without a name, and so they are where it is not believed.

use std::fs::{File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Store, StoreError, create_dir, files, partial};
use crate::stamp::{Stamp, read_record, write_record};
use vmbake_common::digest::Digest;
use vmbake_common::ownership;

/// Folder of the store.
pub(super) const FOLDER: &str = "decoded";

/// What a blob was decoded to. The number grows when the same blob would give other bytes, or would be refused.
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

    /// The end of its files' names.
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

/// A decoded form that is there, or the place to make it.
#[derive(Debug)]
pub enum Decoded {
    /// It is there.
    Found(File),
    /// It must be made.
    Missing(Spool),
}

/// A file that becomes a decoded form when it is complete; dropped before, it is gone.
#[derive(Debug)]
pub struct Spool {
    file: File,
    /// Its name until it is complete, and then.
    names: Option<(PathBuf, PathBuf)>,
}

impl Store {
    /// The decoded form of a blob, or an empty file to make it in. Waits while another process makes it.
    ///
    /// Only for blobs whose digest was proven: that is what the name says.
    pub fn decoded(&self, blob: &Digest, form: DecodedForm) -> std::io::Result<Decoded> {
        let target = self.form(blob, form);
        if !self.is_believed() {
            return Spool::unnamed().map(Decoded::Missing);
        }
        if let Some(file) = intact(&target) {
            return Ok(Decoded::Found(file));
        }
        let Ok((file, path)) = self.start(&target) else { return Spool::unnamed().map(Decoded::Missing) };
        let spool = Spool { file, names: Some((path, target.clone())) };
        // Another process may have made it while this one waited for the lock.
        Ok(intact(&target).map_or_else(|| Decoded::Missing(spool), Decoded::Found))
    }

    /// Whether the store has that decoded form, as it was made.
    pub fn has_decoded(&self, blob: &Digest, form: DecodedForm) -> bool {
        intact(&self.form(blob, form)).is_some()
    }

    /// Where the decoded form of a blob stands, or would stand.
    pub fn form(&self, blob: &Digest, form: DecodedForm) -> PathBuf {
        self.root.join(FOLDER).join(format!("{}.{}", blob.hex(), form.name()))
    }

    fn start(&self, target: &Path) -> Result<(File, PathBuf), StoreError> {
        let name = target.file_name().unwrap_or_default();
        let path = self.root.join("partial").join(name);
        [self.root.join("partial"), self.root.join(FOLDER)].iter().try_for_each(|folder| create_dir(folder))?;
        let write = |source| StoreError::Write { path: path.clone(), source };
        let file = partial::lock(&path).map_err(write)?;
        // Of an empty file this would have ext4 write all of it when it is closed.
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

    /// The file to write.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether it would be kept in the store.
    pub fn is_named(&self) -> bool {
        self.names.is_some()
    }

    /// It is complete: keeps it for the next time, if that is possible.
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

/// The record comes last and speaks of the file that has the name then: one that replaced it in between is not believed.
fn publish(file: &File, path: &Path, target: &Path) -> std::io::Result<()> {
    std::fs::rename(path, target)?;
    file.set_permissions(Permissions::from_mode(0o444))?;
    if let Some(stamp) = Stamp::backdated(file)? {
        write_record(&record(target), |out| Ok(serde_json::to_writer(out, &stamp)?));
    }
    // Whoever waits for the name looks for the record.
    file.unlock()
}

fn record(target: &Path) -> PathBuf {
    let mut name = target.as_os_str().to_owned();
    name.push(".json");
    name.into()
}

/// The file, if it is as it was when it was made.
fn intact(target: &Path) -> Option<File> {
    let stamp: Stamp = serde_json::from_slice(&read_record(&record(target))?).ok()?;
    let file = ownership::open(target).ok()?;
    (Stamp::of_private(&file, target)? == stamp).then_some(file)
}

/// Files of decoded forms whose blob is not among those kept, or that no bake would use any more.
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

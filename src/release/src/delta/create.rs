//! Creates a delta between two images.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::image::Backing;
use vmbake_disk::source::ReadAt;
use vmbake_disk::write::{Changed, FileDigest, GroupHashes, differences, write_overlay};

use super::DeltaError;
use super::known::{self, KnownImage};
use super::statement::{DeltaStatement, SCHEMA, StatedFile, StatedImage, statement_path};
use vmbake_bake::release::key::PrivateKey;
use vmbake_bake::release::sign::sign_document;
use vmbake_common::atomic_file::{Pending, PublishError, write_file};
use vmbake_common::digest::Digest;
use vmbake_common::progress::{Event, Progress};
use vmbake_store::store::Store;

/// The parameters of a delta.
pub struct DeltaRequest<'a> {
    /// The image that sites have.
    pub old: &'a Path,
    /// The image that they will get.
    pub new: &'a Path,
    pub out: &'a Path,
    /// Whether existing files may be replaced.
    pub force: bool,
    /// The key that signs the statement.
    pub key: Option<&'a PrivateKey>,
    /// The store with the records of bakes.
    pub store: &'a Store,
    /// Threads for comparing, compressing and hashing.
    pub threads: NonZeroUsize,
}

/// A created delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    pub statement: DeltaStatement,
    /// The path of the statement.
    pub path: PathBuf,
    /// The path of its signature.
    pub bundle: Option<PathBuf>,
}

/// Creates a delta, its statement and, with a key, its signature.
pub fn create(request: &DeltaRequest<'_>, progress: &Progress) -> Result<Delta, DeltaError> {
    let DeltaRequest { out, force, store, threads, .. } = *request;
    let (old, new) = (KnownImage::open(request.old, store)?, KnownImage::open(request.new, store)?);
    let backing = Backing::new(&file_name(&old.path)?, old.image.format());
    let backing = backing.map_err(|source| {
        DeltaError::Message(
            message!("{}: a delta refers to the old image by its file name", old.path.display()).by(source),
        )
    })?;
    let delta_name = file_name(out)?;
    let statement_at = statement_path(out);
    if !force && statement_at.symlink_metadata().is_ok() {
        return Err(PublishError::Exists { path: statement_at }.into());
    }
    let pending = Pending::create(out, force)?;
    let changed = compare(&old, &new, threads)?;
    let [old_verity, new_verity] = verity(&old, &new, &changed, threads)?;
    let [old_sha256, new_sha256] = known::sha256(&old, &new, store, threads)?;
    let base = stated(&old, old_verity, old_sha256)?;
    let result = stated(&new, new_verity, new_sha256)?;
    let bar = progress.bar("writing", new.image.len());
    let written = write_overlay(Arc::new(new.image), changed, &backing, pending.file(), threads, &|len| bar.inc(len));
    bar.finish_and_clear();
    let written = written.map_err(|source| DeltaError::Write { path: out.to_owned(), source })?;
    // Always SHA-256 for qcow2.
    let (FileDigest::Sha256(sha256) | FileDigest::Verity(sha256)) = written.digest;
    let delta = StatedFile { name: delta_name, length: written.file_len, sha256: Digest::Sha256(sha256) };
    let statement = DeltaStatement { schema: SCHEMA.to_owned(), base, result, delta };
    let text = statement.text().map_err(|source| DeltaError::Statement { path: statement_at.clone(), source })?;
    pending.publish()?;
    progress.emit(Event::Wrote { path: out.to_owned(), bytes: written.file_len });
    write_file(&statement_at, text.as_bytes(), force)?;
    let bundle = request.key.map(|key| sign_document(&statement_at, text.as_bytes(), key)).transpose()?;
    Ok(Delta { statement, path: statement_at, bundle })
}

/// The differences of the disks, using the records of bakes.
fn compare(old: &KnownImage, new: &KnownImage, threads: NonZeroUsize) -> Result<Changed, DeltaError> {
    let changed = match (&old.index, &new.index) {
        (Some((old, old_sums)), Some((new, new_sums))) => differences(old, new, Some((old_sums, new_sums)), threads),
        _ => differences(&old.image, &new.image, None, threads),
    };
    changed.map_err(|source| DeltaError::Read { path: new.path.clone(), source })
}

/// The fs-verity digests of both disks; only differences are read twice.
fn verity(
    old: &KnownImage,
    new: &KnownImage,
    changed: &Changed,
    threads: NonZeroUsize,
) -> Result<[Digest; 2], DeltaError> {
    if let (Some(old), Some(new)) = (old.verity, new.verity) {
        return Ok([old, new]);
    }
    let failed = |image: &KnownImage| {
        let path = image.path.clone();
        |source| DeltaError::Read { path, source }
    };
    let old_hashes = GroupHashes::of(&old.image, threads).map_err(failed(old))?;
    let new_hashes = old_hashes.of_similar(&new.image, changed.ranges(), threads).map_err(failed(new))?;
    Ok([old_hashes, new_hashes].map(|hashes| Digest::Sha256(hashes.digest())))
}

fn stated(image: &KnownImage, disk_fsverity: Digest, sha256: Option<Digest>) -> Result<StatedImage, DeltaError> {
    let format = image.image.format();
    let compression = image.image.compression().map(Into::into).unwrap_or_default();
    let (name, disk_length) = (file_name(&image.path)?, image.image.len());
    Ok(StatedImage { name, format, disk_length, disk_fsverity, compression, sha256 })
}

/// The file name.
fn file_name(path: &Path) -> Result<String, DeltaError> {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str);
    name.map(str::to_owned).ok_or_else(|| {
        DeltaError::Message(message!("{}: file name is not UTF-8, which a statement requires", path.display()))
    })
}

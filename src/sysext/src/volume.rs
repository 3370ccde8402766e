//! Writes an extension as a file: a tree in, an ext4 or SquashFS volume with its dm-verity files out. systemd finds the hash
//! tree of NAME.raw in NAME.verity, and the root hash in hexadecimal in NAME.roothash.

use std::fs::File;
use std::io::{self, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use vmbake_common::message::FileError;
use vmbake_disk::disk::Disk;
use vmbake_disk::ext4::{self, VolumeOptions};
use vmbake_disk::image::Format;
use vmbake_disk::source::FileSource;
use vmbake_disk::squashfs;
use vmbake_disk::tree::Tree;
use vmbake_disk::write::{DmVerity, HashTree, Output, write};

use super::error::ExtensionError;
use super::form::{ExtensionForm, ExtensionFormat, sidecars};
use vmbake_common::atomic_file::{Pending, PublishError};
use vmbake_common::digest::Digest;

/// Usually random values of a volume and its hash tree.
pub(super) struct Identity {
    pub volume: VolumeOptions,
    pub tree: DmVerity,
}

/// Writes `tree` as `out` with its sidecars; returns the files with their lengths. The image is renamed last, since without it
/// the sidecars have no effect.
pub(super) fn write_volume(
    tree: &Tree,
    out: &Path,
    form: ExtensionForm,
    identity: &Identity,
    threads: NonZeroUsize,
) -> Result<Vec<(PathBuf, u64)>, ExtensionError> {
    let image = Pending::create(out, form.force)?;
    let sidecars = sidecars(out);
    if !form.force
        && let Some(path) = sidecars.iter().find(|path| path.symlink_metadata().is_ok())
    {
        return Err(PublishError::Exists { path: path.clone() }.into());
    }
    let len = fill(tree, out, image.file(), form.format, &identity.volume)?;
    let mut written = Vec::new();
    if form.verity {
        let unreadable = |source| ExtensionError::File(FileError::new(out, "create the hash tree", source));
        let source = image.file().try_clone().and_then(FileSource::new).map_err(unreadable)?;
        let hashes = HashTree::of(&source, &identity.tree, threads).map_err(unreadable)?;
        let root = format!("{}\n", Digest::Sha256(hashes.root).hex());
        let [tree_path, root_path] = sidecars;
        for (path, bytes) in [(tree_path, hashes.bytes), (root_path, root.into_bytes())] {
            let file = Pending::create(&path, form.force)?;
            file.file().write_all(&bytes).map_err(|source| PublishError::Write { path: path.clone(), source })?;
            file.publish()?;
            written.push((path, bytes.len() as u64));
        }
    } else {
        // Sidecars of an earlier image would make systemd refuse this one.
        for path in sidecars {
            remove(&path).map_err(|source| PublishError::Write { path, source })?;
        }
    }
    image.publish()?;
    written.insert(0, (out.to_owned(), len));
    Ok(written)
}

/// Writes the volume into an empty file; returns its length.
fn fill(
    tree: &Tree,
    out: &Path,
    file: &File,
    format: ExtensionFormat,
    options: &VolumeOptions,
) -> Result<u64, ExtensionError> {
    if format == ExtensionFormat::Squashfs {
        return Ok(squashfs::write(tree, file)?);
    }
    let volume = ext4::author(tree, options)?;
    let disk = Disk::new(volume.map().clone(), volume.sources().clone());
    let output = Output::new(Format::Raw, file);
    let written = write(&disk, &[output], NonZeroUsize::MIN, &|_| ());
    written.map_err(|source| ExtensionError::Write { path: out.to_owned(), source })?;
    Ok(volume.len())
}

/// Removes a file, if there is one.
fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

//! Imports an archive at a site: blobs into its store, and other inputs of a bake into a directory.
//!
//! Blobs are named after their digest is verified, and the directory is named when it is complete.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::Path;

use serde::Serialize;

use super::ArchiveError;
use super::contents::{Contents, called};
use super::document::{ArchiveManifest, BlobReference, BlobRole};
use super::folder;
use super::staged::{StagedFolder, same_folders};
use super::tar::TarMember;
use super::verify::digest;
use vmbake_common::digest::Digest;
use vmbake_common::message::FileError;
use vmbake_common::parallel::for_each;
use vmbake_store::store::Store;

/// The result of an import.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Imported {
    /// Number of new blobs.
    pub added: usize,
    /// Number of existing blobs.
    pub present: usize,
    pub bytes: u64,
}

/// Imports the blobs of an archive into a store.
pub fn import(contents: &Contents, store: &Store, threads: NonZeroUsize) -> Result<Imported, ArchiveError> {
    contents.require_complete()?;
    let layers = contents.manifests.iter().flat_map(|manifest| &manifest.layers);
    let blobs: Vec<&BlobReference> = layers.filter(|layer| layer.role == BlobRole::Blob).collect();
    for held in blobs.iter().filter(|blob| blob.is_held()) {
        if store.blob(&held.digest)?.is_none() {
            return Err(ArchiveError::NoBlob { title: called(held).to_owned(), digest: Box::new(held.digest) });
        }
    }
    let wanted: BTreeSet<Digest> = blobs.iter().map(|blob| blob.digest).collect();
    let wanted = contents.members.iter().filter(|(digest, _)| wanted.contains(digest)).collect();
    let results = for_each(wanted, threads, |(digest, member)| import_member(contents, store, digest, member));
    let mut imported = Imported::default();
    for result in results {
        match result? {
            Some(bytes) => {
                imported.added += 1;
                imported.bytes += bytes;
            }
            None => imported.present += 1,
        }
    }
    Ok(imported)
}

/// Imports one blob; `None` if it exists.
fn import_member(
    contents: &Contents,
    store: &Store,
    expected: &Digest,
    member: &TarMember,
) -> Result<Option<u64>, ArchiveError> {
    if let Some(file) = store.blob(expected)? {
        let path = store.path(expected);
        let found = store.digest(&path, &file, expected);
        let (found, _) = found.map_err(|source| ArchiveError::Read { path, source })?;
        if found == *expected {
            return Ok(None);
        }
    }
    let mut partial = store.partial(&expected.hex(), expected.hasher())?;
    partial.reset()?;
    let found = digest(contents, expected, member, |bytes| Ok(partial.write(bytes)?));
    match found {
        Ok(found) if found == *expected => {
            partial.publish()?;
            Ok(Some(member.len))
        }
        other => {
            partial.discard()?;
            let title = contents.listed.get(expected).map_or("a blob", called).to_owned();
            Err(ArchiveError::Changed { title, found: Box::new(other?), expected: Box::new(*expected) })
        }
    }
}

/// Writes manifests, sources, layers and trust anchors to the directory `to`, below `manifests`, `sources`, `layers`
/// and `trust`. It must be new, or have exactly these contents.
pub fn unpack_inputs(contents: &Contents, to: &Path) -> Result<(), ArchiveError> {
    stage_inputs(contents, to)?.map_or(Ok(()), StagedFolder::publish)
}

/// As [`unpack_inputs`], without publishing; `None` if the directory is up to date.
pub(super) fn stage_inputs(contents: &Contents, to: &Path) -> Result<Option<StagedFolder>, ArchiveError> {
    contents.require_complete()?;
    let staged = StagedFolder::new(to)?;
    let mut done = BTreeSet::new();
    for manifest in contents.manifests.iter().filter(|manifest| manifest.artifact_type == BlobRole::Inputs) {
        for layer in &manifest.layers {
            if done.insert((layer.role, layer.title().to_owned(), layer.digest)) {
                unpack(contents, layer, staged.path())?;
            }
        }
    }
    if to.symlink_metadata().is_err() {
        return Ok(Some(staged));
    }
    match same_folders(staged.path(), to) {
        Ok(true) => Ok(None),
        Ok(false) => Err(ArchiveError::Exists { path: to.to_owned() }),
        Err(source) => Err(ArchiveError::Read { path: to.to_owned(), source }),
    }
}

fn unpack(contents: &Contents, layer: &BlobReference, folder: &Path) -> Result<(), ArchiveError> {
    let Some(name) = input_name(layer) else { return Ok(()) };
    let target = folder.join(&name);
    let unwritten = |source| ArchiveError::File(FileError::new(target.clone(), "write", source));
    target.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(unwritten)?;
    if let (BlobRole::Layers | BlobRole::Trust, Some(member)) = (layer.role, contents.members.get(&layer.digest)) {
        let found = digest(contents, &layer.digest, member, |_| Ok(()))?;
        if found != layer.digest {
            let (title, expected) = (layer.title().to_owned(), Box::new(layer.digest));
            return Err(ArchiveError::Changed { title, found: Box::new(found), expected });
        }
        std::fs::create_dir(&target).map_err(unwritten)?;
        return folder::unpack(&contents.archive, &contents.path, member, &target);
    }
    let bytes = contents.document(layer)?;
    std::fs::File::create_new(&target)
        .and_then(|mut file| std::io::Write::write_all(&mut file, &bytes))
        .map_err(unwritten)
}

/// The path of a document; `None` for blobs of the store, and for invalid names.
pub(super) fn input_name(layer: &BlobReference) -> Option<String> {
    let (folder, end, kept) = match layer.role {
        BlobRole::Manifest => ("manifests/", ".json", ".json"),
        BlobRole::Sources => ("sources/", ".json", ".json"),
        BlobRole::Trust => ("trust/", ".tar", ""),
        BlobRole::Layers => ("layers/", ".tar", ""),
        _ => return None,
    };
    let name = layer.title().strip_prefix(folder)?.strip_suffix(end)?;
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-".contains(char);
    (!name.is_empty() && !name.starts_with('.') && name.chars().all(is_plain)).then(|| format!("{folder}{name}{kept}"))
}

/// The paths of the documents with a role, in order.
pub(super) fn input_names(manifest: &ArchiveManifest, role: BlobRole) -> Vec<String> {
    let mut names: Vec<String> =
        manifest.layers.iter().filter(|layer| layer.role == role).filter_map(input_name).collect();
    names.sort();
    names
}

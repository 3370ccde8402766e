//! Locations of packed bundles: an image layout in a directory or a tar file, or a repository of a registry.
//!
//! Everything is checked against length and digest of its descriptor before use. Links are not followed.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use vmbake_common::message::FileError;
use vmbake_disk::source::ReadAt;

use super::error::BundleError;
use super::listing;
use super::pack::blob_name;
use vmbake_archive::parts::ArchiveParts;
use vmbake_archive::tar::{TarMember, members};
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_oci::{Descriptor, INDEX as INDEX_FILE, Index, MARKER, MARKER_FILE, MAX_DOCUMENT, RemoteName};
use vmbake_release::document::ArtifactManifest;
use vmbake_release::pull::bundles_of;
use vmbake_store::registry::Repository;
use vmbake_store::store::Store;

/// Longest signature that is read.
const MAX_SIGNATURE: u64 = 1 << 20;
/// Bytes that are copied at a time.
const PIECE: usize = 128 << 10;

/// Where a packed bundle is.
pub enum BundlePlace {
    Folder(PathBuf),
    /// A tar file.
    Tar {
        /// The file.
        path: PathBuf,
        /// Its bytes.
        tar: Arc<dyn ReadAt>,
        /// Its members by name.
        members: BTreeMap<String, TarMember>,
    },
    /// A repository.
    Registry {
        repository: Box<Repository>,
        /// The name of the bundle, with a tag or a digest.
        name: RemoteName,
    },
}

impl BundlePlace {
    /// The layout at `path`.
    pub fn open(path: &Path) -> Result<Self, BundleError> {
        let unreadable = |source| BundleError::File(FileError::new(path, "read", source));
        let place = match std::fs::metadata(path).map_err(unreadable)?.is_dir() {
            true => Self::Folder(path.to_owned()),
            false => {
                let tar: Arc<dyn ReadAt> = Arc::new(ArchiveParts::open(path)?);
                let mut by_name = BTreeMap::new();
                for member in members(&*tar, path)? {
                    if let Some(twice) = by_name.insert(member.name.clone(), member) {
                        return Err(place_error(path, &twice.name, "is duplicated"));
                    }
                }
                Self::Tar { path: path.to_owned(), tar, members: by_name }
            }
        };
        match place.file(MARKER_FILE, MAX_DOCUMENT)? == MARKER.as_bytes() {
            true => Ok(place),
            false => Err(place_error(path, MARKER_FILE, "is not the marker of an image layout")),
        }
    }

    /// What messages call it.
    pub fn path(&self) -> PathBuf {
        match self {
            Self::Folder(path) | Self::Tar { path, .. } => path.clone(),
            Self::Registry { name, .. } => name.to_string().into(),
        }
    }

    pub fn repository(&self) -> Option<String> {
        match self {
            Self::Registry { name, .. } => Some(name.repository.to_string()),
            _ => None,
        }
    }

    /// The index of the bundle, and its digest.
    pub fn index(&self) -> Result<(Digest, Vec<u8>), BundleError> {
        match self {
            Self::Registry { repository, name } => {
                let reference = match (&name.digest, &name.tag) {
                    (_, Some(tag)) => tag.clone(),
                    (Some(digest), None) => digest.to_string(),
                    (None, None) => return Err(BundleError::Unnamed { name: name.to_string() }),
                };
                let found = repository.manifest(&reference)?;
                match name.digest.filter(|expected| *expected != found.digest) {
                    Some(expected) => Err(BundleError::Moved {
                        name: name.to_string(),
                        expected: Box::new(expected),
                        found: Box::new(found.digest),
                    }),
                    None => Ok((found.digest, found.bytes)),
                }
            }
            _ => {
                let found = listing::bundle(&self.path(), &self.listed()?, &|entry| self.document(entry))?;
                let found =
                    found.ok_or_else(|| place_error(&self.path(), INDEX_FILE, "expected exactly one bundle"))?;
                Ok((found.digest, self.document(&found)?))
            }
        }
    }

    /// A manifest or an index.
    pub fn document(&self, of: &Descriptor) -> Result<Vec<u8>, BundleError> {
        match self {
            Self::Registry { repository, .. } => {
                let found = repository.manifest(&of.digest.to_string())?;
                self.checked(of, found.bytes)
            }
            _ => self.blob(of, MAX_DOCUMENT),
        }
    }

    /// A blob of at most `limit` bytes.
    pub fn blob(&self, of: &Descriptor, limit: u64) -> Result<Vec<u8>, BundleError> {
        if of.size > limit {
            let what = format!("{} of {} bytes, more than the limit of {limit}", of.digest, of.size);
            return Err(BundleError::Limit { path: self.path(), what });
        }
        let bytes = match self {
            Self::Registry { repository, .. } => repository.read_blob(&of.digest, limit)?,
            _ => self.file(&blob_name(&of.digest), limit)?,
        };
        self.checked(of, bytes)
    }

    /// Copies a blob into a store unless it is there.
    pub fn ensure_blob(&self, of: &Descriptor, store: &Store) -> Result<(), BundleError> {
        if let Some(file) = store.blob(&of.digest)? {
            let path = store.path(&of.digest);
            let found = store.digest(&path, &file, &of.digest);
            if found.map_err(|source| BundleError::File(FileError::new(path, "read", source)))?.0 == of.digest {
                return Ok(());
            }
        }
        if let Self::Registry { repository, .. } = self {
            repository.ensure_blob(store, of, of.size)?;
            return Ok(());
        }
        let mut partial = store.partial(&of.digest.hex(), of.digest.hasher())?;
        partial.reset()?;
        let mut hasher = of.digest.hasher();
        let copied = self.stream(&blob_name(&of.digest), of.size, &mut |bytes| {
            hasher.update(bytes);
            Ok(partial.write(bytes)?)
        });
        let found = hasher.finish();
        match copied {
            Ok(()) if found == of.digest => {
                partial.publish()?;
                Ok(())
            }
            other => {
                partial.discard()?;
                other?;
                let (path, expected) = (self.path().join(blob_name(&of.digest)), Box::new(of.digest));
                Err(BundleError::Damaged { path, expected, found: Box::new(found) })
            }
        }
    }

    /// The signatures that are attached to the index, by any signer.
    pub fn signatures(&self, index: &Digest) -> Result<Vec<Vec<u8>>, BundleError> {
        if let Self::Registry { repository, .. } = self {
            return Ok(bundles_of(repository, index)?);
        }
        let mut found = Vec::new();
        for entry in self.attached(index)? {
            let Ok(manifest) = serde_json::from_slice::<ArtifactManifest>(&self.document(&entry)?) else { continue };
            if let [layer] = &manifest.layers[..] {
                found.push(self.blob(layer, MAX_SIGNATURE)?);
            }
        }
        Ok(found)
    }

    /// The manifests by which a layout attaches signatures to the index.
    pub fn attached(&self, index: &Digest) -> Result<Vec<Descriptor>, BundleError> {
        listing::attached(self.listed()?, index, &|entry| self.document(entry))
    }

    /// The file in which a file of the layout is, and where it begins there, in bytes.
    pub fn file_of(&self, name: &str) -> Result<(File, u64), BundleError> {
        let (path, at) = match self {
            Self::Folder(folder) => (folder.join(name), 0),
            Self::Tar { path, members, .. } => {
                let member = members.get(name).ok_or_else(|| place_error(path, name, "is missing"))?;
                (path.clone(), member.at)
            }
            Self::Registry { name, .. } => return Err(BundleError::Remote { name: name.to_string() }),
        };
        let file = open(&path).map_err(|source| BundleError::File(FileError::new(path, "read", source)))?;
        Ok((file, at))
    }

    /// What `index.json` lists.
    fn listed(&self) -> Result<Vec<Descriptor>, BundleError> {
        let text = self.file(INDEX_FILE, MAX_DOCUMENT)?;
        let index: Index = serde_json::from_slice(&text)
            .map_err(|error| BundleError::syntax(&self.path().join(INDEX_FILE), &error))?;
        Ok(index.manifests)
    }

    fn checked(&self, of: &Descriptor, bytes: Vec<u8>) -> Result<Vec<u8>, BundleError> {
        let mut hasher = of.digest.hasher();
        hasher.update(&bytes);
        let found = hasher.finish();
        if found != of.digest {
            let (path, expected) = (self.path().join(blob_name(&of.digest)), Box::new(of.digest));
            return Err(BundleError::Damaged { path, expected, found: Box::new(found) });
        }
        match u64::try_from(bytes.len()).is_ok_and(|len| len == of.size) {
            true => Ok(bytes),
            false => {
                let what = format!("has {} bytes, expected {} as in its descriptor", bytes.len(), of.size);
                Err(place_error(&self.path(), &blob_name(&of.digest), &what))
            }
        }
    }

    /// A file of the layout, of at most `limit` bytes.
    fn file(&self, name: &str, limit: u64) -> Result<Vec<u8>, BundleError> {
        let mut content = Vec::new();
        self.stream(name, limit, &mut |bytes| {
            content.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(content)
    }

    /// Gives the bytes of a file of the layout, which has at most `limit`, to `each`.
    fn stream(
        &self,
        name: &str,
        limit: u64,
        each: &mut dyn FnMut(&[u8]) -> Result<(), BundleError>,
    ) -> Result<(), BundleError> {
        let too_long = || BundleError::Limit { path: self.path(), what: format!("{name} of more than {limit} bytes") };
        let mut buffer = vec![0; PIECE];
        match self {
            Self::Folder(folder) => {
                let path = folder.join(name);
                let unreadable = |source| BundleError::File(FileError::new(path.clone(), "read", source));
                let mut file = open(&path).map_err(unreadable)?;
                let mut total = 0_u64;
                loop {
                    let read = file.read(&mut buffer).map_err(unreadable)?;
                    total = total.saturating_add(u64::try_from(read).unwrap_or(u64::MAX));
                    match buffer.get(..read) {
                        Some([]) | None => return Ok(()),
                        Some(_) if total > limit => return Err(too_long()),
                        Some(bytes) => each(bytes)?,
                    }
                }
            }
            Self::Tar { path, tar, members } => {
                let member = members.get(name).ok_or_else(|| place_error(path, name, "is missing"))?;
                if member.len > limit {
                    return Err(too_long());
                }
                let mut done = 0;
                while done < member.len {
                    let len = usize::try_from(member.len.saturating_sub(done)).unwrap_or(PIECE).min(PIECE);
                    buffer.truncate(len);
                    let unreadable = |source| BundleError::File(FileError::new(path.clone(), "read", source));
                    tar.read_exact_at(&mut buffer, member.at.saturating_add(done)).map_err(unreadable)?;
                    each(&buffer)?;
                    done = done.saturating_add(u64::try_from(len).unwrap_or(u64::MAX));
                }
                Ok(())
            }
            Self::Registry { name, .. } => Err(BundleError::Remote { name: name.to_string() }),
        }
    }
}

/// Opens a regular file that is not a link; a named pipe would make it wait.
fn open(path: &Path) -> std::io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    match file.metadata()? {
        meta if meta.is_file() => Ok(file),
        meta => Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            format!("expected a regular file, found {}", input::kind(&meta)),
        )),
    }
}

fn place_error(path: &Path, name: &str, what: &str) -> BundleError {
    BundleError::Layout { path: path.to_owned(), name: name.to_owned(), what: what.to_owned() }
}

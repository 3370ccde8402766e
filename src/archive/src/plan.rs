//! Plans an archive: blobs by digest, and the documents that list them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::ArchiveError;
use super::document::{ArchiveManifest, BlobReference, BlobRole, InputsConfig};
use super::folder;
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::sums::SumsKind;
use vmbake_common::catalog::{Catalog, Root};
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_common::parallel::for_each;
use vmbake_embedded as embedded;
use vmbake_fetch::blobs;
use vmbake_layer::Layers;
use vmbake_manifest::Manifest;
use vmbake_pin::prove::LOCAL;
use vmbake_store::store::Store;

/// Maximum size of a document next to an image.
const MAX_SIDECAR: u64 = 64 << 20;

/// The location of a blob's content.
pub enum BlobContent {
    Bytes(Vec<u8>),
    Stored,
    /// A local file.
    Path(PathBuf),
    /// An unnamed file.
    File(File),
}

/// A blob of the archive.
pub struct PlannedBlob {
    /// Its name in messages.
    pub title: String,
    /// Its length in bytes.
    pub len: u64,
    pub content: BlobContent,
}

/// The contents of an archive.
pub struct ArchivePlan<'a> {
    store: &'a Store,
    /// Blobs that the site has, with their lengths.
    held: BTreeMap<Digest, u64>,
    /// By digest, in the order in which they are written.
    pub blobs: BTreeMap<Digest, PlannedBlob>,
    pub manifests: Vec<BlobReference>,
}

/// Layers, sources and trust anchors.
#[derive(Clone, Debug)]
pub struct Catalogs {
    pub layers: Catalog,
    pub sources: Catalog,
    pub trust: Catalog,
}

impl<'a> ArchivePlan<'a> {
    /// An empty plan that leaves out blobs in `held`.
    pub fn new(store: &'a Store, held: BTreeMap<Digest, u64>) -> Self {
        Self { store, held, blobs: BTreeMap::new(), manifests: Vec::new() }
    }

    fn add(&mut self, role: BlobRole, title: &str, digest: Digest, len: u64, content: BlobContent) -> BlobReference {
        // Documents are small, and always included.
        let is_large = matches!(role, BlobRole::Blob | BlobRole::Image);
        if let Some(len) = self.held.get(&digest).filter(|_| is_large) {
            let mut reference = BlobReference::new(role, title, digest, *len);
            reference.leave_out();
            return reference;
        }
        let called = if title.is_empty() { digest.to_string() } else { title.to_owned() };
        self.blobs.entry(digest).or_insert(PlannedBlob { title: called, len, content });
        BlobReference::new(role, title, digest, len)
    }

    fn bytes(&mut self, role: BlobRole, title: &str, bytes: Vec<u8>) -> BlobReference {
        let (digest, len) = (Digest::of(&bytes), bytes.len() as u64);
        self.add(role, title, digest, len, BlobContent::Bytes(bytes))
    }

    fn json(&mut self, role: BlobRole, title: &str, value: &impl Serialize) -> Result<BlobReference, ArchiveError> {
        let text = serde_json::to_vec(value).map_err(ArchiveError::Json)?;
        Ok(self.bytes(role, title, text))
    }

    fn manifest(&mut self, manifest: &ArchiveManifest, title: &str) -> Result<(), ArchiveError> {
        let mut reference = self.json(BlobRole::OciManifest, title, manifest)?;
        reference.artifact_type = Some(manifest.artifact_type);
        self.manifests.push(reference);
        Ok(())
    }

    /// Adds all inputs for baking the image of a manifest. `base` is a local base image; `recorded` has the parameters
    /// of an existing image to reproduce.
    pub fn inputs(
        &mut self,
        path: &Path,
        base: Option<&Path>,
        recorded: Option<&BuildInputs>,
        catalogs: &Catalogs,
    ) -> Result<(), ArchiveError> {
        let manifest = Manifest::load(path)?;
        refuse_bundles(path, &manifest, catalogs)?;
        let name = manifest.name();
        let mut layers =
            vec![self.bytes(BlobRole::Manifest, &format!("manifests/{name}.json"), manifest.text().to_vec())];
        self.catalogs(catalogs, &mut layers)?;
        let image = manifest.content().os.image.as_ref();
        let own_base = image.filter(|image| image.url.starts_with(LOCAL)).map(|image| image.digest);
        let names: BTreeMap<Digest, &String> =
            manifest.content().dependencies.iter().map(|(name, dependency)| (dependency.digest, name)).collect();
        let all: BTreeSet<Digest> = blobs(&manifest, self.store).into_iter().collect();
        for digest in all {
            let is_base = image.is_some_and(|image| image.digest == digest);
            let title = if is_base { "base" } else { names.get(&digest).map_or("", |name| name.as_str()) };
            layers.push(match base.filter(|_| is_base) {
                Some(base) => self.file(BlobRole::Blob, title, digest, base)?,
                None => self.stored(title, digest)?,
            });
        }
        let overrides = [&catalogs.layers, &catalogs.sources, &catalogs.trust].into_iter().flat_map(Catalog::overrides);
        let mut overrides: Vec<String> = overrides.cloned().collect();
        overrides.sort();
        overrides.dedup();
        let config = InputsConfig {
            base: own_base,
            partition: recorded.and_then(|inputs| inputs.partition),
            size: recorded.and_then(|inputs| inputs.size),
            source_date_epoch: recorded.and_then(|inputs| inputs.source_date_epoch),
            compression: recorded.map(|inputs| inputs.compression).unwrap_or_default(),
            overrides,
        };
        let config = self.json(BlobRole::InputsConfig, "", &config)?;
        self.manifest(&ArchiveManifest::of(BlobRole::Inputs, config, layers), &name)
    }

    /// Adds the layers, sources and trust anchors of all roots, in order. Identical roots are added once: `./layers`
    /// often equals the built-in layers.
    fn catalogs(&mut self, catalogs: &Catalogs, to: &mut Vec<BlobReference>) -> Result<(), ArchiveError> {
        let mut known = BTreeSet::new();
        let mut add = |reference: BlobReference| {
            if known.insert((reference.role, reference.digest)) {
                to.push(reference);
            }
        };
        for (number, root) in catalogs.layers.roots().iter().enumerate() {
            add(self.folder(BlobRole::Layers, &format!("layers/{number:02}.tar"), root, embedded::LAYERS)?);
        }
        for (number, root) in catalogs.trust.roots().iter().enumerate() {
            add(self.folder(BlobRole::Trust, &format!("trust/{number:02}.tar"), root, embedded::TRUST)?);
        }
        for (number, root) in catalogs.sources.roots().iter().enumerate() {
            let text = match root {
                Root::BuiltIn => embedded::SOURCES.to_vec(),
                Root::Path(path) => read(path)?,
            };
            add(self.bytes(BlobRole::Sources, &format!("sources/{number:02}.json"), text));
        }
        Ok(())
    }

    fn folder(
        &mut self,
        role: BlobRole,
        title: &str,
        root: &Root,
        built_in: &'static [(&'static str, &'static [u8])],
    ) -> Result<BlobReference, ArchiveError> {
        let (file, digest, len) = folder::pack(root, built_in, &[])?;
        Ok(self.add(role, title, digest, len, BlobContent::File(file)))
    }

    /// Adds a qcow2 image and its documents.
    pub fn image(&mut self, path: &Path) -> Result<(), ArchiveError> {
        let (folder, name) = place(path)?;
        let (mut layers, digest) = (Vec::new(), self.digest(path)?);
        layers.push(self.file(BlobRole::Image, &format!("{name}.qcow2"), digest, path)?);
        let unreadable = |source| ArchiveError::Read { path: folder.to_owned(), source };
        let mut files = Vec::new();
        for entry in std::fs::read_dir(folder).map_err(unreadable)? {
            files.extend(entry.map_err(unreadable)?.file_name().into_string());
        }
        files.sort();
        // Lists with their signatures, and the documents of the image.
        let lists = SumsKind::ALL.map(SumsKind::file_name);
        let is_list = |file: &str| lists.iter().any(|list| file.starts_with(list));
        let is_beside = |file: &str| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'));
        let is_text = |file: &str| file.ends_with(".json") || lists.contains(&file);
        for file in files.iter().filter(|file| (is_list(file) || is_beside(file)) && is_text(file)) {
            layers.push(self.bytes(BlobRole::Sidecar, file, read(&folder.join(file))?));
        }
        let config = self.bytes(BlobRole::Nothing, "", b"{}".to_vec());
        self.manifest(&ArchiveManifest::of(BlobRole::Images, config, layers), name)
    }

    /// Adds the inputs that an image was baked from, according to its documents.
    pub fn inputs_of(&mut self, image: &Path, base: Option<&Path>, catalogs: &Catalogs) -> Result<(), ArchiveError> {
        let (folder, name) = place(image)?;
        let path = folder.join(Sidecar::Inputs.file_name(name));
        let recorded = BuildInputs::parse(&path, &read(&path)?)?;
        self.inputs(&folder.join(Sidecar::Manifest.file_name(name)), base, Some(&recorded), catalogs)
    }

    fn stored(&mut self, title: &str, digest: Digest) -> Result<BlobReference, ArchiveError> {
        if self.held.contains_key(&digest) {
            // A local copy is not required.
            return Ok(self.add(BlobRole::Blob, title, digest, 0, BlobContent::Stored));
        }
        let title_or = if title.is_empty() { "a document" } else { title };
        let no_blob = || ArchiveError::NoBlob { title: title_or.to_owned(), digest: Box::new(digest) };
        let file = self.store.blob(&digest)?.ok_or_else(no_blob)?;
        let len =
            file.metadata().map_err(|source| ArchiveError::Read { path: self.store.path(&digest), source })?.len();
        Ok(self.add(BlobRole::Blob, title, digest, len, BlobContent::Stored))
    }

    fn file(
        &mut self,
        role: BlobRole,
        title: &str,
        digest: Digest,
        path: &Path,
    ) -> Result<BlobReference, ArchiveError> {
        let len = path.metadata().map_err(|source| ArchiveError::Read { path: path.to_owned(), source })?.len();
        Ok(self.add(role, title, digest, len, BlobContent::Path(path.to_owned())))
    }

    fn digest(&self, path: &Path) -> Result<Digest, ArchiveError> {
        let digest = input::open_regular(path).and_then(|file| self.store.digest(path, &file, &Digest::of(b"")));
        digest.map(|(digest, _)| digest).map_err(|source| ArchiveError::Read { path: path.to_owned(), source })
    }

    /// Opens the content of a blob that is not in memory.
    pub fn open(&self, digest: &Digest, blob: &PlannedBlob) -> Result<Option<File>, ArchiveError> {
        let unreadable = |path: &Path, source| ArchiveError::Read { path: path.to_owned(), source };
        Ok(match &blob.content {
            BlobContent::Bytes(_) => None,
            BlobContent::Stored => self.store.blob(digest)?,
            BlobContent::Path(path) => Some(input::open_regular(path).map_err(|source| unreadable(path, source))?),
            BlobContent::File(file) => {
                Some(file.try_clone().map_err(|source| unreadable(&std::env::temp_dir(), source))?)
            }
        })
    }

    /// Hashes everything that has not been hashed before, on all cores.
    pub fn check(&self, threads: NonZeroUsize) -> Result<(), ArchiveError> {
        let checked = for_each(self.blobs.iter().collect(), threads, |(expected, blob)| {
            let path = match &blob.content {
                BlobContent::Stored => self.store.path(expected),
                BlobContent::Path(path) => path.clone(),
                BlobContent::Bytes(_) | BlobContent::File(_) => return Ok(()),
            };
            let Some(file) = self.open(expected, blob)? else { return Ok(()) };
            let found = self.store.digest(&path, &file, expected);
            let (found, _) = found.map_err(|source| ArchiveError::Read { path, source })?;
            if found == *expected {
                return Ok(());
            }
            let (found, expected) = (Box::new(found), Box::new(*expected));
            Err(ArchiveError::Changed { title: blob.title.clone(), found, expected })
        });
        checked.into_iter().collect()
    }
}

/// Fails if an image contains bundles: without them, another image would be baked. Faults in layers are reported by the
/// bake.
fn refuse_bundles(path: &Path, manifest: &Manifest, catalogs: &Catalogs) -> Result<(), ArchiveError> {
    let target = manifest.content().target();
    let layers = Layers::load(&catalogs.layers).and_then(|layers| layers.resolve(&target.kind, &target.os));
    let named = layers.iter().flatten().flat_map(|layer| layer.schema.bundles.clone());
    let bundles: BTreeSet<String> = manifest.content().bundles.keys().cloned().chain(named).collect();
    match bundles.is_empty() {
        true => Ok(()),
        false => Err(ArchiveError::Bundles { path: path.to_owned(), bundles: bundles.into_iter().collect() }),
    }
}

fn read(path: &Path) -> Result<Vec<u8>, ArchiveError> {
    vmbake_bake::release::read(path, MAX_SIDECAR).map_err(|source| ArchiveError::Read { path: path.to_owned(), source })
}

/// The directory and the name of a qcow2 image.
fn place(path: &Path) -> Result<(&Path, &str), ArchiveError> {
    let name = path.file_name().and_then(std::ffi::OsStr::to_str).and_then(|name| name.strip_suffix(".qcow2"));
    let name = name.ok_or_else(|| ArchiveError::NotQcow2 { path: path.to_owned() })?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), name))
}

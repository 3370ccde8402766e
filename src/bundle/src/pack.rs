//! `vmbake bundle pack`: writes a bundle as an OCI image layout (OCI image specification 1.1), a directory or a tar file.
//!
//! The index has the type `application/vnd.vmbake.bundle.v1` and a manifest for each architecture. The config of each is `bundle.json`; its
//! layers are a tar file of `layers/`, the sources, the documents of proofs, and each artifact with the digest that its upstream published.
//! The same directory and store give the same bytes.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::contents::{BundleContents, LAYERS, SOURCES};
use super::document::BundleDocument;
use super::error::BundleError;
use super::pins::Pins;
use vmbake_archive::folder;
use vmbake_archive::parts::PartWriter;
use vmbake_archive::tar::{END, header, padding};
use vmbake_bake::release::key::PrivateKey;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::catalog::Root;
use vmbake_common::digest::Digest;
use vmbake_common::message::FileError;
use vmbake_manifest::Proof;
use vmbake_oci::{Descriptor, INDEX as INDEX_FILE, Index, MARKER, MARKER_FILE, REF_NAME};
use vmbake_release::attachments::Attachment;
use vmbake_release::document::{
    ArtifactManifest, INDEX, MANIFEST, ReleaseIndex, TITLE, VERSION, Written, empty_config, titled,
};
use vmbake_release::signature::sign_index;
use vmbake_store::store::Store;

/// Type of the index, and of the manifests in it.
pub const BUNDLE: &str = "application/vnd.vmbake.bundle.v1";
/// Type of `bundle.json`.
pub const CONFIG: &str = "application/vnd.vmbake.bundle.config.v1+json";
/// Type of the tar file of layers.
pub const LAYERS_TAR: &str = "application/vnd.vmbake.layers.v1.tar";
/// Type of its sources.
pub const SOURCES_JSON: &str = "application/vnd.vmbake.sources.v1+json";
/// Type of artifacts and of the documents of proofs.
pub const BLOB: &str = "application/vnd.vmbake.blob.v1";

/// The list of released layers next to them, which is for their authors.
const RELEASED: &str = "released.json";

/// Where the bytes of a blob are.
enum BlobContent {
    Memory(Vec<u8>),
    File(File),
    Stored,
}

/// A bundle that only has to be written.
pub struct PackedBundle<'a> {
    store: &'a Store,
    /// Its version as a tag.
    tag: String,
    index: Written,
    signature: Option<Attachment>,
    blobs: BTreeMap<Digest, (u64, BlobContent)>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PackReport {
    /// Where it is.
    pub path: PathBuf,
    /// Digest of the index, which leads to all that is in it.
    pub digest: Digest,
    /// Its version as a tag.
    pub tag: String,
    pub blobs: usize,
    /// Their length in bytes.
    pub size: u64,
    pub signed: bool,
}

impl<'a> PackedBundle<'a> {
    /// Puts together what was read from `folder` and pinned.
    pub fn new(
        folder: &Path,
        contents: &BundleContents,
        pins: Pins,
        key: Option<&PrivateKey>,
        store: &'a Store,
    ) -> Result<Self, BundleError> {
        let mut document = contents.document.clone();
        document.layers = contents.own.iter().map(|layer| (layer.schema.name.clone(), layer.digest)).collect();
        (document.artifacts, document.evidence) = (pins.artifacts, pins.evidence);
        // What a reader would refuse is not written.
        let text = document.to_text()?;
        BundleDocument::parse(folder, &text)?;

        let index = Written::of(INDEX, Vec::new());
        let mut packed = Self { store, tag: document.version.tag(), index, signature: None, blobs: BTreeMap::new() };
        let config = packed.memory(Written::of(CONFIG, text));
        let (tar, digest, len) = folder::pack(&Root::Path(folder.join(LAYERS)), &[], &[RELEASED])?;
        packed.blobs.insert(digest, (len, BlobContent::File(tar)));
        let mut common = vec![titled(Descriptor::new(LAYERS_TAR, digest, len), &format!("{LAYERS}.tar"))];
        if let Some(sources) = &contents.sources {
            let sources = packed.memory(Written::of(SOURCES_JSON, sources.clone()));
            common.push(titled(sources, SOURCES));
        }
        let mut manifests = Vec::new();
        for arch in &document.arch {
            let mut layers = common.clone();
            layers.extend(packed.artifacts(&document, arch)?);
            let manifest = Written::new(MANIFEST, &ArtifactManifest::new(BUNDLE, config.clone(), layers))?;
            let mut entry = packed.memory(manifest).of_platform("linux", arch);
            entry.artifact_type = Some(BUNDLE.to_owned());
            manifests.push(entry);
        }
        packed.index = Written::new(INDEX, &index_of(&document, manifests))?;
        packed.memory(packed.index.clone());
        packed.signature = key.map(|key| sign_index(&packed.index.descriptor, key)).transpose()?;
        if let Some(signature) = packed.signature.clone() {
            [empty_config(), signature.content, signature.manifest]
                .into_iter()
                .for_each(|one| drop(packed.memory(one)));
        }
        Ok(packed)
    }

    fn memory(&mut self, written: Written) -> Descriptor {
        let Descriptor { digest, size, .. } = written.descriptor;
        self.blobs.insert(digest, (size, BlobContent::Memory(written.bytes)));
        written.descriptor
    }

    /// The artifacts of an architecture, and what proves them, each once.
    fn artifacts(&mut self, document: &BundleDocument, arch: &str) -> Result<Vec<Descriptor>, BundleError> {
        let (mut titles, mut evidence) = (BTreeMap::new(), BTreeMap::new());
        let of_arch = document.artifacts.iter().filter(|(place, _)| place.ends_with(&format!(".{arch}")));
        for (name, entry) in of_arch.flat_map(|(_, entries)| entries) {
            titles.entry(entry.digest).or_insert((name.clone(), entry.size));
            for digest in entry.proof.iter().flat_map(Proof::evidence) {
                if let Some(known) = document.evidence.get(digest) {
                    evidence.insert(*digest, known.size);
                }
            }
        }
        let mut layers = Vec::new();
        for (digest, (name, size)) in titles {
            layers.push(titled(Descriptor::new(BLOB, digest, size), &name));
        }
        layers.extend(evidence.into_iter().map(|(digest, size)| Descriptor::new(BLOB, digest, size)));
        for layer in &layers {
            self.blobs.insert(layer.digest, (layer.size, BlobContent::Stored));
        }
        Ok(layers)
    }

    /// Writes it to `out`: a tar file if its name ends with `.tar`, else a folder.
    pub fn write(&self, out: &Path, force: bool) -> Result<PackReport, BundleError> {
        let listing = self.listing()?;
        match out.extension().is_some_and(|end| end == "tar") {
            true => self.write_tar(out, &listing, force)?,
            false => self.write_folder(out, &listing, force)?,
        }
        Ok(PackReport {
            path: out.to_owned(),
            digest: self.index.descriptor.digest,
            tag: self.tag.clone(),
            blobs: self.blobs.len(),
            size: self.blobs.values().map(|(len, _)| len).sum(),
            signed: self.signature.is_some(),
        })
    }

    /// The content of `index.json`. The signature is listed too, so that tools which copy the layout take it along.
    fn listing(&self) -> Result<Vec<u8>, BundleError> {
        let mut index = self.index.descriptor.clone();
        index.artifact_type = Some(BUNDLE.to_owned());
        index.annotations.insert(REF_NAME.to_owned(), self.tag.clone());
        let signature = self.signature.iter().map(|signature| signature.entry.clone());
        Ok(serde_json::to_vec(&Index::of(std::iter::once(index).chain(signature).collect()))?)
    }

    fn write_tar(&self, out: &Path, listing: &[u8], force: bool) -> Result<(), BundleError> {
        let mut tar = PartWriter::new(out, None, force)?;
        for (name, bytes) in [(MARKER_FILE, MARKER.as_bytes()), (INDEX_FILE, listing)] {
            let len = bytes.len() as u64;
            [&header(name, len)?, bytes, padding(len)].into_iter().try_for_each(|bytes| tar.write(bytes))?;
        }
        for (digest, (len, place)) in &self.blobs {
            tar.write(&header(&blob_name(digest), *len)?)?;
            match (place, self.open(digest, place)?) {
                (BlobContent::Memory(bytes), _) => tar.write(bytes)?,
                (_, Some(file)) => tar.copy(&file, *len)?,
                (_, None) => return Err(BundleError::NoBlob { digest: Box::new(*digest) }),
            }
            tar.write(padding(*len))?;
        }
        tar.write(&END)?;
        tar.publish()?;
        Ok(())
    }

    fn write_folder(&self, out: &Path, listing: &[u8], force: bool) -> Result<(), BundleError> {
        let unwritten = |source| BundleError::File(FileError::new(out, "write", source));
        let is_there = out.symlink_metadata().is_ok();
        if is_there && !(force && out.join(MARKER_FILE).exists()) {
            return Err(PublishError::Exists { path: out.to_owned() }.into());
        }
        let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).map_err(unwritten)?;
        let made = tempfile::Builder::new().prefix(".bundle.").tempdir_in(parent).map_err(unwritten)?;
        let create = |name: &str| {
            let path = made.path().join(name);
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            File::create_new(path)
        };
        create(MARKER_FILE).and_then(|mut file| file.write_all(MARKER.as_bytes())).map_err(unwritten)?;
        create(INDEX_FILE).and_then(|mut file| file.write_all(listing)).map_err(unwritten)?;
        for (digest, (_, place)) in &self.blobs {
            let mut file = create(&blob_name(digest)).map_err(unwritten)?;
            match (place, self.open(digest, place)?) {
                (BlobContent::Memory(bytes), _) => file.write_all(bytes).map_err(unwritten)?,
                (_, Some(mut from)) => drop(std::io::copy(&mut from, &mut file).map_err(unwritten)?),
                (_, None) => return Err(BundleError::NoBlob { digest: Box::new(*digest) }),
            }
        }
        if is_there {
            std::fs::remove_dir_all(out).map_err(unwritten)?;
        }
        std::fs::rename(made.path(), out).map_err(unwritten)?;
        std::fs::set_permissions(out, std::os::unix::fs::PermissionsExt::from_mode(0o755)).map_err(unwritten)?;
        // It has another name now.
        let _gone = made.keep();
        Ok(())
    }

    /// The file of a blob that is not in memory, from its beginning. What is in the store has the digest that it should have.
    fn open(&self, digest: &Digest, place: &BlobContent) -> Result<Option<File>, BundleError> {
        match place {
            BlobContent::Memory(_) => Ok(None),
            BlobContent::File(file) => {
                let unreadable = |source| BundleError::File(FileError::new(std::env::temp_dir(), "read", source));
                let mut file = file.try_clone().map_err(unreadable)?;
                file.rewind().map_err(unreadable)?;
                Ok(Some(file))
            }
            BlobContent::Stored => {
                let Some(file) = self.store.blob(digest)? else { return Ok(None) };
                let path = self.store.path(digest);
                let found = self.store.digest(&path, &file, digest);
                let (found, _) =
                    found.map_err(|source| BundleError::File(FileError::new(path.clone(), "read", source)))?;
                match found == *digest {
                    true => Ok(self.store.blob(digest)?),
                    false => Err(BundleError::Damaged { path, expected: Box::new(*digest), found: Box::new(found) }),
                }
            }
        }
    }
}

/// The member or file that a blob is.
pub(super) fn blob_name(digest: &Digest) -> String {
    format!("blobs/{}/{}", digest.algorithm(), digest.hex())
}

fn index_of(document: &BundleDocument, manifests: Vec<Descriptor>) -> ReleaseIndex {
    let annotations =
        BTreeMap::from([(TITLE.to_owned(), document.title()), (VERSION.to_owned(), document.version.to_string())]);
    ReleaseIndex {
        schema_version: 2,
        media_type: INDEX.to_owned(),
        artifact_type: BUNDLE.to_owned(),
        manifests,
        annotations,
    }
}

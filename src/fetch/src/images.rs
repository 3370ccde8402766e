//! The container images of a manifest: verifies their blobs and lays them out as an OCI image layout (OCI image
//! specification 1.1). Blobs are hashed as they are read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::source::{FileSource, ReadAt};

use crate::{FetchError, Supply, is_complete};
use vmbake_common::content_id::identified;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_manifest::{ContainerImage, Content};
use vmbake_oci::{
    Descriptor, INDEX, Image, Index, InvalidPlatform, MARKER, MARKER_FILE, OciError, REF_NAME, check_layer,
    read_document,
};
use vmbake_pin::prove::{ProveError, Prover, VerifiedProof};
use vmbake_store::registry::pull_pinned;
use vmbake_store::store::{Store, StoreError};

/// The list of images in an archive of `docker save`, as read by `docker load`; Docker up to version 24 ignores
/// `index.json`.
const DOCKER_ARCHIVE_LIST: &str = "manifest.json";
/// Annotation with containerd's name of an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Why container images cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ImagesError {
    #[error("{image}: incomplete in the store")]
    Unusable { image: String, source: Box<OciError> },
    #[error("{image}: invalid platform")]
    Platform { image: String, source: InvalidPlatform },
    #[error("cannot write the index of the container images")]
    Write(#[source] serde_json::Error),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ImagesError {
    fn hint(&self) -> Option<String> {
        let text = "download it with `vmbake fetch` or a bake without --offline";
        matches!(self, Self::Unusable { .. }).then(|| text.to_owned())
    }

    vmbake_common::causes!(Message; Unusable, Platform);
}

/// A file of the layout, with its path there.
pub struct LayoutFile {
    pub source: Arc<dyn ReadAt>,
    pub len: u64,
    /// The image of the file and its pinned digest; `None` for files of the layout itself.
    pub image: Option<(String, Digest)>,
}

/// A container image with verified blobs; created only by [`check`](super::verify::check).
pub struct VerifiedImage {
    /// Its entry in `index.json`: the platform's manifest, since the original index lists platforms whose blobs are
    /// missing.
    entry: Descriptor,
    docker: DockerEntry,
    files: BTreeMap<String, LayoutFile>,
}

/// An entry of `manifest.json` (Docker Image Specification v1.2, "Combined Image JSON + Filesystem Changeset Format"): paths in the layout.
#[derive(serde::Serialize)]
#[serde(rename_all = "PascalCase")]
struct DockerEntry {
    config: String,
    repo_tags: [String; 1],
    /// From bottom to top.
    layers: Vec<String>,
}

/// A layout of verified files; created only by [`lay_out`].
pub struct Layout {
    pub files: BTreeMap<String, LayoutFile>,
}

/// Lays out images.
pub fn lay_out(images: Vec<VerifiedImage>) -> Result<Layout, ImagesError> {
    if images.is_empty() {
        return Err(ImagesError::Message(Message::new(
            "a layer includes container images, but the manifest pins none",
        )));
    }
    let (mut files, mut index, mut docker) = (BTreeMap::new(), Vec::new(), Vec::new());
    for image in images {
        files.extend(image.files);
        index.push(image.entry);
        docker.push(image.docker);
    }
    let mut text = |name: &str, text: String| {
        let (len, source) = (text.len() as u64, Arc::new(text.into_bytes()));
        files.insert(name.to_owned(), LayoutFile { source, len, image: None });
    };
    text(MARKER_FILE, MARKER.to_owned());
    text(INDEX, serde_json::to_string(&Index::of(index)).map_err(ImagesError::Write)?);
    text(DOCKER_ARCHIVE_LIST, serde_json::to_string(&docker).map_err(ImagesError::Write)?);
    Ok(Layout { files })
}

/// Verifies a container image, after pulling it if there is a client; returns its proof, and its length in bytes if it
/// was pulled.
pub(super) fn pull(
    content: &Content,
    image: &ContainerImage,
    supply: &Supply<'_>,
    prover: &Prover<'_>,
) -> Result<(VerifiedProof, Option<u64>), FetchError> {
    let name = || image.image.clone();
    let was_there = is_complete(supply.store, image);
    let pulled = supply.client.map(|client| pull_pinned(client, supply.store, image)).transpose();
    let pulled =
        pulled.map_err(|source| FetchError::Message(message!("{}: cannot pull the image", name()).by(source)))?;
    let proof = prover.image(content, image);
    let proof = proof.map_err(|source| ProveError { name: name(), source: Box::new(source) })?;
    Ok((proof, pulled.filter(|_| !was_there)))
}

/// Verifies every blob of one image.
pub(super) fn check(pinned: &ContainerImage, store: &Store) -> Result<VerifiedImage, ImagesError> {
    let name = || pinned.image.clone();
    let unusable = |source| ImagesError::Unusable { image: name(), source: Box::new(source) };
    let platform = pinned.platform.parse().map_err(|source| ImagesError::Platform { image: name(), source })?;
    // The documents passed to the lookup have been verified.
    let documents = RefCell::new(BTreeMap::new());
    let image = Image::find(pinned.index, &platform, &|blob| {
        let bytes = read_document(blob, open(store, blob)?)?;
        documents.borrow_mut().insert(blob.digest, bytes.clone());
        Ok(bytes)
    });
    let image = image.map_err(unusable)?;
    if image.manifest.digest != pinned.digest {
        let (expected, found) = (Box::new(pinned.digest), Box::new(image.manifest.digest));
        return Err(ImagesError::Message(message!(
            "{}: the index refers to {found}, but the manifest pins {expected}",
            name()
        )));
    }
    let mut files = BTreeMap::new();
    let mut add = |blob: &Descriptor, source: Arc<dyn ReadAt>, len| {
        files.insert(path(blob), LayoutFile { source, len, image: Some((name(), pinned.digest)) });
    };
    for document in [&image.manifest, &image.config] {
        let bytes = documents.borrow_mut().remove(&document.digest).unwrap_or_default();
        let len = bytes.len() as u64;
        add(document, Arc::new(bytes), len);
    }
    for (layer, diff_id) in &image.layers {
        let file = open(store, layer).map_err(unusable)?;
        check_layer(layer, diff_id, &file).map_err(unusable)?;
        let failed = |source: std::io::Error| OciError::Blob { digest: Box::new(layer.digest), source: source.into() };
        let source = FileSource::new(file).map_err(|source| unusable(failed(source)))?;
        add(layer, identified(Arc::new(source), &layer.digest, "file"), layer.size);
    }
    let entry = image.manifest.annotated(&[(CONTAINERD_NAME, &pinned.image), (REF_NAME, &pinned.image)]);
    let docker = DockerEntry {
        config: path(&image.config),
        repo_tags: [pinned.image.clone()],
        layers: image.layers.iter().map(|(layer, _)| path(layer)).collect(),
    };
    Ok(VerifiedImage { entry, docker, files })
}

/// Path of a blob in the layout.
fn path(blob: &Descriptor) -> String {
    format!("blobs/{}/{}", blob.digest.algorithm(), blob.digest.hex())
}

fn open(store: &Store, blob: &Descriptor) -> Result<File, OciError> {
    let digest = || Box::new(blob.digest);
    let found = store.blob(&blob.digest);
    let found = found.map_err(|source: StoreError| OciError::Blob { digest: digest(), source: source.into() })?;
    found.ok_or_else(|| OciError::Absent { digest: digest() })
}

//! The container images of a manifest as an OCI image layout (OCI image specification 1.1): pinned images enter, files
//! leave whose contents are blobs of the store, each hashed on the way.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use vmbake_disk::source::{FileSource, ReadAt};

use crate::content_id::identified;
use crate::digest::Digest;
use crate::fetch::Supply;
use crate::hint::Hint;
use crate::manifest::{ContainerImage, Manifest};
use crate::oci::{
    Descriptor, INDEX, Image, Index, InvalidPlatform, MARKER, MARKER_FILE, OciError, REF_NAME, check_layer,
    read_document,
};
use crate::pin::prove::LinkError;
use crate::progress::{Progress, human_bytes};
use crate::supply::registry::{RegistryError, pull_pinned};
use crate::supply::store::StoreError;

/// Annotation with containerd's name of an image.
const CONTAINERD_NAME: &str = "io.containerd.image.name";

/// Why the images cannot be laid out.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum ImagesError {
    #[error("{image}: cannot be pulled")]
    Pull { image: String, source: RegistryError },
    #[error("{image}: is not proven")]
    Unproven { image: String, source: Box<LinkError> },
    #[error("{image}: not complete in the store")]
    Unusable { image: String, source: Box<OciError> },
    #[error("{image}: its index leads to {found}, the manifest pins {expected}")]
    Pinned { image: String, expected: Box<Digest>, found: Box<Digest> },
    #[error("{image}: bad platform")]
    Platform { image: String, source: InvalidPlatform },
    #[error("cannot write the index of the images")]
    Write(#[source] serde_json::Error),
    #[error("the manifest pins no container image, but a layer wants to bring them")]
    None,
}

impl Hint for ImagesError {
    fn hint(&self) -> Option<String> {
        let text = "`vmbake fetch` downloads container images, and so does a bake that is not --offline";
        matches!(self, Self::Unusable { .. }).then(|| text.to_owned())
    }
}

/// A file of the layout, by its path there.
pub(crate) struct LayoutFile {
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) len: u64,
    /// The image that it belongs to, with the digest that the manifest pins; the files of the layout itself have none.
    pub(crate) image: Option<(String, Digest)>,
}

/// A layout whose every byte is proven; made only by [`lay_out`].
pub struct Layout {
    pub(crate) files: BTreeMap<String, LayoutFile>,
}

/// Lays all images of `manifest` out, pulled where that is needed and possible.
pub fn lay_out(manifest: &Manifest, supply: &Supply<'_>, progress: &Progress) -> Result<Layout, ImagesError> {
    if manifest.content().images.is_empty() {
        return Err(ImagesError::None);
    }
    let mut files = BTreeMap::new();
    let mut index = Vec::new();
    let prover = supply.prover();
    for pinned in &manifest.content().images {
        if let Some(client) = supply.client {
            let pulled = pull_pinned(client, supply.store, pinned)
                .map_err(|source| ImagesError::Pull { image: pinned.image.clone(), source })?;
            progress.step("fetched", &format!("{}, {}", pinned.image, human_bytes(pulled)));
        }
        prover
            .image(manifest.content(), pinned)
            .map_err(|source| ImagesError::Unproven { image: pinned.image.clone(), source: Box::new(source) })?;
        index.push(one(pinned, supply, &mut files)?);
    }
    let mut text = |name: &str, text: String| {
        let (len, source) = (text.len() as u64, Arc::new(text.into_bytes()));
        files.insert(name.to_owned(), LayoutFile { source, len, image: None });
    };
    text(MARKER_FILE, MARKER.to_owned());
    text(INDEX, serde_json::to_string(&Index::of(index)).map_err(ImagesError::Write)?);
    Ok(Layout { files })
}

/// Adds the blobs of one image; returns its entry of `index.json`. That is the platform's manifest and not the index it
/// was found by, which names platforms whose blobs are not there.
fn one(
    pinned: &ContainerImage,
    supply: &Supply<'_>,
    files: &mut BTreeMap<String, LayoutFile>,
) -> Result<Descriptor, ImagesError> {
    let name = || pinned.image.clone();
    let unusable = |source| ImagesError::Unusable { image: name(), source: Box::new(source) };
    let platform = pinned.platform.parse().map_err(|source| ImagesError::Platform { image: name(), source })?;
    // What the look-up was given, it has proven.
    let documents = RefCell::new(BTreeMap::new());
    let image = Image::find(pinned.index, &platform, &|blob| {
        let bytes = read_document(blob, open(supply, blob)?)?;
        documents.borrow_mut().insert(blob.digest, bytes.clone());
        Ok(bytes)
    });
    let image = image.map_err(unusable)?;
    if image.manifest.digest != pinned.digest {
        let (expected, found) = (Box::new(pinned.digest), Box::new(image.manifest.digest));
        return Err(ImagesError::Pinned { image: name(), expected, found });
    }
    let mut add = |blob: &Descriptor, source: Arc<dyn ReadAt>, len| {
        let path = format!("blobs/{}/{}", blob.digest.algorithm(), blob.digest.hex());
        files.insert(path, LayoutFile { source, len, image: Some((name(), pinned.digest)) });
    };
    for document in [&image.manifest, &image.config] {
        let bytes = documents.borrow_mut().remove(&document.digest).unwrap_or_default();
        let len = bytes.len() as u64;
        add(document, Arc::new(bytes), len);
    }
    for (layer, diff_id) in &image.layers {
        let file = open(supply, layer).map_err(unusable)?;
        check_layer(layer, diff_id, &file).map_err(unusable)?;
        let failed = |source: std::io::Error| OciError::Blob { digest: Box::new(layer.digest), source: source.into() };
        let source = FileSource::new(file).map_err(|source| unusable(failed(source)))?;
        add(layer, identified(Arc::new(source), &layer.digest, "file"), layer.size);
    }
    Ok(image.manifest.annotated(&[(CONTAINERD_NAME, &pinned.image), (REF_NAME, &pinned.image)]))
}

fn open(supply: &Supply<'_>, blob: &Descriptor) -> Result<File, OciError> {
    let digest = || Box::new(blob.digest);
    let found = supply.store.blob(&blob.digest);
    let found = found.map_err(|source: StoreError| OciError::Blob { digest: digest(), source: source.into() })?;
    found.ok_or_else(|| OciError::Absent { digest: digest() })
}

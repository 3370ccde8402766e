//! Pulls container images: from a reference to verified blobs in the store.

use crate::http::Client;
use crate::store::Store;
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_manifest::{ContainerImage, Proof};
use vmbake_oci::{
    Descriptor, Image, MAX_DOCUMENT, MediaType, OciError, Platform, Reference, RemoteName, read_document,
};

use super::credentials::Credentials;
use super::error::RegistryError;
use super::repository::{Access, Repository};

/// Maximum size of a layer.
const MAX_LAYER: u64 = 16 << 30;

/// Resolves a reference with a tag and pulls the image for a platform.
pub fn pull_tag(
    client: &Client,
    store: &Store,
    reference: &str,
    platform: &str,
) -> Result<ContainerImage, RegistryError> {
    let Reference { repository, tag } = reference.parse()?;
    let pull = Pull::new(client, store, RemoteName { repository, tag: Some(tag), digest: None });
    let index = pull.resolve()?;
    let image = pull.pull(index, &platform.parse()?)?;
    Ok(ContainerImage {
        image: reference.to_owned(),
        digest: image.manifest.digest,
        size: image.manifest.size,
        platform: platform.to_owned(),
        index,
        proof: Some(Proof::FirstUse),
    })
}

/// Resolves a tag or a digest and pulls the image for a platform; returns the descriptor of its manifest.
pub fn pull_name(
    client: &Client,
    store: &Store,
    name: &RemoteName,
    platform: &str,
) -> Result<Descriptor, RegistryError> {
    let pull = Pull::new(client, store, name.clone());
    let index = pull.resolve()?;
    Ok(pull.pull(index, &platform.parse()?)?.manifest)
}

/// Pulls a pinned image; returns its length in bytes.
pub fn pull_pinned(client: &Client, store: &Store, pinned: &ContainerImage) -> Result<u64, RegistryError> {
    let pull = Pull::new(client, store, pinned.image.parse()?);
    let image = pull.pull(pinned.index, &pinned.platform.parse()?)?;
    if image.manifest.digest != pinned.digest {
        let (digest, found) = (Box::new(pinned.digest), Box::new(image.manifest.digest));
        return Err(pull.refused(OciError::Digest { digest, found }));
    }
    Ok(image.blobs().map(|blob| blob.size).sum())
}

/// The blobs of a pinned image, as far as the store has the documents that list them.
pub fn blobs(store: &Store, pinned: &ContainerImage) -> Vec<Digest> {
    let Ok(platform) = pinned.platform.parse() else { return Vec::new() };
    let read = |blob: &Descriptor| match store.blob(&blob.digest) {
        Ok(Some(file)) => read_document(blob, file),
        Ok(None) => Err(OciError::Absent { digest: Box::new(blob.digest) }),
        Err(source) => Err(OciError::Blob { digest: Box::new(blob.digest), source: source.into() }),
    };
    let image = Image::find(pinned.index, &platform, &read);
    image.map(|image| image.blobs().map(|blob| blob.digest).collect()).unwrap_or_default()
}

/// An image of a registry and its target store.
struct Pull<'a> {
    repository: Repository,
    store: &'a Store,
    name: RemoteName,
}

impl<'a> Pull<'a> {
    fn new(client: &Client, store: &'a Store, name: RemoteName) -> Self {
        let repository = Repository::new(client, &Credentials::of_user(), name.repository.clone(), Access::Pull);
        Self { repository, store, name }
    }

    fn refused(&self, source: OciError) -> RegistryError {
        RegistryError::Message(message!("{}: not a usable image", self.name).by(source))
    }

    /// Resolves the digest, or else the tag, and stores the document.
    fn resolve(&self) -> Result<Digest, RegistryError> {
        let tag = self.name.tag.as_deref().unwrap_or("latest");
        let wanted = self.name.digest.map_or_else(|| tag.to_owned(), |digest| digest.to_string());
        let found = self.repository.manifest(&wanted)?;
        Ok(self.store.insert(&found.bytes)?)
    }

    /// Pulls the image for a platform from the index, and lists it in the store's layout.
    fn pull(&self, index: Digest, platform: &Platform) -> Result<Image, RegistryError> {
        let read = |blob: &Descriptor| {
            // A config is a blob; an index or a manifest is not.
            let is_blob = blob.media_type == MediaType::Config;
            let document = match is_blob {
                true => self.repository.ensure_blob(self.store, blob, MAX_DOCUMENT),
                false => self.repository.ensure_manifest(self.store, blob),
            };
            let failed =
                |source: RegistryError| OciError::Blob { digest: Box::new(blob.digest), source: source.into() };
            read_document(blob, document.map_err(failed)?.file)
        };
        let image = Image::find(index, platform, &read).map_err(|source| self.refused(source))?;
        for (layer, _) in &image.layers {
            self.repository.ensure_blob(self.store, layer, MAX_LAYER)?;
        }
        self.store.list_image(&self.name.to_string(), &image.root)?;
        Ok(image)
    }
}

//! OCI images: index, platform manifest, config and layers by their digests (OCI image specification 1.1).
//!
//! Given a digest, a platform and a function that reads blobs, returns an [`Image`] with verified documents. The layers
//! are listed but not read: [`check_layer`] verifies each. Docker's manifest lists and manifests (image manifest
//! version 2, schema 2) are supported, too.
//!
//! Stricter than the specification: a document that is both an index and a manifest is refused, and so are an index
//! with two entries for the platform and a layer of an unknown type.

use std::io::Read;

use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;

pub use document::ACCEPT;
pub use document::{Descriptor, MediaType};
pub use layer::check_layer;
pub use layout::{INDEX, Index, MARKER, MARKER_FILE, REF_NAME};
pub use platform::{InvalidPlatform, Platform};
pub use reference::{InvalidReference, Reference, RemoteName, RepositoryName, is_tag};

use document::{Config, Document};

mod document;
mod layer;
mod layout;
mod platform;
mod reference;

/// Maximum size of a document in bytes; registries need not store larger ones (distribution specification 1.1).
pub const MAX_DOCUMENT: u64 = 4 << 20;
/// Maximum nesting of indexes.
const MAX_DEPTH: usize = 4;

/// Why an image was rejected.
#[derive(Debug, thiserror::Error)]
pub enum OciError {
    #[error("{digest}: cannot read the blob")]
    Blob { digest: Box<Digest>, source: Box<dyn std::error::Error + Send + Sync> },
    #[error("{digest}: missing")]
    Absent { digest: Box<Digest> },
    #[error("{digest}: digest mismatch: found {found}")]
    Digest {
        /// The expected digest.
        digest: Box<Digest>,
        found: Box<Digest>,
    },
    #[error("{digest}: {found} bytes, but its descriptor states {expected}")]
    Size {
        digest: Box<Digest>,
        /// The length stated in its descriptor.
        expected: u64,
        found: u64,
    },
    #[error("{digest}: {len} bytes, more than the limit of {MAX_DOCUMENT} for a document")]
    TooLarge {
        digest: Box<Digest>,
        /// Its length in bytes.
        len: u64,
    },
    #[error("{digest}: invalid document")]
    Syntax { digest: Box<Digest>, source: serde_json::Error },
    #[error("{digest}: {reason}")]
    Invalid { digest: Box<Digest>, reason: String },
    #[error("{digest}: unsupported media type {found:?}")]
    MediaType { digest: Box<Digest>, found: String },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for OciError {
    vmbake_common::causes!(Message);
}

/// The image of one platform; created only by [`Image::find`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The requested document: an index, or the manifest itself.
    pub root: Descriptor,
    /// The indexes that lead to it, the outermost one first.
    pub indexes: Vec<Descriptor>,
    pub manifest: Descriptor,
    pub config: Descriptor,
    /// Its layers from bottom to top, each with the digest of its uncompressed content.
    pub layers: Vec<(Descriptor, Digest)>,
}

/// Reads the blob of a descriptor; the length of the root is unknown and given as 0.
pub type Reader<'a> = dyn Fn(&Descriptor) -> Result<Vec<u8>, OciError> + 'a;

impl Image {
    /// Resolves `root` to the image for a platform.
    pub fn find(root: Digest, platform: &Platform, read: &Reader<'_>) -> Result<Self, OciError> {
        let mut next = Descriptor::unknown(root);
        let mut indexes = Vec::new();
        for _ in 0..MAX_DEPTH {
            let bytes = verified(&next, read)?;
            let document = Document::parse(&next, &bytes)?;
            next.size = bytes.len() as u64;
            next.media_type = document.media_type();
            match document {
                Document::Index(index) => {
                    let chosen = platform.choose(&next.digest, index.manifests)?;
                    indexes.push(std::mem::replace(&mut next, chosen));
                }
                Document::Manifest(manifest) => {
                    let layers = config_layers(&manifest.config, manifest.layers, platform, read)?;
                    let root = indexes.first().unwrap_or(&next).clone();
                    return Ok(Self { root, indexes, manifest: next, config: manifest.config, layers });
                }
            }
        }
        let reason = format!("more than {MAX_DEPTH} nested indexes");
        Err(OciError::Invalid { digest: Box::new(root), reason })
    }

    pub fn blobs(&self) -> impl Iterator<Item = &Descriptor> {
        let documents = self.indexes.iter().chain([&self.manifest, &self.config]);
        documents.chain(self.layers.iter().map(|(layer, _)| layer))
    }
}

/// The content of a document, verified against its descriptor.
fn verified(descriptor: &Descriptor, read: &Reader<'_>) -> Result<Vec<u8>, OciError> {
    let digest = || Box::new(descriptor.digest);
    if descriptor.size > MAX_DOCUMENT {
        return Err(OciError::TooLarge { digest: digest(), len: descriptor.size });
    }
    let bytes = read(descriptor)?;
    let len = bytes.len() as u64;
    if len > MAX_DOCUMENT {
        return Err(OciError::TooLarge { digest: digest(), len });
    }
    if descriptor.size != 0 && descriptor.size != len {
        return Err(OciError::Size { digest: digest(), expected: descriptor.size, found: len });
    }
    let mut hasher = descriptor.digest.hasher();
    hasher.update(&bytes);
    match hasher.finish() {
        found if found == descriptor.digest => Ok(bytes),
        found => Err(OciError::Digest { digest: digest(), found: Box::new(found) }),
    }
}

/// Reads the config and pairs its digests of uncompressed layers with the manifest's layers.
fn config_layers(
    config: &Descriptor,
    layers: Vec<Descriptor>,
    platform: &Platform,
    read: &Reader<'_>,
) -> Result<Vec<(Descriptor, Digest)>, OciError> {
    let digest = || Box::new(config.digest);
    if config.media_type != MediaType::Config {
        return Err(OciError::MediaType { digest: digest(), found: config.media_type.to_string() });
    }
    let parsed: Config = serde_json::from_slice(&verified(config, read)?)
        .map_err(|source| OciError::Syntax { digest: digest(), source })?;
    if !platform.is(&parsed.os, &parsed.architecture, parsed.variant.as_deref()) {
        let found = format!("{}/{}", parsed.os, parsed.architecture);
        return Err(OciError::Message(message!("{}: image for {found}, expected {platform}", digest())));
    }
    let diff_ids = parsed.rootfs.diff_ids;
    if diff_ids.len() != layers.len() {
        let reason = format!("{} layers, but the manifest has {}", diff_ids.len(), layers.len());
        return Err(OciError::Invalid { digest: digest(), reason });
    }
    if let Some(layer) = layers.iter().find(|layer| !matches!(layer.media_type, MediaType::Layer(_))) {
        let found = layer.media_type.to_string();
        return Err(OciError::MediaType { digest: Box::new(layer.digest), found });
    }
    Ok(layers.into_iter().zip(diff_ids).collect())
}

/// Reads a document, which must not exceed the maximum size.
pub fn read_document(descriptor: &Descriptor, input: impl Read) -> Result<Vec<u8>, OciError> {
    let mut bytes = Vec::new();
    match input.take(MAX_DOCUMENT + 1).read_to_end(&mut bytes) {
        Ok(_) => Ok(bytes),
        Err(source) => Err(OciError::Blob { digest: Box::new(descriptor.digest), source: source.into() }),
    }
}

//! The documents of an image: index, manifest, config.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::OciError;
use vmbake_common::digest::Digest;

const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
const DOCKER_LIST: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
const DOCKER_LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar";

/// Media types requested from a registry.
pub const ACCEPT: [&str; 4] = [INDEX, DOCKER_LIST, MANIFEST, DOCKER_MANIFEST];

/// The specification that defines a media type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// The OCI image specification.
    Oci,
    /// Docker's own, older than OCI.
    Docker,
}

/// Compression of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LayerType {
    /// Uncompressed.
    Tar,
    Gzip,
    Zstd,
}

/// The media type of a descriptor; unknown ones are preserved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum MediaType {
    /// An index or a manifest list.
    Index(Flavour),
    Manifest(Flavour),
    Config,
    Layer(LayerType),
    /// Something else.
    Other(String),
}

impl From<String> for MediaType {
    fn from(text: String) -> Self {
        let suffix = text.strip_prefix(LAYER).or_else(|| text.strip_prefix(DOCKER_LAYER));
        match (text.as_str(), suffix) {
            (INDEX, _) => Self::Index(Flavour::Oci),
            (DOCKER_LIST, _) => Self::Index(Flavour::Docker),
            (MANIFEST, _) => Self::Manifest(Flavour::Oci),
            (DOCKER_MANIFEST, _) => Self::Manifest(Flavour::Docker),
            (CONFIG | DOCKER_CONFIG, _) => Self::Config,
            (_, Some("")) => Self::Layer(LayerType::Tar),
            (_, Some("+gzip" | ".gzip")) => Self::Layer(LayerType::Gzip),
            (_, Some("+zstd")) => Self::Layer(LayerType::Zstd),
            _ => Self::Other(text),
        }
    }
}

impl From<MediaType> for String {
    fn from(media_type: MediaType) -> Self {
        media_type.to_string()
    }
}

impl fmt::Display for MediaType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Index(Flavour::Oci) => INDEX,
            Self::Index(Flavour::Docker) => DOCKER_LIST,
            Self::Manifest(Flavour::Oci) => MANIFEST,
            Self::Manifest(Flavour::Docker) => DOCKER_MANIFEST,
            Self::Config => CONFIG,
            Self::Layer(LayerType::Tar) => LAYER,
            Self::Layer(LayerType::Gzip) => "application/vnd.oci.image.layer.v1.tar+gzip",
            Self::Layer(LayerType::Zstd) => "application/vnd.oci.image.layer.v1.tar+zstd",
            Self::Other(text) => text,
        })
    }
}

/// A reference to a blob. The fields are sorted, as they are in the output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The artifact type of a manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact_type: Option<String>,
    pub digest: Digest,
    pub media_type: MediaType,
    /// The platform of an image, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) platform: Option<PlatformEntry>,
    /// Its length in bytes.
    pub size: u64,
}

/// The platform of an image in an index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PlatformEntry {
    pub(super) os: String,
    pub(super) architecture: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) variant: Option<String>,
}

impl Descriptor {
    /// Adds annotations to the descriptor of an image.
    pub fn annotated(&self, annotations: &[(&str, &str)]) -> Self {
        let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Self { annotations, platform: None, ..self.clone() }
    }

    /// Sets the platform.
    #[must_use]
    pub fn of_platform(self, os: &str, architecture: &str) -> Self {
        let platform = PlatformEntry { os: os.to_owned(), architecture: architecture.to_owned(), variant: None };
        Self { platform: Some(platform), ..self }
    }

    /// Operating system and architecture, in an index.
    pub fn platform(&self) -> Option<(&str, &str)> {
        self.platform.as_ref().map(|platform| (platform.os.as_str(), platform.architecture.as_str()))
    }

    /// The descriptor of a document of which only the digest is known.
    pub fn unknown(digest: Digest) -> Self {
        let media_type = MediaType::Other(String::new());
        Self { media_type, digest, size: 0, platform: None, artifact_type: None, annotations: BTreeMap::new() }
    }

    pub fn new(media_type: &str, digest: Digest, size: u64) -> Self {
        Self { media_type: media_type.to_owned().into(), size, ..Self::unknown(digest) }
    }
}

/// The fields of a config that identify the image.
#[derive(Debug, Deserialize)]
pub(super) struct Config {
    pub(super) os: String,
    pub(super) architecture: String,
    #[serde(default)]
    pub(super) variant: Option<String>,
    pub(super) rootfs: RootFs,
}

#[derive(Debug, Deserialize)]
pub(super) struct RootFs {
    pub(super) diff_ids: Vec<Digest>,
}

pub(super) enum Document {
    Index(Index),
    Manifest(Box<Manifest>),
}

pub struct Index {
    flavour: Flavour,
    pub manifests: Vec<Descriptor>,
}

pub(super) struct Manifest {
    flavour: Flavour,
    pub(super) config: Descriptor,
    pub(super) layers: Vec<Descriptor>,
}

/// The fields of both types of document, so that one that claims to be both is detected.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Either {
    schema_version: u32,
    #[serde(default)]
    media_type: Option<MediaType>,
    #[serde(default)]
    manifests: Option<Vec<Descriptor>>,
    #[serde(default)]
    config: Option<Descriptor>,
    #[serde(default)]
    layers: Option<Vec<Descriptor>>,
}

impl Document {
    /// Parses an index or a manifest, whose type must match its descriptor.
    pub(super) fn parse(descriptor: &Descriptor, bytes: &[u8]) -> Result<Self, OciError> {
        let digest = || Box::new(descriptor.digest);
        let either: Either =
            serde_json::from_slice(bytes).map_err(|source| OciError::Syntax { digest: digest(), source })?;
        let invalid = |reason: &str| OciError::Invalid { digest: digest(), reason: reason.to_owned() };
        if either.schema_version != 2 {
            return Err(invalid("schemaVersion is not 2"));
        }
        let expected = match &descriptor.media_type {
            MediaType::Other(text) if text.is_empty() => either.media_type.clone(),
            stated => Some(stated.clone()),
        };
        if either.media_type.is_some() && either.media_type != expected {
            return Err(invalid("mediaType differs from that in its descriptor"));
        }
        match (either.manifests, either.config, either.layers, expected) {
            (Some(manifests), None, None, Some(MediaType::Index(flavour))) => {
                Ok(Self::Index(Index { flavour, manifests }))
            }
            (Some(manifests), None, None, None) => Ok(Self::Index(Index { flavour: Flavour::Oci, manifests })),
            (None, Some(config), Some(layers), Some(MediaType::Manifest(flavour))) => {
                Ok(Self::Manifest(Box::new(Manifest { flavour, config, layers })))
            }
            (None, Some(config), Some(layers), None) => {
                Ok(Self::Manifest(Box::new(Manifest { flavour: Flavour::Oci, config, layers })))
            }
            (_, _, _, Some(other @ MediaType::Other(_))) => {
                Err(OciError::MediaType { digest: digest(), found: other.to_string() })
            }
            _ => Err(invalid("neither an index nor a manifest")),
        }
    }

    pub(super) fn media_type(&self) -> MediaType {
        match self {
            Self::Index(index) => MediaType::Index(index.flavour),
            Self::Manifest(manifest) => MediaType::Manifest(manifest.flavour),
        }
    }
}

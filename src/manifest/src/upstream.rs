//! Definitions of upstreams: URL of an artifact, selection of its version, and required proof.
//!
//! Used in `sources.json` and in `downloads` of a layer, and recorded in the manifest.

mod faults;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmbake_common::digest::Digest;

pub use template::{InvalidTemplate, Template, Undefined};

/// The file type of an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArtifactType {
    /// A single program.
    #[serde(rename = "binary")]
    Binary,
    /// A Debian package.
    #[serde(rename = "deb")]
    Deb,
    /// A tar archive, compressed with gzip, xz, Zstandard or bzip2.
    #[serde(rename = "tar.gz")]
    TarGz,
    /// A tar archive that is installed as a file, such as a container image. As a base: an archive of a root file system,
    /// which may be compressed.
    #[serde(rename = "tar")]
    Tar,
    #[serde(rename = "zip")]
    Zip,
    /// A single file, compressed with gzip, xz, Zstandard or bzip2.
    #[serde(rename = "compressed")]
    Compressed,
    /// A disk image.
    #[serde(rename = "qcow2")]
    Qcow2,
    /// A container image of a registry. Only a base has this type.
    #[serde(rename = "oci")]
    Oci,
}

impl ArtifactType {
    /// The name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Deb => "deb",
            Self::TarGz => "tar.gz",
            Self::Tar => "tar",
            Self::Zip => "zip",
            Self::Compressed => "compressed",
            Self::Qcow2 => "qcow2",
            Self::Oci => "oci",
        }
    }
}

/// An artifact's URL, version and required proof.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// File type.
    #[serde(rename = "type")]
    pub kind: ArtifactType,
    pub version: VersionSource,
    /// URL; absent for packages of an archive, whose index contains it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Template>,
    /// URL of a checksum file that lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Template>,
    /// The required proof.
    pub proof: Demand,
    /// The expected program, if the proof does not identify it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// Build information that Go's linker records in a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Import path of its main package.
    pub package: String,
    /// Version of its main module; absent if releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Template>,
}

/// How the newest version is determined.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum VersionSource {
    /// The newest release of a repository on GitHub, `owner/name`; a leading `v` of its tag is removed.
    Github(String),
    /// A value in a JSON document.
    Json {
        /// URL of the document.
        url: Template,
        /// JSON pointer to the value (RFC 6901).
        pointer: String,
    },
    /// The text between two markers in a document.
    Text {
        /// URL of the document.
        url: Template,
        /// The text before the version; absent means the start.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        after: String,
        /// The text after the version; absent means the end of the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    },
    /// The index of an archive.
    Apt {
        archive: String,
        /// Name of the package.
        package: String,
    },
    /// The version of another artifact of the same manifest.
    SameAs(String),
    /// A fixed version.
    Pinned(String),
}

/// The minimum required proof of a digest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Demand {
    /// None: the digest of the first download is pinned.
    FirstUse,
    /// A checksum file from the same site.
    Checksum,
    /// The digest stated here, in a layer.
    Stated(Digest),
    /// The signed index of the archive.
    Apt,
    /// A detached OpenPGP signature over the file.
    Openpgp {
        /// URL of the signature.
        signature: Template,
        /// File of `trust/` with the accepted keys.
        keyring: String,
    },
    /// A sigstore bundle by this signer.
    Sigstore {
        /// URL of the bundle, or of several, one per line.
        bundle: Template,
        /// Subject alternative name of the certificate.
        identity: Template,
        /// Issuer of that identity.
        issuer: String,
        /// Predicate type of an attestation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        predicate_type: Option<String>,
    },
    /// `.sig` and `.cert` by this signer.
    Cosign {
        /// URL of the signature.
        signature: Template,
        /// URL of the certificate.
        certificate: Template,
        /// Subject alternative name of the certificate.
        identity: Template,
        /// Issuer of that identity.
        issuer: String,
        /// URL of the transparency log.
        log: String,
        /// Whether to accept a signature without a log entry.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        without_log: bool,
    },
}

/// Upstreams requested by a layer, as recorded in the manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct UpstreamRequest {
    /// Artifacts of the manifest by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub downloads: BTreeMap<String, Upstream>,
    /// Container images: references with their tags.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub container_images: BTreeSet<String>,
}

impl UpstreamRequest {
    /// Whether the request is empty.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Upstream {
    /// Adds the values for a version to `values`: the version, the artifact's URL, and its file name.
    pub fn values(
        &self,
        mut values: BTreeMap<String, String>,
        version: &str,
    ) -> Result<BTreeMap<String, String>, Undefined> {
        values.insert("version".to_owned(), version.to_owned());
        let url = self.url.as_ref().map(|url| url.render(&values)).transpose()?.unwrap_or_default();
        let file = url.rsplit('/').next().unwrap_or_default().to_owned();
        values.extend([("url".to_owned(), url), ("file".to_owned(), file)]);
        Ok(values)
    }
}

impl VersionSource {
    /// The artifact whose version must be resolved first.
    pub fn needs(&self) -> Option<&str> {
        match self {
            Self::SameAs(name) => Some(name),
            Self::Json { url, .. } | Self::Text { url, .. } => url.versions_of().next(),
            _ => None,
        }
    }
}

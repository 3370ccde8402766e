//! What is said of an upstream: where an artifact is, which version is taken, and what must prove it.
//!
//! It stands in `sources.json`, in `downloads` of a layer, and whole in the manifest that was made for such a layer.

mod faults;
mod template;

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmbake_common::digest::Digest;

pub use template::{InvalidTemplate, Template, Undefined};

/// How an artifact is packed.
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
    /// A tar archive that is installed as it is, such as a container image.
    #[serde(rename = "tar")]
    Tar,
    /// A zip file.
    #[serde(rename = "zip")]
    Zip,
    /// A single file, compressed with one of the same.
    #[serde(rename = "compressed")]
    Compressed,
    /// A disk image.
    #[serde(rename = "qcow2")]
    Qcow2,
}

impl ArtifactType {
    /// As manifests write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Binary => "binary",
            Self::Deb => "deb",
            Self::TarGz => "tar.gz",
            Self::Tar => "tar",
            Self::Zip => "zip",
            Self::Compressed => "compressed",
            Self::Qcow2 => "qcow2",
        }
    }
}

/// Where an artifact is, which version is taken, and what proves it.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// How it is packed.
    #[serde(rename = "type")]
    pub kind: ArtifactType,
    /// Where the version comes from.
    pub version: VersionSource,
    /// Its address; absent for packages of an archive, whose index tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<Template>,
    /// Address of a checksum file that lists it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksums: Option<Template>,
    /// The proof that is demanded.
    pub proof: Demand,
    /// The program that it must be, where the proof does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// What Go's linker noted in a program.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Import path of its main package.
    pub package: String,
    /// Version of the module that the package is of; absent where releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<Template>,
}

/// Where the newest version comes from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum VersionSource {
    /// The newest release of a repository on GitHub, `owner/name`; a leading `v` of its tag is dropped.
    Github(String),
    /// A value in a JSON document.
    Json {
        /// Address of the document.
        url: Template,
        /// Where the value is (RFC 6901).
        pointer: String,
    },
    /// What stands between two texts in a document.
    Text {
        /// Address of the document.
        url: Template,
        /// What stands before the version; absent means the beginning.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        after: String,
        /// What stands behind it; absent means the end of the line.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        before: Option<String>,
    },
    /// The index of an archive.
    Apt {
        /// Name of the archive.
        archive: String,
        /// Name of the package there.
        package: String,
    },
    /// The version that another artifact of the same manifest has.
    SameAs(String),
    /// This version, until somebody changes it here.
    Pinned(String),
}

/// The least that must be proven of a digest.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Demand {
    /// Nothing: the digest of the first download is kept.
    FirstUse,
    /// A checksum file from beside the artifact.
    Checksum,
    /// The digest that stands here, in a layer.
    Stated(Digest),
    /// The signed index of the archive.
    Apt,
    /// A detached OpenPGP signature over the file.
    Openpgp {
        /// Address of the signature.
        signature: Template,
        /// File of `trust/` with the keys that may sign it.
        keyring: String,
    },
    /// A sigstore bundle of that signer.
    Sigstore {
        /// Address of the bundle, or of several, one a line.
        bundle: Template,
        /// Subject alternative name of the certificate.
        identity: Template,
        /// Issuer of that identity.
        issuer: String,
        /// Type of the predicate of an attestation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        predicate_type: Option<String>,
    },
    /// `.sig` and `.cert` of that signer.
    Cosign {
        /// Address of the signature.
        signature: Template,
        /// Address of the certificate.
        certificate: Template,
        /// Subject alternative name of the certificate.
        identity: Template,
        /// Issuer of that identity.
        issuer: String,
        /// Address of the transparency log.
        log: String,
        /// Whether a signature that is not in the log is enough.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        without_log: bool,
    },
}

/// What a layer asks of upstreams itself, as the manifest that was made for it records it.
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
    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Upstream {
    /// `values` with those of one version: itself, the artifact's address, and the name at the end of that.
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
    /// The artifact whose version must be known first.
    pub fn needs(&self) -> Option<&str> {
        match self {
            Self::SameAs(name) => Some(name),
            Self::Json { url, .. } | Self::Text { url, .. } => url.versions_of().next(),
            _ => None,
        }
    }
}

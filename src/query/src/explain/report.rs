//! The origin of a path as printed by `--json`, and its rendering as text.

use std::fmt;

use serde::Serialize;

use super::packages::InstalledPackage;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;
use vmbake_manifest::Proof;

/// Maximum number of packages in the text; hundreds own `/usr/bin`.
const MAX_NAMES: usize = 3;

/// Origin of a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The requested path.
    pub path: String,
    /// Symbolic links on the way.
    pub links: Vec<Link>,
    /// The resolved path, to which all other fields refer.
    pub resolved: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Permissions, octal.
    pub mode: String,
    pub uid: u32,
    pub gid: u32,
    pub owner: Option<String>,
    pub group: Option<String>,
    /// Length in bytes of a regular file.
    pub size: Option<u64>,
    /// Whether there is a record of origins.
    pub recorded: bool,
    /// The base image, if it has the path and the manifest pins it.
    pub base: Option<BaseReport>,
    /// The last layer that wrote it.
    pub layer: Option<LayerReport>,
    /// The bundle of the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleReport>,
    /// Its artifact.
    pub artifact: Option<ArtifactReport>,
    /// Result of comparing its content with the artifact, if it is one.
    pub content: Option<ContentOrigin>,
    /// The artifact that the base image already had, if the path belongs to that package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptReport>,
    pub packages: Vec<InstalledPackage>,
}

/// A symbolic link on the way, with its origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Path of the link.
    pub path: String,
    /// Its target.
    pub target: String,
    /// The layer that created it; absent if from the base image.
    pub layer: Option<String>,
    /// Its artifact.
    pub artifact: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BaseReport {
    pub version: String,
    /// Download URL.
    pub url: String,
    pub digest: Digest,
    /// Proof of the digest.
    pub proof: Option<Proof>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerReport {
    pub name: String,
    pub version: String,
    /// Digest of its `layer.json` and files.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// `PUBLISHER.NAME`.
    pub name: String,
    pub version: String,
    pub digest: Digest,
    /// Publisher.
    pub publisher: String,
    /// Signer: the digest of a key, or an identity with its issuer.
    pub signer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArtifactReport {
    pub name: String,
    pub digest: Digest,
    /// Version, if in the manifest.
    pub version: Option<String>,
    /// Download URL.
    pub url: Option<String>,
    /// Proof of the digest.
    pub proof: Option<Proof>,
    /// Whether it is built into vmbake, so that no manifest pins it.
    pub own: bool,
}

/// A pinned package that the base image already had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptReport {
    pub name: String,
    pub layer: String,
    pub version: String,
}

/// Result of comparing a file with its artifact. Different content is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentOrigin {
    /// The digests are equal.
    Matches,
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "path      {}", self.path)?;
        self.links.iter().try_for_each(|link| write!(f, "{link}"))?;
        if self.resolved != self.path {
            writeln!(f, "resolved  {}", self.resolved)?;
        }
        let name = |name: &Option<String>| name.clone().unwrap_or_else(|| "?".to_owned());
        let (owner, group) = (name(&self.owner), name(&self.group));
        write!(f, "type      {}, {} {owner}:{group} ({}:{})", self.kind, self.mode, self.uid, self.gid)?;
        writeln!(f, "{}", self.size.map_or_else(String::new, |size| format!(", {}", human_bytes(size))))?;
        match (&self.layer, &self.base) {
            (Some(LayerReport { name, version, digest }), _) => {
                writeln!(f, "layer     {} {}, {digest}", escape::line(name), escape::line(version))?;
            }
            (None, Some(base)) => write!(f, "base      {base}")?,
            (None, None) if self.recorded => writeln!(f, "base      the base image, which the manifest does not pin")?,
            (None, None) => {
                writeln!(f, "layer     unknown: no record of origins in the image")?;
            }
        }
        if let Some(bundle) = &self.bundle {
            write!(f, "{bundle}")?;
        }
        if let Some(artifact) = &self.artifact {
            write!(f, "{artifact}")?;
        }
        if let Some(KeptReport { name, layer, version }) = &self.kept {
            let [name, layer, version] = [name, layer, version].map(escape::line);
            writeln!(
                f,
                "kept      artifact {name} {version}: already in the base image, not installed by layer {layer}"
            )?;
        }
        if let Some(ContentOrigin::Matches) = self.content {
            writeln!(f, "content   matches the pinned digest")?;
        }
        write_packages(f, &self.packages)
    }
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "link      {} -> {}", self.path, self.target)?;
        let (layer, artifact) = (self.layer.as_deref().map(escape::line), self.artifact.as_deref().map(escape::line));
        match (layer, artifact) {
            (Some(layer), Some(artifact)) => writeln!(f, ", layer {layer}, artifact {artifact}"),
            (Some(layer), None) => writeln!(f, ", layer {layer}"),
            (None, _) => writeln!(f),
        }
    }
}

impl fmt::Display for BaseReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "base image {}", escape::line(&self.version))?;
        write_source(f, Some(&self.url), self.digest)?;
        write_proof(f, self.proof.as_ref())
    }
}

impl fmt::Display for BundleReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [name, version, publisher, signer] =
            [&self.name, &self.version, &self.publisher, &self.signer].map(escape::line);
        writeln!(f, "bundle    {name} {version}")?;
        write_source(f, None, self.digest)?;
        writeln!(f, "  by      publisher {publisher}")?;
        writeln!(f, "  signed  by {signer}")
    }
}

impl fmt::Display for ArtifactReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_ref().map_or_else(String::new, |version| format!(" {}", escape::line(version)));
        writeln!(f, "artifact  {}{version}", escape::line(&self.name))?;
        write_source(f, self.url.as_deref(), self.digest)?;
        if self.own {
            return writeln!(f, "  proof   none: built into the vmbake that baked the image");
        }
        write_proof(f, self.proof.as_ref())
    }
}

fn write_source(f: &mut fmt::Formatter<'_>, url: Option<&str>, digest: Digest) -> fmt::Result {
    if let Some(url) = url {
        writeln!(f, "  from    {}", escape::line(url))?;
    }
    writeln!(f, "  digest  {digest}")
}

fn write_proof(f: &mut fmt::Formatter<'_>, proof: Option<&Proof>) -> fmt::Result {
    match proof {
        Some(proof) => writeln!(f, "  proof   {}", escape::line(proof.to_string())),
        None => writeln!(f, "  proof   unknown: not in the manifest of the image"),
    }
}

fn write_packages(f: &mut fmt::Formatter<'_>, packages: &[InstalledPackage]) -> fmt::Result {
    for package in packages.iter().take(MAX_NAMES) {
        let version = package.version.as_deref().unwrap_or("of unknown version");
        writeln!(
            f,
            "package   {} {} ({})",
            escape::line(&package.name),
            escape::line(version),
            escape::line(&package.arch)
        )?;
    }
    match packages.len() {
        0 => writeln!(f, "package   none"),
        len if len > MAX_NAMES => writeln!(f, "          and {} more", len - MAX_NAMES),
        _ => Ok(()),
    }
}

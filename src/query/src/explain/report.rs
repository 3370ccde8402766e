//! What is said about a path: what `--json` prints as it stands, and its rendering for people.

use std::fmt;

use serde::Serialize;

use super::packages::InstalledPackage;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::progress::human_bytes;
use vmbake_manifest::Proof;

/// Most packages that people are shown by name: hundreds own `/usr/bin`.
const MAX_NAMES: usize = 3;

/// Where a path came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The path that was asked for.
    pub path: String,
    /// The symbolic links that it leads through.
    pub links: Vec<Link>,
    /// Where they arrive; everything below is about that.
    pub resolved: String,
    /// Its type.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// Permissions, octal.
    pub mode: String,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Name of the owner in the image.
    pub owner: Option<String>,
    /// Name of the group in the image.
    pub group: Option<String>,
    /// Length in bytes of a regular file.
    pub size: Option<u64>,
    /// Whether there is a record of origins.
    pub recorded: bool,
    /// The base image, where the path came with it and the manifest pins it.
    pub base: Option<BaseReport>,
    /// The layer that wrote it last.
    pub layer: Option<LayerReport>,
    /// The bundle that brought the layer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bundle: Option<BundleReport>,
    /// The artifact that it came from.
    pub artifact: Option<ArtifactReport>,
    /// How its content compares with the artifact, where it is one.
    pub content: Option<ContentOrigin>,
    /// The artifact of the manifest that the base had already, where the path is of that package.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept: Option<KeptReport>,
    pub packages: Vec<InstalledPackage>,
}

/// A symbolic link on the way, with its own origin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Link {
    /// The link.
    pub path: String,
    /// What it says.
    pub target: String,
    /// The layer that made it; the base's where none did.
    pub layer: Option<String>,
    /// The artifact that it came from.
    pub artifact: Option<String>,
}

/// The base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BaseReport {
    pub version: String,
    /// Where it can be fetched.
    pub url: String,
    /// Digest of the file.
    pub digest: Digest,
    /// Who answers for that.
    pub proof: Option<Proof>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LayerReport {
    pub name: String,
    pub version: String,
    /// Digest of its description and files.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BundleReport {
    /// `PUBLISHER.NAME`.
    pub name: String,
    pub version: String,
    /// Digest of its index.
    pub digest: Digest,
    /// Who publishes it.
    pub publisher: String,
    /// Who has signed it: the digest of a key, or an identity with its issuer.
    pub signer: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArtifactReport {
    pub name: String,
    /// Digest of its file.
    pub digest: Digest,
    /// Its version, where the manifest has it.
    pub version: Option<String>,
    /// Where it can be fetched.
    pub url: Option<String>,
    /// Who answers for the digest.
    pub proof: Option<Proof>,
    /// Whether vmbake brought it itself, so that no manifest pins it.
    pub own: bool,
}

/// A package of the manifest that the base had in the pinned version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeptReport {
    /// Name of the artifact.
    pub name: String,
    /// The layer that would have installed it.
    pub layer: String,
    pub version: String,
}

/// How the content of a file compares with its artifact. Another content is an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ContentOrigin {
    /// It has the pinned digest.
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
                writeln!(f, "layer     unknown: there is no record of origins in the image")?;
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
            writeln!(f, "kept      artifact {name} {version}: the base had it, layer {layer} brought nothing")?;
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
            return writeln!(f, "  proof   none: part of the vmbake that baked the image");
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
        None => writeln!(f, "  proof   unknown: the manifest inside the image has none"),
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

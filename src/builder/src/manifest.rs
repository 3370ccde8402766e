//! The pinned manifest of an image: which artifacts it is made of, with their digests.
//!
//! What enters is the text of `manifests/<kind>.<os-name>.<arch>.json`; what leaves is a [`Manifest`] whose digests
//! are well formed. Unknown keys are errors, so that a misspelt one is not silently ignored.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::hint::Hint;
use crate::spelling::of_path;
pub use proof::{Document, Form, Proof, Signed};

mod form;
mod proof;
mod stub;

/// Largest manifest that is read, in bytes: the largest known ones have 20 KB.
const MAX_LEN: u64 = 4 << 20;

/// Why a manifest cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It is not readable.
    #[error("{path}: cannot read the manifest")]
    Read {
        /// The manifest.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It is longer than any manifest.
    #[error("{path}: {len} bytes, more than the {MAX_LEN} a manifest may have")]
    TooLarge {
        /// The manifest.
        path: PathBuf,
        /// Its length in bytes.
        len: u64,
    },
    /// It is no JSON, or not of that form.
    #[error("{path}:{line}:{column}: not a valid manifest")]
    Syntax {
        /// The manifest.
        path: PathBuf,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        /// What the JSON reader says.
        source: serde_json::Error,
    },
    /// The name of the base image cannot be that of an artifact.
    #[error("{path}: an artifact is called {OS_IMAGE}, as the base image is")]
    Name {
        /// The manifest.
        path: PathBuf,
    },
    /// It is for another target.
    #[error("{path}: is for {found}, not for {expected}")]
    Mismatch {
        /// The manifest.
        path: PathBuf,
        /// The target that is asked for.
        expected: String,
        /// The one that it states.
        found: String,
    },
}

impl Hint for ManifestError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Read { source, .. } if source.kind() == ErrorKind::IsADirectory => {
                "name a manifest in it, such as node.debian-13.amd64.json"
            }
            Self::Read { path, source } => return of_path(path, source, "`vmbake update KIND` makes manifests"),
            Self::Syntax { .. } => {
                "`vmbake update` writes manifests: if this is one of them, undo what was changed at that place; else name \
                 another file"
            }
            Self::Mismatch { .. } => "name the KIND, --os and --arch that the manifest is for",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// Name of the base image among the entries.
pub const OS_IMAGE: &str = "os.image";

/// What one manifest is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Kind of image.
    pub kind: String,
    /// Operating system.
    pub os: String,
    /// Architecture as Debian names it.
    pub arch: String,
}

impl Target {
    /// `<kind>.<os>.<arch>`.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.kind, self.os, self.arch)
    }
}

/// A manifest together with the exact bytes it was read from.
#[derive(Clone, Debug)]
pub struct Manifest {
    content: Content,
    text: Vec<u8>,
    digest: Digest,
}

/// The file's only top-level key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    vmconfig: Content,
}

/// What a manifest says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Content {
    /// Version of the image, `dev` until it is released.
    pub version: String,
    /// Kind of image: the name of its top layer.
    pub kind: String,
    /// The operating system that the image is based on.
    pub os: Os,
    /// Artifacts by name.
    #[serde(default, deserialize_with = "stub::without_stub")]
    pub dependencies: BTreeMap<String, Dependency>,
    /// Container images for the runtime.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<ContainerImage>,
    /// The documents that the proofs rest on, by their digests.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<Digest, Document>,
    /// The newest `Date` that was seen of each archive and suite: an older one is a replay.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<String, BTreeMap<String, Timestamp>>,
}

/// The operating system of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Os {
    /// Name with release, such as `debian-13`.
    pub name: String,
    /// Architecture as Debian names it.
    pub arch: String,
    /// The base image, where the manifest pins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Dependency>,
    /// How that image boots.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot: Option<Boot>,
}

/// What the first entry of the base image's boot menu starts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Boot {
    /// Command line of the kernel.
    pub cmdline: String,
    /// The kernel.
    pub kernel: BootFile,
    /// The initial RAM disk.
    pub initrd: BootFile,
}

/// A file of the base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootFile {
    /// Number of its partition, from 1.
    pub partition: u32,
    /// Absolute path in that partition's file system.
    pub path: String,
    /// SHA-256 of its content.
    pub digest: Digest,
}

/// A pinned container image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContainerImage {
    /// Reference with its tag, such as `registry.k8s.io/pause:3.10`.
    pub image: String,
    /// Digest of the platform's manifest.
    pub digest: Digest,
    /// Length of that manifest in bytes, as in a descriptor of the OCI image specification.
    pub size: u64,
    /// `linux/<arch>`.
    pub platform: String,
    /// Digest of the index that lists the platform's manifest.
    pub index: Digest,
    /// How the index was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

/// How an artifact is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ArtifactType {
    /// A single program.
    #[serde(rename = "binary")]
    Binary,
    /// A Debian package.
    #[serde(rename = "deb")]
    Deb,
    /// A tar archive, compressed with gzip.
    #[serde(rename = "tar.gz")]
    TarGz,
    /// A tar archive that is installed as it is, such as a container image.
    #[serde(rename = "tar")]
    Tar,
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
            Self::Qcow2 => "qcow2",
        }
    }
}

/// One pinned artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "form::Dependency")]
pub struct Dependency {
    /// Upstream version.
    pub version: String,
    /// Where it can be fetched.
    pub url: String,
    /// How it is packed.
    #[serde(rename = "type")]
    pub kind: ArtifactType,
    /// Digest of the file.
    pub digest: Digest,
    /// Length of the file in bytes.
    pub size: u64,
    /// How the digest was proven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proof: Option<Proof>,
}

impl Content {
    /// What it is for.
    pub fn target(&self) -> Target {
        Target { kind: self.kind.clone(), os: self.os.name.clone(), arch: self.os.arch.clone() }
    }

    /// Every entry that has a proof of its own: the base image and the artifacts.
    pub fn entries(&self) -> impl Iterator<Item = &Dependency> {
        self.os.image.iter().chain(self.dependencies.values())
    }

    /// Drops documents that no proof rests on any more.
    pub fn drop_unused_evidence(&mut self) {
        let used: BTreeSet<Digest> =
            self.entries().filter_map(|entry| entry.proof.as_ref()).flat_map(Proof::evidence).copied().collect();
        self.evidence.retain(|digest, _| used.contains(digest));
    }

    /// The manifest as text: keys sorted, two spaces a level, one newline at the end.
    pub fn to_text(&self) -> Result<String, serde_json::Error> {
        // A value's objects are sorted, which those of the struct are not.
        let value = serde_json::to_value(File { vmconfig: self.clone() })?;
        Ok(serde_json::to_string_pretty(&value)? + "\n")
    }
}

impl Manifest {
    /// Reads the manifest at `path`.
    pub fn load(path: &Path) -> Result<Self, ManifestError> {
        let read = |source| ManifestError::Read { path: path.to_owned(), source };
        let len = std::fs::metadata(path).map_err(read)?.len();
        if len > MAX_LEN {
            return Err(ManifestError::TooLarge { path: path.to_owned(), len });
        }
        Self::parse(path, std::fs::read(path).map_err(read)?)
    }

    /// Reads a manifest from its text; `path` is for messages.
    pub fn parse(path: &Path, text: Vec<u8>) -> Result<Self, ManifestError> {
        let file: File = serde_json::from_slice(&text).map_err(|source| ManifestError::Syntax {
            path: path.to_owned(),
            line: source.line(),
            column: source.column(),
            source,
        })?;
        if file.vmconfig.dependencies.contains_key(OS_IMAGE) {
            return Err(ManifestError::Name { path: path.to_owned() });
        }
        Ok(Self { content: file.vmconfig, digest: Digest::of(&text), text })
    }

    /// Fails unless the manifest is for this kind, operating system and architecture.
    pub fn require(&self, path: &Path, kind: &str, os: &str, arch: &str) -> Result<(), ManifestError> {
        let (expected, found) = (format!("{kind}.{os}.{arch}"), self.name());
        if expected == found {
            return Ok(());
        }
        Err(ManifestError::Mismatch { path: path.to_owned(), expected, found })
    }

    /// What it says.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The bytes it was read from.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// SHA-256 of those bytes: the identity of the image, from which UUIDs and seeds derive.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// `<kind>.<os-name>.<arch>`: the stem of the names of all outputs.
    pub fn name(&self) -> String {
        format!("{}.{}.{}", self.content.kind, self.content.os.name, self.content.os.arch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "vmconfig": {
    "dependencies": {
      "runc": {
        "digest": "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "size": 0, "type": "deb", "url": "debian:pool/r.deb", "version": "1"
      }
    },
    "kind": "node",
    "os": { "arch": "amd64", "name": "debian-13" },
    "version": "dev"
  }
}"#;

    fn parse(text: &str) -> Result<Manifest, ManifestError> {
        Manifest::parse(Path::new("m.json"), text.as_bytes().to_vec())
    }

    #[test]
    fn a_stub_is_left_out_and_the_text_is_stable() {
        let stub = r#""dependencies": { "vmconfig": {"url": "", "digest": "", "version": "dev"}, "#;
        let manifest = parse(&TEXT.replace(r#""dependencies": {"#, stub)).unwrap();
        assert_eq!(manifest.content(), parse(TEXT).unwrap().content());
        let text = manifest.content().to_text().unwrap();
        assert_eq!(parse(&text).unwrap().content().to_text().unwrap(), text);
        assert!(text.starts_with("{\n  \"vmconfig\": {\n    \"dependencies\": {") && text.ends_with("}\n"), "{text}");
        let half = stub.replace(r#""digest": """#, r#""digest": "sha256:00""#);
        assert!(parse(&TEXT.replace(r#""dependencies": {"#, &half)).is_err());
    }

    #[test]
    fn reads_a_manifest_and_knows_its_name() {
        let manifest = parse(TEXT).unwrap();
        assert_eq!(manifest.name(), "node.debian-13.amd64");
        assert_eq!(manifest.content().dependencies["runc"].digest, Digest::of(b""));
        assert!(manifest.require(Path::new("m.json"), "node", "debian-13", "amd64").is_ok());
        let error = manifest.require(Path::new("m.json"), "node", "debian-13", "arm64").unwrap_err();
        assert_eq!(error.to_string(), "m.json: is for node.debian-13.amd64, not for node.debian-13.arm64");
    }

    #[test]
    fn refuses_unknown_keys_and_bad_digests_with_their_line() {
        for (from, to, line) in [
            ("\"kind\": \"node\"", "\"kinds\": \"node\"", 9),
            ("sha256:e3", "sha256:E3", 5),
            ("sha256:e3", "md5:e3", 5),
            ("\"size\": 0", "\"size\": -1", 6),
        ] {
            match parse(&TEXT.replace(from, to)).unwrap_err() {
                ManifestError::Syntax { line: found, .. } => assert_eq!(found, line, "{to}"),
                other => panic!("{other}"),
            }
        }
    }
}

//! The pinned manifest of an image: its artifacts with their digests.
//!
//! Parses the text of `manifests/<kind>.<os-name>.<arch>.json` to a [`Manifest`] with well-formed digests. Unknown keys
//! are errors, so that typos are not silently ignored.

pub mod package_request;
pub mod relation;
pub mod upstream;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use crate::upstream::ArtifactType;
pub use accounts::PinnedAccounts;
pub use additions::{Additions, ImageNeed, LayerGrants, NeedKind};
pub use closure::{ClosureRecord, PackageReason};
pub use content::{Boot, BootFile, ContainerImage, Content, Dependency, Foundation, OCI, Os, PinnedBundle};
pub use error::ManifestError;
pub use proof::{ArchiveSnapshot, Document, Form, Proof, Signed};
use vmbake_common::address::{self, UrlCredentials};
use vmbake_common::digest::Digest;
use vmbake_common::input;

mod additions;
mod form;
mod error;
mod accounts;
mod closure;
mod content;
mod proof;

/// Maximum size of a manifest in bytes: the largest known ones have 20 KB.
const MAX_LEN: u64 = 4 << 20;

/// Where an image has its manifest.
pub const INSTALLED: &str = "/opt/podplane/share/vmconfig-installed.json";

/// Name of the entry of the base image.
pub const OS_IMAGE: &str = "os.image";

/// The target of a manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Target {
    /// Kind of image.
    pub kind: String,
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

/// A manifest with the exact bytes it was read from.
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

impl Manifest {
    /// Reads the manifest at `path`.
    pub fn load(path: &Path) -> Result<Self, ManifestError> {
        let read = |source| ManifestError::Read { path: path.to_owned(), source };
        let len = std::fs::metadata(path).map_err(read)?.len();
        if len > MAX_LEN {
            return Err(ManifestError::TooLarge { path: path.to_owned(), len });
        }
        Self::parse(path, input::read(path, MAX_LEN).map_err(read)?)
    }

    /// Parses the text of a manifest; `path` is for messages.
    pub fn parse(path: &Path, text: Vec<u8>) -> Result<Self, ManifestError> {
        if let Some(place) = address::in_document(&text) {
            return Err(ManifestError::Address { path: path.to_owned(), place, source: UrlCredentials });
        }
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

    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The bytes it was read from.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// SHA-256 of those bytes: the identity of the image, from which UUIDs and seeds are derived.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// `<kind>.<os-name>.<arch>`: the stem of all output file names.
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
        assert_eq!(error.to_string(), "m.json: manifest is for node.debian-13.amd64, expected node.debian-13.arm64");
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

#[cfg(test)]
#[path = "../../vmbake/tests/tools/mod.rs"]
mod tools;

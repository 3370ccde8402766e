//! The inputs that determine the bytes of an image: the document `<kind>.<os>.<arch>.inputs.json` next to it.
//!
//! It lists the request and the inputs of a bake: sorted, and without paths, users, times or hosts, so that the same
//! inputs give the same text everywhere; only the origin of bundles may differ for the same bytes. A bake compares it
//! to detect changes; together with the manifest it is sufficient to rebuild the image.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use vmbake_common::hint::Hint;
use vmbake_disk::image::Format;

use vmbake_common::digest::Digest;
use vmbake_common::qcow2_compression::Qcow2Compression;

/// The format version.
pub const FORMAT: u32 = 1;

/// Why a record of inputs cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BuildInputsError {
    #[error("{path}:{line}:{column}: invalid record of inputs")]
    Syntax {
        path: PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The column number, from 1.
        column: usize,
        source: serde_json::Error,
    },
    #[error("{path}: unsupported format {found} of the record of inputs, expected {FORMAT}")]
    Format { path: PathBuf, found: u32 },
}

impl Hint for BuildInputsError {}

/// The inputs of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "inputs.json")]
pub struct BuildInputs {
    /// The format version.
    pub format: u32,
    /// Kind of image: the name of its top layer.
    pub kind: String,
    /// Operating system, such as `debian-13`.
    pub os: String,
    /// Architecture as Debian names it.
    pub arch: String,
    /// The program that baked it.
    pub program: ProgramInput,
    /// Digest of the first-boot program for the architecture, if vmbake contains one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub firstboot: Option<Digest>,
    /// Digest of the manifest, which pins all artifacts and evidence.
    pub manifest: Digest,
    /// Digest of the base image's file; absent if the system is made of packages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Digest>,
    /// Number of the base's root partition, if it was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<u32>,
    /// The layers, in the order in which they were applied.
    pub layers: Vec<LayerInput>,
    /// The references of bundles with digests, by name; bundles from local files are not listed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub bundles: BTreeMap<String, String>,
    /// Digest of the sources, which define the required proofs.
    pub sources: Digest,
    /// Digests of the trust anchors, by file name.
    pub trust: BTreeMap<String, Digest>,
    /// Length of the disk in bytes; absent means that of the base's disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// Formats that were written: `oci`, `qcow2`, `raw`, `tar`, `tar.zst`.
    pub formats: BTreeSet<String>,
    /// Compression of the qcow2 image; absent means `zstd`.
    #[serde(default, skip_serializing_if = "Qcow2Compression::is_usual")]
    pub compression: Qcow2Compression,
    /// Modification time of files created by vmbake, in seconds since 1970; absent means that of the base's newest
    /// file, or without a base, of the newest release of an archive that lists a pinned package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_date_epoch: Option<u32>,
}

/// A version of vmbake.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProgramInput {
    pub version: String,
    /// Digest of the program's file, which covers everything built in.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LayerInput {
    pub name: String,
    pub version: String,
    /// Digest of its description and files.
    pub digest: Digest,
}

impl BuildInputs {
    /// Serializes the document deterministically.
    pub fn to_text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec_pretty(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Parses a document; `path` is for messages.
    pub fn parse(path: &Path, text: &[u8]) -> Result<Self, BuildInputsError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let syntax = |source: serde_json::Error| {
            let (line, column) = (source.line(), source.column());
            BuildInputsError::Syntax { path: path.to_owned(), line, column, source }
        };
        let Head { format } = serde_json::from_slice(text).map_err(syntax)?;
        if format != FORMAT {
            return Err(BuildInputsError::Format { path: path.to_owned(), found: format });
        }
        serde_json::from_slice(text).map_err(syntax)
    }

    /// Whether the request `wanted` gives the same image in formats that were written.
    pub fn covers(&self, wanted: &Self) -> bool {
        let formats = self.formats.clone();
        // Without a qcow2 image, its compression is ignored.
        let has_qcow2 = wanted.formats.contains(&Format::Qcow2.to_string());
        let compression = if has_qcow2 { wanted.compression } else { self.compression };
        wanted.formats.is_subset(&formats) && *self == Self { formats, compression, ..wanted.clone() }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// A document with all keys.
    const FULL: &str = r#"{
  "format": 1,
  "kind": "node",
  "os": "debian-13",
  "arch": "amd64",
  "program": {
    "version": "0.1.0",
    "digest": "sha256:0101010101010101010101010101010101010101010101010101010101010101"
  },
  "firstboot": "sha256:0202020202020202020202020202020202020202020202020202020202020202",
  "manifest": "sha256:0303030303030303030303030303030303030303030303030303030303030303",
  "base": "sha256:0404040404040404040404040404040404040404040404040404040404040404",
  "partition": 1,
  "layers": [
    {
      "name": "vm",
      "version": "3",
      "digest": "sha256:0505050505050505050505050505050505050505050505050505050505050505"
    },
    {
      "name": "hygiene",
      "version": "1",
      "digest": "sha256:0606060606060606060606060606060606060606060606060606060606060606"
    }
  ],
  "bundles": {
    "acme.agent": "oci://ghcr.io/acme/agent@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a"
  },
  "sources": "sha256:0707070707070707070707070707070707070707070707070707070707070707",
  "trust": {
    "archive.asc": "sha256:0808080808080808080808080808080808080808080808080808080808080808",
    "root.json": "sha256:0909090909090909090909090909090909090909090909090909090909090909"
  },
  "size": 8589934592,
  "formats": [
    "qcow2",
    "raw"
  ],
  "compression": "zlib",
  "source_date_epoch": 1700000000
}
"#;

    fn full() -> BuildInputs {
        let digest = |byte: u8| Digest::Sha256([byte; 32]);
        let layer = |name: &str, version: &str, byte| LayerInput {
            name: name.to_owned(),
            version: version.to_owned(),
            digest: digest(byte),
        };
        BuildInputs {
            format: FORMAT,
            kind: "node".to_owned(),
            os: "debian-13".to_owned(),
            arch: "amd64".to_owned(),
            program: ProgramInput { version: "0.1.0".to_owned(), digest: digest(1) },
            firstboot: Some(digest(2)),
            manifest: digest(3),
            base: Some(digest(4)),
            partition: Some(1),
            layers: vec![layer("vm", "3", 5), layer("hygiene", "1", 6)],
            bundles: [("acme.agent".to_owned(), format!("oci://ghcr.io/acme/agent@{}", digest(10)))].into(),
            sources: digest(7),
            trust: [("root.json".to_owned(), digest(9)), ("archive.asc".to_owned(), digest(8))].into(),
            size: Some(8 << 30),
            formats: ["raw", "qcow2"].map(str::to_owned).into(),
            compression: Qcow2Compression::Zlib,
            source_date_epoch: Some(1_700_000_000),
        }
    }

    fn parse(text: &str) -> Result<BuildInputs, BuildInputsError> {
        BuildInputs::parse(Path::new("x.inputs.json"), text.as_bytes())
    }

    #[test]
    fn the_document_has_one_form() {
        assert_eq!(String::from_utf8(full().to_text().unwrap()).unwrap(), FULL);
        assert_eq!(parse(FULL).unwrap(), full());
        let bundles = BTreeMap::new();
        let least =
            BuildInputs { firstboot: None, partition: None, size: None, source_date_epoch: None, bundles, ..full() };
        let text = String::from_utf8(least.to_text().unwrap()).unwrap();
        assert!(!text.contains("null"), "{text}");
        assert_eq!(parse(&text).unwrap(), least);
    }

    /// Changes the value at `pointer` to another valid one.
    fn changed(document: &Value, pointer: &str) -> Value {
        let mut document = document.clone();
        let value = document.pointer_mut(pointer).unwrap();
        *value = match &*value {
            Value::String(text) if text.starts_with("sha256:") => Digest::of(text.as_bytes()).to_string().into(),
            Value::String(text) if text == "zlib" => "zstd".into(),
            Value::String(text) => format!("{text}x").into(),
            number => (number.as_u64().unwrap() + 1).into(),
        };
        document
    }

    /// The pointers to all scalar values.
    fn leaves(value: &Value, pointer: &str, found: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
            _ => return found.push(pointer.to_owned()),
        };
        children.into_iter().for_each(|(name, value)| leaves(value, &format!("{pointer}/{name}"), found));
    }

    #[test]
    fn every_value_that_differs_is_a_change() {
        let (document, mut pointers) = (serde_json::from_str(FULL).unwrap(), Vec::new());
        leaves(&document, "", &mut pointers);
        assert_eq!(pointers.len(), 25, "{pointers:?}");
        assert!(full().covers(&full()));
        for pointer in pointers.iter().filter(|pointer| *pointer != "/format") {
            let other = parse(&changed(&document, pointer).to_string()).unwrap();
            assert!(!full().covers(&other) && !other.covers(&full()), "{pointer}");
        }
        let without: [fn(&mut BuildInputs); 9] = [
            |inputs| inputs.firstboot = None,
            |inputs| inputs.partition = None,
            |inputs| inputs.size = None,
            |inputs| inputs.source_date_epoch = None,
            |inputs| drop(inputs.layers.pop()),
            |inputs| inputs.layers.reverse(),
            |inputs| drop(inputs.trust.pop_first()),
            |inputs| drop(inputs.bundles.pop_first()),
            |inputs| inputs.formats.extend(["other".to_owned()]),
        ];
        for (index, change) in without.into_iter().enumerate() {
            let mut other = full();
            change(&mut other);
            assert!(!full().covers(&other), "{index}");
        }
        let fewer = BuildInputs { formats: ["raw".to_owned()].into(), ..full() };
        assert!(full().covers(&fewer) && !fewer.covers(&full()), "a format that is there already");
    }

    #[test]
    fn a_document_of_another_form_is_refused() {
        let error = parse(&FULL.replace("\"format\": 1", "\"format\": 2")).unwrap_err();
        assert!(matches!(error, BuildInputsError::Format { found: 2, .. }), "{error}");
        let refused = [
            ("not JSON", "{".to_owned()),
            ("an unknown key", FULL.replace("  \"size\"", "  \"seize\": 1,\n  \"size\"")),
            ("a missing key", FULL.replace("  \"kind\": \"node\",\n", "")),
            ("a duplicate key", FULL.replace("  \"size\"", "  \"size\": 1,\n  \"size\"")),
            ("invalid digest", FULL.replace("sha256:04", "sha256:0")),
            ("a number that is too large", FULL.replace("1700000000", "4294967296")),
        ];
        for (what, text) in refused {
            assert_ne!(text, FULL, "{what}");
            let error = parse(&text).unwrap_err();
            assert!(matches!(error, BuildInputsError::Syntax { .. }), "{what}: {error}");
            assert!(error.to_string().starts_with("x.inputs.json:"), "{what}: {error}");
        }
    }
}

//! The record of origins: its format, and a parser that does not trust it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_disk::tree::{Tree, TreeError};

use super::RECORD;
use crate::merge::Login;
use vmbake_common::digest::Digest;

/// The form that is written and read.
const FORMAT: u32 = 1;

/// Maximum size of a record in bytes: about 60 for each path of a layer.
pub const MAX_LEN: u64 = 32 << 20;

/// Why a record cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    #[error("{place}:{line}:{column}: not a valid record of origins")]
    Syntax {
        place: String,
        /// The line, counted from 1.
        line: usize,
        /// The column, counted from 1.
        column: usize,
        source: serde_json::Error,
    },
    #[error("{place}: unsupported format {found} of the record of origins: expected {FORMAT}")]
    Format { place: String, found: u32 },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for RecordError {
    vmbake_common::causes!(Message);
}

/// Which input each path of an image came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    format: u32,
    /// Digest of the manifest that the image was baked from.
    pub manifest: Digest,
    /// The base image, where the manifest pins one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<BaseImage>,
    /// Layers by name.
    pub layers: BTreeMap<String, LayerOrigin>,
    /// Artifacts by name.
    pub artifacts: BTreeMap<String, ArtifactOrigin>,
    /// Packages of the manifest that the base had in the pinned version, by the names of their artifacts: no layer brought
    /// anything of them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub kept: BTreeMap<String, KeptOrigin>,
    /// Packages that are configured on the first boot, with the reason why, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub deferred: BTreeMap<String, String>,
    /// Files of packages that were chosen by name which have set-uid or set-gid bits or file capabilities: their paths by
    /// [`vmbake_common::escape::path`], and what they have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub privileged: BTreeMap<String, String>,
    /// Users that layers let log in by a password or keys, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub logins: BTreeMap<String, Login>,
    /// What the layers brought or changed, by [`vmbake_common::escape::path`]; everything else is the base's.
    pub paths: BTreeMap<String, PathOrigin>,
    /// What the base had and the image has not, with the layer that removes it where one says so. Of a removed
    /// directory only itself is listed.
    pub removed: BTreeMap<String, Option<String>>,
}

/// A pinned base image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BaseImage {
    pub version: String,
    /// Where it can be fetched.
    pub url: String,
    /// Digest of the file.
    pub digest: Digest,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LayerOrigin {
    pub version: String,
    /// Digest of its description and files, see [`vmbake_layer::Layers::load`].
    pub digest: Digest,
}

/// An artifact of the image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArtifactOrigin {
    /// The layer that installs it.
    pub layer: String,
    /// Digest of its file.
    pub digest: Digest,
}

/// A package that the base had.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeptOrigin {
    /// The layer that would have installed it.
    pub layer: String,
    /// Its name, as dpkg has it.
    pub package: String,
    /// Its version, as dpkg has it.
    pub version: String,
}

/// Who wrote a path last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathOrigin {
    pub layer: String,
    /// The artifact of the layer, where it was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub artifact: Option<String>,
}

impl Record {
    /// A record that lists nothing yet.
    pub(super) fn new(manifest: Digest, base: Option<BaseImage>) -> Self {
        Self {
            format: FORMAT,
            manifest,
            base,
            layers: BTreeMap::new(),
            artifacts: BTreeMap::new(),
            kept: BTreeMap::new(),
            deferred: BTreeMap::new(),
            privileged: BTreeMap::new(),
            logins: BTreeMap::new(),
            paths: BTreeMap::new(),
            removed: BTreeMap::new(),
        }
    }

    /// The record as text.
    pub fn to_text(&self) -> Result<Vec<u8>, serde_json::Error> {
        let mut text = serde_json::to_vec(self)?;
        text.push(b'\n');
        Ok(text)
    }

    /// Reads a record; `place` is for messages. Any text that [`Record::to_text`] would not have written is refused, and so
    /// are repeated keys and names that lead nowhere.
    pub fn parse(place: &str, text: &[u8]) -> Result<Self, RecordError> {
        #[derive(Deserialize)]
        struct Head {
            format: u32,
        }
        let syntax = |source: serde_json::Error| RecordError::Syntax {
            place: place.to_owned(),
            line: source.line(),
            column: source.column(),
            source,
        };
        let Head { format } = serde_json::from_slice(text).map_err(syntax)?;
        if format != FORMAT {
            return Err(RecordError::Format { place: place.to_owned(), found: format });
        }
        let record: Self = serde_json::from_slice(text).map_err(syntax)?;
        if record.to_text().map_err(syntax)? != text {
            return Err(RecordError::Message(message!("{place}: the record of origins is not in the canonical form")));
        }
        record.check(place)?;
        Ok(record)
    }

    fn check(&self, place: &str) -> Result<(), RecordError> {
        let missing = |subject: &str, what, name: &str| {
            Err(RecordError::Message(message!("{place}: {subject} names {what} {name}, which is not listed there")))
        };
        for (name, artifact) in &self.artifacts {
            if !self.layers.contains_key(&artifact.layer) {
                return missing(name, "layer", &artifact.layer);
            }
        }
        for (name, kept) in &self.kept {
            if !self.layers.contains_key(&kept.layer) {
                return missing(name, "layer", &kept.layer);
            }
        }
        for (path, origin) in &self.paths {
            if !self.layers.contains_key(&origin.layer) {
                return missing(path, "layer", &origin.layer);
            }
            let Some(name) = &origin.artifact else { continue };
            if self.artifacts.get(name).is_none_or(|artifact| artifact.layer != origin.layer) {
                return missing(path, "artifact", name);
            }
        }
        match self.removed.iter().find(|(_, layer)| layer.as_ref().is_some_and(|name| !self.layers.contains_key(name)))
        {
            Some((path, layer)) => missing(path, "layer", layer.as_deref().unwrap_or_default()),
            None => Ok(()),
        }
    }
}

/// The record inside an image with its text; `None` where there is none.
pub fn inside_record(tree: &Tree) -> Result<Option<(Record, Vec<u8>)>, RecordError> {
    let text = match tree.read(RECORD.as_bytes(), MAX_LEN) {
        Ok(text) => text,
        Err(TreeError::NotFound { .. }) => return Ok(None),
        Err(source) => {
            return Err(RecordError::Message(message!("{}: cannot read the record of origins", RECORD).by(source)));
        }
    };
    Ok(Some((Record::parse(RECORD, &text)?, text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZEROS: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn text() -> String {
        format!(
            "{{\"format\":1,\"manifest\":\"{ZEROS}\",\"layers\":{{\"a\":{{\"version\":\"1\",\"digest\":\"{ZEROS}\"}}}},\
             \"artifacts\":{{\"x\":{{\"layer\":\"a\",\"digest\":\"{ZEROS}\"}}}},\
             \"paths\":{{\"/p\":{{\"layer\":\"a\",\"artifact\":\"x\"}}}},\"removed\":{{\"/q\":null,\"/r\":\"a\"}}}}\n"
        )
    }

    #[test]
    fn a_record_has_one_form_only() {
        let record = Record::parse("r", text().as_bytes()).unwrap();
        assert_eq!(record.to_text().unwrap(), text().into_bytes());
        let kept = |layer: &str| {
            format!("\"kept\":{{\"y\":{{\"layer\":\"{layer}\",\"package\":\"y\",\"version\":\"1\"}}}},\"paths\"")
        };
        Record::parse("r", text().replacen("\"paths\"", &kept("a"), 1).as_bytes()).unwrap();
        let longer = format!("{}1,\"format\"", "\"format\":");
        for (from, to, expected) in [
            ("\"format\":1", "\"format\":2", "r: unsupported format 2 of the record of origins: expected 1"),
            ("\"format\":1,", "", "r:1:"),
            ("\"format\"", longer.as_str(), "r:1:"),
            ("\"removed\"", "\"more\":1,\"removed\"", "r:1:"),
            ("}\n", "", "r:1:"),
            ("}\n", "}", "r: the record of origins is not in the canonical form"),
            ("{\"/p\"", "{ \"/p\"", "r: the record of origins is not in the canonical form"),
            ("{\"/q\":null", "{\"/q\":null,\"/q\":null", "r: the record of origins is not in the canonical form"),
            ("{\"layer\":\"a\",\"artifact\":\"x\"}", "{\"layer\":\"b\"}", "r: /p names layer b, which"),
            ("\"artifact\":\"x\"", "\"artifact\":\"y\"", "r: /p names artifact y, which"),
            ("{\"x\":{\"layer\":\"a\"", "{\"x\":{\"layer\":\"c\"", "r: x names layer c, which"),
            ("\"/r\":\"a\"", "\"/r\":\"d\"", "r: /r names layer d, which"),
            ("\"paths\"", kept("b").as_str(), "r: y names layer b, which"),
            ("\"paths\"", "\"kept\":{},\"paths\"", "r: the record of origins is not in the canonical form"),
            ("sha256:00", "sha256:0g", "r:1:"),
        ] {
            let changed = text().replacen(from, to, 1);
            assert_ne!(changed, text(), "{from}");
            let error = Record::parse("r", changed.as_bytes()).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{from} -> {to}: {error}");
        }
        let deep = format!("{{\"format\":1,\"x\":{}", "[".repeat(100_000));
        assert!(matches!(Record::parse("r", deep.as_bytes()), Err(RecordError::Syntax { .. })));
    }
}

//! The published files of a bake: the images, and the documents about all of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::incremental::checksums::Checksum;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::ownership;
use vmbake_store::file_identity::FileIdentity;

/// A document next to the images. To add one, add a variant here, and its text where a bake publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sidecar {
    Manifest,
    /// The record of origins.
    Origins,
    /// The record of inputs: [`BuildInputs`](super::build_inputs::BuildInputs).
    Inputs,
    /// The SBOM in SPDX format.
    Spdx,
    /// The SBOM in CycloneDX format.
    CycloneDx,
    /// The provenance: the statement of [`provenance`](crate::release::provenance).
    Provenance,
}

impl Sidecar {
    /// Its file name next to the images called `name`.
    pub fn file_name(self, name: &str) -> String {
        match self {
            Self::Manifest => format!("{name}.json"),
            Self::Origins => format!("{name}.origin.json"),
            Self::Inputs => format!("{name}.inputs.json"),
            Self::Spdx => format!("{name}.spdx.json"),
            Self::CycloneDx => format!("{name}.cdx.json"),
            Self::Provenance => format!("{name}.provenance.json"),
        }
    }
}

/// The published files with their identities.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) sidecars: BTreeMap<Sidecar, PublishedFile>,
    pub(crate) images: BTreeMap<OutputFormat, PublishedFile>,
}

impl Published {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PublishedFile> {
        self.sidecars.values().chain(self.images.values())
    }
}

/// A file that a bake has published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedFile {
    pub path: PathBuf,
    pub checksum: Checksum,
    stamp: FileIdentity,
}

impl PublishedFile {
    /// Records a file that was just published and is still open; `None` if the metadata are insufficient.
    pub fn note(path: &Path, file: &File, checksum: Checksum) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        Some(Self { path, checksum, stamp: FileIdentity::of(file).ok()?? })
    }

    /// Opens the file if it is private and unchanged.
    pub fn open(&self) -> Option<File> {
        let file = ownership::open(&self.path).ok()?;
        (FileIdentity::of_private(&file, &self.path)? == self.stamp).then_some(file)
    }

    /// Reads the file if it is private and unchanged.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        self.open()?.read_to_end(&mut content).ok()?;
        Some(content)
    }

    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.len
    }

    /// Waits until any later change is detected.
    pub(super) fn wait(&self) {
        self.stamp.wait();
    }
}

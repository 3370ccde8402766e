//! What a bake has published under one name: the images, and the sidecars that belong to all of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use vmbake_disk::image::Format;

use crate::incremental::checksums::Checksum;
use vmbake_common::ownership;
use vmbake_store::stamp::Stamp;

/// A document beside the images. A new one is a variant here, with its text where a bake publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sidecar {
    Manifest,
    /// The record of origins.
    Origins,
    /// What everything was made of: [`BuildInputs`](super::build_inputs::BuildInputs).
    Inputs,
    /// The bill of materials as SPDX.
    Spdx,
    /// The bill of materials as CycloneDX.
    CycloneDx,
    /// Who made it of what: the statement of [`provenance`](crate::release::provenance).
    Provenance,
}

impl Sidecar {
    /// Its file's name beside the images called `name`.
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

/// Everything that was published, and how it is recognised later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Published {
    pub(crate) sidecars: BTreeMap<Sidecar, PublishedFile>,
    pub(crate) images: BTreeMap<Format, PublishedFile>,
}

impl Published {
    pub(crate) fn files(&self) -> impl Iterator<Item = &PublishedFile> {
        self.sidecars.values().chain(self.images.values())
    }
}

/// A file that a bake has published.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedFile {
    /// Where it is.
    pub path: PathBuf,
    pub checksum: Checksum,
    stamp: Stamp,
}

impl PublishedFile {
    /// A file that was just published, still open; `None` where the system does not tell enough of it.
    pub fn note(path: &Path, file: &File, checksum: Checksum) -> Option<Self> {
        let path = std::path::absolute(path).ok()?;
        Some(Self { path, checksum, stamp: Stamp::of(file).ok()?? })
    }

    /// Opens the file if it is private and nobody has touched it.
    pub fn open(&self) -> Option<File> {
        let file = ownership::open(&self.path).ok()?;
        (Stamp::of_private(&file, &self.path)? == self.stamp).then_some(file)
    }

    /// What is in it, if it is private and nobody has touched it.
    pub(crate) fn read(&self) -> Option<Vec<u8>> {
        let mut content = Vec::new();
        self.open()?.read_to_end(&mut content).ok()?;
        Some(content)
    }

    /// Its name, without the folder.
    pub(crate) fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.stamp.len
    }

    /// Waits until every change from now on is noticed.
    pub(super) fn wait(&self) {
        self.stamp.wait();
    }
}

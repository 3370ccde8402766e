//! What is asked of a publication, in AWS's own terms.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use crate::LaunchPermission;
use vmbake_common::hint::Hint;

use super::source::DiskSource;

/// How a machine starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootMode {
    LegacyBios,
    Uefi,
    /// By UEFI where the machine has it, else by the BIOS.
    UefiPreferred,
}

impl BootMode {
    /// Its name at AWS.
    pub fn name(self) -> &'static str {
        match self {
            Self::LegacyBios => "legacy-bios",
            Self::Uefi => "uefi",
            Self::UefiPreferred => "uefi-preferred",
        }
    }
}

/// A word that is not one of a few.
#[derive(Debug, thiserror::Error)]
#[error("{found:?} is not {expected}")]
pub struct UnknownWord {
    found: String,
    expected: &'static str,
}

impl Hint for UnknownWord {}

impl FromStr for BootMode {
    type Err = UnknownWord;

    fn from_str(name: &str) -> Result<Self, UnknownWord> {
        let all = [Self::LegacyBios, Self::Uefi, Self::UefiPreferred];
        let expected = "legacy-bios, uefi or uefi-preferred";
        let found = all.into_iter().find(|mode| mode.name() == name);
        found.ok_or_else(|| UnknownWord { found: name.to_owned(), expected })
    }
}

/// What a new snapshot begins as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentChoice {
    /// As the newest snapshot of the family whose blocks are known, if there is one.
    Auto,
    /// As nothing: everything is sent.
    None,
    /// As this snapshot.
    Id(String),
}

/// How much of a snapshot is looked at before it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// Which blocks it has.
    Index,
    /// That, and what some of them hold.
    Sample,
    /// That, and what all of them hold.
    Full,
}

pub struct PublishRequest<'a> {
    /// The disk.
    pub source: &'a DiskSource,
    /// Number of its root partition, where that is not obvious.
    pub partition: Option<u32>,
    /// Name of the machine image; by default the family, version and architecture.
    pub name: Option<String>,
    /// What its releases have in common; by default `IMAGE_ID` of os-release.
    pub family: Option<String>,
    /// By default, what the image starts by.
    pub boot_mode: Option<BootMode>,
    /// Whether machines have a TPM.
    pub tpm: bool,
    /// Whether machines get their metadata by sessions only.
    pub imds_v2: bool,
    /// Type of the volumes of machines.
    pub volume_type: &'a str,
    /// The key that encrypts the snapshot.
    pub kms_key: Option<&'a str>,
    /// Tags for the machine images and the snapshot.
    pub tags: &'a [(String, String)],
    /// What the snapshot begins as.
    pub parent: &'a ParentChoice,
    /// The image that the parent was made of, where its blocks are not known here.
    pub parent_image: Option<&'a PathBuf>,
    /// Regions that get copies.
    pub copies: &'a [String],
    /// Who may start machines.
    pub permissions: &'a [LaunchPermission],
    /// When it is deprecated.
    pub deprecate_at: Option<jiff::Timestamp>,
    /// Parameters that name the machine image afterwards.
    pub parameters: &'a [String],
    /// How much is verified.
    pub verification: Verification,
    /// Blocks that are sent at the same time.
    pub workers: NonZeroUsize,
    /// Threads that read the image.
    pub threads: NonZeroUsize,
}

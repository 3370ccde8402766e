//! Options for publishing, in AWS's terms.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use serde::Serialize;

use crate::LaunchPermission;
use vmbake_common::hint::Hint;

/// The boot mode of instances.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum BootMode {
    LegacyBios,
    Uefi,
    /// UEFI if the instance supports it, otherwise BIOS.
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

/// An invalid value of an option.
#[derive(Debug, thiserror::Error)]
#[error("invalid value {found:?}: expected {expected}")]
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

/// The parent of a new snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParentChoice {
    /// The newest snapshot of the family whose blocks are known, if there is one.
    Auto,
    /// None: upload all blocks.
    None,
    /// This snapshot.
    Id(String),
}

/// How thoroughly a snapshot is verified before it is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verification {
    /// The list of blocks.
    Index,
    /// The list, and the contents of some blocks.
    Sample,
    /// The list, and the contents of all blocks.
    Full,
}

pub struct AmiOptions<'a> {
    /// By default, what the image supports.
    pub boot_mode: Option<BootMode>,
    /// Whether instances have a TPM.
    pub tpm: bool,
    /// Whether instances require IMDSv2.
    pub imds_v2: bool,
    /// Volume type of instances.
    pub volume_type: &'a str,
    /// The key that encrypts the snapshot.
    pub kms_key: Option<&'a str>,
    /// Tags for the AMIs and the snapshot.
    pub tags: &'a [(String, String)],
    /// The parent of the snapshot.
    pub parent: &'a ParentChoice,
    /// The image that the parent was made from, if its block list is not in the store.
    pub parent_image: Option<&'a PathBuf>,
    /// Regions to copy to.
    pub copies: &'a [String],
    /// Launch permissions.
    pub permissions: &'a [LaunchPermission],
    /// The time of deprecation.
    pub deprecate_at: Option<jiff::Timestamp>,
    /// SSM parameters to set to the AMI's ID.
    pub parameters: &'a [String],
    pub verification: Verification,
    /// Number of concurrent block uploads.
    pub workers: NonZeroUsize,
}

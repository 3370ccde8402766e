//! The formats of a bake: disk images, and archives of their root file systems.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use vmbake_disk::image::Format;

/// A format that a bake writes. Documents contain its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum OutputFormat {
    Disk(Format),
    /// The root file system as a tar archive.
    Tar,
    /// The same archive, compressed with zstd.
    TarZst,
    /// The root file system as a container image: an OCI image layout in a tar archive.
    Oci,
}

impl OutputFormat {
    /// Every format, in the order of its variants.
    pub const ALL: [Self; 5] = [Self::Disk(Format::Raw), Self::Disk(Format::Qcow2), Self::Tar, Self::TarZst, Self::Oci];

    /// All names, for messages.
    pub const NAMES: &str = "raw, qcow2, tar, tar.zst or oci";

    /// File names of outputs, for messages.
    pub const FILE_NAMES: &str = "NAME.raw, NAME.qcow2, NAME.tar, NAME.tar.zst or NAME.oci.tar";

    pub fn name(self) -> &'static str {
        match self {
            Self::Disk(format) => format.name(),
            Self::Tar => "tar",
            Self::TarZst => "tar.zst",
            Self::Oci => "oci",
        }
    }

    /// The use of the format, for help texts.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Disk(format) => format.purpose(),
            Self::Tar => "Root file system as a tar archive, for containers, chroots and WSL",
            Self::TarZst => "The same archive, compressed with zstd",
            Self::Oci => "Root file system as a container image, for podman, docker and skopeo",
        }
    }

    /// The format of a disk image.
    pub fn disk(self) -> Option<Format> {
        match self {
            Self::Disk(format) => Some(format),
            Self::Tar | Self::TarZst | Self::Oci => None,
        }
    }

    /// The name of the file for the image called `name`.
    pub fn file_name(self, name: &str) -> String {
        format!("{name}{}", self.suffix())
    }

    /// The image name in the file name of an output, and the format.
    pub fn split_file_name(file: &str) -> Option<(&str, Self)> {
        // The name of a container image also has the suffix of an archive.
        let fits = Self::ALL.into_iter().rev().find(|format| file.ends_with(format.suffix()))?;
        Some((file.strip_suffix(fits.suffix())?, fits))
    }

    fn suffix(self) -> &'static str {
        match self {
            Self::Disk(Format::Raw) => ".raw",
            Self::Disk(Format::Qcow2) => ".qcow2",
            Self::Tar => ".tar",
            Self::TarZst => ".tar.zst",
            Self::Oci => ".oci.tar",
        }
    }
}

impl fmt::Display for OutputFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Format> for OutputFormat {
    fn from(format: Format) -> Self {
        Self::Disk(format)
    }
}

/// An unknown format name.
#[derive(Debug, thiserror::Error)]
#[error("unknown output format {0:?}, expected {expected}", expected = OutputFormat::NAMES)]
pub struct UnknownOutputFormat(String);

impl FromStr for OutputFormat {
    type Err = UnknownOutputFormat;

    fn from_str(name: &str) -> Result<Self, UnknownOutputFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownOutputFormat(name.to_owned()))
    }
}

impl TryFrom<String> for OutputFormat {
    type Error = UnknownOutputFormat;

    fn try_from(name: String) -> Result<Self, UnknownOutputFormat> {
        name.parse()
    }
}

impl From<OutputFormat> for String {
    fn from(format: OutputFormat) -> Self {
        format.name().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_file_names_are_read_back() {
        for format in OutputFormat::ALL {
            assert_eq!(format.to_string().parse::<OutputFormat>().unwrap(), format);
            let file = format.file_name("a.debian-13.amd64");
            assert_eq!(OutputFormat::split_file_name(&file), Some(("a.debian-13.amd64", format)), "{file}");
        }
        assert!("vmdk".parse::<OutputFormat>().is_err());
        assert_eq!(OutputFormat::split_file_name("a.json"), None);
        assert!(OutputFormat::ALL.is_sorted());
        for list in [OutputFormat::NAMES, OutputFormat::FILE_NAMES] {
            assert_eq!(list.replace(" or ", ", ").split(", ").count(), OutputFormat::ALL.len(), "{list}");
        }
    }
}

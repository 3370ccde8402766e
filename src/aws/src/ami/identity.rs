//! The identity of an image at AWS: its blocks, digest, name and tags. Does not access the network.

use std::path::Path;

use vmbake_disk::image::Format;

use vmbake_common::digest::Digest;
use vmbake_image::disk::DiskImage;
use vmbake_image::inspect::installed;
use vmbake_publish::PublishRequest;
use vmbake_publish::ebs::blocks::Blocks;
use vmbake_publish::source::DiskSource;
use vmbake_query::preflight::{PreflightStatus, aws_of};

use super::error::AmiError;
use super::options::{AmiOptions, BootMode};

/// Tag with the digest of the disk, by which resources are found.
pub const DISK_DIGEST: &str = "vmbake:disk-digest";
/// Tag shared by all releases of an image.
pub const FAMILY: &str = "vmbake:family";
/// Tag with the version of the image.
pub const VERSION: &str = "vmbake:version";
/// Tag with the architecture.
pub const ARCHITECTURE: &str = "vmbake:architecture";
/// Tag with the parent snapshot.
pub const PARENT: &str = "vmbake:parent";

/// An image to publish.
pub(super) struct Subject {
    /// The blocks that are not all zeros.
    pub blocks: Blocks,
    /// Digest over blocks, boot mode and key.
    pub digest: Digest,
    /// Name of the AMI.
    pub name: String,
    /// The name shared by its releases.
    pub family: String,
    /// `x86_64` or `arm64`.
    pub architecture: &'static str,
    pub boot_mode: BootMode,
    /// Tags of the AMI and the snapshot.
    pub tags: Vec<(String, String)>,
}

impl Subject {
    /// Checks the image, and reads all of it once.
    pub(super) fn read(request: &PublishRequest<'_>, options: &AmiOptions<'_>) -> Result<Self, AmiError> {
        let DiskSource { path, disk, documents } = request.source;
        let image = DiskImage::of(path, Format::Raw, disk.clone())?;
        let (architecture, found) = preflight(&image, request.partition)?;
        let boot_mode = boot_mode(path, options, found)?;
        let (family, version) = family(request, &image)?;
        let name = match (request.name, &version) {
            (Some(name), _) => name.to_owned(),
            (None, Some(version)) => format!("{family}-{version}-{architecture}"),
            (None, None) => return Err(AmiError::Unnamed { path: path.clone(), missing: "IMAGE_VERSION" }),
        };
        if !is_name(&name) {
            return Err(AmiError::Name { name });
        }
        let blocks = Blocks::of_disk(path, disk, request.threads, request.progress)?;
        let digest = blocks.disk_digest(boot_mode.name(), options.kms_key);
        let own = [
            ("Name", name.clone()),
            (DISK_DIGEST, digest.to_string()),
            (FAMILY, family.clone()),
            (VERSION, version.unwrap_or_default()),
            (ARCHITECTURE, architecture.to_owned()),
        ];
        let mut tags: Vec<(String, String)> = own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        tags.extend_from_slice(documents);
        tags.retain(|(key, value)| !value.is_empty() && options.tags.iter().all(|(other, _)| other != key));
        tags.extend_from_slice(options.tags);
        Ok(Self { blocks, digest, name, family, architecture, boot_mode, tags })
    }
}

/// The architecture and the firmware interfaces of a suitable image.
fn preflight(image: &DiskImage, partition: Option<u32>) -> Result<(&'static str, BootMode), AmiError> {
    let found = aws_of(image, partition)?;
    let failed = found.checks.iter().filter(|check| check.status == PreflightStatus::Error);
    let failed: Vec<String> = failed.map(|check| format!("{}: {}", check.check, check.evidence)).collect();
    let boot_mode = found.boot_mode.and_then(|name| name.parse().ok());
    match (failed.is_empty(), found.architecture, boot_mode) {
        (true, Some(architecture), Some(boot_mode)) => Ok((architecture, boot_mode)),
        _ => Err(AmiError::Preflight { path: image.path().to_owned(), failed: failed.join("; ") }),
    }
}

/// The requested boot mode, if the image supports it. A TPM requires UEFI.
fn boot_mode(path: &Path, options: &AmiOptions<'_>, found: BootMode) -> Result<BootMode, AmiError> {
    let asked = match (options.boot_mode, options.tpm) {
        (None | Some(BootMode::UefiPreferred), true) => BootMode::Uefi,
        (Some(mode), _) => mode,
        (None, false) => found,
    };
    let is_possible = found == asked || found == BootMode::UefiPreferred;
    if !is_possible || (options.tpm && asked != BootMode::Uefi) {
        let asked = if options.tpm { "uefi, as required by a TPM" } else { asked.name() };
        return Err(AmiError::BootMode { path: path.to_owned(), found: found.name(), asked });
    }
    Ok(asked)
}

/// Family and version, from the request or the image.
fn family(request: &PublishRequest<'_>, image: &DiskImage) -> Result<(String, Option<String>), AmiError> {
    let system = installed(image, request.partition)?;
    let missing = || AmiError::Unnamed { path: image.path().to_owned(), missing: "IMAGE_ID" };
    Ok((request.family.map(str::to_owned).or(system.image_id).ok_or_else(missing)?, system.image_version))
}

/// Whether a text is a valid AMI name (`RegisterImage`).
fn is_name(name: &str) -> bool {
    let is_allowed = |char: char| char.is_ascii_alphanumeric() || "()[] ./-'@_".contains(char);
    (3..=128).contains(&name.len()) && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names_are_those_of_register_image() {
        for name in ["abc", "knc-1.2.3-x86_64", "a (b) [c] ./-'@_", &"x".repeat(128)] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "ab", &"x".repeat(129), "a+b", "a:b", "ü12", "a\nb"] {
            assert!(!is_name(name), "{name}");
        }
    }
}

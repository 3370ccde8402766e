//! What an image is to AWS: a file enters, its blocks, its digest, its name and its tags leave. Nobody is asked.

use vmbake_disk::image::Format;

use vmbake_common::digest::Digest;
use vmbake_common::progress::Progress;
use vmbake_distribute::publish::blocks::Blocks;
use vmbake_image::disk::DiskImage;
use vmbake_image::inspect::installed;
use vmbake_query::preflight::{PreflightStatus, aws_of};

use super::error::AmiError;
use super::request::{BootMode, PublishRequest};
use super::source::DiskSource;

/// Tag with the digest of the disk, by which everything is found again.
pub const DISK_DIGEST: &str = "vmbake:disk-digest";
/// Tag with what the releases of an image have in common.
pub const FAMILY: &str = "vmbake:family";
/// Tag with the version of the image.
pub const VERSION: &str = "vmbake:version";
/// Tag with the architecture.
pub const ARCHITECTURE: &str = "vmbake:architecture";
/// Tag with the snapshot that one began as.
pub const PARENT: &str = "vmbake:parent";

/// An image, as it will be published.
pub(super) struct Subject {
    /// The blocks that count.
    pub blocks: Blocks,
    /// Digest over them, the boot mode and the key.
    pub digest: Digest,
    /// Name of the machine image.
    pub name: String,
    /// What its releases have in common.
    pub family: String,
    /// `x86_64` or `arm64`.
    pub architecture: &'static str,
    /// How machines start.
    pub boot_mode: BootMode,
    /// Tags of the machine image and the snapshot.
    pub tags: Vec<(String, String)>,
}

impl Subject {
    /// Checks the image, and reads all of it once.
    pub(super) fn read(request: &PublishRequest<'_>, progress: &Progress) -> Result<Self, AmiError> {
        let DiskSource { path, disk, documents } = request.source;
        let image = DiskImage::of(path, Format::Raw, disk.clone())?;
        let (architecture, found) = preflight(&image, request.partition)?;
        let boot_mode = boot_mode(request, found)?;
        let (family, version) = family(request, &image)?;
        let name = match (&request.name, &version) {
            (Some(name), _) => name.clone(),
            (None, Some(version)) => format!("{family}-{version}-{architecture}"),
            (None, None) => return Err(AmiError::Unnamed { path: path.clone(), missing: "IMAGE_VERSION" }),
        };
        if !is_name(&name) {
            return Err(AmiError::Name { name });
        }
        let blocks = Blocks::of_disk(path, disk, request.threads, progress)?;
        let digest = blocks.disk_digest(boot_mode.name(), request.kms_key);
        let own = [
            ("Name", name.clone()),
            (DISK_DIGEST, digest.to_string()),
            (FAMILY, family.clone()),
            (VERSION, version.unwrap_or_default()),
            (ARCHITECTURE, architecture.to_owned()),
        ];
        let mut tags: Vec<(String, String)> = own.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        tags.extend_from_slice(documents);
        tags.retain(|(key, value)| !value.is_empty() && request.tags.iter().all(|(other, _)| other != key));
        tags.extend_from_slice(request.tags);
        Ok(Self { blocks, digest, name, family, architecture, boot_mode, tags })
    }
}

/// Architecture, and what the image starts by, of an image that would work.
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

/// The boot mode that is asked for, if the image can do it. A TPM needs UEFI.
fn boot_mode(request: &PublishRequest<'_>, found: BootMode) -> Result<BootMode, AmiError> {
    let asked = match (request.boot_mode, request.tpm) {
        (None | Some(BootMode::UefiPreferred), true) => BootMode::Uefi,
        (Some(mode), _) => mode,
        (None, false) => found,
    };
    let is_possible = found == asked || found == BootMode::UefiPreferred;
    if !is_possible || (request.tpm && asked != BootMode::Uefi) {
        let asked = if request.tpm { "uefi, which a TPM needs" } else { asked.name() };
        return Err(AmiError::BootMode { path: request.source.path.clone(), found: found.name(), asked });
    }
    Ok(asked)
}

/// Family and version, as the request or the image says.
fn family(request: &PublishRequest<'_>, image: &DiskImage) -> Result<(String, Option<String>), AmiError> {
    let system = installed(image, request.partition)?;
    let missing = || AmiError::Unnamed { path: image.path().to_owned(), missing: "IMAGE_ID" };
    Ok((request.family.clone().or(system.image_id).ok_or_else(missing)?, system.image_version))
}

/// Whether a machine image can have a name (`RegisterImage`).
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

//! Selects an image: reads manifest and config from the index, and checks that they are consistent.

use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::release::sums::SumsKind;
use vmbake_bake::release::verify::belongs;
use vmbake_common::digest::Digest;
use vmbake_oci::{Descriptor, MAX_DOCUMENT};

use super::PullRequest;
use super::error::PullError;
use crate::chunks::chunk_len;
use crate::config::DiskConfig;
use crate::document::{ArtifactManifest, DISK, DISK_CONFIG, DISK_TYPE, ReleaseIndex, media_type};
use vmbake_disk::image::Format;

/// Maximum length of an image name.
const MAX_NAME: usize = 128;

/// An image of a release.
#[derive(Debug)]
pub(super) struct WantedImage {
    pub(super) config: DiskConfig,
    /// Its chunks in order, or the whole image.
    pub(super) layers: Vec<Descriptor>,
}

impl WantedImage {
    /// Finds the image and checks its documents.
    pub(super) fn find(request: &PullRequest<'_>, index: &ReleaseIndex) -> Result<Self, PullError> {
        let entry = choose(request, index)?;
        let found = request.repository.manifest(&entry.digest.to_string())?;
        let digest = Box::new(found.digest);
        let manifest: ArtifactManifest = serde_json::from_slice(&found.bytes)
            .map_err(|source| PullError::Syntax { digest: digest.clone(), source })?;
        let invalid = |reason: String| PullError::Invalid { digest: digest.clone(), reason };
        if manifest.schema_version != 2 || manifest.artifact_type != DISK {
            return Err(invalid(format!("media type is {:?}, expected {DISK}", manifest.artifact_type)));
        }
        let config = &manifest.config;
        if config.media_type.to_string() != DISK_CONFIG || config.size > MAX_DOCUMENT {
            return Err(invalid(format!("the config is not a {DISK_CONFIG} of at most {MAX_DOCUMENT} bytes")));
        }
        let text = request.repository.read_blob(&config.digest, config.size)?;
        let parsed: DiskConfig = serde_json::from_slice(&text)
            .map_err(|source| PullError::Syntax { digest: Box::new(config.digest), source })?;
        let image = Self { config: parsed, layers: manifest.layers };
        image.check_names(&entry).map_err(|reason| PullError::Invalid { digest: Box::new(config.digest), reason })?;
        image.check_layers(&digest)?;
        Ok(image)
    }

    pub(super) fn file_name(&self) -> String {
        format!("{}.{}", self.config.name, self.config.format.name())
    }

    /// The length of a chunk in bytes.
    pub(super) fn chunk_len(&self, chunk: usize) -> usize {
        let DiskConfig { size, chunk_size, .. } = self.config;
        let start = (chunk as u64).saturating_mul(chunk_size);
        // Fits, as chunks have a maximum length.
        usize::try_from(size.saturating_sub(start).min(chunk_size)).unwrap_or(0)
    }

    /// Checks that the names match the index, and that the files belong to the image.
    fn check_names(&self, entry: &Descriptor) -> Result<(), String> {
        let DiskConfig { name, architecture, os, format, files, .. } = &self.config;
        if entry.platform() != Some((os, architecture)) || disk_type(entry) != Some(format.name()) {
            return Err(format!("image for {os}/{architecture} as {}, which differs from the index", format.name()));
        }
        if !is_plain(name) {
            return Err(format!("{name:?} is not a valid image name"));
        }
        let is_list = |file: &str| SumsKind::ALL.iter().any(|kind| kind.file_name() == file);
        let is_own = |file: &str| is_plain(file) && (is_list(file) || belongs(file, name)) && *file != self.file_name();
        match files.keys().find(|file| !is_own(file)) {
            Some(file) => Err(format!("{file:?} is not the name of a file of {name}")),
            None => Ok(()),
        }
    }

    fn check_layers(&self, digest: &Digest) -> Result<(), PullError> {
        let invalid = |reason: String| PullError::Invalid { digest: Box::new(*digest), reason };
        let DiskConfig { size, chunk_size, chunks, checksum, format, .. } = &self.config;
        let expected = media_type(*format);
        let other = self.layers.iter().position(|layer| layer.media_type.to_string() != expected);
        if let Some((layer, found)) = other.and_then(|layer| Some((layer, self.layers.get(layer)?))) {
            let found = found.media_type.to_string();
            return Err(PullError::Layer { digest: Box::new(*digest), layer, found, expected });
        }
        match (format, checksum) {
            (Format::Raw, Checksum::Verity(_)) => {
                let count = chunk_len(*size).filter(|expected| expected == chunk_size).map(|len| size.div_ceil(len));
                if *size == 0 || count != Some(chunks.len() as u64) || chunks.len() != self.layers.len() {
                    let (layers, chunks) = (self.layers.len(), chunks.len());
                    return Err(invalid(format!(
                        "{layers} layers and {chunks} chunks of {chunk_size} bytes do not match a disk of {size} bytes"
                    )));
                }
                // zstd expands incompressible data only slightly.
                let most = chunk_size.saturating_add(chunk_size / 128).saturating_add(4096);
                match self.layers.iter().find(|layer| layer.size > most) {
                    Some(layer) => {
                        Err(invalid(format!("{} has {} bytes, too many for a chunk", layer.digest, layer.size)))
                    }
                    None => Ok(()),
                }
            }
            (format, Checksum::Bytes(whole)) if *format != Format::Raw => match &self.layers[..] {
                [layer] if layer.digest == *whole && layer.size == *size => Ok(()),
                _ => Err(invalid("expected the single layer that its config describes".to_owned())),
            },
            _ => Err(invalid(format!("{checksum} is not a checksum of a {} image", format.name()))),
        }
    }
}

/// Whether a text is a valid name of a file that is not hidden.
pub(super) fn is_plain(name: &str) -> bool {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-+".contains(char);
    !name.is_empty() && name.len() <= MAX_NAME && !name.starts_with('.') && name.chars().all(is_plain)
}

fn disk_type(entry: &Descriptor) -> Option<&str> {
    entry.annotations.get(DISK_TYPE).map(String::as_str)
}

/// The requested entry of the index.
fn choose(request: &PullRequest<'_>, index: &ReleaseIndex) -> Result<Descriptor, PullError> {
    let disks = || index.manifests.iter().filter(|entry| entry.artifact_type.as_deref() == Some(DISK));
    let arches: std::collections::BTreeSet<&str> = disks().filter_map(|entry| Some(entry.platform()?.1)).collect();
    let only = if arches.len() == 1 { arches.first().copied() } else { None };
    let arch = request.arch.or(only).unwrap_or(HOST_ARCH);
    let of_arch = || disks().filter(|entry| entry.platform() == Some(("linux", arch)));
    let has = |format: &Format| of_arch().any(|entry| disk_type(entry) == Some(format.name()));
    let first = || Format::ALL.into_iter().find(has);
    let format = request.format.or_else(first).unwrap_or(Format::Qcow2);
    let fitting: Vec<&Descriptor> = of_arch().filter(|entry| disk_type(entry) == Some(format.name())).collect();
    match fitting[..] {
        [entry] => Ok(entry.clone()),
        _ => {
            let found = if fitting.is_empty() { "no image" } else { "several images" };
            let there = disks().map(|entry| {
                let arch = entry.platform().map_or("?", |(_, arch)| arch);
                format!("{arch} as {}", disk_type(entry).unwrap_or("?"))
            });
            let there: Vec<String> = there.collect();
            let there = if there.is_empty() { "none".to_owned() } else { there.join(", ") };
            let (name, wanted) = (request.reference.to_string(), format!("{arch} as {}", format.name()));
            Err(PullError::Image { name, found, wanted, there })
        }
    }
}

/// The architecture of this machine, as Debian and OCI name it.
const HOST_ARCH: &str = if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" };

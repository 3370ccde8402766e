//! A manifest of a baked image for Podplane's command line: a qcow2 file and the manifest next to it enter, what leaves is a manifest in that command
//! line's format, the same for the same files.
//!
//! The command line downloads what the manifest lists, starts machines from the disk image, and renders user data that download the
//! dependencies. A baked image has them already: the manifest lists the stub `vmconfig`, for which nothing is unpacked over the image, and one
//! small file, since the script of the user data does not work without any. That file is the image's own manifest.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmbake_disk::ext4::{Reach, Want};
use vmbake_disk::image::{ClusterCompression, Format, Image, ImageError};
use vmbake_disk::tree::TreeError;

use crate::digest::Digest;
use crate::hint::Hint;
use crate::image::disk::InspectError;
use crate::image::grub::{self, BootError};
use crate::image::inspect::open_some;
use crate::incremental::published::Sidecar;
use crate::input;
use crate::manifest::{ContainerImage, Content, Manifest, ManifestError};

/// The manifest in an image.
const INSTALLED: &str = "/opt/podplane/share/vmconfig-installed.json";

/// Largest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// Characters of the digest that tell images of one version apart: the command line caches disk images by version and name.
const SHORT: usize = 12;

/// Why an image has no such manifest.
#[derive(Debug, thiserror::Error)]
pub enum PodplaneError {
    /// The image cannot be opened.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// Its file system cannot be read.
    #[error(transparent)]
    Inspect(#[from] InspectError),
    /// It is unknown how it boots.
    #[error(transparent)]
    Boot(#[from] BootError),
    /// The manifest next to it cannot be used.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// It is no qcow2 file.
    #[error("{path}: expected a qcow2 image, found a {found} one")]
    Format {
        /// The image.
        path: PathBuf,
        /// Its format.
        found: Format,
    },
    /// It was not baked.
    #[error("{path}: cannot read {INSTALLED}")]
    NotBaked {
        /// The image.
        path: PathBuf,
        /// What the reader of the file system says.
        source: TreeError,
    },
    /// The file next to it is the manifest of another image.
    #[error("{path}: expected the manifest of {image}, {expected}, found {found}")]
    OtherManifest {
        /// The manifest.
        path: PathBuf,
        /// The image.
        image: PathBuf,
        /// Digest of the manifest in the image.
        expected: Box<Digest>,
        /// Digest of the file.
        found: Box<Digest>,
    },
    /// The name of a file cannot be part of a URL.
    #[error("{path}: expected a file name of letters, digits, dots, dashes and underscores")]
    Name {
        /// The file.
        path: PathBuf,
    },
    /// The URL is not one.
    #[error("{url}: expected an http:// or https:// URL without query and fragment")]
    Url {
        /// The URL.
        url: String,
    },
    /// A file cannot be read.
    #[error("{path}: cannot read")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The manifest cannot be written as JSON.
    #[error("cannot write the manifest as JSON")]
    Text(#[from] serde_json::Error),
}

impl Hint for PodplaneError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Format { .. } => {
                "vmbake bake --format qcow2 --compression zlib, or vmbake convert --format qcow2 --compression zlib"
            }
            Self::NotBaked { .. } => "name an image of a kind with the layer podplane, such as knc",
            Self::OtherManifest { .. } | Self::Read { .. } | Self::Manifest(_) => {
                "the manifest that a bake writes next to the image is part of what the command line downloads: keep the two together"
            }
            Self::Name { .. } => "rename the image and the manifest next to it",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn passed_on(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Image(error) => Some(error),
            Self::Inspect(error) => Some(error),
            _ => None,
        }
    }
}

/// A manifest for the command line.
pub struct PodplaneManifest {
    /// Name that the command line gives such a manifest.
    pub name: String,
    /// The manifest: keys sorted, two spaces a level, one newline at the end.
    pub text: String,
    /// How the image is compressed: the command line reads kernels out of zlib clusters only.
    pub compression: ClusterCompression,
}

/// Makes the manifest of the image at `path`, which will be at `url`, together with the manifest next to it.
pub fn manifest(path: &Path, url: &str) -> Result<PodplaneManifest, PodplaneError> {
    let url = base_url(url)?;
    let image = Image::open(path)?;
    let Some(compression) = image.compression() else {
        return Err(PodplaneError::Format { path: path.to_owned(), found: image.format() });
    };
    let (sidecar, own) = own_manifest(path)?;
    let own_name = file_name(&sidecar)?;
    let content = own.content();
    let (digest, size) = digest(path)?;
    let version = format!("{}-{}", content.version, digest.hex().get(..SHORT).unwrap_or_default());
    let dependency = |kind: &str, digest: &str, url: &str, size: u64| json!({"version": version, "type": kind, "digest": digest, "url": url, "size": size});
    let boot = grub::read(path, None)?;
    let dependencies: BTreeMap<&str, Value> = [
        (
            "vmbake-manifest",
            dependency("binary", &own.digest().to_string(), &format!("{url}/{own_name}"), own.text().len() as u64),
        ),
        ("vmconfig", dependency("tar.gz", "", "", 0)),
    ]
    .into();
    let value = json!({"vmconfig": {
        "version": content.version,
        "kind": content.kind,
        "os": {
            "name": content.os.name,
            "arch": content.os.arch,
            "image": dependency("qcow2", &digest.to_string(), &format!("{url}/{}", file_name(path)?), size),
            "boot": boot,
        },
        "dependencies": dependencies,
        "images": content.images.iter().map(container_image).collect::<Vec<_>>(),
    }});
    let text = serde_json::to_string_pretty(&value)? + "\n";
    Ok(PodplaneManifest { name: manifest_name(content), text, compression })
}

fn manifest_name(content: &Content) -> String {
    format!("vmconfig_{}_{}_{}.json", content.kind, content.os.name, content.os.arch)
}

/// Without what only vmbake reads.
fn container_image(image: &ContainerImage) -> Value {
    json!({
        "image": image.image,
        "digest": image.digest,
        "size": image.size,
        "platform": image.platform,
        "index": image.index,
    })
}

/// The URL of the folder, without a slash at its end.
fn base_url(url: &str) -> Result<&str, PodplaneError> {
    let host = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_graphic() && !"?#\"'`\\$<>{}|^".contains(c);
    if host.is_empty() || host.starts_with('/') || !host.chars().all(is_allowed) {
        return Err(PodplaneError::Url { url: url.to_owned() });
    }
    Ok(url.trim_end_matches('/'))
}

/// The manifest next to an image, if it is the one in it.
fn own_manifest(path: &Path) -> Result<(PathBuf, Manifest), PodplaneError> {
    let tree = open_some(path, None, &[Want { path: INSTALLED.as_bytes(), reach: Reach::Node }])?;
    let installed = tree.read(INSTALLED.as_bytes(), MAX_MANIFEST);
    let installed = installed.map_err(|source| PodplaneError::NotBaked { path: path.to_owned(), source })?;
    let sidecar = path.with_file_name(Sidecar::Manifest.file_name(&stem(path)));
    let manifest = Manifest::load(&sidecar)?;
    let expected = Digest::of(&installed);
    if manifest.digest() != expected {
        let (expected, found) = (Box::new(expected), Box::new(manifest.digest()));
        return Err(PodplaneError::OtherManifest { path: sidecar, image: path.to_owned(), expected, found });
    }
    Ok((sidecar, manifest))
}

/// Name of an image's file without its ending.
fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn file_name(path: &Path) -> Result<&str, PodplaneError> {
    let is_allowed = |name: &&str| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    let name = path.file_name().and_then(|name| name.to_str()).filter(is_allowed);
    name.ok_or_else(|| PodplaneError::Name { path: path.to_owned() })
}

/// SHA-256 and length of a file.
fn digest(path: &Path) -> Result<(Digest, u64), PodplaneError> {
    let file = input::open_regular(path).and_then(|file| Digest::of(b"").of_stream(file));
    file.map_err(|source| PodplaneError::Read { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_is_a_url_that_a_script_may_hold() {
        for (url, expected) in [
            ("https://images.example/knc/", Some("https://images.example/knc")),
            ("http://10.0.2.2:8080", Some("http://10.0.2.2:8080")),
            ("https://[fd00::1]/a%20b/", Some("https://[fd00::1]/a%20b")),
            ("ftp://images.example", None),
            ("https://", None),
            ("https:///knc", None),
            ("https://images.example/?a", None),
            ("https://images.example/$(id)", None),
            ("https://images.example/\"a", None),
            ("https://images.example/a b", None),
        ] {
            assert_eq!(base_url(url).ok(), expected, "{url}");
        }
    }
}

//! Creates a manifest for Podplane's command line from a qcow2 file and the manifest next to it. The same files give
//! the same manifest.
//!
//! The command line downloads the listed files, starts machines from the disk image, and renders user data that
//! download the dependencies. A baked image contains them already: the manifest lists the stub `vmconfig`, for which
//! nothing is unpacked over the image, and one small file, since the script in the user data requires at least one.
//! That file is the image's own manifest.

mod url;
mod neighbours;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmbake_common::message::FileError;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::image::{ClusterCompression, Format, Image, ImageError};
use vmbake_disk::tree::TreeError;

use crate::DocumentError;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_image::disk::InspectError;
use vmbake_image::grub::{self, BootError};
use vmbake_image::inspect::open_some;
use vmbake_layer::{MANIFEST, ORIGINS};
use vmbake_manifest::{ContainerImage, Content, Manifest, ManifestError};

/// The program that registers a machine with the cluster.
const AGENT: &str = "/opt/nstance-agent/bin/nstance-agent";

/// The store of a control plane, for which the command line waits when it starts a local cluster.
const NETSY: &str = "/opt/netsy/bin/netsy";

/// Maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// Maximum size of a record of origins in bytes.
const MAX_ORIGINS: u64 = 64 << 20;

/// Digits of the digest that distinguish images of one version: the command line caches disk images by version and
/// name.
const SHORT: usize = 12;

/// Why no manifest can be created for an image.
#[derive(Debug, thiserror::Error)]
pub enum PodplaneError {
    #[error(transparent)]
    Image(#[from] ImageError),
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error(transparent)]
    Boot(#[from] BootError),
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    #[error("{path}: expected a qcow2 image, found {found}")]
    Format { path: PathBuf, found: Format },
    #[error("{path}: cannot read {MANIFEST}")]
    NotBaked { path: PathBuf, source: TreeError },
    #[error("{path}: manifest {found} differs from that in {image}, {expected}")]
    OtherManifest {
        path: PathBuf,
        image: PathBuf,
        /// Digest of the manifest in the image.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
    #[error("{path}: has no {AGENT}, so its machines cannot register with a cluster")]
    NoAgent { path: PathBuf },
    #[error("{path}: differs from the record of origins in {image}")]
    OtherOrigins { path: PathBuf, image: PathBuf },
    #[error(transparent)]
    Release(#[from] DocumentError),
    #[error("{path}: invalid file name: expected letters, digits, dots, dashes and underscores")]
    Name { path: PathBuf },
    #[error(
        "{url:?}: expected an http:// or https:// URL of a host name or IP address and a path, without user, query, fragment, `..` and escapes of \
         slashes, percent signs and control characters"
    )]
    Url { url: String },
    #[error("cannot serialize the manifest as JSON")]
    Text(#[from] serde_json::Error),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for PodplaneError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Format { .. } => {
                "create one with `vmbake bake --format qcow2 --compression zlib` or `vmbake convert --format qcow2 --compression zlib`"
            }
            Self::NotBaked { .. } => "use an image of a kind with the layer podplane, such as knc",
            Self::NoAgent { .. } => "use an image of a kind that requires the layer nstance-agent, such as knc",
            Self::OtherOrigins { .. } => "`vmbake verify image DIR` reports all changes since the bake",
            Self::OtherManifest { .. } | Self::Manifest(_) => {
                "keep the image and the manifest that a bake writes next to it together: the command line downloads both"
            }
            Self::Url { .. } => "use --url with the URL that serves the directory, such as https://images.example/knc",
            Self::Name { .. } => "rename the image and the manifest next to it",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Image, Inspect, Boot, Manifest, Release, File; NotBaked);
}

/// A manifest for the command line.
pub struct PodplaneManifest {
    /// Its name for the command line.
    pub name: String,
    /// The manifest: sorted keys, two spaces of indentation, trailing newline.
    pub text: String,
    /// Compression of the image: the command line reads kernels from zlib clusters only.
    pub compression: ClusterCompression,
    /// Whether the image can be the control plane of a local cluster.
    pub is_control_plane: bool,
}

/// The input files for the manifest of the image at `path`.
pub fn inputs(path: &Path) -> [PathBuf; 2] {
    [path.to_owned(), sidecar(path)]
}

/// Creates the manifest for the image at `path`, served at `url` together with the manifest next to it.
pub fn manifest(path: &Path, url: &str) -> Result<PodplaneManifest, PodplaneError> {
    let url = url::base_url(url)?;
    let image = Image::open(path)?;
    let Some(compression) = image.compression() else {
        return Err(PodplaneError::Format { path: path.to_owned(), found: image.format() });
    };
    let inside = Inside::read(path)?;
    let (sidecar, own) = inside.manifest(path)?;
    let own_name = file_name(&sidecar)?;
    let content = own.content();
    let (digest, size) = digest(path)?;
    neighbours::check(path, &digest, &own, inside.origins.as_deref())?;
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
    Ok(PodplaneManifest { name: manifest_name(content), text, compression, is_control_plane: inside.has_netsy })
}

fn manifest_name(content: &Content) -> String {
    format!("vmconfig_{}_{}_{}.json", content.kind, content.os.name, content.os.arch)
}

/// Removes fields that only vmbake reads.
fn container_image(image: &ContainerImage) -> Value {
    json!({
        "image": image.image,
        "digest": image.digest,
        "size": image.size,
        "platform": image.platform,
        "index": image.index,
    })
}

/// What is read from an image.
struct Inside {
    manifest: Vec<u8>,
    /// The record of origins.
    origins: Option<Vec<u8>>,
    has_netsy: bool,
}

impl Inside {
    /// Reads an image of a machine that can register with a cluster.
    fn read(path: &Path) -> Result<Self, PodplaneError> {
        let wants = [MANIFEST, ORIGINS, AGENT, NETSY].map(|path| Want { path: path.as_bytes(), depth: Depth::Node });
        let tree = open_some(path, None, &wants)?;
        let not_baked = |source| PodplaneError::NotBaked { path: path.to_owned(), source };
        let manifest = tree.read(MANIFEST.as_bytes(), MAX_MANIFEST).map_err(not_baked)?;
        let has = |path: &str| tree.resolve(path.as_bytes()).is_ok();
        if !has(AGENT) {
            return Err(PodplaneError::NoAgent { path: path.to_owned() });
        }
        let origins = tree.lookup(ORIGINS.as_bytes()).map(|_| tree.read(ORIGINS.as_bytes(), MAX_ORIGINS));
        Ok(Self { manifest, origins: origins.transpose().map_err(not_baked)?, has_netsy: has(NETSY) })
    }

    /// The manifest next to the image, if it equals the one inside.
    fn manifest(&self, path: &Path) -> Result<(PathBuf, Manifest), PodplaneError> {
        let sidecar = sidecar(path);
        let manifest = Manifest::load(&sidecar)?;
        let expected = Digest::of(&self.manifest);
        if manifest.digest() != expected {
            let (expected, found) = (Box::new(expected), Box::new(manifest.digest()));
            return Err(PodplaneError::OtherManifest { path: sidecar, image: path.to_owned(), expected, found });
        }
        Ok((sidecar, manifest))
    }
}

/// The manifest next to an image.
fn sidecar(path: &Path) -> PathBuf {
    path.with_file_name(Sidecar::Manifest.file_name(&stem(path)))
}

/// File name of an image without its extension.
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
    file.map_err(|source| PodplaneError::File(FileError::new(path, "read", source)))
}

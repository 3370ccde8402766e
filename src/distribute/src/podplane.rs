//! Creates a manifest for Podplane's command line from a qcow2 file and the manifest next to it. The same files give
//! the same manifest.
//!
//! The command line downloads the listed files, starts machines from the disk image, and renders user data that
//! download the dependencies. A baked image contains them already: the manifest lists the stub `vmconfig`, for which
//! nothing is unpacked over the image, and one small file, since the script in the user data requires at least one.
//! That file is the image's own manifest.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmbake_common::message::FileError;
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::image::{ClusterCompression, Format, Image, ImageError};
use vmbake_disk::tree::TreeError;

use vmbake_bake::incremental::published::Sidecar;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_image::disk::InspectError;
use vmbake_image::grub::{self, BootError};
use vmbake_image::inspect::open_some;
use vmbake_manifest::{ContainerImage, Content, Manifest, ManifestError};

/// The manifest in an image.
const INSTALLED: &str = "/opt/podplane/share/vmconfig-installed.json";

/// Maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = 64 << 20;

/// Digits of the digest that distinguish images of one version: the command line caches disk images by version and
/// name.
const SHORT: usize = 12;

/// Maximum lengths of a DNS label and name, in bytes.
const MAX_LABEL: usize = 63;
const MAX_HOST: usize = 253;

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
    #[error("{path}: cannot read {INSTALLED}")]
    NotBaked { path: PathBuf, source: TreeError },
    #[error("{path}: manifest {found} differs from that in {image}, {expected}")]
    OtherManifest {
        path: PathBuf,
        image: PathBuf,
        /// Digest of the manifest in the image.
        expected: Box<Digest>,
        found: Box<Digest>,
    },
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
            Self::OtherManifest { .. } | Self::Manifest(_) => {
                "keep the image and the manifest that a bake writes next to it together: the command line downloads both"
            }
            Self::Url { .. } => "use --url with the URL that serves the directory, such as https://images.example/knc",
            Self::Name { .. } => "rename the image and the manifest next to it",
            _ => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Image, Inspect, Boot, Manifest, File; NotBaked);
}

/// A manifest for the command line.
pub struct PodplaneManifest {
    /// Its name for the command line.
    pub name: String,
    /// The manifest: sorted keys, two spaces of indentation, trailing newline.
    pub text: String,
    /// Compression of the image: the command line reads kernels from zlib clusters only.
    pub compression: ClusterCompression,
}

/// The input files for the manifest of the image at `path`.
pub fn inputs(path: &Path) -> [PathBuf; 2] {
    [path.to_owned(), sidecar(path)]
}

/// Creates the manifest for the image at `path`, served at `url` together with the manifest next to it.
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

/// The URL of the directory, without trailing slashes.
fn base_url(url: &str) -> Result<&str, PodplaneError> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://")).unwrap_or_default();
    let is_allowed = |c: char| c.is_ascii_graphic() && !"?#\"'`\\$<>{}|^@".contains(c);
    let url = url.trim_end_matches('/');
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let is_segment = |segment: &str| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        plain != "." && plain != ".." && has_safe_escapes(segment)
    };
    match is_authority(authority) && rest.chars().all(is_allowed) && path.split('/').all(is_segment) {
        true => Ok(url),
        false => Err(PodplaneError::Url { url: url.to_owned() }),
    }
}

/// Whether every percent sign starts an escape, and none is for a slash, which servers treat as a separator, a control
/// character, or a percent sign, which some programs decode again.
fn has_safe_escapes(text: &str) -> bool {
    let is_safe = |rest: &str| {
        let digits = rest.get(..2).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let byte = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
        byte.is_some_and(|byte| !byte.is_ascii_control() && !b"/\\%".contains(&byte))
    };
    text.split('%').skip(1).all(is_safe)
}

/// Whether it is a host name, an IPv4 address, or an IPv6 address in brackets, optionally with a port.
fn is_authority(text: &str) -> bool {
    let is_port = |text: &str| {
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        digits && text.parse::<u16>().is_ok_and(|port| port > 0)
    };
    if let Some((address, rest)) = text.strip_prefix('[').and_then(|text| text.split_once(']')) {
        let is_rest = rest.is_empty() || rest.strip_prefix(':').is_some_and(is_port);
        return address.parse::<Ipv6Addr>().is_ok() && is_rest;
    }
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    port.is_none_or(is_port) && is_host(host)
}

/// Whether it is a DNS name, optionally with a trailing dot, or an IPv4 address.
fn is_host(host: &str) -> bool {
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| {
        (1..=MAX_LABEL).contains(&label.len())
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    // A name that ends with a number is parsed as an address (WHATWG URL).
    let is_number = host.rsplit('.').next().is_some_and(|label| {
        let hex = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
        label.bytes().all(|byte| byte.is_ascii_digit())
            || hex.is_some_and(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))
    });
    host.len() <= MAX_HOST && host.split('.').all(is_label) && (!is_number || host.parse::<Ipv4Addr>().is_ok())
}

/// The manifest next to an image, if it equals the one inside.
fn own_manifest(path: &Path) -> Result<(PathBuf, Manifest), PodplaneError> {
    let tree = open_some(path, None, &[Want { path: INSTALLED.as_bytes(), depth: Depth::Node }])?;
    let installed = tree.read(INSTALLED.as_bytes(), MAX_MANIFEST);
    let installed = installed.map_err(|source| PodplaneError::NotBaked { path: path.to_owned(), source })?;
    let sidecar = sidecar(path);
    let manifest = Manifest::load(&sidecar)?;
    let expected = Digest::of(&installed);
    if manifest.digest() != expected {
        let (expected, found) = (Box::new(expected), Box::new(manifest.digest()));
        return Err(PodplaneError::OtherManifest { path: sidecar, image: path.to_owned(), expected, found });
    }
    Ok((sidecar, manifest))
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
            ("https://images.example:443//knc//", Some("https://images.example:443//knc")),
            ("https://127.0.0.1/a", Some("https://127.0.0.1/a")),
            ("https://images.example:0", None),
            ("https://images.example:65536", None),
            ("https://images.example:", None),
            ("https://images.example:+80", None),
            ("https://images.example/a%", None),
            ("https://images.example/a%2", None),
            ("https://images.example/a%zz/b", None),
            ("https://images.example/a%é0/b", None),
            ("https://-images.example", None),
            ("https://images-.example", None),
            ("https://.example", None),
            ("https://images..example", None),
            ("https://%41.example", None),
            ("https://user@images.example", None),
            ("https://256.0.0.1", None),
            ("https://[fd00::1", None),
            ("https://[fd00]/", None),
            ("https://[fd00::1]x", None),
            ("https://images.example/../knc", None),
            ("https://images.example/a/.", None),
            ("https://images.example/%2e%2E/knc", None),
            ("http://0x7f000001", None),
            ("http://127.0.0.0X1/a", None),
            ("http://0x", None),
            ("http://0xg.example", Some("http://0xg.example")),
            ("https://images.example/%2f..", None),
            ("https://images.example/a%5c..%5Cb", None),
            ("https://images.example/%00", None),
            ("https://images.example/a%0d%0Ab", None),
            ("https://images.example/%7f", None),
            ("https://images.example/%252e%252e", None),
        ] {
            assert_eq!(base_url(url).ok(), expected, "{url}");
        }
    }
}

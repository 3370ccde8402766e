//! `vmbake pull`: downloads a release from a registry, and writes an image with its documents.
//!
//! Steps: resolve the name, verify the signatures (`signed`), check the release name and that it is not older than a
//! previous pull (`bound`), select the image and check its documents (`wanted`), download the files next to it and its
//! provenance (`sidecars`), and only then download the disk into a partial file (`part`). Each chunk is verified before
//! it is written, and the whole image before it is named. So an image with its final name is the one that was signed.

mod error;
mod signed;
mod bound;
mod rollback;
mod wanted;
mod sidecars;
mod known;
mod partial;
mod transfer;

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;

use vmbake_bake::release::verify::NamedSigner;
use vmbake_common::atomic_file::write_file;
use vmbake_common::digest::Digest;
use vmbake_oci::RemoteName;
use vmbake_proof::sigstore::SigstoreRoot;
use vmbake_store::registry::Repository;
use vmbake_store::store::Store;

use crate::document::{INDEX, RELEASE, ReleaseIndex};
use vmbake_disk::image::Format;

pub use error::PullError;
pub use rollback::SeenReleases;
pub use signed::bundles as bundles_of;

use partial::PartialImage;
use sidecars::Sidecars;
use wanted::WantedImage;

/// The parameters of a pull.
pub struct PullRequest<'a> {
    pub repository: &'a Repository,
    /// The name of the release, with a tag or a digest.
    pub reference: &'a RemoteName,
    /// Architecture; by default the only one, or that of this machine.
    pub arch: Option<&'a str>,
    /// Format; by default raw, if available.
    pub format: Option<Format>,
    /// Required signers of the index.
    pub signers: &'a [NamedSigner],
    /// Whether to accept an unsigned release.
    pub allow_unsigned: bool,
    /// The expected name in the signed index; `None` for that of the repository, without the host.
    pub name: Option<&'a str>,
    /// The newest versions that were pulled.
    pub seen: &'a SeenReleases,
    /// Whether to accept a version older than the newest that was pulled.
    pub allow_downgrade: bool,
    /// Authorities and logs of sigstore.
    pub root: &'a SigstoreRoot,
    pub now: Timestamp,
    /// An older raw image to copy unchanged chunks from.
    pub from: Option<&'a Path>,
    /// Output directory.
    pub out: &'a Path,
    /// Whether existing files may be replaced.
    pub force: bool,
    /// The store, used for a qcow2 image until it is complete.
    pub store: &'a Store,
    /// Number of concurrent chunk downloads.
    pub threads: NonZeroUsize,
    /// Receives the number of bytes of the disk as they are written.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PullReport {
    /// Digest of the index.
    pub digest: String,
    /// Signers of the index.
    pub signed_by: Vec<String>,
    /// Its version, if its index has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub image: PathBuf,
    /// Files written next to it.
    pub files: Vec<PathBuf>,
    /// Downloaded bytes of the disk, compressed.
    pub downloaded_bytes: u64,
    /// Bytes of the disk from an older image or an earlier attempt.
    pub reused_bytes: u64,
}

/// Pulls an image of a release.
pub fn pull(request: &PullRequest<'_>) -> Result<PullReport, PullError> {
    let (digest, index) = release(request)?;
    let signed_by = signed::check(request, &digest)?;
    let version = bound::check(request, &digest, &index)?;
    let wanted = WantedImage::find(request, &index)?;
    let sidecars = Sidecars::fetch(request, &digest, &wanted)?;
    let image = request.out.join(wanted.file_name());
    sidecars.check_room(request, &image)?;
    let digest = digest.to_string();
    let report = PullReport { digest, signed_by, version, image: image.clone(), ..PullReport::default() };
    match (wanted.config.format, wanted.layers.first()) {
        (format, Some(layer)) if format != Format::Raw => {
            let (pending, report) = transfer::whole(request, layer, &image, report)?;
            let files = write_all(request, &sidecars)?;
            pending.publish()?;
            request.store.discard(&layer.digest)?;
            Ok(PullReport { files, ..report })
        }
        _ => {
            let mut part = PartialImage::open(&image, wanted.config.size)?;
            let report = transfer::chunks(request, &wanted, &mut part, report)?;
            part.check(&wanted.config.checksum, request.threads)?;
            let files = write_all(request, &sidecars)?;
            part.publish(request.force)?;
            Ok(PullReport { files, ..report })
        }
    }
}

/// The index of the release.
fn release(request: &PullRequest<'_>) -> Result<(Digest, ReleaseIndex), PullError> {
    let RemoteName { tag, digest, .. } = request.reference;
    let name = request.reference.to_string();
    let found = match (tag, digest) {
        (Some(tag), _) => request.repository.manifest(tag)?,
        (None, Some(digest)) => request.repository.manifest(&digest.to_string())?,
        (None, None) => return Err(PullError::Unnamed { name }),
    };
    if let Some(expected) = digest.filter(|digest| *digest != found.digest) {
        return Err(PullError::Moved { name, expected: Box::new(expected), found: Box::new(found.digest) });
    }
    let index: ReleaseIndex = serde_json::from_slice(&found.bytes)
        .map_err(|source| PullError::Syntax { digest: Box::new(found.digest), source })?;
    match index.schema_version == 2 && index.media_type == INDEX && index.artifact_type == RELEASE {
        true => Ok((found.digest, index)),
        false => Err(PullError::NoRelease { name, found: index.artifact_type }),
    }
}

fn write_all(request: &PullRequest<'_>, sidecars: &Sidecars) -> Result<Vec<PathBuf>, PullError> {
    let mut written = Vec::new();
    for (name, content) in &sidecars.files {
        let path = request.out.join(name);
        // A different existing file was refused before, unless it may be replaced.
        write_file(&path, content, true)?;
        written.push(path);
    }
    Ok(written)
}

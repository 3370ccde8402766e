//! `vmbake pull`: a release comes from a repository of a registry, and an image of it is written with all that lies beside it.
//!
//! The order is: what the name stands for, who has signed it (`signed`), whether it has the requested name and is not older than a previous pull
//! (`bound`), which image is wanted and whether its documents agree with each other (`wanted`), the files beside it and its provenance (`sidecars`), and only then the bytes of the disk, which are placed in a
//! file without its final name (`part`). Each chunk is checked before it is placed, the whole image before it gets its name. So what has
//! that name is what was signed.

mod error;
mod signed;
mod bound;
mod seen;
mod wanted;
mod sidecars;
mod known;
mod part;
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

use super::release::document::{INDEX, RELEASE, ReleaseIndex};
use vmbake_disk::image::Format;

pub use error::PullError;
pub use seen::SeenReleases;
pub(crate) use signed::bundles as bundles_of;

use part::Part;
use sidecars::Sidecars;
use wanted::WantedImage;

/// What to pull, and whom to believe.
pub struct PullRequest<'a> {
    /// Where it is.
    pub repository: &'a Repository,
    /// The name of the release, with a tag or a digest.
    pub reference: &'a RemoteName,
    /// Architecture; else the only one that there is, or the one of this machine.
    pub arch: Option<&'a str>,
    /// Format; else raw, if it is there.
    pub format: Option<Format>,
    /// Each of these must have signed the index.
    pub signers: &'a [NamedSigner],
    /// Whether it may be unsigned.
    pub allow_unsigned: bool,
    /// The name that the signed index must have; `None` is that of the repository, without the host.
    pub name: Option<&'a str>,
    /// The newest versions that were pulled.
    pub seen: &'a SeenReleases,
    /// Whether to accept a version older than the newest that was pulled.
    pub allow_downgrade: bool,
    /// Authorities and logs of sigstore.
    pub root: &'a SigstoreRoot,
    /// Time of the check.
    pub now: Timestamp,
    /// An older raw image, whose chunks are taken over.
    pub from: Option<&'a Path>,
    /// The folder to write to.
    pub out: &'a Path,
    /// Whether files there may be replaced.
    pub force: bool,
    /// Where a qcow2 image is kept until it is complete.
    pub store: &'a Store,
    /// Chunks that are on their way at the same time.
    pub threads: NonZeroUsize,
    /// Is told of every byte of the disk that is in place.
    pub progress: &'a (dyn Fn(u64) + Sync),
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PullReport {
    /// Digest of the index.
    pub digest: String,
    /// Who has signed it.
    pub signed_by: Vec<String>,
    /// Its version, if its index has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub image: PathBuf,
    /// What was written beside it.
    pub files: Vec<PathBuf>,
    /// Bytes of the disk that were downloaded, compressed.
    pub downloaded_bytes: u64,
    /// Bytes of the disk that an older image or an earlier attempt had.
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
        (Format::Qcow2, Some(layer)) => {
            let (pending, report) = transfer::whole(request, layer, &image, report)?;
            let files = write_all(request, &sidecars)?;
            pending.publish()?;
            request.store.discard(&layer.digest)?;
            Ok(PullReport { files, ..report })
        }
        _ => {
            let mut part = Part::open(&image, wanted.config.size)?;
            let report = transfer::chunks(request, &wanted, &mut part, report)?;
            part.check(&wanted.config.checksum, request.threads)?;
            let files = write_all(request, &sidecars)?;
            part.publish(request.force)?;
            Ok(PullReport { files, ..report })
        }
    }
}

/// The index that the name stands for.
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
        // What is there already and not the same was refused before, unless it may be replaced.
        write_file(&path, content, true)?;
        written.push(path);
    }
    Ok(written)
}

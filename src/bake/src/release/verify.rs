//! Verifies a release: checks the outputs in a directory against trust anchors and a policy, and returns a list of
//! checks.
//!
//! Nothing is trusted without verification. Digests are computed (`outputs`), signatures are verified (`signatures`),
//! the statement is created again from the record of inputs, the manifest and the lists (`statements`), files in the
//! image are compared with their recorded origins (`origins`) and the SBOMs (`materials`), and every proof of the
//! manifest is replayed (`proofs`). The checks run in that order; all are reported, even after a failure. No network
//! access.

mod outputs;
mod signatures;
mod statements;
mod archives;
mod materials;
mod origins;
mod proofs;
mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::Path;

use jiff::Timestamp;

use crate::incremental::checksums::Checksum;
use crate::incremental::published::Sidecar;
use crate::release::policy::ReleasePolicy;
use crate::release::sums::{Sums, SumsKind, read_sums};
use vmbake_common::output_format::OutputFormat;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_proof::sigstore::SigstoreRoot;
use vmbake_store::store::Store;

pub use report::{CheckState, ReleaseCheck, ReleaseReport};
pub use signatures::{NamedSigner, SignatureDemand, document_signed};
pub use statements::Documented;

pub struct VerifyRequest<'a> {
    pub folder: &'a Path,
    /// The only image that must exist, without its directory; otherwise everything listed must exist.
    pub image: Option<&'a str>,
    /// Required signatures; each demand must be met.
    pub signatures: Vec<SignatureDemand>,
    /// Other requirements.
    pub policy: ReleasePolicy,
    /// Authorities and logs of sigstore.
    pub root: &'a SigstoreRoot,
    /// The store with the evidence of the manifest.
    pub store: &'a Store,
    /// The required proofs of the artifacts.
    pub sources: &'a Sources,
    pub anchors: &'a Anchors,
    pub now: Timestamp,
    /// Threads for hashing.
    pub threads: NonZeroUsize,
}

/// A release and the results of its checks.
struct Verification<'a> {
    request: &'a VerifyRequest<'a>,
    lists: BTreeMap<&'static str, Sums>,
    /// The checksums of the verified images and their documents.
    listed: BTreeMap<String, Checksum>,
    report: ReleaseReport,
}

pub struct VerifiedRelease {
    /// The checks and their results.
    pub report: ReleaseReport,
    /// The images whose documents are consistent.
    pub images: Vec<Documented>,
    /// The lists, by file name.
    pub lists: BTreeMap<&'static str, Sums>,
}

/// Verifies a release.
pub fn verify(request: &VerifyRequest<'_>) -> VerifiedRelease {
    let mut verification = Verification::read(request);
    let names = verification.names();
    verification.outputs(&names);
    let releases: Vec<_> = names.iter().map(|name| verification.statement(name)).collect();
    verification.signatures(&releases);
    for release in releases.iter().flatten() {
        verification.origin(release);
        verification.proofs(release);
    }
    let Verification { report, lists, .. } = verification;
    VerifiedRelease { report, images: releases.into_iter().flatten().collect(), lists }
}

impl<'a> Verification<'a> {
    fn read(request: &'a VerifyRequest<'a>) -> Self {
        let mut found =
            Self { request, lists: BTreeMap::new(), listed: BTreeMap::new(), report: ReleaseReport::default() };
        for kind in SumsKind::ALL {
            let name = kind.file_name();
            match read_sums(request.folder, kind) {
                Ok(Some(sums)) => {
                    found.listed.extend(sums.checksums.clone());
                    found.lists.insert(name, sums);
                }
                Ok(None) if kind == SumsKind::Verity => {}
                Ok(None) => found.report.failed(name, "list", "missing: the files of the release are unknown"),
                Err(error) => found.report.failed_by(name, "list", &error),
            }
        }
        if let Some(name) = request.image.and_then(image_name) {
            found.listed.retain(|file, _| belongs(file, name));
        }
        found
    }

    /// The names of the images that exist or are listed, without suffixes.
    fn names(&self) -> BTreeSet<String> {
        let ends = [Sidecar::Provenance, Sidecar::Inputs].map(|sidecar| sidecar.file_name(""));
        let stem = |file: &str| {
            let end = ends.iter().find_map(|end| file.strip_suffix(end.as_str()));
            end.or_else(|| image_name(file)).map(str::to_owned)
        };
        self.listed.keys().map(String::as_str).chain(self.request.image).filter_map(stem).collect()
    }
}

/// Whether a file belongs to the image called `name`.
pub fn belongs(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

/// The image name in the file name of an image, or of an archive of its root file system.
pub fn image_name(file: &str) -> Option<&str> {
    OutputFormat::split_file_name(file).map(|(name, _)| name)
}

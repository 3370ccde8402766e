//! Whether a release is what it says: a folder of outputs, whom to believe and what to demand enter, a list of checks leaves.
//!
//! Nothing is believed because it is there. Digests are computed (`outputs`), signatures are verified (`signatures`), the statement
//! is written once more from the record of inputs, the manifest and the lists (`statements`), the image is asked where its files came from
//! (`origins`) and what it is made of (`materials`), and every proof of the manifest is replayed (`proofs`). The checks stand in that
//! order; each is told, also behind one that failed. No socket is opened.

mod outputs;
mod signatures;
mod statements;
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
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_proof::sigstore::SigstoreRoot;
use vmbake_store::store::Store;

pub use report::{CheckState, ReleaseCheck, ReleaseReport};
pub use signatures::{NamedSigner, SignatureDemand, document_signed};
pub use statements::Documented;

pub struct VerifyRequest<'a> {
    pub folder: &'a Path,
    /// The only image that must be there, without its folder; else everything that is listed must.
    pub image: Option<&'a str>,
    /// Whose signatures are demanded; each demand must be met.
    pub signatures: Vec<SignatureDemand>,
    /// What else is demanded.
    pub policy: ReleasePolicy,
    /// Authorities and logs of sigstore.
    pub root: &'a SigstoreRoot,
    /// Where the evidence of the manifest is.
    pub store: &'a Store,
    /// What must prove the artifacts.
    pub sources: &'a Sources,
    /// Whom to believe.
    pub anchors: &'a Anchors,
    /// Time of the check.
    pub now: Timestamp,
    /// Threads for hashing.
    pub threads: NonZeroUsize,
}

/// A release as far as it was read, and what was found out.
struct Verification<'a> {
    request: &'a VerifyRequest<'a>,
    lists: BTreeMap<&'static str, Sums>,
    /// What the lists say of the images that are looked at and of everything beside them.
    listed: BTreeMap<String, Checksum>,
    report: ReleaseReport,
}

pub struct VerifiedRelease {
    /// What was checked, and what came of it.
    pub report: ReleaseReport,
    /// The images, as far as their documents agree with each other.
    pub images: Vec<Documented>,
    /// The lists, by the names of their files.
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
                Ok(None) => {
                    found.report.failed(name, "list", "there is none: nothing says what belongs to the release")
                }
                Err(error) => found.report.failed_by(name, "list", &error),
            }
        }
        if let Some(name) = request.image.and_then(image_name) {
            found.listed.retain(|file, _| belongs(file, name));
        }
        found
    }

    /// The images that are there or should be, without the ends of their names.
    fn names(&self) -> BTreeSet<String> {
        let ends = [Sidecar::Provenance, Sidecar::Inputs].map(|sidecar| sidecar.file_name(""));
        let stem = |file: &str| {
            let end = ends.iter().find_map(|end| file.strip_suffix(end.as_str()));
            end.or_else(|| image_name(file)).map(str::to_owned)
        };
        self.listed.keys().map(String::as_str).chain(self.request.image).filter_map(stem).collect()
    }
}

/// Whether a file is of the image called `name`.
pub fn belongs(file: &str, name: &str) -> bool {
    file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.'))
}

/// The name in the name of an image's file.
pub fn image_name(file: &str) -> Option<&str> {
    file.strip_suffix(".raw").or_else(|| file.strip_suffix(".qcow2"))
}

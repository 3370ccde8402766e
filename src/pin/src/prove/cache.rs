//! Cached verification results: `verdicts/<digest>` in the store, named after all inputs.

use std::path::PathBuf;

use super::{Prover, VerificationResult};
use vmbake_common::digest::Digest;
use vmbake_manifest::Manifest;
use vmbake_store::file_identity::{read_record, write_record};
use vmbake_store::store::{Store, VERDICTS};

/// A digest of the manifest, which names the evidence, of the sources, the trust anchors and the program; `None` if one
/// of them is unknown.
pub(super) fn key(prover: &Prover<'_>, manifest: &Manifest) -> Option<Digest> {
    let anchors = prover.anchors.digests(prover.sources, manifest.content());
    let all = (manifest.digest(), prover.sources.digest(), anchors, prover.store.running_program()?);
    serde_json::to_vec(&all).ok().map(|text| Digest::of(&text))
}

pub(super) fn load(store: &Store, key: &Digest) -> Option<VerificationResult> {
    store.is_trusted().then_some(())?;
    // It contains its name: under another name it is invalid.
    let (of, result): (Digest, VerificationResult) = serde_json::from_slice(&read_record(&place(store, key))?).ok()?;
    (of == *key).then_some(result)
}

pub(super) fn save(store: &Store, key: &Digest, result: &VerificationResult) {
    if !store.is_trusted() {
        return;
    }
    write_record(&place(store, key), |out| Ok(serde_json::to_writer(out, &(key, result))?));
}

fn place(store: &Store, key: &Digest) -> PathBuf {
    store.root().join(VERDICTS).join(key.hex())
}

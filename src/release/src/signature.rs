//! The signature of a release index: creates an attachment with a sigstore bundle from its digest and a key.
//!
//! The signed document is an in-toto statement (Statement v1) whose only subject is the index, as cosign signs
//! artifacts in a registry. So cosign can verify it, and vmbake can verify signatures of cosign.

use serde_json::json;

use vmbake_bake::release::key::PrivateKey;
use vmbake_bake::release::provenance::STATEMENT_TYPE;
use vmbake_bake::release::sign::{MEDIA_TYPE, envelope};
use vmbake_common::digest::Digest;
use vmbake_oci::Descriptor;

use super::attachments::Attachment;
use super::error::DocumentError;

/// Type of the statement's predicate, which is empty.
pub const SIGNATURE: &str = "https://sigstore.dev/cosign/sign/v1";
/// Name of the file when saved.
const NAME: &str = "index.sigstore.json";

pub fn sign_index(index: &Descriptor, key: &PrivateKey) -> Result<Attachment, DocumentError> {
    let bundle = envelope(key, &statement(&index.digest)?)?;
    // cosign finds the bundle among the attachments by these annotations.
    let annotations =
        [("dev.sigstore.bundle.content", "dsse-envelope"), ("dev.sigstore.bundle.predicateType", SIGNATURE)];
    Ok(Attachment::new(index, NAME, MEDIA_TYPE, serde_json::to_vec(&bundle)?, &annotations)?)
}

fn statement(index: &Digest) -> Result<Vec<u8>, serde_json::Error> {
    serde_json::to_vec(&json!({
        "_type": STATEMENT_TYPE,
        "subject": [{"digest": {index.algorithm(): index.hex()}}],
        "predicateType": SIGNATURE,
        "predicate": {},
    }))
}

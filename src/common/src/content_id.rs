//! Content IDs of inputs.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use vmbake_disk::source::{ContentId, Identified, ReadAt};

use crate::digest::Digest;

/// Gives `source` a content ID, derived from the digest of the verified blob and the name of the decoded form. Decoding
/// the same blob to other bytes must use another form.
pub fn identified(source: Arc<dyn ReadAt>, digest: &Digest, form: &str) -> Arc<dyn ReadAt> {
    let id = ContentId(Sha256::digest(format!("{digest} {form}")).into());
    Arc::new(Identified::new(source, id))
}

//! Ids for the bytes of inputs.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use vmbake_disk::source::{ContentId, Identified, ReadAt};

use crate::digest::Digest;

/// Gives the bytes of `source` an id: they are what the blob `digest`, which was proven, holds in that form. Another way to
/// decode the same blob to other bytes is another form.
pub fn identified(source: Arc<dyn ReadAt>, digest: &Digest, form: &str) -> Arc<dyn ReadAt> {
    let id = ContentId(Sha256::digest(format!("{digest} {form}")).into());
    Arc::new(Identified::new(source, id))
}

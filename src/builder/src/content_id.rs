//! Names for the bytes of inputs.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use vmbake_disk::source::{Named, ReadAt};

use crate::digest::Digest;

/// Names the bytes of `source`: they are what the blob `digest`, which was proven, holds in that form. Another way to
/// decode the same blob to other bytes is another form.
pub(crate) fn named(source: Arc<dyn ReadAt>, digest: &Digest, form: &str) -> Arc<dyn ReadAt> {
    Arc::new(Named::new(source, Sha256::digest(format!("{digest} {form}")).into()))
}

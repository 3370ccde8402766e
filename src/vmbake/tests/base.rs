//! The base image that `make test` names.

use std::path::PathBuf;

use crate::tools::skip::skip;

/// A base image with the `rootfs.tar` beside it that it was made from, as `make base` builds it; `make test` names it.
pub fn base() -> Option<PathBuf> {
    let base = std::env::var_os("VMBAKE_TEST_BASE").map(PathBuf::from);
    if base.is_none() {
        skip("VMBAKE_TEST_BASE does not name a base image");
    }
    base
}

//! The base image of `make test`.

use std::path::PathBuf;

use crate::tools::skip::skip;

/// A base image with its `rootfs.tar` next to it, as built by `make base`; `make test` provides the path.
pub fn base() -> Option<PathBuf> {
    let base = std::env::var_os("VMBAKE_TEST_BASE").map(PathBuf::from);
    if base.is_none() {
        skip("VMBAKE_TEST_BASE does not name a base image");
    }
    base
}

//! The programs that tests ask for a second opinion.

use std::path::{Path, PathBuf};

use crate::skip::skip;

/// Whether they are all there. Where one is missing the test is skipped, but not in CI.
pub fn have(tools: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = |tool: &&&str| path.split(':').any(|dir| Path::new(dir).join(tool).exists());
    let Some(missing) = tools.iter().find(|tool| !found(tool)) else { return true };
    skip(&format!("{missing} is not installed"));
    false
}

/// A base image with the `rootfs.tar` beside it that it was made from, as `make base` builds it; `make test` names it.
pub fn base() -> Option<PathBuf> {
    let base = std::env::var_os("VMBAKE_TEST_BASE").map(PathBuf::from);
    if base.is_none() {
        skip("VMBAKE_TEST_BASE does not name a base image");
    }
    base
}

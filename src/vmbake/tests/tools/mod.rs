//! External tools that tests compare with.

use std::path::Path;

#[path = "../../../disk/tests/skip.rs"]
pub mod skip;

/// Whether they are all there. Where one is missing the test is skipped, but not in CI.
pub fn have(tools: &[&str]) -> bool {
    let path = std::env::var("PATH").unwrap_or_default() + ":/usr/sbin:/sbin";
    let found = |tool: &&&str| path.split(':').any(|dir| Path::new(dir).join(tool).exists());
    let Some(missing) = tools.iter().find(|tool| !found(tool)) else { return true };
    skip::skip(&format!("{missing} is not installed"));
    false
}

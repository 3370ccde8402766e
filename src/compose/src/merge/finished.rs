//! Checks of files that programs read together, in the finished tree: settings of one layer that another layer, or the base, makes
//! ineffective or invalid.

mod apt;
mod ssh_keys;
mod sysctl;

use super::MergeError;
use super::place::Target;
use vmbake_disk::tree::Kind;
pub use vmbake_layer::Layer;

/// Fails where a layer has no effect or breaks a program. Returns warnings.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<Vec<String>, MergeError> {
    apt::check(target)?;
    ssh_keys::check(target)?;
    sysctl::check(target, layers)
}

/// The files of a directory with one of the ends, by name.
pub(super) fn files_in(target: &Target, dir: &str, ends: &[&str]) -> Vec<String> {
    let Ok(id) = target.tree.resolve(dir.as_bytes()) else { return Vec::new() };
    let Kind::Directory(entries) = &target.tree.inode(id).kind else { return Vec::new() };
    let names = entries.keys().filter_map(|name| str::from_utf8(name).ok());
    names.filter(|name| ends.iter().any(|end| name.ends_with(end))).map(|name| format!("{dir}/{name}")).collect()
}

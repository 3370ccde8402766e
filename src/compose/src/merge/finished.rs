//! Checks of files that programs read together, in the finished tree: settings of one layer that another layer, or the base, makes
//! ineffective or invalid.

mod accounts;
mod apt;
mod fstab;
mod login;
mod logs;
mod nftables;
mod profile;
mod ssh_keys;
mod sshd;
mod sysctl;
mod tmpfiles;

use super::MergeError;
use super::place::Target;
use vmbake_disk::tree::Kind;
pub use vmbake_layer::Layer;

/// Fails where a layer has no effect or breaks a program. Returns warnings.
pub(super) fn check(target: &Target, layers: &[Layer]) -> Result<Vec<String>, MergeError> {
    apt::check(target)?;
    fstab::check(target, layers)?;
    accounts::check(target, layers)?;
    login::check(target, layers)?;
    logs::check(target, layers)?;
    nftables::check(target, layers)?;
    profile::check(target, layers)?;
    ssh_keys::check(target)?;
    let mut warnings = sshd::check(target, layers)?;
    warnings.extend(sysctl::check(target, layers)?);
    warnings.extend(tmpfiles::check(target, layers)?);
    Ok(warnings)
}

/// The layer whose own file is at a path: neither the base's, nor that of a package or another artifact.
fn of_layer<'t>(target: &'t Target, layers: &[Layer], path: &str) -> Option<&'t str> {
    let layer = target.layer_at(path)?;
    let own = layers.iter().find(|own| own.schema.name == layer)?;
    own.files.contains_key(path).then_some(layer)
}

/// The files of a directory with one of the ends, by name.
pub(super) fn files_in(target: &Target, dir: &str, ends: &[&str]) -> Vec<String> {
    let Ok(id) = target.tree.resolve(dir.as_bytes()) else { return Vec::new() };
    let Kind::Directory(entries) = &target.tree.inode(id).kind else { return Vec::new() };
    let names = entries.keys().filter_map(|name| str::from_utf8(name).ok());
    names.filter(|name| ends.iter().any(|end| name.ends_with(end))).map(|name| format!("{dir}/{name}")).collect()
}

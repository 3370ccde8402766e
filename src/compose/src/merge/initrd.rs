//! The initial RAM disks of kernels, made by interpreting the tree's own mkinitramfs(8): the tree after all layers in, the tree with
//! `/boot/initrd.img-VERSION` out.
//!
//! Scripts of packages and changed files only note for which kernels one is due, because the disk contains files of all packages and layers.
//! The bytes in the archives are those that mkinitramfs writes in a chroot with `SOURCE_DATE_EPOCH` set to the time of the image; our libraries
//! compress them.

use vmbake_common::message;
use vmbake_disk::tree::{Kind, Origin};

use super::database::Database;
use super::place::Target;
use super::{DeferredPackage, MergeError, maintainer};

/// The path of an initial RAM disk without `-VERSION`.
pub(super) const BOOT: &str = "/boot/initrd.img";
/// The package whose trigger makes them on the machine.
const PACKAGE: &str = "initramfs-tools";
const TRIGGER: &str = "update-initramfs";
const PROGRAM: &str = "/usr/sbin/mkinitramfs";

/// Why an initial RAM disk is made.
#[derive(Clone, Debug)]
pub(super) struct Due {
    /// The layer and package that requested it last.
    pub(super) origin: Origin,
    /// Whether a script of a package requested it, rather than a changed file of a layer.
    pub(super) is_of_package: bool,
}

/// What [`make`] did not make: on the first boot, or not at all.
#[derive(Default)]
pub(super) struct Made {
    /// Packages that make it on the first boot.
    pub(super) deferred: Vec<DeferredPackage>,
    pub(super) warnings: Vec<String>,
}

/// Notes that a layer has changed files that the initial RAM disk of a kernel contains, or those of all kernels. Returns whether there is one
/// to make again.
pub(super) fn note(target: &Target, packages: &mut Database, layer: &str, version: Option<&str>) -> bool {
    if target.tree.resolve(PROGRAM.as_bytes()).is_err() {
        return false;
    }
    let mut versions = versions(target);
    versions.retain(|found| version.is_none_or(|version| version == found));
    versions.retain(|version| target.check_landing(layer, format!("{BOOT}-{version}").as_bytes()).is_ok());
    for version in &versions {
        let origin = Origin { layer: layer.to_owned(), ..Origin::default() };
        packages.initrds.entry(version.clone()).or_insert(Due { origin, is_of_package: false });
    }
    !versions.is_empty()
}

/// The kernels with modules and an initial RAM disk.
fn versions(target: &Target) -> Vec<String> {
    let (directory, start) = BOOT.rsplit_once('/').unwrap_or_default();
    let Ok(id) = target.tree.resolve(directory.as_bytes()) else { return Vec::new() };
    let Kind::Directory(entries) = &target.tree.inode(id).kind else { return Vec::new() };
    let names = entries.keys().filter_map(|name| std::str::from_utf8(name).ok());
    let versions = names.filter_map(|name| name.strip_prefix(start)?.strip_prefix('-').map(str::to_owned));
    versions.filter(|version| target.tree.resolve(format!("/lib/modules/{version}").as_bytes()).is_ok()).collect()
}

/// Makes those that are due. One of the base that cannot be made stays; if a package requested it, the machine makes it on the first boot.
pub(super) fn make(target: &mut Target, packages: &mut Database) -> Result<Made, MergeError> {
    let mut made = Made::default();
    let outer = target.origin().clone();
    for (version, due) in std::mem::take(&mut packages.initrds) {
        let path = format!("{BOOT}-{version}");
        // A script may have removed it since.
        let Ok(id) = target.tree.resolve(path.as_bytes()) else { continue };
        let is_there = matches!(&target.tree.inode(id).kind, Kind::File(map) if !map.is_empty());
        target.enter(due.origin.clone());
        match maintainer::mkinitramfs(target, packages, &version)? {
            Ok((mode, content)) => target.file(&path, target.meta(mode), content)?,
            Err(reason) if !is_there => {
                return Err(MergeError::Message(message!("{path}: cannot be made: {reason}")));
            }
            Err(reason) if due.is_of_package => {
                packages.status.pend(PACKAGE, TRIGGER)?;
                packages.status.write(target)?;
                packages.defer(target)?;
                let reason = format!("{path} has to be made on the machine: {reason}");
                made.deferred.push(DeferredPackage { package: PACKAGE.to_owned(), reason });
            }
            Err(reason) => made.warnings.push(format!("{path} stays as in the base: {reason}")),
        }
    }
    target.enter(outer);
    Ok(made)
}

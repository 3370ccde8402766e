//! Applies the effects that a layer lists instead of running a maintainer script, which is identified by its digest.

use vmbake_disk::tree::Metadata;

use super::maintainer::Occasion;
use super::place::Target;
use super::sysusers::id;
use super::{MergeError, UnitFault, alternatives, units};
use vmbake_common::digest::Digest;
use vmbake_layer::{AuditedScript, Ownership};

/// The entry about a script, of those that layers have.
pub(super) fn find<'a>(
    audited: &'a [AuditedScript],
    package: &str,
    script: &str,
    source: &[u8],
    occasion: Occasion,
) -> Option<&'a AuditedScript> {
    let applies = |entry: &AuditedScript| match occasion {
        Occasion::Install => true,
        Occasion::Upgrade => entry.upgrade,
        Occasion::Removal => entry.remove,
    };
    let mut known =
        audited.iter().filter(|entry| entry.package == package && entry.script == script && applies(entry)).peekable();
    known.peek()?;
    let sha256 = Digest::of(source).hex();
    known.find(|entry| entry.sha256 == sha256)
}

/// Makes the changes that an entry lists.
pub(super) fn apply(target: &mut Target, entry: &AuditedScript) -> Result<(), MergeError> {
    let package = &entry.package;
    for (what, file, names) in [("user", "/etc/passwd", &entry.users), ("group", "/etc/group", &entry.groups)] {
        for name in names {
            id(target, package, what, file, name)?;
        }
    }
    for (path, owner) in &entry.directories {
        let meta = metadata(target, package, owner)?;
        target.directory(path, meta)?;
    }
    for (path, owner) in &entry.files {
        let meta = metadata(target, package, owner)?;
        target.set_mode(path, &meta)?;
    }
    for (path, to) in &entry.symlinks {
        target.symlink(path, to)?;
    }
    for unit in &entry.units.enable {
        if !units::helper::enable(target, units::Scope::System, unit)? {
            let (layer, unit) = (target.origin().layer.clone(), unit.clone());
            return Err(MergeError::Unit { layer, unit, fault: UnitFault::Missing });
        }
    }
    alternatives::install(target, &entry.alternatives)
}

fn metadata(target: &Target, package: &str, owner: &Ownership) -> Result<Metadata, MergeError> {
    let mut meta = target.meta(owner.mode);
    meta.uid = id(target, package, "user", "/etc/passwd", &owner.owner)?;
    meta.gid = id(target, package, "group", "/etc/group", &owner.group)?;
    Ok(meta)
}

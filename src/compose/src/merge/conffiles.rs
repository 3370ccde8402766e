//! Configuration files of packages: the version that an upgrade keeps, and the digests that dpkg records.
//!
//! As with `--force-confold`, a file that was modified in the base is kept, and the package's version is written next to it as
//! `.dpkg-dist`.

use std::collections::BTreeMap;
use std::io::{self, Read};

use md5::Digest as _;
use vmbake_disk::source::{Map, MapReader, SourceId};
use vmbake_disk::tree::{Inode, Kind, TreeError};

use super::place::Target;
use super::placed::Placed;
use super::status::Status;
use super::upgrade::{self, Old};
use super::{ConffileFault, MergeError};
use crate::stage::{Deb, MemberKind};

/// What dpkg writes in place of the digest of a conffile whose content it has not seen.
const NEW: &str = "newconffile";

/// What becomes of the package's version of a conffile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    /// Replaces the existing file.
    Install,
    /// It goes: what is there stays.
    Keep,
    /// It is written next to the existing file.
    Alongside,
}

/// Fails where a conffile of the package is one of another package too: what dpkg makes of that depends on what that package
/// once installed, which is not looked at here.
pub(super) fn none_moves(status: &Status, deb: &Deb) -> Result<(), MergeError> {
    let own = deb.conffiles();
    for control in status.unpacked() {
        let owner = control.get("Package").unwrap_or_default();
        let theirs = upgrade::conffiles(control);
        if let Some(path) = own.iter().find(|path| owner != deb.name() && theirs.contains_key(*path)) {
            let (package, owner) = (deb.name().to_owned(), owner.to_owned());
            return Err(MergeError::ConffileMoves { path: path.clone(), package, owner });
        }
    }
    Ok(())
}

/// Fails where a conffile shares its inode with another file of the package: which of its versions that has is dpkg's choice.
fn no_links(placed: &[Placed], conffiles: &[String]) -> Result<(), MergeError> {
    for link in placed {
        let MemberKind::HardLink(to) = &link.entry.kind else { continue };
        let target = placed.iter().find(|placed| placed.entry.path == *to).map(|placed| &placed.listed);
        if conffiles.iter().any(|path| *path == link.listed || Some(path) == target) {
            return Err(MergeError::content(&link.listed, ConffileFault::HardLink));
        }
    }
    Ok(())
}

/// Decides about the conffiles among `placed`, and tells the MD5 of each as the package has it.
pub(super) fn resolve_conflicts(
    target: &mut Target,
    deb: &Deb,
    old: Option<&Old>,
    source: SourceId,
    placed: &mut [Placed],
) -> Result<BTreeMap<String, String>, MergeError> {
    let mut digests = BTreeMap::new();
    if old.is_some() {
        no_links(placed, &deb.conffiles())?;
    }
    for path in deb.conffiles() {
        let (refused, package) = (|fault: ConffileFault| MergeError::content(&path, fault), || deb.name().to_owned());
        let found = placed.iter_mut().find(|placed| placed.listed == path);
        let missing = || refused(ConffileFault::Missing { package: package() });
        let there = |target: &Target, path: &[u8]| matches!(target.tree.find(path), Ok(Some(_)));
        let used = found.as_ref().map_or(path.as_bytes(), |placed| placed.entry.path.as_slice());
        if old.is_none() && there(target, used) {
            // dpkg would ask which one to take, and there is no older version to compare it with.
            return Err(refused(ConffileFault::Exists { package: package() }));
        }
        let Some(placed) = found else {
            // dpkg notes it down without a digest, and a later version of the package may have it.
            if old.is_some() {
                return Err(missing());
            }
            digests.insert(path, NEW.to_owned());
            continue;
        };
        let MemberKind::File { offset, len } = placed.entry.kind else { return Err(missing()) };
        let map = Map::whole(source, offset, len);
        let digest = target.wrap(md5(target, &map, &path))?;
        if let Some(old) = old {
            upgrade(target, old, &digest, placed)?;
        }
        digests.insert(path, digest);
    }
    match old {
        Some(_) => no_removals(target, deb).map(|()| digests),
        None => Ok(digests),
    }
}

/// Decides about one conffile of a package whose older version is there.
fn upgrade(target: &mut Target, old: &Old, new: &str, placed: &mut Placed) -> Result<(), MergeError> {
    let listed = placed.listed.clone();
    let before = old.conffile(&target.tree, &listed);
    let standing = target.wrap(target.tree.find(&placed.entry.path))?;
    let current = match standing.map(|id| target.tree.inode(id)) {
        None => None,
        Some(Inode { meta, kind: Kind::File(map), .. }) => {
            // As with dpkg, the new version gets the owner and mode that the file has.
            let new = &mut placed.entry.meta;
            (new.mode, new.uid, new.gid) = (meta.mode, meta.uid, meta.gid);
            Some(target.wrap(md5(target, map, &listed))?)
        }
        // dpkg would leave the new version of a linked conffile next to the link, half installed.
        Some(Inode { kind, .. }) => {
            return Err(MergeError::content(listed, ConffileFault::Kind { found: kind.name() }));
        }
    };
    match choose(before, current.as_deref(), new) {
        Choice::Install => {}
        Choice::Keep => placed.kept = true,
        Choice::Alongside => {
            let backup = [placed.entry.path.as_slice(), b".dpkg-old"].concat();
            target.check_way(&backup)?;
            let removed = target.tree.remove(&backup);
            target.wrap(removed)?;
            placed.entry.path.extend(b".dpkg-dist");
        }
    }
    Ok(())
}

/// By the digests of a conffile when the old version was installed, now, and in the new version; `None` where it is not.
fn choose(before: Option<&str>, current: Option<&str>, new: &str) -> Choice {
    match (before, current) {
        (_, Some(current)) if current == new => Choice::Keep,
        (None, None) => Choice::Install,
        (None, Some(_)) => Choice::Alongside,
        (Some(before), current) => match (Some(before) == current, before == new) {
            (true, _) => Choice::Install,
            (false, true) => Choice::Keep,
            (false, false) => Choice::Alongside,
        },
    }
}

/// Fails if the package removes a conffile of the base, which is not supported.
fn no_removals(target: &Target, deb: &Deb) -> Result<(), MergeError> {
    let text = deb.info.get("conffiles").map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    for path in text.lines().filter_map(|line| line.trim().strip_prefix("remove-on-upgrade ")) {
        if matches!(target.tree.find(path.trim().as_bytes()), Ok(Some(_))) {
            let fault = ConffileFault::Removed { package: deb.name().to_owned() };
            return Err(MergeError::content(path.trim(), fault));
        }
    }
    Ok(())
}

/// The lines of the field `Conffiles`: those of the package in its order, then obsolete ones. Of those that an upgrade is to remove, dpkg never
/// looks at the content.
pub(super) fn field(deb: &Deb, digests: &BTreeMap<String, String>, obsolete: &[(String, String)]) -> String {
    let text = deb.info.get("conffiles").map(|bytes| String::from_utf8_lossy(bytes).into_owned()).unwrap_or_default();
    let own = text.lines().map(str::trim).filter_map(|line| match line.strip_prefix("remove-on-upgrade ") {
        Some(path) => Some(format!("\n {} {NEW} remove-on-upgrade", path.trim())),
        None => Some(format!("\n {line} {}", digests.get(line)?)),
    });
    own.chain(obsolete.iter().map(|(path, digest)| format!("\n {path} {digest} obsolete"))).collect()
}

/// The MD5 of a file's content, in hexadecimal.
pub(super) fn md5(target: &Target, map: &Map, path: &str) -> Result<String, TreeError> {
    let read = |source| TreeError::Read { path: path.to_owned(), source };
    hash(MapReader::new(map, target.tree.sources())).map_err(read)
}

fn hash(mut content: impl Read) -> io::Result<String> {
    let mut hasher = md5::Md5::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        match content.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().iter().map(|byte| format!("{byte:02x}")).collect()),
            len => hasher.update(&buffer[..len]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Choice, choose};

    #[test]
    fn what_the_owner_changed_stays() {
        for (before, current, new, expected) in [
            (Some("a"), Some("a"), "b", Choice::Install),
            (Some("a"), Some("a"), "a", Choice::Keep),
            (Some("a"), Some("mine"), "a", Choice::Keep),
            (Some("a"), Some("mine"), "b", Choice::Alongside),
            (Some("a"), Some("b"), "b", Choice::Keep),
            (Some("a"), None, "a", Choice::Keep),
            (Some("a"), None, "b", Choice::Alongside),
            (None, None, "b", Choice::Install),
            (None, Some("mine"), "b", Choice::Alongside),
            (None, Some("b"), "b", Choice::Keep),
        ] {
            assert_eq!(choose(before, current, new), expected, "{before:?} {current:?} {new}");
        }
    }
}

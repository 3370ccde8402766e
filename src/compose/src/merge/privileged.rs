//! Checks privileges in the finished tree: a file has those of the base, of the package that owns it, or those that a layer lists in
//! `setuid`.
//!
//! A package chosen by name may set privileges on its own files. Its scripts may not set them on other files.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_common::message;
use vmbake_disk::tree::{Kind, Tree};

use super::database::Database;
use super::place::Target;
use super::place::limits::privilege;
use super::{ContentFault, MergeError};
pub use vmbake_layer::{ATTRIBUTE, attribute};

/// Files with privileges, by path without links.
pub(super) type Privileged = BTreeMap<Vec<u8>, String>;

/// The files of a tree that run as another user.
pub(super) fn find(tree: &Tree) -> Privileged {
    tree.walk().filter_map(|(path, _, inode)| Some((path, privilege(&inode.meta, &inode.kind)?))).collect()
}

/// Fails if a file has privileges that neither the `base` had, nor its own package or `setuid` gives it.
pub(super) fn check(
    target: &Target,
    packages: &Database,
    base: &Privileged,
    setuid: &BTreeSet<String>,
) -> Result<(), MergeError> {
    for (path, privilege) in find(&target.tree) {
        let shown = vmbake_common::escape::name(&path);
        let is_same = base.get(&path) == Some(&privilege);
        if is_same || setuid.contains(&shown) {
            continue;
        }
        let granters = target.granters.borrow();
        let Some(granter) = granters.get(&path) else { continue };
        let package = granter.artifact.clone().unwrap_or_default();
        if !packages.owns(target, &package, &path) {
            let layer = granter.layer.clone();
            return Err(MergeError::Privilege { path: shown, artifact: package, layer, privilege });
        }
    }
    Ok(())
}

/// Gives a file capabilities; links are followed.
pub(super) fn give(target: &mut Target, path: &str, text: &str) -> Result<(), MergeError> {
    let id = target.wrap(target.tree.resolve(path.as_bytes()))?;
    match &target.tree.inode(id).kind {
        Kind::File(_) => {}
        found => {
            return Err(MergeError::content(
                path,
                ContentFault::Message(message!("is a {}, but only regular files can have capabilities", found.name())),
            ));
        }
    }
    if let Some(value) = attribute(text) {
        target.set_attribute(id, ATTRIBUTE, value);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp};

    use super::*;

    #[test]
    fn a_script_gives_privileges_to_files_of_its_own_package_alone() {
        let tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
        let mut target = Target::new(tree, Timestamp::default());
        let meta = target.meta(0o755);
        for (path, text) in [
            ("/usr/bin/bash", ""),
            ("/usr/bin/tool", ""),
            ("/usr/bin/su", ""),
            ("/var/lib/dpkg/status", "Package: p\nStatus: install ok installed\nArchitecture: all\nVersion: 1\n\n"),
            ("/var/lib/dpkg/info/p.list", "/.\n/bin/tool\n"),
            ("/var/lib/dpkg/info/bash.list", "/.\n/usr/bin/bash\n/usr/bin/su\n"),
        ] {
            target.file(path, meta.clone(), text.as_bytes().to_vec()).unwrap();
        }
        target.symlink("/bin", "usr/bin").unwrap();
        let su = target.tree.resolve(b"/usr/bin/su").unwrap();
        target.tree.meta_mut(su).mode = 0o4755;
        let base = find(&target.tree);
        target.by_name.insert("p".to_owned());
        target.enter(Origin { layer: "k".to_owned(), artifact: Some("p".to_owned()), digest: None });
        let mut chmod = |path: &str, mode: u16| {
            let id = target.tree.resolve(path.as_bytes()).unwrap();
            let kind: Kind = target.tree.inode(id).kind.clone();
            target.check_privileges(path.as_bytes(), &Metadata { mode, ..meta.clone() }, &kind).unwrap();
            target.tree.meta_mut(id).mode = mode;
            let packages = Database::read(&target, "amd64").unwrap();
            let setuid = BTreeSet::from(["/usr/bin/listed".to_owned()]);
            check(&target, &packages, &base, &setuid).map_err(|error| error.to_string())
        };
        for (path, mode) in [("/bin/tool", 0o4755), ("/usr/bin/su", 0o4755)] {
            assert_eq!(chmod(path, mode), Ok(()), "{path}");
        }
        let error = chmod("/bin/bash", 0o4755).unwrap_err();
        assert_eq!(
            error,
            "/usr/bin/bash: artifact p contains it with mode 4755, which layer k does not list in `setuid`"
        );
    }
}

//! Programs of bundles that scripts would find on the first boot: a script that waits runs there, where nothing stops it from running what a
//! bundle may change only with grants.
//!
//! A program of a bundle is refused if its name is that of another program further down the search path, which any script may run
//! indirectly, or if a waiting script contains the name.

use std::collections::BTreeSet;

use vmbake_disk::tree::{Inode, InodeId, Kind};

use super::PATH;
use super::foreign::foreign;
use crate::merge::owners::INFO;
use crate::merge::place::Target;
use crate::merge::{DeferredPackage, MAX_TEXT, MergeError};

/// What dpkg and debconf run of a package that is configured.
const SCRIPTS: [&str; 2] = ["postinst", "config"];

/// Fails if a script of one of these packages, which wait for the first boot, may run a program of a bundle there.
pub(in crate::merge) fn check(target: &Target, waiting: &[DeferredPackage], arch: &str) -> Result<(), MergeError> {
    if target.grants.is_empty() || waiting.is_empty() {
        return Ok(());
    }
    let directories = directories(target);
    for DeferredPackage { package, .. } in waiting {
        for stem in [package.clone(), format!("{package}:{arch}")] {
            for script in SCRIPTS {
                check_script(target, &directories, package, &format!("{INFO}/{stem}.{script}"))?;
            }
        }
    }
    Ok(())
}

/// The directories of the search path, each once.
fn directories(target: &Target) -> Vec<(&'static str, InodeId)> {
    let mut found: Vec<(&'static str, InodeId)> = Vec::new();
    for path in PATH.split(':') {
        if let Ok(id) = target.tree.resolve(path.as_bytes())
            && found.iter().all(|(_, other)| *other != id)
        {
            found.push((path, id));
        }
    }
    found
}

fn check_script(
    target: &Target,
    directories: &[(&'static str, InodeId)],
    package: &str,
    path: &str,
) -> Result<(), MergeError> {
    let Ok(id) = target.tree.resolve(path.as_bytes()) else { return Ok(()) };
    let writer = target.layer_of(id);
    let text = target.tree.read(path.as_bytes(), MAX_TEXT).unwrap_or_default();
    let words: BTreeSet<&[u8]> = text.split(|byte| !is_of_name(*byte)).collect();
    let mut seen: BTreeSet<&[u8]> = BTreeSet::new();
    for (at, (directory, id)) in directories.iter().enumerate() {
        let Kind::Directory(entries) = &target.tree.inode(*id).kind else { continue };
        for name in entries.keys() {
            let path = [directory.as_bytes(), b"/", name].concat();
            // An earlier directory of the search path has precedence.
            if !is_program(target, &path) || !seen.insert(name) {
                continue;
            }
            let others = &directories[at + 1..];
            let hides = || others.iter().any(|(other, _)| is_program(target, &[other.as_bytes(), b"/", name].concat()));
            if let Some((found, layer)) = foreign(target, writer, &path)
                && (words.contains(&name[..]) || hides())
            {
                return Err(MergeError::DeferredProgram {
                    package: package.to_owned(),
                    path: vmbake_common::escape::name(&found),
                    owner: target.bundles.describe(layer),
                });
            }
        }
    }
    Ok(())
}

/// Whether a byte can be one of a program's name.
fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || !byte.is_ascii() || b"-_.+@:[]".contains(&byte)
}

fn is_program(target: &Target, path: &[u8]) -> bool {
    let runs = |inode: &Inode| matches!(inode.kind, Kind::File(_)) && inode.meta.mode & 0o111 != 0;
    target.tree.resolve(path).is_ok_and(|id| runs(target.tree.inode(id)))
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};
    use vmbake_manifest::LayerGrants;

    use super::*;
    use crate::merge::unit_grants::BundleLayers;

    /// Checks an image in which the package p of `layer` waits, and a bundle with `granted` paths has `path`.
    fn checked(granted: &str, layer: &str, path: &str, postinst: &str) -> Result<(), String> {
        let tree = Tree::new(Metadata::root(0o755, Timestamp::default()), Origin::default());
        let mut target = Target::new(tree, Timestamp::default());
        let origin = |layer: &str| Origin { layer: layer.to_owned(), ..Origin::default() };
        let meta = target.meta(0o755);
        target.enter(origin("base"));
        for path in ["/usr/bin/rm", "/usr/bin/update-initramfs", "/usr/sbin/start"] {
            target.file(path, meta.clone(), Vec::new()).unwrap();
        }
        for (link, to) in [("/bin", "usr/bin"), ("/sbin", "usr/sbin")] {
            target.symlink(link, to).unwrap();
        }
        target.enter(origin("acme.a"));
        target.file(path, meta.clone(), b"#!/bin/sh\n".to_vec()).unwrap();
        target.enter(origin(layer));
        target.file(&format!("{INFO}/p.postinst"), meta, postinst.as_bytes().to_vec()).unwrap();
        let grants = LayerGrants { paths: vec![granted.to_owned()], ..LayerGrants::default() };
        target.grants = BTreeMap::from([("acme.a".to_owned(), grants)]);
        let layers = BTreeSet::from(["acme.a".to_owned(), "acme.b".to_owned()]);
        target.bundles = BundleLayers::named("acme.agent", layers);
        let waiting = [DeferredPackage { package: "p".to_owned(), reason: String::new() }];
        check(&target, &waiting, "amd64").map_err(|error| error.to_string())
    }

    #[test]
    fn deferred_scripts_do_not_find_programs_of_bundles() {
        for (path, postinst) in [
            ("/usr/local/sbin/rm", "update-initramfs -u"),
            ("/usr/local/bin/rm", "\u{7f}ELF"),
            ("/usr/sbin/rm", "update-initramfs -u"),
            ("/usr/local/bin/tool", "tool --now"),
            ("/usr/bin/tool", "if command -v tool >/dev/null; then x=$(tool); fi"),
            ("/usr/local/bin/tool", "/usr/local/bin/tool"),
        ] {
            let expected = format!(
                "p: its postinst waits for the first boot, where it may run {path}, which layer acme.a of bundle acme.agent installed"
            );
            assert_eq!(checked("/usr", "node", path, postinst), Err(expected), "{path} {postinst}");
        }
    }

    #[test]
    fn programs_of_other_names_and_own_ones_are_kept() {
        for (granted, layer, path) in [
            ("/usr", "node", "/usr/local/bin/other"),
            ("/usr", "node", "/usr/bin/start"),
            ("/usr", "node", "/opt/tool"),
            ("/usr", "acme.b", "/usr/local/bin/tool"),
            ("/", "node", "/usr/local/bin/rm"),
        ] {
            assert_eq!(checked(granted, layer, path, "tool; rm x\n"), Ok(()), "{granted} {layer} {path}");
        }
    }
}

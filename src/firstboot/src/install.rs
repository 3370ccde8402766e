//! The former installation step: only removes downloads of user data, which the image already contains.

use crate::error::Error;
use crate::facts;
use crate::root::{Kind, Root};

/// Download directory of user data.
const ARTIFACTS: &str = "/opt/podplane/artifacts";

/// Removes downloads of user data; returns the ID of the image. On an image that was not baked it fails without changes.
pub fn run(root: &Root) -> Result<String, Error> {
    let installed = facts::installed(root)?;
    remove(root, ARTIFACTS)?;
    Ok(installed)
}

/// Removes `path` recursively, without following links.
fn remove(root: &Root, path: &str) -> Result<(), Error> {
    if root.find(path)?.is_some_and(|found| found.kind != Kind::Directory) {
        return root.remove(path).map(|_| ());
    }
    for entry in root.list(path)? {
        let name = entry.name.to_str().ok_or_else(|| Error::refused(&root.shown(path), "names in UTF-8", "another"))?;
        remove(root, &format!("{path}/{name}"))?;
    }
    root.remove_directory(path).map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn downloads_are_removed_once_everything_is_installed() {
        let tree = tempfile::tempdir().unwrap();
        let at = |path: &str| tree.path().join(path);
        fs::create_dir_all(at("opt/podplane/artifacts/empty/deep")).unwrap();
        fs::create_dir_all(at("opt/podplane/share")).unwrap();
        fs::write(at("opt/podplane/artifacts/runc"), "runc").unwrap();
        fs::write(at("opt/podplane/artifacts/empty/deep/file"), "").unwrap();
        fs::write(at("kept"), "").unwrap();
        symlink("/opt/podplane/share", at("opt/podplane/artifacts/link")).unwrap();
        let done = |dry_run| run(&Root::open(tree.path(), dry_run).unwrap());
        done(false).unwrap_err();
        assert!(at("opt/podplane/artifacts/runc").exists(), "not a baked image");

        let manifest = r#"{"vmconfig": {"kind": "knd", "version": "1", "os": {"name": "debian-13", "arch": "amd64"}}}"#;
        fs::write(at("opt/podplane/share/vmconfig-installed.json"), manifest).unwrap();
        done(true).unwrap();
        assert!(at("opt/podplane/artifacts/empty/deep/file").exists(), "a dry run");
        for _ in 0..2 {
            done(false).unwrap();
            assert!(
                !at("opt/podplane/artifacts").exists() && at("opt/podplane/share/vmconfig-installed.json").exists()
            );
        }
        symlink("../..", at("opt/podplane/artifacts")).unwrap();
        done(false).unwrap();
        assert!(!at("opt/podplane/artifacts").is_symlink() && at("kept").exists(), "a link is removed as one");
    }
}

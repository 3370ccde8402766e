//! Applies owners and modes of the plan to the machine.
//!
//! Missing directories are created, parents first. `/*` matches only regular files.

use crate::accounts::Accounts;
use crate::error::Error;
use crate::plan::{Named, Ownership, Plan};
use crate::root::{Kind, Owner, Root};

/// Creates or corrects the directories of the plan, then corrects its files, including existing ones of `optional_modes`.
pub fn apply(root: &Root, plan: &Plan, accounts: &Accounts) -> Result<(), Error> {
    // Sorted by path, so parents come first.
    for (path, owner) in owners(&plan.directories, accounts) {
        root.directory(path, &owner?)?;
    }
    for (path, owner) in owners(&plan.modes, accounts) {
        root.permit(path, &owner?, false)?;
    }
    for (path, ownership) in &plan.optional_modes {
        if let Some(directory) = path.strip_suffix("/*") {
            let owner = owner(ownership, accounts)?;
            for file in root.list(directory)?.iter().filter(|file| file.found.kind == Kind::File) {
                root.permit(&format!("{directory}/{}", file.name.to_string_lossy()), &owner, true)?;
            }
            continue;
        }
        // A missing file can belong to a missing user.
        if root.find(path)?.is_some() {
            root.permit(path, &owner(ownership, accounts)?, true)?;
        }
    }
    Ok(())
}

fn owners<'a>(
    paths: &'a Named<Ownership>,
    accounts: &Accounts,
) -> impl Iterator<Item = (&'a str, Result<Owner, Error>)> {
    paths.iter().map(|(path, ownership)| (path.as_str(), owner(ownership, accounts)))
}

fn owner(ownership: &Ownership, accounts: &Accounts) -> Result<Owner, Error> {
    accounts.owner(ownership.mode, &ownership.owner, &ownership.group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    use tempfile::TempDir;

    const PLAN: &str = r#"{
        "directories": {
            "/opt/a/b": {"mode": "0700", "owner": "own", "group": "own"},
            "/opt/a-c": {"mode": "0750", "owner": "own", "group": "own"},
            "/opt/a": {"mode": "1710", "owner": "own", "group": "own"},
            "/opt": {"mode": "0755", "owner": "own", "group": "own"}
        },
        "modes": {"/opt/a/program": {"mode": "0755", "owner": "own", "group": "own"}},
        "optional_modes": {
            "/opt/a/key": {"mode": "0600", "owner": "own", "group": "own"},
            "/opt/bin/*": {"mode": "0755", "owner": "own", "group": "own"},
            "/opt/nowhere/*": {"mode": "0755"},
            "/opt/a/none": {"mode": "0600", "owner": "nobody-at-all"}
        }
    }"#;

    fn case() -> (TempDir, Root, Plan, Accounts) {
        let tree = tempfile::tempdir().unwrap();
        let own = fs::metadata(tree.path()).unwrap();
        fs::create_dir(tree.path().join("etc")).unwrap();
        fs::write(tree.path().join("etc/passwd"), format!("own:x:{}:0::\n", own.uid())).unwrap();
        fs::write(tree.path().join("etc/group"), format!("own:x:{}:\n", own.gid())).unwrap();
        fs::create_dir_all(tree.path().join("opt/a")).unwrap();
        fs::create_dir_all(tree.path().join("opt/bin/folder")).unwrap();
        symlink("/etc/shadow", tree.path().join("opt/bin/link")).unwrap();
        for file in ["opt/a/program", "opt/a/key", "opt/bin/one", "opt/bin/two"] {
            fs::write(tree.path().join(file), "").unwrap();
            fs::set_permissions(tree.path().join(file), fs::Permissions::from_mode(0o644)).unwrap();
        }
        let root = Root::open(tree.path(), false).unwrap();
        let accounts = Accounts::read(&root).unwrap();
        (tree, root, serde_json::from_str(PLAN).unwrap(), accounts)
    }

    #[test]
    fn all_are_corrected_once() {
        let (tree, root, plan, accounts) = case();
        apply(&root, &plan, &accounts).unwrap();
        for (path, mode) in [
            ("opt", 0o755),
            ("opt/a", 0o1710),
            ("opt/a/b", 0o700),
            ("opt/a-c", 0o750),
            ("opt/a/program", 0o755),
            ("opt/a/key", 0o600),
            ("opt/bin/one", 0o755),
            ("opt/bin/two", 0o755),
        ] {
            assert_eq!(fs::metadata(tree.path().join(path)).unwrap().mode() & 0o7777, mode, "{path}");
        }
        let changes = root.changes().len();
        apply(&root, &plan, &accounts).unwrap();
        assert_eq!(root.changes().len(), changes, "{:?}", root.changes());
    }

    #[test]
    fn what_is_missing_or_something_else_is_told() {
        let (tree, root, plan, accounts) = case();
        fs::remove_file(tree.path().join("opt/a/program")).unwrap();
        let message = apply(&root, &plan, &accounts).unwrap_err().to_string();
        assert!(message.ends_with("opt/a/program: refused: expected a file or a socket, found nothing"), "{message}");
        fs::write(tree.path().join("opt/a/none"), "").unwrap();
        fs::write(tree.path().join("opt/a/program"), "").unwrap();
        let missing = apply(&root, &plan, &accounts);
        assert!(matches!(missing, Err(Error::NoAccount { kind: "user", .. })));
        fs::remove_dir(tree.path().join("opt/a/b")).unwrap();
        symlink("/", tree.path().join("opt/a/b")).unwrap();
        let message = apply(&root, &plan, &accounts).unwrap_err().to_string();
        assert!(message.ends_with("opt/a/b: refused: expected a directory, found a symbolic link"), "{message}");
    }
}

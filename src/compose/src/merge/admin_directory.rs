//! What dpkg does to its directory, `/var/lib/dpkg`, before it unpacks packages.
//!
//! It creates what a directory without packages has, and brings the files below `info` to format 1: there, those of a package with
//! `Multi-Arch: same` have its architecture in their names. `info/format` tells the format; a directory without it has format 0.

use vmbake_common::message;
use vmbake_disk::tree::{Kind, Tree};

use super::MergeError;
use super::owners::INFO;
use super::place::Target;
use super::status::{STATUS, Status, stem};

const FORMAT: &str = "/var/lib/dpkg/info/format";

/// Directories of a new database.
const DIRECTORIES: [&str; 3] = [INFO, "/var/lib/dpkg/triggers", "/var/lib/dpkg/updates"];

/// Empty files of a new database, with their modes.
const EMPTY: [(&str, u16); 5] = [
    ("/var/lib/dpkg/lock", 0o640),
    ("/var/lib/dpkg/lock-frontend", 0o640),
    (STATUS, 0o644),
    ("/var/lib/dpkg/triggers/Lock", 0o600),
    ("/var/lib/dpkg/triggers/Unincorp", 0o644),
];

/// Packages whose files scripts use that do not depend on them, in the order in which a system is installed from nothing: they are essential,
/// or hold what essential packages share.
const FIRST: [&str; 4] = ["base-files", "base-passwd", "dpkg", "debconf"];

/// Whether the directory is one of the newest format, which dpkg leaves as it is.
pub(super) fn is_current(target: &Target) -> Result<bool, MergeError> {
    let has_status = target.wrap(target.tree.find(STATUS.as_bytes()))?.is_some();
    Ok(has_status && target.text_or_empty(FORMAT)?.trim() == "1")
}

/// Prepares the directory, and tells whether it is new.
pub(super) fn prepare(target: &mut Target) -> Result<bool, MergeError> {
    let is_new = target.wrap(target.tree.find(STATUS.as_bytes()))?.is_none();
    if is_new {
        for path in DIRECTORIES {
            let meta = target.meta(0o755);
            target.ensure_directory(path, meta)?;
        }
        for (path, mode) in EMPTY {
            let meta = target.meta(mode);
            target.file(path, meta, Vec::new())?;
        }
    }
    upgrade(target)?;
    Ok(is_new)
}

/// The place of a package among those that are installed into a new database: the lowest is first.
pub(super) fn rank(package: &str) -> usize {
    FIRST.iter().position(|name| *name == package).unwrap_or(FIRST.len())
}

/// Brings the database to format 1.
fn upgrade(target: &mut Target) -> Result<(), MergeError> {
    match target.text_or_empty(FORMAT)?.trim() {
        "1" => return Ok(()),
        "" | "0" => {}
        other => {
            return Err(MergeError::Message(message!("{FORMAT}: format {other:?} is not known, expected 0 or 1")));
        }
    }
    let status = Status::read(target)?;
    for stem in status.unpacked().map(stem) {
        let Some((name, _)) = stem.split_once(':') else { continue };
        for end in ends(&target.tree, name) {
            target.rename(&format!("{INFO}/{name}.{end}"), &format!("{INFO}/{stem}.{end}"))?;
        }
    }
    target.set_text(FORMAT, "1\n")
}

/// What follows the name of a package and a dot in the names of its files.
fn ends(tree: &Tree, name: &str) -> Vec<String> {
    let Some(Kind::Directory(entries)) = tree.resolve(INFO.as_bytes()).ok().map(|id| &tree.inode(id).kind) else {
        return Vec::new();
    };
    let names = entries.keys().filter_map(|entry| std::str::from_utf8(entry).ok());
    let ends = names.filter_map(|entry| entry.strip_prefix(name)?.strip_prefix('.'));
    ends.filter(|end| !end.contains('.')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use vmbake_disk::tree::{Metadata, Origin, Timestamp};

    use super::*;

    fn target(files: &[(&str, &str)]) -> Target {
        let root = Metadata::root(0o755, Timestamp::default());
        let mut target = Target::new(Tree::new(root, Origin::default()), Timestamp::default());
        files.iter().for_each(|(path, text)| target.set_text(path, text).unwrap());
        target
    }

    /// Modes and paths of what is below `/var/lib/dpkg`.
    fn listed(target: &Target) -> Vec<String> {
        let directory = target.tree.resolve(b"/var/lib/dpkg").unwrap();
        let below = target.tree.walk_from(directory).skip(1);
        below.map(|(path, _, inode)| format!("{:03o} {}", inode.meta.mode, String::from_utf8_lossy(&path))).collect()
    }

    /// What dpkg 1.22 and 1.21 left in an empty directory, but for the files of the package.
    #[test]
    fn a_new_database_is_that_of_dpkg() {
        let mut target = target(&[]);
        assert!(prepare(&mut target).unwrap());
        assert_eq!(
            listed(&target),
            [
                "755 /info",
                "644 /info/format",
                "640 /lock",
                "640 /lock-frontend",
                "644 /status",
                "755 /triggers",
                "600 /triggers/Lock",
                "644 /triggers/Unincorp",
                "755 /updates",
            ]
        );
        assert_eq!(target.text(FORMAT).unwrap(), "1\n");
        assert!(!prepare(&mut target).unwrap(), "it is no longer new");
    }

    #[test]
    fn an_old_database_gets_format_1() {
        let stanza = |name: &str, more: &str| {
            format!("Package: {name}\nStatus: install ok installed\nArchitecture: amd64\n{more}Version: 1\n\n")
        };
        let same = "Multi-Arch: same\n";
        let status = [stanza("lib1", same), stanza("lib1.2", same), stanza("other", "")].concat();
        let list = |name: &str| format!("{INFO}/{name}.list");
        let names = ["lib1", "lib1.2", "other"].map(list);
        for format in [None, Some("0\n")] {
            let mut files = vec![(STATUS, status.as_str())];
            files.extend(names.iter().map(|name| (name.as_str(), "/.\n")));
            files.extend(format.map(|text| (FORMAT, text)));
            let mut target = target(&files);
            assert!(!prepare(&mut target).unwrap());
            assert_eq!(
                listed(&target),
                [
                    "755 /info",
                    "644 /info/format",
                    "644 /info/lib1.2:amd64.list",
                    "644 /info/lib1:amd64.list",
                    "644 /info/other.list",
                    "644 /status",
                ]
            );
            assert_eq!(target.text(FORMAT).unwrap(), "1\n");
            assert!(is_current(&target).unwrap());
        }
    }

    #[test]
    fn an_unknown_format_is_refused() {
        let error = prepare(&mut target(&[(STATUS, ""), (FORMAT, "2\n")])).unwrap_err().to_string();
        assert_eq!(error, "/var/lib/dpkg/info/format: format \"2\" is not known, expected 0 or 1");
    }

    #[test]
    fn packages_that_others_use_are_first() {
        let mut names = ["a", "debconf", "base-passwd", "dpkg", "b", "base-files"];
        names.sort_by_key(|name| rank(name));
        assert_eq!(names, ["base-files", "base-passwd", "dpkg", "debconf", "a", "b"]);
    }
}

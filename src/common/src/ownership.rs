//! Checks who else can modify a file. Cached data are trusted only if no other user can.
//!
//! A file is *own* if it belongs to this user or to root and has no write bit for group or others. The group counts as
//! others, even if it has a single member today. With an ACL, the group bits are its mask, so that the mode covers all
//! other users. A file is *private* if it is own and the same holds for every directory above it; a directory writable
//! by others, such as `/tmp`, is accepted if it is sticky, since the owner of each entry is checked. Inside a user
//! namespace, directories of unmapped users, such as the host's root, count as root's; files never do.
//!
//! Bytes read from an open own file cannot be modified by others. Only for a private file does the recorded identity
//! prove that it is unchanged. Any other file is copied before it is verified. The check does not cover processes that
//! opened a file for writing before its mode or owner changed, other machines writing to a network file system, or
//! root.

use crate::hint::Hint;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::input::kind;

const OTHERS: u32 = 0o022;

/// In a directory with this bit, only the owner of a file can rename or remove it.
const STICKY: u32 = 0o1000;

/// Directories are created writable by their owner only, regardless of the umask.
const FOLDER_MODE: u32 = 0o755;

/// Why other users can modify a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InsecurePermissions {
    #[error("{path} belongs to user {found}, not to user {expected} or root")]
    Owner {
        path: PathBuf,
        /// The user who runs the program.
        expected: u32,
        found: u32,
    },
    #[error("{path} is writable by other users: its mode is {mode:04o}")]
    Mode { path: PathBuf, mode: u32 },
    #[error("{path} is {found}, not {expected}")]
    Kind { path: PathBuf, expected: &'static str, found: &'static str },
    #[error("{path} has {found} hard links, expected 1")]
    Names { path: PathBuf, found: u64 },
    #[error("{path} was replaced after it was opened")]
    Moved { path: PathBuf },
    #[error("{path} cannot be examined: {reason}")]
    Unknown { path: PathBuf, reason: String },
}

impl Hint for InsecurePermissions {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Mode { path, .. } => {
                Some(format!("make it writable by its owner only: `chmod -R go-w {}`", path.display()))
            }
            Self::Owner { .. } => {
                Some("use --store to choose another store: only those owned by root or by you are trusted".to_owned())
            }
            Self::Kind { path, .. } | Self::Names { path, .. } => {
                Some(format!("another user may have created it: check its owner, then `rm {}`", path.display()))
            }
            Self::Moved { .. } | Self::Unknown { .. } => None,
        }
    }
}

impl From<InsecurePermissions> for io::Error {
    fn from(exposed: InsecurePermissions) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, exposed)
    }
}

/// Fails unless only this user and root can write to an open regular file.
pub fn own(file: &File, path: &Path) -> Result<(), InsecurePermissions> {
    let meta = file.metadata().map_err(|error| unknown(path, &error))?;
    regular(&meta, path)?;
    of_node(&meta, path)
}

/// Fails unless only this user and root can write to an open regular file and to the directories that lead to it;
/// `path` is its name.
pub fn private(file: &File, path: &Path) -> Result<(), InsecurePermissions> {
    own(file, path)?;
    // Of the links in a path, only the target matters.
    let real = path.canonicalize().map_err(|error| unknown(path, &error))?;
    let [ours, found] =
        [file.metadata(), real.symlink_metadata()].map(|meta| meta.map_err(|error| unknown(path, &error)));
    let (ours, found) = (ours?, found?);
    if (ours.dev(), ours.ino()) != (found.dev(), found.ino()) {
        return Err(InsecurePermissions::Moved { path: path.to_owned() });
    }
    real.parent().map_or(Ok(()), folders)
}

/// Fails unless only this user and root can rename entries in a directory and in all directories above it. Missing
/// directories are ignored.
pub fn folders(folder: &Path) -> Result<(), InsecurePermissions> {
    let absolute = std::path::absolute(folder).map_err(|error| unknown(folder, &error))?;
    let existing = absolute.ancestors().find_map(|folder| folder.canonicalize().ok());
    existing.iter().flat_map(|real| real.ancestors()).try_for_each(|folder| {
        let meta = folder.symlink_metadata().map_err(|error| unknown(folder, &error))?;
        let is_sticky = meta.mode() & STICKY != 0;
        match of_node(&meta, folder) {
            Err(InsecurePermissions::Mode { .. }) if is_sticky => Ok(()),
            Err(InsecurePermissions::Owner { found, .. })
                if is_unmapped(found) && (is_sticky || meta.mode() & OTHERS == 0) =>
            {
                Ok(())
            }
            result => result,
        }
    })
}

/// Fails unless only this user and root can create and rename files in a directory.
pub fn folder(path: &Path) -> Result<(), InsecurePermissions> {
    let meta = path.metadata().map_err(|error| unknown(path, &error))?;
    if !meta.is_dir() {
        let (expected, found) = ("a directory", kind(&meta));
        return Err(InsecurePermissions::Kind { path: path.to_owned(), expected, found });
    }
    of_node(&meta, path)
}

/// Creates a directory and missing parents, writable only by this user.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Creates a directory if it is missing, writable only by this user.
pub fn make_folder(path: &Path) -> io::Result<()> {
    create_folder(path)?;
    Ok(folder(path)?)
}

/// Opens a regular file for reading, without following symbolic links or blocking on pipes.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_with(File::options().read(true), path)?;
    regular(&file.metadata()?, path)?;
    Ok(file)
}

/// Opens an own file for reading and writing, and creates it if missing. Fails on anything that another user put in its
/// place.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    loop {
        match open_with(File::options().read(true).write(true), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                let file = opened?;
                own(&file, path)?;
                let names = file.metadata()?.nlink();
                // The link count is 0 if another process has just removed the file.
                return if names > 1 {
                    Err(InsecurePermissions::Names { path: path.to_owned(), found: names }.into())
                } else {
                    Ok(file)
                };
            }
        }
        match open_with(File::options().read(true).write(true).create_new(true).mode(0o600), path) {
            // Another process created it first. A dangling link was an error above.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}

fn open_with(options: &mut std::fs::OpenOptions, path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    options.custom_flags(flags).open(path).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        // A symbolic link, a pipe or socket opened for writing, or a directory.
        Some(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => path
            .symlink_metadata()
            .map_or(error, |meta| regular(&meta, path).err().map_or(io::ErrorKind::Other.into(), Into::into)),
        _ => error,
    })
}

fn of_node(meta: &Metadata, path: &Path) -> Result<(), InsecurePermissions> {
    let (expected, found) = (rustix::process::geteuid().as_raw(), meta.uid());
    if found != expected && found != 0 {
        return Err(InsecurePermissions::Owner { path: path.to_owned(), expected, found });
    }
    let mode = meta.mode() & 0o7777;
    if mode & OTHERS == 0 { Ok(()) } else { Err(InsecurePermissions::Mode { path: path.to_owned(), mode }) }
}

fn regular(meta: &Metadata, path: &Path) -> Result<(), InsecurePermissions> {
    let (expected, found) = ("a regular file", kind(meta));
    if meta.is_file() { Ok(()) } else { Err(InsecurePermissions::Kind { path: path.to_owned(), expected, found }) }
}

fn unknown(path: &Path, error: &io::Error) -> InsecurePermissions {
    InsecurePermissions::Unknown { path: path.to_owned(), reason: error.to_string() }
}

/// Whether the owner is the overflow ID, which user namespaces show for unmapped users.
fn is_unmapped(owner: u32) -> bool {
    static UNMAPPED: OnceLock<Option<u32>> = OnceLock::new();
    let unmapped = UNMAPPED.get_or_init(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        // Outside of user namespaces every user is mapped, so the overflow ID is an ordinary user.
        let is_all = map.split_whitespace().eq(["0", "0", "4294967295"]);
        let overflow = std::fs::read_to_string("/proc/sys/kernel/overflowuid").ok()?.trim().parse().ok()?;
        (!is_all).then_some(overflow)
    });
    *unmapped == Some(owner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir, set_permissions, write};
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    fn set(path: &Path, mode: u32) {
        set_permissions(path, Permissions::from_mode(mode)).unwrap();
    }

    /// A file in a nested directory.
    fn lab() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/file");
        make_folder(file.parent().unwrap()).unwrap();
        write(&file, "content").unwrap();
        set(&file, 0o644);
        (dir, file)
    }

    fn check(path: &Path) -> (bool, bool) {
        let file = File::open(path).unwrap();
        (own(&file, path).is_ok(), private(&file, path).is_ok())
    }

    #[test]
    fn a_file_is_private_if_only_its_owner_can_write_to_it_and_its_parents() {
        let (dir, file) = lab();
        assert_eq!(check(&file), (true, true), "{:?}", private(&File::open(&file).unwrap(), &file));
        for (mode, expected) in [(0o444, true), (0o600, true), (0o664, false), (0o646, false), (0o666, false)] {
            set(&file, mode);
            assert_eq!(check(&file), (expected, expected), "{mode:o}");
        }
        set(&file, 0o644);
        let above = dir.path().join("a");
        for (mode, expected) in [(0o775, false), (0o757, false), (0o777, false), (0o1777, true), (0o700, true)] {
            set(&above, mode);
            assert_eq!(check(&file), (true, expected), "{mode:o}");
        }
        // The target of a link is checked.
        let link = dir.path().join("link");
        symlink(&file, &link).unwrap();
        assert_eq!(check(&link), (true, true));
        set(&above, 0o777);
        assert_eq!(check(&link), (true, false));
        let opened = File::open(&file).unwrap();
        write(dir.path().join("a/b/other"), "content").unwrap();
        std::fs::rename(dir.path().join("a/b/other"), &file).unwrap();
        assert!(matches!(private(&opened, &file), Err(InsecurePermissions::Moved { .. })));
    }

    #[test]
    fn a_file_of_another_user_is_not_private() {
        if !rustix::process::geteuid().is_root() {
            return crate::skip::skip("only root can give a file away");
        }
        let (dir, file) = lab();
        chown(&file, Some(65534), None).unwrap();
        assert_eq!(check(&file), (false, false));
        chown(&file, Some(0), None).unwrap();
        chown(dir.path().join("a"), Some(65534), None).unwrap();
        assert_eq!(check(&file), (true, false));
        // In a sticky directory, its owner can still rename everything.
        set(&dir.path().join("a"), 0o1777);
        assert_eq!(check(&file), (true, false));
    }

    #[test]
    fn nothing_but_a_regular_file_is_opened() {
        let (dir, file) = lab();
        let at = |name: &str| dir.path().join(name);
        symlink(&file, at("link")).unwrap();
        symlink(at("nowhere"), at("dangling")).unwrap();
        create_dir(at("folder")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        for (name, found) in [
            ("link", "a symbolic link"),
            ("dangling", "a symbolic link"),
            ("folder", "a directory"),
            ("pipe", "a named pipe"),
        ] {
            for opened in [open(&at(name)), open_or_make(&at(name))] {
                assert!(
                    opened.unwrap_err().to_string().ends_with(&format!("is {found}, not a regular file")),
                    "{name}"
                );
            }
        }
        assert!(!at("nowhere").exists());
        let made = open_or_make(&at("new")).unwrap();
        assert_eq!(made.metadata().unwrap().mode() & 0o777, 0o600);
        open_or_make(&at("new")).unwrap();
        set(&at("new"), 0o666);
        assert!(open_or_make(&at("new")).unwrap_err().to_string().ends_with("its mode is 0666"));
        set(&at("new"), 0o600);
        std::fs::hard_link(at("new"), at("second")).unwrap();
        assert!(open_or_make(&at("new")).unwrap_err().to_string().ends_with("has 2 hard links, expected 1"));
    }

    #[test]
    fn folders_are_made_so_that_only_their_owner_writes_to_them() {
        let (dir, _) = lab();
        let new = dir.path().join("x/y");
        make_folder(&new).unwrap();
        for folder in [&new, &dir.path().join("x")] {
            assert_eq!(folder.metadata().unwrap().mode() & OTHERS, 0);
        }
        set(&new, 0o775);
        assert!(make_folder(&new).is_err());
        assert!(folders(&dir.path().join("x/y/z/not/there")).is_err(), "what is above counts");
    }
}

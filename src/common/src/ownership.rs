//! Who can change a file: the one rule by which anything that was not just computed is believed.
//!
//! A file is *own* if it belongs to this user or to root and no write bit is set for group or others. The group counts as others, even a
//! group that has one member today. With an ACL, the bits of the group are its mask, so that nobody can write whom the mode does
//! not show. A file is *private* if it is own and the same holds of every folder above it; a folder in which others may make files,
//! such as `/tmp`, will do if it is sticky, since what lies there then has an owner of its own who is asked for. Inside a user
//! namespace, folders of users who have no id there, such as the host's root, count as root's; files never do.
//!
//! The bytes that come out of an own file, open, are those that went in. Only a private one is what it was when its stamp was
//! taken. What is neither is copied before it is proven. The rule does not see who had a file open for writing before its mode or owner
//! changed, nor other machines that write to a network file system, nor root.

use crate::hint::Hint;
use std::fs::{DirBuilder, File, Metadata};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::input::kind;

/// Write bits of group and others.
const OTHERS: u32 = 0o022;

/// In a folder with this bit only the owner of a file renames or removes it.
const STICKY: u32 = 0o1000;

/// Whatever the umask says, what is made here is written by its owner only.
const FOLDER_MODE: u32 = 0o755;

/// What lets somebody else change a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exposed {
    #[error("{path} belongs to user {found}, not to user {expected} or root")]
    Owner {
        /// The file or directory.
        path: PathBuf,
        /// The user who runs the program.
        expected: u32,
        /// Its owner.
        found: u32,
    },
    #[error("{path} can be written by others than its owner: its mode is {mode:04o}")]
    Mode {
        /// The file or directory.
        path: PathBuf,
        mode: u32,
    },
    #[error("{path} is {found}, not {expected}")]
    Kind {
        /// The file or directory.
        path: PathBuf,
        /// What should.
        expected: &'static str,
        /// What does.
        found: &'static str,
    },
    #[error("{path} has {found} names, not 1")]
    Names {
        /// The file or directory.
        path: PathBuf,
        /// How many names it has.
        found: u64,
    },
    #[error("{path} is no longer the file that was opened")]
    Moved {
        /// The file or directory.
        path: PathBuf,
    },
    #[error("{path} cannot be examined: {reason}")]
    Unknown {
        /// The file or directory.
        path: PathBuf,
        /// What the system says instead.
        reason: String,
    },
}

impl Hint for Exposed {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Mode { path, .. } => Some(format!("`chmod -R go-w {}` keeps others out", path.display())),
            Self::Owner { .. } => Some("--store names another store; root's and your own are believed".to_owned()),
            Self::Kind { path, .. } | Self::Names { path, .. } => {
                Some(format!("somebody has put it there: find out who, then `rm {}`", path.display()))
            }
            Self::Moved { .. } | Self::Unknown { .. } => None,
        }
    }
}

impl From<Exposed> for io::Error {
    fn from(exposed: Exposed) -> Self {
        Self::new(io::ErrorKind::PermissionDenied, exposed)
    }
}

/// Whether only this user and root can write to an open regular file.
pub fn own(file: &File, path: &Path) -> Result<(), Exposed> {
    let meta = file.metadata().map_err(|error| unknown(path, &error))?;
    regular(&meta, path)?;
    of_node(&meta, path)
}

/// Whether only this user and root can write to an open regular file, and to what leads to it; `path` is its name.
pub fn private(file: &File, path: &Path) -> Result<(), Exposed> {
    own(file, path)?;
    // Of all links that a path goes through, only where they lead to matters.
    let real = path.canonicalize().map_err(|error| unknown(path, &error))?;
    let [ours, found] =
        [file.metadata(), real.symlink_metadata()].map(|meta| meta.map_err(|error| unknown(path, &error)));
    let (ours, found) = (ours?, found?);
    if (ours.dev(), ours.ino()) != (found.dev(), found.ino()) {
        return Err(Exposed::Moved { path: path.to_owned() });
    }
    real.parent().map_or(Ok(()), folders)
}

/// Whether only this user and root can rename what is in a folder, or any folder above it. What does not exist yet is nobody's.
pub fn folders(folder: &Path) -> Result<(), Exposed> {
    let absolute = std::path::absolute(folder).map_err(|error| unknown(folder, &error))?;
    let existing = absolute.ancestors().find_map(|folder| folder.canonicalize().ok());
    existing.iter().flat_map(|real| real.ancestors()).try_for_each(|folder| {
        let meta = folder.symlink_metadata().map_err(|error| unknown(folder, &error))?;
        let is_sticky = meta.mode() & STICKY != 0;
        match of_node(&meta, folder) {
            Err(Exposed::Mode { .. }) if is_sticky => Ok(()),
            Err(Exposed::Owner { found, .. }) if is_unmapped(found) && (is_sticky || meta.mode() & OTHERS == 0) => {
                Ok(())
            }
            result => result,
        }
    })
}

/// Whether only this user and root can make and rename files in a folder.
pub fn folder(path: &Path) -> Result<(), Exposed> {
    let meta = path.metadata().map_err(|error| unknown(path, &error))?;
    if !meta.is_dir() {
        let (expected, found) = ("a directory", kind(&meta));
        return Err(Exposed::Kind { path: path.to_owned(), expected, found });
    }
    of_node(&meta, path)
}

/// Makes a folder and those above it, as far as they are missing; to what is made nobody else can write.
pub fn create_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)
}

/// Makes a folder if it is missing, to which nobody else can write in any case.
pub fn make_folder(path: &Path) -> io::Result<()> {
    create_folder(path)?;
    Ok(folder(path)?)
}

/// Opens a regular file for reading: neither follows a link that has its name nor waits for whoever writes to a pipe.
pub fn open(path: &Path) -> io::Result<File> {
    let file = open_with(File::options().read(true), path)?;
    regular(&file.metadata()?, path)?;
    Ok(file)
}

/// Opens an own file for reading and writing, made if it is missing. What somebody has put in its place is an error.
pub fn open_or_make(path: &Path) -> io::Result<File> {
    loop {
        match open_with(File::options().read(true).write(true), path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => {
                let file = opened?;
                own(&file, path)?;
                let names = file.metadata()?.nlink();
                // It has none when another process has just removed it.
                return if names > 1 {
                    Err(Exposed::Names { path: path.to_owned(), found: names }.into())
                } else {
                    Ok(file)
                };
            }
        }
        match open_with(File::options().read(true).write(true).create_new(true).mode(0o600), path) {
            // Another process was faster. A link that leads nowhere was an error above.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made,
        }
    }
}

fn open_with(options: &mut std::fs::OpenOptions, path: &Path) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    options.custom_flags(flags).open(path).map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        // A link; a pipe or socket, opened for writing; a folder.
        Some(Errno::LOOP | Errno::NXIO | Errno::ISDIR) => path
            .symlink_metadata()
            .map_or(error, |meta| regular(&meta, path).err().map_or(io::ErrorKind::Other.into(), Into::into)),
        _ => error,
    })
}

fn of_node(meta: &Metadata, path: &Path) -> Result<(), Exposed> {
    let (expected, found) = (rustix::process::geteuid().as_raw(), meta.uid());
    if found != expected && found != 0 {
        return Err(Exposed::Owner { path: path.to_owned(), expected, found });
    }
    let mode = meta.mode() & 0o7777;
    if mode & OTHERS == 0 { Ok(()) } else { Err(Exposed::Mode { path: path.to_owned(), mode }) }
}

fn regular(meta: &Metadata, path: &Path) -> Result<(), Exposed> {
    let (expected, found) = ("a regular file", kind(meta));
    if meta.is_file() { Ok(()) } else { Err(Exposed::Kind { path: path.to_owned(), expected, found }) }
}

fn unknown(path: &Path, error: &io::Error) -> Exposed {
    Exposed::Unknown { path: path.to_owned(), reason: error.to_string() }
}

/// Whether this is how a user namespace shows users who have no id in it.
fn is_unmapped(owner: u32) -> bool {
    static UNMAPPED: OnceLock<Option<u32>> = OnceLock::new();
    let unmapped = UNMAPPED.get_or_init(|| {
        let map = std::fs::read_to_string("/proc/self/uid_map").ok()?;
        // Outside of any, every user has the own id; there the same number is somebody, or nobody in particular.
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

    /// A file in a folder in a folder.
    fn lab() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("a/b/file");
        make_folder(file.parent().unwrap()).unwrap();
        write(&file, "content").unwrap();
        set(&file, 0o644);
        (dir, file)
    }

    fn judge(path: &Path) -> (bool, bool) {
        let file = File::open(path).unwrap();
        (own(&file, path).is_ok(), private(&file, path).is_ok())
    }

    #[test]
    fn a_file_is_private_if_nobody_else_can_write_to_it_or_to_what_leads_to_it() {
        let (dir, file) = lab();
        assert_eq!(judge(&file), (true, true), "{:?}", private(&File::open(&file).unwrap(), &file));
        for (mode, expected) in [(0o444, true), (0o600, true), (0o664, false), (0o646, false), (0o666, false)] {
            set(&file, mode);
            assert_eq!(judge(&file), (expected, expected), "{mode:o}");
        }
        set(&file, 0o644);
        let above = dir.path().join("a");
        for (mode, expected) in [(0o775, false), (0o757, false), (0o777, false), (0o1777, true), (0o700, true)] {
            set(&above, mode);
            assert_eq!(judge(&file), (true, expected), "{mode:o}");
        }
        // What counts is where a link leads to.
        let link = dir.path().join("link");
        symlink(&file, &link).unwrap();
        assert_eq!(judge(&link), (true, true));
        set(&above, 0o777);
        assert_eq!(judge(&link), (true, false));
        let opened = File::open(&file).unwrap();
        write(dir.path().join("a/b/other"), "content").unwrap();
        std::fs::rename(dir.path().join("a/b/other"), &file).unwrap();
        assert!(matches!(private(&opened, &file), Err(Exposed::Moved { .. })));
    }

    #[test]
    fn what_belongs_to_somebody_else_is_not_private() {
        if !rustix::process::geteuid().is_root() {
            return crate::skip::skip("only root can give a file away");
        }
        let (dir, file) = lab();
        chown(&file, Some(65534), None).unwrap();
        assert_eq!(judge(&file), (false, false));
        chown(&file, Some(0), None).unwrap();
        chown(dir.path().join("a"), Some(65534), None).unwrap();
        assert_eq!(judge(&file), (true, false));
        // In a sticky folder its owner can still rename everything.
        set(&dir.path().join("a"), 0o1777);
        assert_eq!(judge(&file), (true, false));
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
        assert!(open_or_make(&at("new")).unwrap_err().to_string().ends_with("has 2 names, not 1"));
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

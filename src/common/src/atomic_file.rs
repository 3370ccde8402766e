//! Writes outputs atomically.
//!
//! A [`Pending`] file has no name while it is written, so neither an error nor a kill leaves a partial file. When
//! complete, it is synced, linked and renamed into place. Only regular files and links to them are replaced: renaming
//! onto a device node would remove the node from the host.

use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::hint::Hint;
use crate::ownership;

/// File modes before the umask is applied. Even with a permissive umask, only the owner can write.
const PUBLIC: u32 = 0o644;
const PRIVATE: u32 = 0o600;

/// Maximum number of temporary names to try: several processes may publish the same output concurrently.
const MAX_NAMES: u8 = 100;

#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    #[error("{path}: already exists")]
    Exists { path: PathBuf },
    #[error("{path}: expected a regular file or a new file name for the output, found a {found}")]
    NotFile { path: PathBuf, found: &'static str },
    #[error("refusing to overwrite input file {path}")]
    Input { path: PathBuf },
    #[error("{path}: cannot create")]
    Create { path: PathBuf, source: std::io::Error },
    #[error("{path}: cannot write")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{path}: cannot rename the output into place")]
    Rename { path: PathBuf, source: std::io::Error },
}

impl Hint for PublishError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Exists { .. } => "use --force to replace it",
            Self::Input { .. } => "use -o to choose another output file",
            Self::NotFile { .. } => {
                "choose the name of a new or regular file for the output; other file types are never replaced"
            }
            _ => return None,
        };
        Some(text.to_owned())
    }

    crate::causes!(; Create, Write, Rename);
}

/// A file that is being written and has no name yet.
#[derive(Debug)]
pub struct Pending {
    file: File,
    target: PathBuf,
}

impl Pending {
    /// Starts writing `target`. Creates its directory if missing; `target` itself must not exist unless `force` is set.
    pub fn create(target: &Path, force: bool) -> Result<Self, PublishError> {
        Self::with_mode(target, force, PUBLIC)
    }

    /// As [`Pending::create`], for a file that only its owner can read.
    pub fn create_private(target: &Path, force: bool) -> Result<Self, PublishError> {
        Self::with_mode(target, force, PRIVATE)
    }

    fn with_mode(target: &Path, force: bool, mode: u32) -> Result<Self, PublishError> {
        require_file(target)?;
        if !force && target.symlink_metadata().is_ok() {
            return Err(PublishError::Exists { path: target.to_owned() });
        }
        let create = |source: std::io::Error| PublishError::Create { path: target.to_owned(), source };
        let dir = directory(target);
        ownership::create_folder(dir).map_err(create)?;
        let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(dir, flags, Mode::from_raw_mode(mode)).map_err(|e| create(e.into()))?;
        Ok(Self { file: file.into(), target: target.to_owned() })
    }

    /// The file, open for reading and writing.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name, which must be unused.
    pub fn publish_new(self) -> Result<(), PublishError> {
        let rename = |source: std::io::Error| PublishError::Rename { path: self.target.clone(), source };
        self.file.sync_all().map_err(rename)?;
        match self.link(&self.target) {
            Err(source) if source.kind() == ErrorKind::AlreadyExists => Err(PublishError::Exists { path: self.target }),
            other => other.map_err(rename),
        }
    }

    /// Gives the file its name, replacing an existing file; returns it, still open.
    pub fn publish(self) -> Result<File, PublishError> {
        let rename = |source: std::io::Error| PublishError::Rename { path: self.target.clone(), source };
        self.file.sync_all().map_err(rename)?;
        // The target may have changed since the file was created.
        require_file(&self.target)?;
        // linkat(2) cannot replace a file, so the file gets a name next to the target first.
        let partial = self.link_next_to_target().map_err(rename)?;
        if let Err(source) = std::fs::rename(&partial, &self.target) {
            // A rename error takes precedence over a cleanup error.
            let _removed = std::fs::remove_file(&partial);
            return Err(rename(source));
        }
        File::open(directory(&self.target)).and_then(|dir| dir.sync_all()).map_err(rename)?;
        Ok(self.file)
    }

    /// Links the file under an unused name: an existing file belongs to the user.
    fn link_next_to_target(&self) -> std::io::Result<PathBuf> {
        let (folder, name) = (directory(&self.target), file_name(&self.target));
        let mut names = (0..MAX_NAMES).map(|number| match number {
            0 => folder.join(format!(".{name}.partial")),
            _ => folder.join(format!(".{name}.partial-{number}")),
        });
        let linked = names.find_map(|partial| match self.link(&partial) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => None,
            other => Some(other.map(|()| partial)),
        });
        linked.unwrap_or_else(|| Err(ErrorKind::AlreadyExists.into()))
    }

    fn link(&self, name: &Path) -> std::io::Result<()> {
        let fd = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, fd, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// Fails if `target` is not a regular file or a link to one.
pub fn require_file(target: &Path) -> Result<(), PublishError> {
    let Ok(there) = target.metadata() else { return Ok(()) };
    let kind = there.file_type();
    let found = match () {
        () if kind.is_file() => return Ok(()),
        () if kind.is_dir() => "directory",
        () if kind.is_fifo() => "named pipe",
        () if kind.is_socket() => "socket",
        () => "device node",
    };
    Err(PublishError::NotFile { path: target.to_owned(), found })
}

/// Fails if `target` is one of the input files, compared by inode.
pub fn require_other<'a>(target: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), PublishError> {
    let identity = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino()));
    let is_target = |input: &Path| matches!((identity(input), identity(target)), (Ok(a), Ok(b)) if a == b);
    match inputs.into_iter().any(is_target) {
        true => Err(PublishError::Input { path: target.to_owned() }),
        false => Ok(()),
    }
}

/// Writes `content` to `target` atomically.
pub fn write_file(target: &Path, content: &[u8], force: bool) -> Result<(), PublishError> {
    write(target, content, force).map(drop)
}

fn write(target: &Path, content: &[u8], force: bool) -> Result<File, PublishError> {
    let pending = Pending::create(target, force)?;
    pending.file().write_all(content).map_err(|source| PublishError::Write { path: target.to_owned(), source })?;
    pending.publish()
}

/// Writes `content` to `target` unless it is a file with that content that others cannot write to; returns the file,
/// open.
pub fn renew_file(target: &Path, content: &[u8]) -> Result<File, PublishError> {
    if let Ok(file) = ownership::open(target)
        && ownership::own(&file, target).is_ok()
    {
        let mut found = Vec::new();
        if (&file).take(content.len() as u64 + 1).read_to_end(&mut found).is_ok() && found == content {
            return Ok(file);
        }
    }
    write(target, content, true)
}

fn directory(path: &Path) -> &Path {
    path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_has_a_name_before_it_is_published() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("new/x.raw");
        let pending = Pending::create(&target, false).unwrap();
        pending.file().write_all(b"content").unwrap();
        assert_eq!(std::fs::read_dir(dir.path().join("new")).unwrap().count(), 0);
        pending.publish().unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"content");
        assert!(matches!(Pending::create(&target, false), Err(PublishError::Exists { .. })));
        write_file(&target, b"again", true).unwrap();
        assert_eq!(std::fs::read(&target).unwrap(), b"again");
    }

    #[test]
    fn only_regular_files_are_replaced_and_files_next_to_them_stay() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        std::fs::create_dir(at("directory")).unwrap();
        rustix::fs::mknodat(CWD, at("pipe"), rustix::fs::FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        std::os::unix::fs::symlink("/dev/null", at("device")).unwrap();
        std::os::unix::fs::symlink("directory", at("folder")).unwrap();
        let before = names(dir.path());
        for (name, expected) in [
            ("socket", "socket"),
            ("directory", "directory"),
            ("pipe", "named pipe"),
            ("device", "device node"),
            ("folder", "directory"),
        ] {
            for force in [false, true] {
                let error = write_file(&at(name), b"content", force).unwrap_err();
                assert!(matches!(error, PublishError::NotFile { found, .. } if found == expected), "{name}: {error}");
            }
            assert_eq!(names(dir.path()), before, "{name}");
        }
        // A file created under that name in the meantime is kept, too.
        let pending = Pending::create(&at("late"), true).unwrap();
        std::fs::create_dir(at("late")).unwrap();
        assert!(matches!(pending.publish(), Err(PublishError::NotFile { .. })));
        std::fs::write(at(".x.partial"), "of the user").unwrap();
        write_file(&at("x"), b"content", false).unwrap();
        write_file(&at("x"), b"again", true).unwrap();
        assert_eq!(std::fs::read(at(".x.partial")).unwrap(), b"of the user");
        assert_eq!(std::fs::read(at("x")).unwrap(), b"again");
        let added: Vec<_> = names(dir.path()).into_iter().filter(|name| !before.contains(name)).collect();
        assert_eq!(added, [".x.partial", "late", "x"]);
    }

    fn names(dir: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_as_it_should_be_stays() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x.json");
        let inode = |file: &File| std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        // Kept open, so that its inode is not reused.
        let first = renew_file(&target, b"content").unwrap();
        assert_eq!(inode(&renew_file(&target, b"content").unwrap()), inode(&first));
        for other in [&b"contenT"[..], b"contentcontent", b""] {
            let renewed = renew_file(&target, other).unwrap();
            assert_eq!(std::fs::read(&target).unwrap(), other);
            assert_ne!(inode(&renewed), inode(&first));
        }
        let first = renew_file(&target, b"content").unwrap();
        std::fs::set_permissions(&target, std::os::unix::fs::PermissionsExt::from_mode(0o666)).unwrap();
        let renewed = renew_file(&target, b"content").unwrap();
        assert_ne!(inode(&renewed), inode(&first), "others could write to it");
        assert_eq!(std::os::unix::fs::MetadataExt::mode(&renewed.metadata().unwrap()) & 0o022, 0);
        let link = dir.path().join("link");
        std::os::unix::fs::symlink(&target, &link).unwrap();
        renew_file(&link, b"").unwrap();
        assert!(link.symlink_metadata().unwrap().is_file(), "a link is replaced, not followed");
    }
}

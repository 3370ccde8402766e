//! Outputs appear whole or not at all.
//!
//! A [`Pending`] file has no name while it is written, so neither an error nor a kill leaves anything behind. It is
//! synced, linked and renamed into place when everything is done.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

use crate::hint::Hint;
use crate::ownership;

/// Modes of outputs, less what the umask takes: whatever it says, only their owner writes to them.
const PUBLIC: u32 = 0o644;
const PRIVATE: u32 = 0o600;

/// Why an output could not be published.
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// The output is there, and nothing says that it may be replaced.
    #[error("{path}: already exists")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// The output is what it would be made of.
    #[error("{path}: is what the output would be made of, and is not replaced")]
    Input {
        /// The file.
        path: PathBuf,
    },
    /// No temporary file can be made beside the output.
    #[error("{path}: cannot create")]
    Create {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The temporary file cannot be written or flushed.
    #[error("{path}: cannot write")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The temporary file cannot take the name of the output.
    #[error("{path}: cannot rename into place")]
    Rename {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl Hint for PublishError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Exists { .. } => "--force replaces it",
            Self::Input { .. } => "-o names another file",
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// A file that is still being written and has no name yet.
#[derive(Debug)]
pub struct Pending {
    file: File,
    target: PathBuf,
}

impl Pending {
    /// Starts the file that will be `target`. Its directory is made when missing; `target` itself must not exist
    /// unless `force` is given.
    pub fn create(target: &Path, force: bool) -> Result<Self, PublishError> {
        Self::with_mode(target, force, PUBLIC)
    }

    /// As [`Pending::create`], for a file that nobody but its owner can read.
    pub fn create_private(target: &Path, force: bool) -> Result<Self, PublishError> {
        Self::with_mode(target, force, PRIVATE)
    }

    fn with_mode(target: &Path, force: bool, mode: u32) -> Result<Self, PublishError> {
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

    /// Gives the file its name, which nothing may have.
    pub fn publish_new(self) -> Result<(), PublishError> {
        let rename = |source: std::io::Error| PublishError::Rename { path: self.target.clone(), source };
        self.file.sync_all().map_err(rename)?;
        match self.link(&self.target) {
            Err(source) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Err(PublishError::Exists { path: self.target })
            }
            other => other.map_err(rename),
        }
    }

    /// Gives the file its name, replacing what has it; returns it, still open.
    pub fn publish(self) -> Result<File, PublishError> {
        let rename = |source: std::io::Error| PublishError::Rename { path: self.target.clone(), source };
        self.file.sync_all().map_err(rename)?;
        // linkat(2) cannot replace a file, so the file gets a name beside the target first.
        let partial = directory(&self.target).join(format!(".{}.partial", file_name(&self.target)));
        match std::fs::remove_file(&partial) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => return Err(rename(source)),
            _ => {}
        }
        self.link(&partial).map_err(rename)?;
        std::fs::rename(&partial, &self.target).map_err(rename)?;
        File::open(directory(&self.target)).and_then(|dir| dir.sync_all()).map_err(rename)?;
        Ok(self.file)
    }

    fn link(&self, name: &Path) -> std::io::Result<()> {
        let fd = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        Ok(rustix::fs::linkat(CWD, fd, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
    }
}

/// Writes `content` as `target`, whole or not at all.
pub fn write_file(target: &Path, content: &[u8], force: bool) -> Result<(), PublishError> {
    write(target, content, force).map(drop)
}

fn write(target: &Path, content: &[u8], force: bool) -> Result<File, PublishError> {
    let pending = Pending::create(target, force)?;
    pending.file().write_all(content).map_err(|source| PublishError::Write { path: target.to_owned(), source })?;
    pending.publish()
}

/// Writes `content` as `target` unless that is a file which has it already and nobody else can write to; returns the file, open.
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
    fn a_file_that_is_as_it_should_be_stays() {
        let dir = tempfile::tempdir().unwrap();
        let target = dir.path().join("x.json");
        let inode = |file: &File| std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
        // It stays open, so that no other file gets its inode.
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

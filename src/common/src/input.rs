//! Opens input files and refuses pipes, devices, sockets and directories without blocking.
//!
//! The type is checked on the open file, so the path cannot be replaced between check and read. A pipe is accepted if the path names an inherited
//! descriptor, such as `/dev/stdin` or the `/dev/fd/63` of `<(command)`.

use crate::hint::Hint;
use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;

/// Maximum size of an input that is read into memory, unless its format has another limit, in bytes.
pub const MAX_INPUT: u64 = 64 << 20;
/// Directories whose entries are file descriptors of the process.
const DESCRIPTORS: [&str; 2] = ["/dev/fd", "/proc/self/fd"];
const STDIN: &str = "/dev/stdin";

/// A file of another type than a regular file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected a regular file, found {found}")]
pub(crate) struct NotRegular {
    pub(crate) found: &'static str,
}

impl Hint for NotRegular {}

/// Opens an input file, or a pipe that the program was given as a descriptor.
pub fn open(path: &Path) -> io::Result<File> {
    // Without NONBLOCK, opening a pipe would wait for a writer; without NOCTTY, a terminal could become the controlling terminal.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = File::options().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let file = opened.map_err(|error| match error.raw_os_error().map(Errno::from_raw_os_error) {
        // A socket cannot be opened, nor can a device that has no driver.
        Some(Errno::NXIO | Errno::NODEV) => path.metadata().map_or(error, |meta| refuse(&meta)),
        _ => error,
    })?;
    let meta = file.metadata()?;
    match meta.is_file() {
        true => Ok(file),
        false if !meta.is_dir() && is_descriptor(path) => {
            fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
            Ok(file)
        }
        false => Err(refuse(&meta)),
    }
}

/// Opens an input file that is read at any position.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let file = open(path)?;
    let meta = file.metadata()?;
    if meta.is_file() { Ok(file) } else { Err(refuse(&meta)) }
}

/// The content of an input file of at most `limit` bytes.
pub fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open(path)?.take(limit.saturating_add(1)).read_to_end(&mut content)?;
    if u64::try_from(content.len()).is_ok_and(|len| len <= limit) {
        return Ok(content);
    }
    Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("larger than the limit of {limit} bytes")))
}

/// The type of a file, with its article.
pub fn kind(meta: &Metadata) -> &'static str {
    match meta.file_type() {
        found if found.is_symlink() => "a symbolic link",
        found if found.is_dir() => "a directory",
        found if found.is_fifo() => "a named pipe",
        found if found.is_socket() => "a socket",
        found if found.is_file() => "a file",
        found if found.is_block_device() => "a block device",
        _ => "a character device",
    }
}

fn refuse(meta: &Metadata) -> io::Error {
    let sort = if meta.is_dir() { io::ErrorKind::IsADirectory } else { io::ErrorKind::InvalidInput };
    io::Error::new(sort, NotRegular { found: kind(meta) })
}

fn is_descriptor(path: &Path) -> bool {
    let parent = path.parent().unwrap_or(path);
    path == Path::new(STDIN) || DESCRIPTORS.iter().any(|folder| parent == Path::new(folder))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn only_regular_files_are_opened() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::fs::write(at("file"), "content").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("pipe", at("link-to-pipe")).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, at("pipe"), rustix::fs::Mode::from_raw_mode(0o600)).unwrap();
        let _listener = UnixListener::bind(at("socket")).unwrap();
        for name in ["file", "link"] {
            assert_eq!(read(&at(name), 7).unwrap(), b"content");
        }
        assert_eq!(read(&at("file"), 6).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let null = std::path::PathBuf::from("/dev/null");
        for (path, found) in [
            (at("pipe"), "a named pipe"),
            (at("link-to-pipe"), "a named pipe"),
            (at("socket"), "a socket"),
            (dir.path().to_owned(), "a directory"),
            (null, "a character device"),
        ] {
            for opened in [open(&path).map(|_| ()), open_regular(&path).map(|_| ()), read(&path, 9).map(|_| ())] {
                assert_eq!(opened.unwrap_err().to_string(), format!("expected a regular file, found {found}"));
            }
        }
        assert_eq!(open(&at("nothing")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

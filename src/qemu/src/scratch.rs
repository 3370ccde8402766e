//! Unnamed temporary files, which vanish when the last process that has them open exits.

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;

/// Error while creating a temporary file.
#[derive(Debug, thiserror::Error)]
pub enum ScratchError {
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ScratchError {
    fn hint(&self) -> Option<String> {
        Some("choose another directory with TMPDIR, or keep the machine's disk elsewhere with --disk FILE".to_owned())
    }

    vmbake_common::causes!(Message);
}

/// Directory for unnamed files.
pub struct Scratch {
    dir: PathBuf,
}

impl Scratch {
    /// TMPDIR, or /var/tmp: disks can become large, and /tmp is often in memory.
    pub fn open() -> Self {
        let var_tmp = Path::new("/var/tmp");
        let dir = match std::env::var_os("TMPDIR") {
            None if var_tmp.is_dir() => var_tmp.to_owned(),
            _ => std::env::temp_dir(),
        };
        Self { dir }
    }

    pub fn file(&self) -> Result<File, ScratchError> {
        tempfile::tempfile_in(&self.dir).map_err(|source| {
            ScratchError::Message(message!("{}: cannot create a temporary file", self.dir.display()).by(source))
        })
    }

    /// A file with this content, at offset 0.
    pub fn holding(&self, content: &[u8]) -> Result<File, ScratchError> {
        let mut file = self.file()?;
        let written = file.write_all(content).and_then(|()| file.rewind());
        written.map_err(|source| {
            ScratchError::Message(message!("{}: cannot write a temporary file", self.dir.display()).by(source))
        })?;
        Ok(file)
    }

    /// A file with the rest of `reader`, at offset 0. The error can be the reader's.
    pub fn copy(&self, reader: &mut impl Read) -> Result<io::Result<File>, ScratchError> {
        let mut file = self.file()?;
        Ok(io::copy(reader, &mut file).and_then(|_| file.rewind()).map(|()| file))
    }
}

/// The path by which a process that inherits `file` opens it.
pub fn name(file: &File) -> String {
    format!("/proc/self/fd/{}", file.as_raw_fd())
}

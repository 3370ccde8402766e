//! Copies of files that others could modify, so that the verified bytes are the bytes used.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use vmbake_disk::write::PIECE;

use super::Store;
use vmbake_common::ownership::{self, InsecurePermissions, own};

impl Store {
    /// Returns `file`, open at its start, or a copy that others cannot modify, with the reason for copying.
    pub fn private(&self, path: &Path, file: File) -> io::Result<(File, Option<InsecurePermissions>)> {
        match own(&file, path) {
            // A file of another type cannot be copied; the reader refuses it.
            Ok(()) | Err(InsecurePermissions::Kind { .. }) => Ok((file, None)),
            Err(exposed) => Ok((self.copy(file)?, Some(exposed))),
        }
    }

    /// Copies to an unnamed file in the store, where space for large files is expected, otherwise in the directory for
    /// temporary files.
    fn copy(&self, mut file: File) -> io::Result<File> {
        let folder = self.root.join("partial");
        let mut named = || {
            ownership::make_folder(&folder)?;
            let mut copy = tempfile::tempfile_in(&folder)?;
            fill(&mut file, &mut copy).map(|()| copy)
        };
        named().or_else(|_| {
            let mut copy = tempfile::tempfile()?;
            fill(&mut file, &mut copy).map(|()| copy)
        })
    }
}

/// Copies a file, with holes for zeros, and rewinds both.
fn fill(file: &mut File, copy: &mut File) -> io::Result<()> {
    file.rewind()?;
    let mut buffer = vec![0; PIECE];
    let mut len: u64 = 0;
    loop {
        let count = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        len += count as u64;
        if buffer[..count].iter().all(|byte| *byte == 0) {
            copy.seek(SeekFrom::Start(len))?;
        } else {
            copy.write_all(&buffer[..count])?;
        }
    }
    copy.set_len(len)?;
    copy.rewind()?;
    file.rewind()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::Permissions;
    use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};

    #[test]
    fn only_what_others_can_write_is_copied() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path().join("store"))).unwrap();
        let path = dir.path().join("file");
        let mut content = vec![7; PIECE + 1];
        content.extend(vec![0; 2 * PIECE]);
        std::fs::write(&path, &content).unwrap();
        for (mode, is_copied) in [(0o644, false), (0o664, true), (0o646, true)] {
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
            let (mut file, why) = store.private(&path, File::open(&path).unwrap()).unwrap();
            assert_eq!(why.is_some(), is_copied, "{mode:o}");
            let same = file.metadata().unwrap().ino() == path.metadata().unwrap().ino();
            assert_ne!(same, is_copied, "{mode:o}");
            if is_copied {
                File::options().write(true).open(&path).unwrap().write_all_at(b"x", 5).unwrap();
                let mut found = Vec::new();
                file.read_to_end(&mut found).unwrap();
                assert!(found == content, "what is written later is not in the copy");
                File::options().write(true).open(&path).unwrap().write_all_at(&[7], 5).unwrap();
            }
        }
    }
}

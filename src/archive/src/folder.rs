//! Directories of layers and trust anchors as tar files, and their extraction.

use std::fs::{File, Permissions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_common::message::FileError;
use vmbake_disk::source::{ReadAt, Window};

use super::ArchiveError;
use super::tar::{END, TarMember, executable_header, folder_members, header, padding};
use vmbake_common::catalog::Root;
use vmbake_common::digest::{Digest, Hasher};
use vmbake_embedded as embedded;

/// Maximum size of a file: layers and anchors are text.
const MAX_FILE: u64 = 64 << 20;
/// Maximum nesting of directories.
const MAX_DEPTH: usize = 64;

enum FolderFile {
    BuiltIn(&'static [u8]),
    Path(PathBuf),
}

impl FolderFile {
    fn is_executable(&self, name: &str) -> bool {
        match self {
            Self::BuiltIn(_) => embedded::EXECUTABLES.contains(&name),
            Self::Path(path) => path.metadata().is_ok_and(|meta| meta.permissions().mode() & 0o100 != 0),
        }
    }
}

/// Packs the directory of `root`, or `built_in` if it is part of the program, into an unnamed file. `README*` and
/// hidden files at its top are skipped, and so are the entries in `without`. Returns it with its digest and length.
pub fn pack(
    root: &Root,
    built_in: &'static [(&'static str, &'static [u8])],
    without: &[&str],
) -> Result<(File, Digest, u64), ArchiveError> {
    let mut files = Vec::new();
    match root {
        Root::BuiltIn => {
            files.extend(built_in.iter().map(|(name, bytes)| ((*name).to_owned(), FolderFile::BuiltIn(bytes))));
        }
        Root::Path(folder) => collect(folder, "", 0, &mut files)?,
    }
    files
        .retain(|(name, _)| !name.starts_with("README") && !name.starts_with('.') && !without.contains(&name.as_str()));
    files.sort_by(|(a, _), (b, _)| a.cmp(b));
    let unwritten = |source| ArchiveError::File(FileError::new(std::env::temp_dir(), "write", source));
    let mut out = tempfile::tempfile().map_err(unwritten)?;
    let (mut hasher, mut total) = (Hasher::sha256(), 0);
    let mut put = |bytes: &[u8]| {
        hasher.update(bytes);
        total += bytes.len() as u64;
        out.write_all(bytes).map_err(unwritten)
    };
    for (name, file) in files {
        // Only files that are installed into an image have a mode.
        let is_executable = name.contains("/files/") && file.is_executable(&name);
        let read;
        let bytes = match &file {
            FolderFile::BuiltIn(bytes) => bytes,
            FolderFile::Path(path) => {
                let content = vmbake_bake::release::read(path, MAX_FILE);
                read = content.map_err(|source| ArchiveError::Read { path: path.clone(), source })?;
                &read[..]
            }
        };
        let len = bytes.len() as u64;
        let header = if is_executable { executable_header } else { header };
        [&header(&name, len)?, bytes, padding(len)].into_iter().try_for_each(&mut put)?;
    }
    put(&END)?;
    out.seek(SeekFrom::Start(0)).map_err(unwritten)?;
    Ok((out, hasher.finish(), total))
}

/// The files below a directory.
fn collect(
    folder: &Path,
    inside: &str,
    depth: usize,
    files: &mut Vec<(String, FolderFile)>,
) -> Result<(), ArchiveError> {
    let unreadable = |source| ArchiveError::Read { path: folder.to_owned(), source };
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let (path, kind) = (entry.path(), entry.file_type().map_err(unreadable)?);
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            return Err(ArchiveError::Name { name: name.to_string_lossy().into_owned() });
        };
        match inside {
            "" if name.starts_with('.') => {}
            _ if kind.is_file() => files.push((format!("{inside}{name}"), FolderFile::Path(path))),
            _ if kind.is_dir() && depth < MAX_DEPTH => collect(&path, &format!("{inside}{name}/"), depth + 1, files)?,
            _ => {
                return Err(ArchiveError::Message(message!(
                    "{}: neither a regular file nor a directory, which archives do not support",
                    path.display()
                )));
            }
        }
    }
    Ok(())
}

/// Extracts a tar file, `member` of the archive at `path`, into the new directory `to`. Its digest must have been
/// verified.
pub fn unpack(archive: &Arc<dyn ReadAt>, path: &Path, member: &TarMember, to: &Path) -> Result<(), ArchiveError> {
    let unreadable = |source| ArchiveError::Read { path: path.to_owned(), source };
    let end = member.at.saturating_add(member.len);
    let folder = Window::new(Arc::clone(archive), member.at..end).map_err(unreadable)?;
    let mut last = String::new();
    for TarMember { name, at, len, is_executable, .. } in folder_members(&folder, path)? {
        if name <= last || len > MAX_FILE {
            let what = "is unsorted, duplicated or too long".to_owned();
            return Err(ArchiveError::Member { path: path.to_owned(), name, at: member.at + at, what });
        }
        // Limited to MAX_FILE.
        let mut content = vec![0; usize::try_from(len).unwrap_or_default()];
        folder.read_exact_at(&mut content, at).map_err(unreadable)?;
        let target = to.join(&name);
        let unwritten = |source| ArchiveError::File(FileError::new(target.clone(), "write", source));
        target.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(unwritten)?;
        File::create_new(&target).and_then(|mut file| file.write_all(&content)).map_err(unwritten)?;
        if is_executable {
            let mode = std::fs::metadata(&target).map_err(unwritten)?.permissions().mode();
            std::fs::set_permissions(&target, Permissions::from_mode(mode | 0o111)).map_err(unwritten)?;
        }
        last = name;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_layers_stay_executable() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("to"));
        let modes = [("a/files/x", 0o744, true), ("a/files/y", 0o640, false), ("a/layer.json", 0o755, false)];
        for (name, mode, _) in modes {
            let path = from.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, name).unwrap();
            std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
        let (file, _, len) = pack(&Root::Path(from), &[], &[]).unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut &file, &mut bytes).unwrap();
        std::fs::create_dir(&to).unwrap();
        let member = TarMember { name: "a".to_owned(), header_at: 0, at: 0, len, is_executable: false };
        let archive: Arc<dyn ReadAt> = Arc::new(bytes);
        unpack(&archive, Path::new("a"), &member, &to).unwrap();
        for (name, _, is_executable) in modes {
            let meta = std::fs::metadata(to.join(name)).unwrap();
            assert_eq!(meta.permissions().mode() & 0o111 != 0, is_executable, "{name}");
        }
        assert!(super::super::tar::members(&*archive, Path::new("a")).is_err());
    }
}

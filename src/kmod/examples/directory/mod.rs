//! A directory of the host as a tree.

use std::error::Error;
use std::fs;
use std::io;
use std::path::PathBuf;

use vmbake_kmod::{Entry, EntryKind, Files};

/// A directory of the host.
pub struct Directory(pub PathBuf);

impl Files for Directory {
    fn list(&self, path: &str) -> io::Result<Option<Vec<Entry>>> {
        let directory = self.path(path);
        let Some(entries) = present(fs::read_dir(&directory))? else { return Ok(None) };
        let entry = |entry: io::Result<fs::DirEntry>| {
            let name = entry?.file_name();
            let path = directory.join(&name);
            let kind = match fs::metadata(&path) {
                _ if fs::read_link(&path).is_ok_and(|to| to.as_os_str() == "/dev/null") => EntryKind::Null,
                Ok(found) if found.is_dir() => EntryKind::Directory,
                Ok(found) if found.is_file() => EntryKind::File,
                _ => EntryKind::Other,
            };
            Ok(Entry { name: name.into_encoded_bytes(), kind })
        };
        entries.map(entry).collect::<io::Result<_>>().map(Some)
    }

    fn read(&self, path: &str) -> io::Result<Option<Vec<u8>>> {
        present(fs::read(self.path(path)))
    }
}

impl Directory {
    fn path(&self, path: &str) -> PathBuf {
        self.0.join(path.trim_start_matches('/'))
    }
}

fn present<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// An error with its causes in one line.
pub fn chain(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

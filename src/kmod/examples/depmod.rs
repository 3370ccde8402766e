//! Indexes the modules of a kernel in a directory, for checks that compare the files with depmod's:
//! `depmod RELEASE ROOT VERSION OUT [SYSTEM.MAP]` reads `ROOT/lib/modules/VERSION` as kmod RELEASE, writes the files into `OUT`, and prints
//! warnings.

use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use vmbake_kmod::{Entry, EntryKind, Files, Release, Settings, depmod};

/// A directory of the host.
struct Directory(PathBuf);

impl Files for Directory {
    fn list(&self, path: &str) -> io::Result<Option<Vec<Entry>>> {
        let directory = self.path(path);
        let Some(entries) = present(fs::read_dir(&directory))? else { return Ok(None) };
        let entry = |entry: io::Result<fs::DirEntry>| {
            let name = entry?.file_name();
            let kind = match fs::metadata(directory.join(&name)) {
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

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [release, root, version, out, rest @ ..] = &arguments[..] else {
        return Err("usage: depmod RELEASE ROOT VERSION OUT [SYSTEM.MAP]".into());
    };
    let system_map = rest.first().map(fs::read).transpose()?;
    let settings = Settings {
        directory: &format!("/lib/modules/{version}"),
        release: Release::of_version(release).ok_or("unknown release")?,
        system_map: system_map.as_deref(),
        threads: std::thread::available_parallelism()?,
    };
    let indexes = depmod(&Directory(root.into()), &settings).map_err(chain)?;
    indexes.warnings.iter().for_each(|warning| eprintln!("{warning}"));
    for (name, content) in &indexes.files {
        fs::write(Path::new(out).join(name), content)?;
    }
    Ok(())
}

/// An error with its causes in one line.
fn chain(error: impl Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(next) = cause {
        text.push_str(&format!(": {next}"));
        cause = next.source();
    }
    text
}

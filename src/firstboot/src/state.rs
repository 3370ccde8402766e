//! The state directory: bounded reads, a lock between runs, and a write that appears whole or not at all.
//!
//! What holds: the record is always absent, the old one or the new one, wherever the program is killed. The temporary
//! file has one fixed name and is touched only under the lock, so the next run removes what a killed one left.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::error::Error;

/// The largest plan or record that is read, in bytes: a real manifest is some 20 KB.
pub const MAX_BYTES: u64 = 1 << 20;

const DIRECTORY: [&str; 3] = ["var", "lib", "vmbake"];
const RECORD: &str = "firstboot.json";
const TEMPORARY: &str = ".firstboot.json.tmp";

/// Where the record is, below `root`.
pub fn record_path(root: &Path) -> PathBuf {
    DIRECTORY.iter().fold(root.to_path_buf(), |path, name| path.join(name)).join(RECORD)
}

/// The record, or `None` before the first `configure`.
pub fn read_record(root: &Path) -> Result<Option<Value>, Error> {
    check_directories(root)?;
    read_object(&record_path(root))
}

/// Writes the record unless it already says the same; true when it was written.
pub fn write_record(root: &Path, record: &Value) -> Result<bool, Error> {
    let directory = make_directories(root)?;
    // The lock is on the directory itself: no lock file to leave behind, and the kernel drops it with the process.
    let lock = File::open(&directory).map_err(Error::io("open", &directory))?;
    lock.lock().map_err(Error::io("lock", &directory))?;
    let temporary = directory.join(TEMPORARY);
    match fs::remove_file(&temporary) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(Error::io("remove", &temporary)(error)),
        _ => {}
    }
    let path = directory.join(RECORD);
    match read_object(&path) {
        Ok(Some(found)) if found == *record => return Ok(false),
        // A record that a power cut damaged is replaced; what is not a record at all is not touched.
        Ok(_) | Err(Error::Corrupt { .. }) => {}
        Err(error) => return Err(error),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .map_err(Error::io("create", &temporary))?;
    file.write_all(format!("{record:#}\n").as_bytes()).map_err(Error::io("write", &temporary))?;
    file.sync_all().map_err(Error::io("sync", &temporary))?;
    fs::rename(&temporary, &path).map_err(Error::io("rename to", &path))?;
    lock.sync_all().map_err(Error::io("sync", &directory))?;
    Ok(true)
}

/// The JSON object in the regular file `path`, or `None` where there is no file.
pub fn read_object(path: &Path) -> Result<Option<Value>, Error> {
    let Some(found) = metadata(path)? else { return Ok(None) };
    if !found.is_file() {
        return Err(refused(path, "a regular file", kind(&found).into()));
    }
    let file = File::open(path).map_err(Error::io("open", path))?;
    let mut bytes = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut bytes).map_err(Error::io("read", path))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(refused(path, "at most 1 MiB", "more".into()));
    }
    let corrupt = |expected, found| Error::Corrupt { path: path.to_path_buf(), expected, found };
    let text = std::str::from_utf8(&bytes).map_err(|error| corrupt("UTF-8", error.to_string()))?;
    let value: Value = serde_json::from_str(text).map_err(|error| corrupt("JSON", error.to_string()))?;
    if !value.is_object() {
        return Err(corrupt("a JSON object", "another JSON value".into()));
    }
    Ok(Some(value))
}

/// Refuses a symbolic link, or anything but a directory, on the way to the state directory.
pub fn check_directories(root: &Path) -> Result<(), Error> {
    let mut path = root.to_path_buf();
    for name in DIRECTORY {
        path.push(name);
        let Some(found) = metadata(&path)? else { return Ok(()) };
        if !found.is_dir() {
            return Err(refused(&path, "a directory", kind(&found).into()));
        }
    }
    Ok(())
}

fn make_directories(root: &Path) -> Result<PathBuf, Error> {
    check_directories(root)?;
    let mut path = root.to_path_buf();
    for name in DIRECTORY {
        path.push(name);
        let mode = if name == "vmbake" { 0o700 } else { 0o755 };
        match DirBuilder::new().mode(mode).create(&path) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(Error::io("create", &path)(error));
            }
            _ => {}
        }
    }
    check_directories(root)?;
    Ok(path)
}

fn metadata(path: &Path) -> Result<Option<Metadata>, Error> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("examine", path)(error)),
    }
}

fn kind(found: &Metadata) -> &'static str {
    if found.is_symlink() {
        "a symbolic link"
    } else if found.is_dir() {
        "a directory"
    } else if found.is_file() {
        "a regular file"
    } else {
        "a special file"
    }
}

fn refused(path: &Path, expected: &'static str, found: String) -> Error {
    Error::Refused { path: path.to_path_buf(), expected, found }
}

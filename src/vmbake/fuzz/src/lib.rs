//! Common parts of the fuzz targets.

use std::fs::File;
use std::io::{Seek, Write};

/// A file with these bytes, that has no name.
pub fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile_in("/dev/shm").unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

//! Sources of the host crates, for checks beyond the compiler.

use std::fs;
use std::path::{Path, PathBuf};

/// Crates with inputs of their own kind: they open no files of the host.
const OTHERS: [&str; 4] = ["bench", "disk", "firstboot", "shell"];

/// The folder of the crates.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// All sources, in the order of their names.
pub fn sources() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        if !OTHERS.iter().any(|other| entry.file_name() == *other) {
            files(&entry.path().join("src"), &mut found);
        }
    }
    assert!(found.len() > 400, "only {} sources were found", found.len());
    found.sort();
    found
}

/// The lines of a source outside of comments and unit tests, counted from 0.
pub fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let code = text.split("#[cfg(test)]").next().unwrap();
    code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//"))
}

fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        } else if path.extension().is_some_and(|end| end == "rs") {
            found.push(path);
        }
    }
}

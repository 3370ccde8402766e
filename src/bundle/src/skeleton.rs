//! `vmbake bundle init`: a directory and a publisher in; a commented description, a layer and empty sources out.

use std::path::{Path, PathBuf};

use super::contents::{DOCUMENT, LAYERS, SOURCES};
use super::error::BundleError;
use super::validate;
use vmbake_common::atomic_file::write_file;
use vmbake_common::escape;

const BUNDLE: &str = include_str!("skeleton-bundle.json");
const LAYER: &str = include_str!("skeleton-layer.json");
const NO_SOURCES: &str = "{\n  \"archives\": {},\n  \"dependencies\": []\n}\n";

/// Writes a bundle into the folder `dir`, whose name is that of the bundle; tells what was written. Nothing that is there is replaced.
pub fn init(dir: &Path, publisher: &str) -> Result<Vec<PathBuf>, BundleError> {
    let path = dir.join(DOCUMENT);
    let name = dir.file_name().and_then(std::ffi::OsStr::to_str).unwrap_or_default();
    for (key, word) in [("publisher", publisher), ("name", name)] {
        if let Some(what) = validate::label(word) {
            return Err(BundleError::Document { path, key: key.to_owned(), what });
        }
    }
    // A path may have anything in it, even the end of a line.
    let shown = escape::line(dir.to_string_lossy());
    let fill = |text: &str| text.replace("@{dir}", &shown).replace("@{name}", name).replace("@{publisher}", publisher);
    let layer = dir.join(LAYERS).join(format!("{publisher}.{name}")).join("layer.json");
    let files = [(path, fill(BUNDLE)), (layer, fill(LAYER)), (dir.join(SOURCES), NO_SOURCES.to_owned())];
    for (path, text) in &files {
        write_file(path, text.as_bytes(), false)?;
    }
    Ok(files.into_iter().map(|(path, _)| path).collect())
}

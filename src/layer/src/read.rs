//! Reads a layer's directory: its path in; its files, within limits, or all unsupported entries out.
//!
//! Anything that is neither a regular file nor a directory is refused, as are names that differ only in case or are not UTF-8.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::DirEntry;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::{Fault, LayerError, LayerFile, LocalFile, validate};
use vmbake_common::digest::Digest;
use vmbake_common::input;

/// Largest file below `files/`, in bytes: these are held in memory.
const MAX_FILE: u64 = 64 << 20;

/// Most bytes of all files below `files/`.
const MAX_TOTAL: u64 = 256 << 20;

/// Largest file below `local/`, in bytes: an archive for a site without a network has it in memory.
const MAX_LOCAL: u64 = 1 << 30;

/// Most files and directories of a layer.
const MAX_FILES: usize = 10_000;

/// Most directories within each other.
const MAX_DEPTH: usize = 40;

/// The name of a layer's description.
pub(super) const DESCRIPTION: &str = "layer.json";

/// The directory of packages, archives and other files that `local_files` installs.
pub(super) const LOCAL_FILES: &str = "local";

/// Contents of a layer's directory.
#[derive(Clone, Debug, Default)]
pub(super) struct LayerFolder {
    /// The text of its description, if there is one.
    pub(super) description: Option<Vec<u8>>,
    /// The files below `files/`, by absolute path in the image.
    pub(super) files: BTreeMap<String, LayerFile>,
    /// The files below `local/`, by their paths in the directory.
    pub(super) local: BTreeMap<String, LocalFile>,
    /// Unsupported entries.
    pub(super) faults: Vec<Fault>,
}

impl LayerFolder {
    /// Takes the file at `path`, relative to the layer's directory.
    pub(super) fn add(&mut self, path: &str, content: Vec<u8>, is_executable: bool) {
        if path == DESCRIPTION {
            self.description = Some(content);
        } else if let Some(path) = path.strip_prefix("files") {
            self.files.insert(path.to_owned(), LayerFile { content, is_executable });
        }
    }

    fn fault(&mut self, path: &Path, message: impl Into<String>) {
        self.faults.push(Fault { path: path.to_owned(), position: None, warning: false, message: message.into() });
    }
}

/// Reads the layer's directory `dir`.
pub(super) fn read(dir: &Path) -> Result<LayerFolder, LayerError> {
    let mut content = LayerFolder::default();
    let mut folded: BTreeSet<String> = BTreeSet::new();
    let (mut count, mut total) = (0_usize, 0_u64);
    let mut todo = vec![(dir.to_owned(), String::new(), 0_usize)];
    while let Some((next, inside, depth)) = todo.pop() {
        for entry in entries(&next)? {
            let path = entry.path();
            let Some(name) = check_name(&entry, depth, &mut content) else { continue };
            let relative = if inside.is_empty() { name } else { format!("{inside}/{name}") };
            let error = |source| LayerError::Read { path: path.clone(), source };
            let meta = entry.metadata().map_err(error)?;
            count += 1;
            if count > MAX_FILES {
                content.fault(dir, format!("has more than {MAX_FILES} files and directories"));
                return Ok(content);
            }
            if !folded.insert(relative.to_ascii_lowercase()) {
                content.fault(&path, "differs from another name only in case");
            }
            if meta.is_dir() {
                match depth < MAX_DEPTH {
                    true => todo.push((path, relative, depth + 1)),
                    false => content.fault(&path, format!("is more than {MAX_DEPTH} directories deep")),
                }
            } else if meta.is_symlink() {
                content.fault(&path, "is a symbolic link; list links in `symlinks` of layer.json");
            } else if !meta.is_file() {
                let found = input::kind(&meta);
                content.fault(&path, format!("expected a regular file or a directory, found {found}"));
            } else if relative.starts_with(LOCAL_FILES) && depth > 0 {
                let file = vmbake_common::ownership::open(&path).map_err(error)?;
                let (digest, len) = Digest::of(b"").of_stream(file.take(MAX_LOCAL + 1)).map_err(error)?;
                if len > MAX_LOCAL {
                    content.fault(&path, format!("has more than {MAX_LOCAL} bytes"));
                }
                content.local.insert(relative, LocalFile { path, digest });
            } else if depth > 0 || relative == DESCRIPTION {
                let mut bytes = Vec::new();
                let file = vmbake_common::ownership::open(&path).map_err(error)?;
                file.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(error)?;
                if bytes.len() as u64 > MAX_FILE {
                    content
                        .fault(&path, format!("has more than {MAX_FILE} bytes; put larger files into {LOCAL_FILES}/"));
                    continue;
                }
                total += bytes.len() as u64;
                if total > MAX_TOTAL {
                    content.fault(dir, format!("has more than {MAX_TOTAL} bytes"));
                    return Ok(content);
                }
                content.add(&relative, bytes, meta.permissions().mode() & 0o100 != 0);
            }
        }
    }
    Ok(content)
}

/// The entries of a directory, sorted, so that the same faults come in the same order.
fn entries(dir: &Path) -> Result<Vec<DirEntry>, LayerError> {
    let read = |source| LayerError::Read { path: dir.to_owned(), source };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(read)? {
        // One directory must not fill the memory before its entries are counted.
        if found.len() > MAX_FILES {
            break;
        }
        found.push(entry.map_err(read)?);
    }
    found.sort_by_key(DirEntry::file_name);
    Ok(found)
}

/// The name of an entry, when it is one that a layer may have; other entries next to `layer.json` and `files` are
/// documentation.
fn check_name(entry: &DirEntry, depth: usize, content: &mut LayerFolder) -> Option<String> {
    let (name, path) = (entry.file_name(), entry.path());
    let Some(name) = name.to_str() else {
        content.fault(&path, "has a name that is not UTF-8");
        return None;
    };
    if let Some(reason) = validate::below(name) {
        content.fault(&path, reason);
        return None;
    }
    if depth == 0 && ![DESCRIPTION, "files", LOCAL_FILES].contains(&name) {
        if !(name.starts_with("README") || name.starts_with('.')) {
            content.fault(&path, "unexpected entry: expected layer.json, files, local or a README");
        }
        return None;
    }
    Some(name.to_owned())
}

/// The layers below `dir`: directories that have a `layer.json`.
pub(super) fn layers(dir: &Path) -> Result<Vec<(String, PathBuf)>, LayerError> {
    let mut layers = Vec::new();
    let found = entries(dir)?;
    if found.len() > MAX_FILES {
        let message = format!("has more than {MAX_FILES} files and directories");
        return Err(LayerError::Faults(vec![Fault { path: dir.to_owned(), position: None, warning: false, message }]));
    }
    for entry in found {
        let path = entry.path();
        if path.join(DESCRIPTION).symlink_metadata().is_err() {
            continue;
        }
        match entry.file_name().to_str() {
            Some(name) => layers.push((name.to_owned(), path)),
            None => {
                let message = "has a name that is not UTF-8".to_owned();
                return Err(LayerError::Faults(vec![Fault { path, position: None, warning: false, message }]));
            }
        }
    }
    Ok(layers)
}

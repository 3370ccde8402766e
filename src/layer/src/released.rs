//! Released versions of layers: `released.json` next to layers records their digests. A released version never has another digest.
//!
//! The format is `{"NAME": {"VERSION": "sha256:…"}}`, sorted. `vmbake layer release` adds entries.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::findings::Found;
use super::position::{Spans, position};
use super::{Fault, Layer, LayerError};
use vmbake_common::atomic_file::write_file;
use vmbake_common::catalog::Root;
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_embedded as embedded;

/// Name of the list.
const FILE: &str = "released.json";

/// Largest list that is read, in bytes: a version of a layer takes a hundred.
const MAX_LEN: u64 = 4 << 20;

/// The content of one list: digests by name and version.
type List = BTreeMap<String, BTreeMap<String, Digest>>;

/// The lists of several roots.
#[derive(Clone, Debug, Default)]
pub(super) struct Released {
    lists: Vec<(Root, List)>,
}

impl Released {
    /// Reads the list of a root, if it has one.
    pub(super) fn add(&mut self, root: &Root) -> Result<(), LayerError> {
        let list = match root {
            Root::BuiltIn => match embedded::LAYERS.iter().find(|(path, _)| *path == FILE) {
                Some((_, text)) => parse(&Path::new("layers").join(FILE), text)?,
                None => List::new(),
            },
            Root::Path(folder) => load(&folder.join(FILE))?,
        };
        self.lists.push((root.clone(), list));
        Ok(())
    }

    /// Finds a layer that was released as something else.
    pub fn check(&self, layer: &Layer) -> Option<Found> {
        let (name, version) = (&layer.schema.name, &layer.schema.version);
        let released = |(root, list): &(Root, List)| {
            let digest = list.get(name)?.get(version)?;
            (*digest != layer.digest).then(|| {
                let found = layer.digest;
                format!("{root} lists version {version:?} as released with {digest}, found {found}: changed content needs another version")
            })
        };
        let message = self.lists.iter().find_map(released)?;
        Some(Found { pointer: "/version".to_owned(), key: false, warning: false, message })
    }
}

/// Lists a layer in directory `folder`; tells whether it was not listed before.
pub(super) fn record(folder: &Path, layer: &Layer) -> Result<bool, LayerError> {
    let path = folder.join(FILE);
    let mut list = load(&path)?;
    let versions = list.entry(layer.schema.name.clone()).or_default();
    if versions.insert(layer.schema.version.clone(), layer.digest).is_some() {
        return Ok(false);
    }
    let text = serde_json::to_string_pretty(&list).map_err(|error| fault(&path, None, error.to_string()))?;
    write_file(&path, (text + "\n").as_bytes(), true)?;
    Ok(true)
}

fn load(path: &Path) -> Result<List, LayerError> {
    let read = |source| LayerError::Read { path: path.to_owned(), source };
    let len = match std::fs::metadata(path) {
        Ok(meta) => meta.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(List::new()),
        Err(error) => return Err(read(error)),
    };
    if len > MAX_LEN {
        return Err(fault(path, None, format!("has more than {MAX_LEN} bytes")));
    }
    parse(path, &input::read(path, MAX_LEN).map_err(read)?)
}

fn parse(path: &Path, text: &[u8]) -> Result<List, LayerError> {
    let list = serde_json::from_slice(text).map_err(|error| {
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message);
        fault(path, Some((error.line(), error.column())), message.to_owned())
    })?;
    // Of two digests of one version, neither is the one.
    match Spans::of(text).twice.first() {
        Some((at, key)) => Err(fault(path, Some(position(text, *at)), format!("duplicate key {key:?}"))),
        None => Ok(list),
    }
}

fn fault(path: &Path, position: Option<(usize, usize)>, message: String) -> LayerError {
    let path = PathBuf::from(path);
    LayerError::Faults(vec![Fault { path, position, warning: false, message }])
}

//! Reading layers and putting them in order.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::{Layer, LayerError, LayerFile, Schema};
use crate::embedded;
use crate::manifest::Digest;

/// The layer that every image gets, as its last one.
const LAST: &str = "hygiene";

/// Largest file of a layer, in bytes: layers are text, artifacts belong into the manifest.
const MAX_FILE: u64 = 4 << 20;

/// All layers there are, by name.
#[derive(Clone, Debug)]
pub struct Layers {
    layers: BTreeMap<String, Layer>,
}

impl Layers {
    /// Reads the layers of directory `dir`, or the built-in ones.
    ///
    /// The digest of a layer is the SHA-256 of what `sha256sum` prints about `layer.json` and all files below `files/`,
    /// sorted by path: `find layer.json files -type f | LC_ALL=C sort | xargs sha256sum | sha256sum`.
    pub fn load(dir: Option<&Path>) -> Result<Self, LayerError> {
        let files = match dir {
            Some(dir) => read_dir(dir)?,
            None => embedded::LAYERS.iter().map(|(path, content)| (path.into(), content.to_vec())).collect(),
        };
        let root = dir.unwrap_or(Path::new("layers"));
        let mut layers = BTreeMap::new();
        for (path, text) in &files {
            if path.components().count() != 2 || !path.ends_with("layer.json") {
                continue;
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            let schema = parse(&root.join(path), folder, text)?;
            let files = layer_files(&files, folder);
            let layer = Layer { digest: digest(text, &files), files, schema };
            check(&root.join(path), &layer)?;
            layers.insert(layer.schema.name.clone(), layer);
        }
        Ok(Self { layers })
    }

    /// The layers of a kind, each after those that it requires, the hygiene layer last.
    pub fn resolve(&self, kind: &str, os: &str) -> Result<Vec<Layer>, LayerError> {
        let mut order = Vec::new();
        for name in [kind, LAST] {
            self.visit(name, os, &mut Vec::new(), &mut order)?;
        }
        Ok(order.into_iter().map(|name| self.layers[&name].clone()).collect())
    }

    fn visit(&self, name: &str, os: &str, path: &mut Vec<String>, order: &mut Vec<String>) -> Result<(), LayerError> {
        if order.iter().any(|done| done == name) {
            return Ok(());
        }
        if path.iter().any(|open| open == name) {
            return Err(LayerError::Cycle { path: format!("{} -> {name}", path.join(" -> ")) });
        }
        let schema = match self.layers.get(name) {
            Some(layer) => &layer.schema,
            None => {
                let known = self.layers.keys().cloned().collect::<Vec<_>>().join(", ");
                return Err(LayerError::Unknown { name: name.to_owned(), known });
            }
        };
        if !schema.os.contains(os) {
            let supported = schema.os.iter().cloned().collect::<Vec<_>>().join(", ");
            return Err(LayerError::Unsupported { name: name.to_owned(), os: os.to_owned(), supported });
        }
        path.push(name.to_owned());
        for required in &schema.requires {
            self.visit(required, os, path, order)?;
        }
        path.pop();
        order.push(name.to_owned());
        Ok(())
    }
}

fn parse(path: &Path, folder: &Path, text: &[u8]) -> Result<Schema, LayerError> {
    let schema: Schema = serde_json::from_slice(text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        // serde_json ends its message with the position, which already stands in front of ours.
        let message = error.to_string();
        let message = message.rsplit_once(" at line ").map_or(message.as_str(), |(message, _)| message).to_owned();
        LayerError::Syntax { path: path.to_owned(), line, column, message }
    })?;
    if Path::new(&schema.name) != folder {
        let message = format!("the layer calls itself {:?} but its folder is {:?}", schema.name, folder);
        return Err(LayerError::Invalid { path: path.to_owned(), message });
    }
    Ok(schema)
}

/// Every path of a layer is absolute, without `..`, and settings name only files that the layer brings.
fn check(path: &Path, layer: &Layer) -> Result<(), LayerError> {
    let schema = &layer.schema;
    let invalid = |message| Err(LayerError::Invalid { path: path.to_owned(), message });
    let installs = schema.artifacts.values().filter_map(|install| match install {
        super::Install::File { path, .. } | super::Install::Tar { path, .. } => Some(path),
        super::Install::Deb => None,
    });
    let paths = schema.directories.keys().chain(schema.files.keys()).chain(schema.symlinks.keys());
    for found in paths.chain(&schema.remove).chain(&schema.empty).chain(installs) {
        if !found.starts_with('/') || found.split('/').any(|name| name == "..") || found.contains('\0') {
            return invalid(format!("path {found:?} is not absolute or has `..` in it"));
        }
    }
    match schema.files.keys().find(|name| !layer.files.contains_key(*name)) {
        Some(name) => invalid(format!("sets the mode of {name:?}, which is not below files/")),
        None => Ok(()),
    }
}

fn layer_files(files: &BTreeMap<PathBuf, Vec<u8>>, folder: &Path) -> BTreeMap<String, LayerFile> {
    let prefix = folder.join("files");
    files
        .iter()
        .filter_map(|(path, content)| {
            let inside = path.strip_prefix(&prefix).ok()?.to_str()?;
            Some((format!("/{inside}"), LayerFile { content: content.clone() }))
        })
        .collect()
}

fn digest(text: &[u8], files: &BTreeMap<String, LayerFile>) -> Digest {
    let own = files.iter().map(|(path, file)| (format!("files{path}"), file.content.as_slice()));
    let named: BTreeMap<String, &[u8]> = own.chain([("layer.json".to_owned(), text)]).collect();
    let lines = named.iter().map(|(path, content)| format!("{}  {path}\n", Digest::of(content).hex()));
    Digest::of(lines.collect::<String>().as_bytes())
}

/// All regular files below `dir`, by path relative to it. Symbolic links are refused: a layer says them in its JSON.
fn read_dir(dir: &Path) -> Result<BTreeMap<PathBuf, Vec<u8>>, LayerError> {
    let mut files = BTreeMap::new();
    let mut todo = BTreeSet::from([dir.to_owned()]);
    while let Some(next) = todo.pop_first() {
        let read = |source| LayerError::Read { path: next.clone(), source };
        for entry in std::fs::read_dir(&next).map_err(read)? {
            let entry = entry.map_err(read)?;
            let (path, meta) = (entry.path(), entry.metadata().map_err(read)?);
            if meta.is_dir() {
                todo.insert(path);
            } else if meta.is_file() && meta.len() <= MAX_FILE {
                let content = std::fs::read(&path).map_err(|source| LayerError::Read { path: path.clone(), source })?;
                files.insert(path.strip_prefix(dir).unwrap_or(&path).to_owned(), content);
            } else {
                let message = format!("is not a regular file of at most {MAX_FILE} bytes");
                return Err(LayerError::Invalid { path, message });
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(layers: &[(&str, &str)]) -> Result<Layers, LayerError> {
        let dir = tempfile::tempdir().unwrap();
        for (name, rest) in layers {
            let folder = dir.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            let text = layer_text(name).replace("\n}", &format!("{rest}\n}}"));
            std::fs::write(folder.join("layer.json"), text).unwrap();
        }
        Layers::load(Some(dir.path()))
    }

    fn layer_text(name: &str) -> String {
        format!("{{\n\"name\": \"{name}\", \"version\": \"1\", \"description\": \"d\", \"os\": [\"o\"]\n}}")
    }

    #[test]
    fn layers_follow_what_they_require_and_hygiene_is_last() {
        let layers = load(&[
            ("hygiene", ""),
            ("a", ", \"requires\": [\"c\", \"b\"]"),
            ("b", ""),
            ("c", ", \"requires\": [\"b\"]"),
        ])
        .unwrap();
        let order = layers.resolve("a", "o").unwrap();
        assert_eq!(
            order.iter().map(|layer| layer.schema.name.as_str()).collect::<Vec<_>>(),
            ["b", "c", "a", "hygiene"]
        );
        assert!(matches!(layers.resolve("x", "o"), Err(LayerError::Unknown { .. })));
        assert!(matches!(layers.resolve("a", "p"), Err(LayerError::Unsupported { .. })));
    }

    #[test]
    fn faults_are_named_with_their_line() {
        let cycle = load(&[("a", ", \"requires\": [\"b\"]"), ("b", ", \"requires\": [\"a\"]")]).unwrap();
        assert_eq!(
            cycle.resolve("a", "o").unwrap_err().to_string(),
            "layers require each other in a circle: a -> b -> a"
        );
        for (rest, expected) in [
            (",\n\"unit\": {}", "layer.json:3:6: unknown field `unit`, expected one of"),
            (
                ",\n\"directories\": {\"/x\": {\"mode\": \"755\"}}",
                "layer.json:3:37: mode \"755\" is not four octal digits",
            ),
            (", \"remove\": [\"/a/../b\"]", "layer.json: path \"/a/../b\" is not absolute or has `..`"),
            (", \"files\": {\"/x\": {\"mode\": \"0755\"}}", "sets the mode of \"/x\", which is not below files/"),
        ] {
            let error = load(&[("a", rest)]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_digest_is_that_of_what_sha256sum_prints() {
        let dir = tempfile::tempdir().unwrap();
        let files = [("layer.json", layer_text("a")), ("files/usr/b", "b".to_owned()), ("files/etc/a", "a".to_owned())];
        for (path, content) in &files {
            let path = dir.path().join("a").join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        let command = "find layer.json files -type f | LC_ALL=C sort | xargs sha256sum | sha256sum";
        let output =
            std::process::Command::new("sh").args(["-c", command]).current_dir(dir.path().join("a")).output().unwrap();
        let expected = String::from_utf8(output.stdout).unwrap();
        let layers = Layers::load(Some(dir.path())).unwrap();
        assert_eq!(layers.layers["a"].digest.hex(), expected.split_once(' ').unwrap().0);
    }

    #[test]
    fn built_in_layers_are_valid() {
        for kind in ["node", "knd", "knc"] {
            let layers = Layers::load(None).unwrap().resolve(kind, "debian-13").unwrap();
            assert_eq!(layers.last().unwrap().schema.name, "hygiene");
        }
    }
}

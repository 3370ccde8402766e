//! Reads, checks and orders the layers of a kind.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::document::Document;
use super::findings::Found;
use super::read::{self, DESCRIPTION, LayerFolder};
use super::released::Released;
use super::settings::{self, Setting};
use super::{
    Fault, FileRule, Layer, LayerError, LayerFile, LocalFile, Swap, check as layer_check, consistency, first_boot,
    references,
};
use vmbake_common::catalog::{Catalog, Entries, Entry, Override, Root};
use vmbake_common::digest::Digest;
use vmbake_embedded as embedded;

/// The layer that every image gets, as its last one.
pub const HYGIENE: &str = "hygiene";

/// A layer whose description has the right form.
#[derive(Clone, Debug)]
pub(super) struct Loaded {
    pub(super) layer: Layer,
    document: Document,
    /// Where the description is, for messages.
    pub(super) path: PathBuf,
}

/// All layers there are, by name.
#[derive(Clone, Debug)]
pub struct Layers {
    layers: Entries<Layer>,
    /// Faults of the layers that cannot be used. Of a layer that requires one of those, no other faults are known.
    broken: BTreeMap<String, Vec<Fault>>,
}

impl Loaded {
    /// Gives files that are executable where they were read from that mode, unless the layer says another one.
    fn apply_executables(&mut self) {
        let Layer { schema, files, .. } = &mut self.layer;
        for (path, _) in files.iter().filter(|(_, file)| file.is_executable) {
            let rule = schema.files.entry(path.clone()).or_insert_with(|| FileRule::with_mode(0o755));
            rule.mode.get_or_insert(0o755);
        }
    }

    /// Turns shorthand keys of the layer into files and links; returns duplicate paths.
    fn apply_settings(&mut self) -> Vec<Fault> {
        let mut faults = Vec::new();
        let schema = self.document.schema.clone();
        let mut twice = |pointer: &str, path: &str| {
            let position = Some(self.document.position(pointer, true));
            let message = format!("{path:?} is duplicated in the layer");
            faults.push(Fault { path: self.path.clone(), position, warning: false, message });
        };
        let settings = settings::files(&schema);
        let modes: Vec<_> =
            settings.iter().filter_map(|one| Some((one.pointer.clone(), one.path.clone(), one.mode?))).collect();
        for Setting { pointer, path, content, .. } in settings {
            let file = LayerFile { content: content.into_bytes(), is_executable: false };
            if self.layer.files.insert(path.clone(), file).is_some() {
                twice(&pointer, &path);
            }
        }
        self.layer.schema.units.enable.extend(schema.swap.iter().map(Swap::unit));
        for (pointer, path, mode) in modes {
            if self.layer.schema.files.insert(path.clone(), FileRule::with_mode(mode)).is_some() {
                twice(&pointer, &path);
            }
        }
        if let Some((path, target)) = settings::symlinks(&schema)
            && (self.layer.files.contains_key(&path)
                || self.layer.schema.symlinks.insert(path.clone(), target).is_some())
        {
            twice("/timezone", &path);
        }
        faults
    }
}

impl Entry for Loaded {
    const SORT: &'static str = "layers";

    fn is_same(&self, other: &Self) -> bool {
        self.layer.digest == other.layer.digest
    }
}

impl Layers {
    /// Reads the layers of all roots. A layer with faults stops what uses it, and nothing else.
    ///
    /// The digest of a layer is the SHA-256 of what `sha256sum` prints about `layer.json` and all files below `files/` and `local/`,
    /// sorted by path, and of the paths of those below `files/` that are executable, as `layers/README.md` computes it.
    pub fn load(catalog: &Catalog) -> Result<Self, LayerError> {
        let (mut all, mut released, mut broken) = (Entries::default(), Released::default(), BTreeMap::new());
        for root in catalog.roots() {
            for (name, content) in contents(root)? {
                match load_one(&folder(root).join(&name), &name, content) {
                    Ok(loaded) => all.add(catalog, root, name, loaded)?,
                    Err(faults) => drop(broken.insert(name, faults)),
                }
            }
            released.add(root)?;
        }
        let layers = Self { layers: all.clone().map(|loaded| loaded.layer), broken };
        let known = by_name(&all);
        let mut found = BTreeMap::new();
        for (name, _, loaded) in all.iter().filter(|(name, ..)| layers.require(name).is_ok()) {
            // The accounts of a base image that was made elsewhere are not known here: merging looks at its files.
            let mut faults = faults(loaded, &known, &released, false);
            faults.retain(|fault| !fault.warning);
            if !faults.is_empty() {
                found.insert(name.clone(), faults);
            }
        }
        Ok(Self { broken: layers.broken.into_iter().chain(found).collect(), ..layers })
    }

    /// Fails unless every layer can be used.
    pub fn complete(self) -> Result<Self, LayerError> {
        match self.broken.is_empty() {
            true => Ok(self),
            false => Err(LayerError::Faults(self.broken.into_values().flatten().collect())),
        }
    }

    /// Fails if a layer, or one that it requires, cannot be used. Unknown names do not count.
    pub fn require(&self, name: &str) -> Result<(), LayerError> {
        let (mut seen, mut next) = (BTreeSet::new(), vec![name]);
        while let Some(name) = next.pop() {
            if let Some(faults) = self.broken.get(name) {
                return Err(LayerError::Faults(faults.clone()));
            }
            if seen.insert(name) {
                let layer = self.layers.get(name);
                next.extend(
                    layer.iter().flat_map(|layer| &layer.schema.requires).map(|required| required.name.as_str()),
                );
            }
        }
        Ok(())
    }

    /// All layers, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.with_roots().map(|(_, layer)| layer)
    }

    /// The same, each with the root that it is from.
    pub fn with_roots(&self) -> impl Iterator<Item = (&Root, &Layer)> {
        self.layers.iter().map(|(_, root, layer)| (root, layer))
    }

    /// The layers that took the place of others.
    pub fn overridden(&self) -> &[Override] {
        self.layers.overridden()
    }

    /// The layers of a kind, each after those that it requires, the hygiene layer last.
    pub fn resolve(&self, kind: &str, os: &str) -> Result<Vec<Layer>, LayerError> {
        self.resolve_with(kind, os, &[])
    }

    /// The same, with more layers: they come behind those that the top layer of the kind requires, and before that one.
    pub fn resolve_with(&self, kind: &str, os: &str, more: &[String]) -> Result<Vec<Layer>, LayerError> {
        self.resolve_on(None, kind, os, more)
    }

    /// The same, on a layer below all others, unless that is one of them.
    pub fn resolve_on(
        &self,
        bottom: Option<&str>,
        kind: &str,
        os: &str,
        more: &[String],
    ) -> Result<Vec<Layer>, LayerError> {
        let mut layers = self.order_with(kind, os, more)?;
        if let Some(bottom) = bottom.filter(|bottom| !layers.iter().any(|layer| layer.schema.name == *bottom)) {
            self.require(bottom)?;
            let mut order = Vec::new();
            self.visit(bottom, os, &mut order)?;
            layers.retain(|layer| !order.contains(&layer.schema.name));
            layers.splice(..0, order.iter().filter_map(|name| self.layers.get(name)).cloned());
        }
        consistency::check(kind, &layers)?;
        Ok(layers)
    }

    /// The same, also of layers that do not go together.
    pub fn order_with(&self, kind: &str, os: &str, more: &[String]) -> Result<Vec<Layer>, LayerError> {
        // Afterwards there are no dependency cycles among them.
        for name in more.iter().map(String::as_str).chain([kind, HYGIENE]) {
            self.require(name)?;
        }
        let mut order = Vec::new();
        if let Some(top) = self.layers.get(kind).filter(|_| !more.is_empty()) {
            let required = top.schema.requires.iter().map(|required| &required.name).chain(more);
            required.filter(|name| *name != HYGIENE).try_for_each(|name| self.visit(name, os, &mut order))?;
        }
        for name in [kind, HYGIENE] {
            self.visit(name, os, &mut order)?;
        }
        Ok(order.iter().filter_map(|name| self.layers.get(name)).cloned().collect())
    }

    /// Puts a layer behind those that it requires. That this ends has been checked by [`Self::require`].
    fn visit(&self, name: &str, os: &str, order: &mut Vec<String>) -> Result<(), LayerError> {
        if order.iter().any(|done| done == name) {
            return Ok(());
        }
        let schema = match self.layers.get(name) {
            Some(layer) => &layer.schema,
            None => {
                let known = self.layers.iter().map(|(name, ..)| name.clone()).collect::<Vec<_>>();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                return Err(LayerError::Unknown { name: name.to_owned(), known });
            }
        };
        if !schema.os.contains(os) {
            let supported = schema.os.iter().cloned().collect::<Vec<_>>().join(", ");
            return Err(LayerError::Unsupported { name: name.to_owned(), os: os.to_owned(), supported });
        }
        // What layers do after it would not be cleaned.
        for required in schema.requires.iter().filter(|required| required.name != HYGIENE) {
            self.visit(&required.name, os, order)?;
        }
        order.push(name.to_owned());
        Ok(())
    }
}

pub(super) fn by_name(all: &Entries<Loaded>) -> BTreeMap<String, &Layer> {
    all.iter().map(|(name, _, loaded)| (name.clone(), &loaded.layer)).collect()
}

/// The directory of a root, for messages too.
pub(super) fn folder(root: &Root) -> &Path {
    match root {
        Root::BuiltIn => Path::new("layers"),
        Root::Path(folder) => folder,
    }
}

/// Contents of all layer directories, by layer name.
pub(super) fn contents(root: &Root) -> Result<BTreeMap<String, LayerFolder>, LayerError> {
    let mut contents: BTreeMap<String, LayerFolder> = BTreeMap::new();
    match root {
        Root::Path(folder) => {
            for (name, path) in read::layers(folder)? {
                contents.insert(name, read::read(&path)?);
            }
        }
        Root::BuiltIn => {
            for (path, bytes) in embedded::LAYERS {
                if let Some((name, inside)) = path.split_once('/') {
                    contents.entry(name.to_owned()).or_default().add(
                        inside,
                        bytes.to_vec(),
                        embedded::EXECUTABLES.contains(path),
                    );
                }
            }
        }
    }
    Ok(contents)
}

/// Makes a layer of what its directory `dir` of that `name` holds, or tells all that keeps it from being one.
pub(super) fn load_one(dir: &Path, name: &str, content: LayerFolder) -> Result<Loaded, Vec<Fault>> {
    let LayerFolder { description, files, local, mut faults } = content;
    let path = dir.join(DESCRIPTION);
    let fault = |position, message| Fault { path: path.clone(), position, warning: false, message };
    let Some(text) = description else {
        faults.push(fault(None, "is missing".to_owned()));
        return Err(faults);
    };
    match Document::read(&text) {
        Err(found) => faults.extend(found.into_iter().map(|(position, message)| fault(Some(position), message))),
        Ok(document) if document.schema.name != name => {
            let message = format!("the layer is named {:?}, but its directory is {name:?}", document.schema.name);
            faults.push(fault(Some(document.position("/name", false)), message));
        }
        Ok(document) if faults.is_empty() => {
            let (digest, schema) = (digest(&text, &files, &local), document.schema.clone());
            let layer = Layer { digest, files, local, schema };
            let mut loaded = Loaded { layer, document, path: path.clone() };
            loaded.apply_executables();
            faults.extend(loaded.apply_settings());
            if faults.is_empty() {
                return Ok(loaded);
            }
        }
        Ok(_) => {}
    }
    Err(faults)
}

fn digest(text: &[u8], files: &BTreeMap<String, LayerFile>, local: &BTreeMap<String, LocalFile>) -> Digest {
    let own = files.iter().map(|(path, file)| (format!("files{path}"), Digest::of(&file.content)));
    let local = local.iter().map(|(path, file)| (path.clone(), file.digest));
    let named: BTreeMap<String, Digest> =
        own.chain(local).chain([("layer.json".to_owned(), Digest::of(text))]).collect();
    let lines = named.iter().map(|(path, digest)| format!("{}  {path}\n", digest.hex()));
    let executables = files.iter().filter(|(_, file)| file.is_executable).map(|(path, _)| format!("files{path}\n"));
    Digest::of(lines.chain(executables).collect::<String>().as_bytes())
}

/// Errors in a parsed layer, in the order of its text.
pub(super) fn faults(
    loaded: &Loaded,
    all: &BTreeMap<String, &Layer>,
    released: &Released,
    accounts: bool,
) -> Vec<Fault> {
    let layer = &loaded.layer;
    let referenced = references::check(&layer.schema, all, accounts)
        .into_iter()
        .chain(first_boot::check_layer_plan(layer, all, accounts));
    let found = layer_check::check(layer).into_iter().chain(referenced).chain(released.check(layer));
    let fault = |Found { pointer, key, warning, message }: Found| Fault {
        path: loaded.path.clone(),
        position: Some(loaded.document.position(&pointer, key)),
        warning,
        message,
    };
    let mut faults: Vec<Fault> = found.map(fault).collect();
    faults.sort();
    faults
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
        Layers::load(&Catalog::only(dir.path()))
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
        let cycle = load(&[
            ("a", ",\n\"requires\": [\"b\"]"),
            ("b", ", \"requires\": [\"c\"]"),
            ("c", ", \"requires\": [\"a\"]"),
        ]);
        let error = cycle.unwrap().complete().unwrap_err().to_string();
        assert!(error.contains("a/layer.json:3:14: dependency cycle of layers: a -> b -> c -> a\n"), "{error}");
        for (rest, expected) in [
            (",\n\"unit\": {}", "layer.json:3:1: unknown field `unit`, expected one of"),
            (
                ",\n\"directories\": {\"/x\": {\"mode\": \"755\"}}",
                "layer.json:3:32: mode \"755\" is not four octal digits",
            ),
            (", \"remove\": [\"/a/../b\"]", "layer.json:2:74: path \"/a/../b\" is not absolute or contains `..`"),
            (", \"files\": {\"/x\": {\"mode\": \"0755\"}}", "layer.json:2:73: \"/x\" is not below files/"),
        ] {
            let error = load(&[("a", rest)]).unwrap().complete().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn a_layer_with_faults_stops_what_requires_it_and_nothing_else() {
        let layers = load(&[
            ("hygiene", ""),
            ("good", ""),
            ("unfinished", ", \"unit\": {}"),
            ("wrong", ", \"remove\": [\"etc\"]"),
            ("above", ", \"requires\": [\"good\", \"middle\"]"),
            ("middle", ", \"requires\": [\"unfinished\"]"),
            ("round", ", \"requires\": [\"trip\", \"unfinished\"]"),
            ("trip", ", \"requires\": [\"round\"]"),
            ("typo", ", \"requires\": [\"god\"]"),
        ])
        .unwrap();
        assert_eq!(layers.resolve("good", "o").unwrap().len(), 2);
        for (kind, expected) in [
            ("unfinished", "unfinished/layer.json:2:72: unknown field `unit`"),
            ("above", "unfinished/layer.json:2:72: unknown field `unit`"),
            ("trip", "unfinished/layer.json:2:72: unknown field `unit`"),
            ("wrong", "path \"etc\" is not absolute"),
            ("typo", "typo/layer.json:2:"),
        ] {
            let error = layers.resolve(kind, "o").unwrap_err().to_string();
            assert!(error.contains(expected), "{kind}: {error}");
        }
        let added = layers.resolve_with("good", "o", &["wrong".to_owned()]);
        assert!(matches!(added, Err(LayerError::Faults(_))), "{added:?}");
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
        let plain = "find layer.json files -type f | LC_ALL=C sort | xargs sha256sum | sha256sum";
        let command = "{ find layer.json files -type f | LC_ALL=C sort | xargs sha256sum; \
                       find files -type f -perm -u+x | LC_ALL=C sort; } | sha256sum";
        let printed = |command: &str| {
            let mut shell = std::process::Command::new("sh");
            let output = shell.args(["-c", command]).current_dir(dir.path().join("a")).output().unwrap();
            String::from_utf8(output.stdout).unwrap().split_once(' ').unwrap().0.to_owned()
        };
        let digest = || Layers::load(&Catalog::only(dir.path())).unwrap().layers.get("a").unwrap().digest.hex();
        assert_eq!(digest(), printed(command));
        assert_eq!(digest(), printed(plain));
        let script = dir.path().join("a/files/etc/a");
        for (mode, is_executable) in [(0o744, true), (0o655, false), (0o700, true)] {
            std::fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(mode)).unwrap();
            assert_eq!(digest(), printed(command), "{mode:o}");
            assert_eq!(digest() != printed(plain), is_executable, "{mode:o}");
            let layers = Layers::load(&Catalog::only(dir.path())).unwrap();
            let rule = layers.layers.get("a").unwrap().schema.files.get("/etc/a").map(|rule| rule.mode);
            assert_eq!(rule, is_executable.then_some(Some(0o755)), "{mode:o}");
        }
    }

    #[test]
    fn built_in_layers_are_valid() {
        for kind in ["node", "knd", "knc"] {
            let layers = Layers::load(&Catalog::built_in()).unwrap().resolve(kind, "debian-13").unwrap();
            assert_eq!(layers.last().unwrap().schema.name, "hygiene");
        }
    }
}

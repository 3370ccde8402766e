//! Makes archives and packages, good and bad, and a small base, and bakes them into a tree.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::num::NonZeroUsize;
use std::path::Path;

use vmbake_bake::inputs::prepare;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::progress::Progress;
use vmbake_compose::merge::{ContentFault, MergeError, Merged};
use vmbake_compose::stage::Plan;
use vmbake_disk::tree::{Timestamp, Tree};
use vmbake_fetch::verify::{Verified, check};
use vmbake_fetch::{Supply, fetch};
use vmbake_layer::Layers;
use vmbake_manifest::Manifest;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

pub use crate::fixtures::{
    BASE_STATUS, ar, base, base_with, compress, control, deb, dir, file, global, link, member, owned, pax, tar,
    temporary, text, with_mode,
};

/// One artifact: its name, its type in the manifest, how the layer installs it, and its bytes.
pub struct Part {
    pub name: &'static str,
    pub kind: &'static str,
    pub install: String,
    pub bytes: Vec<u8>,
}

pub fn package(name: &'static str, bytes: Vec<u8>) -> Part {
    Part { name, kind: "deb", install: r#"{"type": "deb"}"#.to_owned(), bytes }
}

/// An archive that goes to `/opt`.
pub fn archive(name: &'static str, bytes: Vec<u8>) -> Part {
    Part { name, kind: "tar.gz", install: r#"{"type": "tar", "path": "/opt"}"#.to_owned(), bytes }
}

/// A program that becomes the file `path`.
pub fn program(name: &'static str, path: &str) -> Part {
    let install = format!(r#"{{"type": "file", "path": "{path}", "mode": "0755"}}"#);
    Part { name, kind: "binary", install, bytes: name.as_bytes().to_vec() }
}

/// Bakes the parts onto the base, as far as the tree; any stage's error comes with all its causes.
pub fn bake(parts: &[Part]) -> Result<Tree, String> {
    bake_onto(base(), parts, "")
}

/// Bakes the parts onto a base, with more keys for the layer that installs them, from the comma on.
pub fn bake_onto(base: Tree, parts: &[Part], keys: &str) -> Result<Tree, String> {
    run(base, &[("k", keys, parts)]).map_err(|error| chain(error.as_ref()))
}

/// Bakes layers, each of which requires the one before it: name, more keys, parts.
pub fn bake_layers(layers: &[(&str, &str, &[Part])]) -> Result<Tree, String> {
    run(base(), layers).map_err(|error| chain(error.as_ref()))
}

/// As [`bake_layers`], onto another base.
pub fn bake_layers_onto(base: Tree, layers: &[(&str, &str, &[Part])]) -> Result<Tree, String> {
    run(base, layers).map_err(|error| chain(error.as_ref()))
}

/// The file that stops a bake of the parts, and what is wrong with it.
pub fn refused(base: Tree, parts: &[Part], keys: &str) -> (String, ContentFault) {
    let error = run(base, &[("k", keys, parts)]).map(|_| ()).unwrap_err();
    match *error.downcast::<MergeError>().unwrap() {
        MergeError::Content { path, fault } => (path, fault),
        other => panic!("{other}"),
    }
}

/// The warnings when a layer with these keys and parts is baked onto a base.
pub fn warnings(base: Tree, parts: &[Part], keys: &str) -> Vec<String> {
    merged(base, &[("k", keys, parts)]).unwrap().warnings
}

/// The hint for the error that stops a bake of the parts.
pub fn hint(parts: &[Part], keys: &str) -> Option<String> {
    hint_on(base(), parts, keys)
}

/// The same on another base.
pub fn hint_on(base: Tree, parts: &[Part], keys: &str) -> Option<String> {
    let error = run(base, &[("k", keys, parts)]).map(|_| ()).unwrap_err();
    error.downcast::<MergeError>().unwrap().hint()
}

fn run(base: Tree, layers: &[(&str, &str, &[Part])]) -> Result<Tree, Box<dyn Error>> {
    Ok(merged(base, layers)?.tree)
}

fn merged(base: Tree, layers: &[(&str, &str, &[Part])]) -> Result<Merged, Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(Some(dir.path().join("store"))).unwrap();
    let mut dependencies = Vec::new();
    let mut requires = String::new();
    for (layer, more, parts) in [("hygiene", "", &[][..])].iter().chain(layers) {
        let mut installs = Vec::new();
        for Part { name, kind, install, bytes } in *parts {
            let (digest, size) = (Digest::of(bytes), bytes.len());
            fs::create_dir_all(store.path(&digest).parent().unwrap())?;
            fs::write(store.path(&digest), bytes)?;
            dependencies.push(format!(
                r#""{name}": {{"version": "1", "url": "u", "type": "{kind}", "digest": "{digest}", "size": {size}}}"#
            ));
            installs.push(format!(r#""{name}": {install}"#));
        }
        let rest = format!(r#", "requires": [{requires}], "artifacts": {{{}}}{more}"#, installs.join(", "));
        let folder = dir.path().join("layers").join(layer);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("layer.json"), layer_json(layer, &rest))?;
        if *layer != "hygiene" {
            requires = format!("{layer:?}");
        }
    }
    let top = layers.last().map_or("hygiene", |(name, ..)| name);
    let layers = Layers::load(&Catalog::only(dir.path().join("layers")))?.resolve(top, "o")?;
    let requests = layers.iter().map(|layer| (&layer.schema.name, layer.schema.request()));
    let requests: BTreeMap<_, _> = requests.filter(|(_, request)| !request.is_empty()).collect();
    let closure = match requests.is_empty() {
        true => String::new(),
        false => format!(r#", "closure": {{"layers": {}}}"#, serde_json::to_string(&requests)?),
    };
    let manifest = format!(
        r#"{{"vmconfig": {{"version": "dev", "kind": "{top}", "os": {{"name": "o", "arch": "amd64"}},
        "dependencies": {{{}}}{closure}}}}}"#,
        dependencies.join(", ")
    );
    let manifest = Manifest::parse(Path::new("manifest"), manifest.into_bytes())?;
    let (sources, threads) = (Sources::load(&Catalog::built_in())?, NonZeroUsize::MIN);
    let supply = Supply { store: &store, sources: &sources, anchors: &Anchors::default(), client: None, threads };
    let fetched = fetch(&manifest, &supply, &Progress::new(true))?;
    let Verified { artifacts, .. } = check(fetched, None, &store, threads)?;
    let (staged, _) = prepare(Plan::new(layers, &manifest)?, artifacts, None, None, &store, threads)?;
    let epoch = Timestamp { secs: 1_700_000_000, nanos: 0 };
    Ok(vmbake_compose::merge::merge(
        base,
        staged,
        &manifest,
        &BTreeMap::new(),
        vmbake_compose::merge::Pins::Fixed,
        epoch,
    )?)
}

/// The text of a layer's description; `rest` are more keys, from the comma on.
pub fn layer_json(name: &str, rest: &str) -> String {
    format!(r#"{{"name": "{name}", "version": "1", "description": "d", "os": ["o"]{rest}}}"#)
}

/// An error with all its causes.
pub fn chain(error: &(dyn Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| (*error).source());
    causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

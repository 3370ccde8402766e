//! One of the two releases: an image or a document next to it in, comparable data out.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;
use vmbake_common::message;
use vmbake_disk::tree::{Kind, Tree, TreeError};

use super::document::{self, Parts};
use super::security::SecurityFacts;
use super::{ChangelogError, ReleaseName};
use crate::explain::read_record;
use crate::sbom::{Inventory, SbomError, SbomFormat, image_record};
use vmbake_compose::origin::Record;
use vmbake_image::disk::DiskImage;

/// Path of the first-boot plan.
pub const PLAN: &str = "/opt/podplane/share/firstboot.json";
/// Maximum length of a plan, in bytes.
pub const MAX_PLAN: u64 = 4 << 20;

/// Suffixes of the documents that a bake writes next to an image.
const ENDS: [&str; 5] = [".origin.json", ".inputs.json", ".spdx.json", ".cdx.json", ".json"];

pub(super) struct Side {
    pub(super) release: ReleaseName,
    pub(super) packages: BTreeMap<String, String>,
    /// Versions and digests of artifacts from other upstreams and of the base image.
    pub(super) programs: BTreeMap<String, String>,
    pub(super) bundles: BTreeMap<String, String>,
    pub(super) layers: BTreeMap<String, String>,
    /// Data that only an image has.
    pub(super) facts: Option<SideFacts>,
    /// Missing information.
    pub(super) notes: Vec<String>,
}

/// Data that only an image has.
pub(super) struct SideFacts {
    pub(super) security: SecurityFacts,
    /// First-boot settings: required or optional.
    pub(super) settings: BTreeMap<String, String>,
    /// Bytes and counts by name, in output order.
    pub(super) sizes: Vec<(&'static str, u64)>,
}

impl Side {
    pub(super) fn read(path: &Path) -> Result<Self, ChangelogError> {
        match path.file_name().and_then(|name| name.to_str()).and_then(stem) {
            Some(stem) => Self::sidecar(path, stem),
            None => Self::image(path),
        }
    }

    /// Reads the documents with the same stem as `path`.
    fn sidecar(path: &Path, stem: &str) -> Result<Self, ChangelogError> {
        let document = path.with_file_name(format!("{stem}.spdx.json"));
        let parts = document::read(&document)?;
        let origins = path.with_file_name(format!("{stem}.origin.json"));
        let record = match origins.symlink_metadata() {
            Ok(_) => Some(read_record(&origins)?),
            Err(_) => None,
        };
        Ok(Self::new(path, parts, record.as_ref()))
    }

    fn image(path: &Path) -> Result<Self, ChangelogError> {
        let image = DiskImage::open(path)?;
        let tree = image.tree(image.root(None)?, None)?;
        let told = |source: SbomError| {
            ChangelogError::Message(message!("{}: cannot determine its components", path.display()).by(source))
        };
        let record = image_record(path, &tree).map_err(told)?;
        let inventory = Inventory::of_opened(path, &tree, record.as_ref()).map_err(told)?;
        let parts = document::parse(path, inventory.text(SbomFormat::Spdx).map_err(told)?.as_bytes())?;
        let failed = |source| ChangelogError::Message(message!("{}: cannot be compared", path.display()).by(source));
        let (settings, note) = settings(&tree).map_err(failed)?;
        let mut side = Self::new(path, parts, record.as_ref());
        let notes = inventory.notes.iter().cloned().chain(note);
        side.notes = notes.map(|note| format!("{}: {note}", path.display())).collect();
        let mut sizes = vec![("disk", image.layout().source().len())];
        sizes.extend(of_files(&tree));
        side.facts = Some(SideFacts { security: SecurityFacts::read(&tree).map_err(failed)?, settings, sizes });
        Ok(side)
    }

    fn new(path: &Path, parts: Parts, record: Option<&Record>) -> Self {
        let layers = record.iter().flat_map(|record| &record.layers);
        let missing = record.is_none().then(|| format!("{}: layers are unknown", path.display()));
        Self {
            release: ReleaseName { name: parts.name, version: parts.version, path: PathBuf::from(path) },
            packages: parts.packages,
            programs: parts.programs,
            bundles: parts.bundles,
            layers: layers.map(|(name, layer)| (name.clone(), format!("{} {}", layer.version, layer.digest))).collect(),
            facts: None,
            notes: missing.into_iter().collect(),
        }
    }
}

/// The stem of the images that a document belongs to.
fn stem(name: &str) -> Option<&str> {
    ENDS.iter().find_map(|end| name.strip_suffix(end)).filter(|stem| !stem.is_empty())
}

/// Numbers of files and bytes; hard links count once.
fn of_files(tree: &Tree) -> [(&'static str, u64); 2] {
    let mut seen = BTreeSet::new();
    let (mut files, mut bytes) = (0_u64, 0_u64);
    for (_, id, inode) in tree.walk() {
        files = files.saturating_add(1);
        if let Kind::File(map) = &inode.kind
            && seen.insert(id)
        {
            bytes = bytes.saturating_add(map.len());
        }
    }
    [("files", bytes), ("paths", files)]
}

/// First-boot settings with their properties, or why they are unknown. The plan can have any version.
fn settings(tree: &Tree) -> Result<(BTreeMap<String, String>, Option<String>), TreeError> {
    let text = match tree.read(PLAN.as_bytes(), MAX_PLAN) {
        Ok(text) => text,
        Err(error @ TreeError::Read { .. }) => return Err(error),
        Err(TreeError::NotFound { .. }) => return Ok(Default::default()),
        Err(error) => return Ok((BTreeMap::new(), Some(format!("its settings are unknown: {error}")))),
    };
    match serde_json::from_slice::<Value>(&text) {
        Ok(plan) => {
            let variables = plan.get("variables").and_then(Value::as_object);
            let described = variables.into_iter().flatten().map(|(name, one)| (name.clone(), describe(one)));
            Ok((described.collect(), None))
        }
        Err(error) => Ok((BTreeMap::new(), Some(format!("its settings are unknown: {PLAN}: {error}")))),
    }
}

/// `required`, or `optional` with the default, and the allowed values.
pub fn describe(variable: &Value) -> String {
    let is = |key: &str| variable.get(key).and_then(Value::as_bool).unwrap_or_default();
    let default = variable.get("default").and_then(Value::as_str).unwrap_or_default();
    let mut text = if is("required") { "required" } else { "optional" }.to_owned();
    if !default.is_empty() {
        text.push_str(&format!(", by default {default}"));
    }
    let values = variable.get("one_of").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let values: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
    if !values.is_empty() {
        text.push_str(&format!(", one of {}", values.join("|")));
    }
    text
}

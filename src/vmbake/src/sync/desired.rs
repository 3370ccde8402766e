//! The desired state of a machine: ordered layers in; files and links by path out.

use std::collections::BTreeMap;

use vmbake_firstboot::mutable;
use vmbake_firstboot::plan::{self, Named, Ownership, Plan};

use super::SyncError;
use super::machine::{Found, Installed};
use vmbake_common::digest::Digest;
use vmbake_compose::merge;
use vmbake_compose::stage::FIRSTBOOT;
use vmbake_layer::first_boot::compile;
use vmbake_layer::{Layer, default_mode};
use vmbake_manifest::Content;

/// A file or link of a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Desired {
    pub(super) layer: String,
    pub(super) ownership: Ownership,
    pub(super) node: DesiredNode,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DesiredNode {
    File(Vec<u8>),
    Link(String),
}

impl DesiredNode {
    /// Digest of the content, or of a link's target.
    pub(super) fn digest(&self) -> Digest {
        match self {
            Self::File(content) => Digest::of(content),
            Self::Link(target) => Digest::of(target.as_bytes()),
        }
    }
}

/// Files of the layers' directories; later layers take precedence.
pub(super) fn files(layers: &[Layer], content: &Content) -> Result<BTreeMap<String, Desired>, SyncError> {
    let mut all = BTreeMap::new();
    for layer in layers {
        let schema = &layer.schema;
        let mut add = |path: &String, ownership, node| {
            all.insert(path.clone(), Desired { layer: schema.name.clone(), ownership, node });
        };
        for (path, file) in &layer.files {
            let plain = || owned_by_root(default_mode(path));
            let ownership = schema.files.get(path).map_or_else(plain, |rule| rule.ownership(path));
            let bytes = match schema.expand.contains(path) {
                true => merge::expanded(path, file, content)?,
                false => file.content.clone(),
            };
            add(path, ownership, DesiredNode::File(bytes));
        }
        for (path, target) in &schema.symlinks {
            add(path, owned_by_root(0o777), DesiredNode::Link(target.clone()));
        }
    }
    Ok(all)
}

pub(super) fn owned_by_root(mode: u16) -> Ownership {
    Ownership { mode, owner: "root".to_owned(), group: "root".to_owned() }
}

/// The plan of the layers, and the file with the defaults of its settings.
pub(super) fn plan_files(plan: &Plan, layers: &[Layer]) -> Result<Vec<(String, Desired)>, SyncError> {
    let program = layers.iter().find(|layer| layer.schema.artifacts.contains_key(FIRSTBOOT));
    let layer = program.map(|layer| layer.schema.name.clone()).unwrap_or_default();
    let file = |text: String| Desired {
        layer: layer.clone(),
        ownership: owned_by_root(0o644),
        node: DesiredNode::File(text.into_bytes()),
    };
    let mut files = vec![(plan::PATH.to_owned(), file(serde_json::to_string_pretty(plan)? + "\n"))];
    if let Some(inputs) = &plan.inputs {
        let defaults = mutable::merged(plan, &[]).map_err(SyncError::Defaults)?;
        files.push((inputs.defaults.clone(), file(defaults)));
    }
    Ok(files)
}

/// Joins the parts of layers for a machine. Its paths are still those of the layers.
pub(super) fn joined(layers: &[Layer], content: &Content) -> Result<Plan, SyncError> {
    Ok(compile(layers, merge::multiarch(&content.os.arch)?)?.plan)
}

/// Paths of a plan to resolve on the machine: parents of directories, and whole paths of files.
pub(super) fn linked(plan: &Plan) -> impl Iterator<Item = String> {
    let parents = plan.directories.keys().map(|path| split(path).0.to_owned());
    parents.chain(plan.modes.keys().cloned())
}

/// A plan with resolved paths, since the first-boot program does not follow links. Paths that `layers` created and that the machine lacks were
/// removed by another layer.
pub(super) fn without_links(plan: &mut Plan, found: &Found, installed: &Installed) {
    let resolve = |path: &String, last: bool| {
        let (parent, name) = split(path);
        let asked = if last { path } else { parent };
        let Some((real, exists)) = found.real.get(asked) else { return (path.clone(), true) };
        match last {
            true => (real.clone(), *exists),
            false => {
                let real = format!("{}/{name}", real.trim_end_matches('/'));
                let exists = found.nodes.contains_key(&real) || !installed.plan.directories.contains_key(&real);
                (real, exists)
            }
        }
    };
    let changed = |paths: &Named<Ownership>, last: bool| {
        let mut real = Named::default();
        for (path, ownership) in paths {
            let (place, exists) = resolve(path, last);
            if exists {
                real.insert(place, ownership.clone());
            }
        }
        real
    };
    plan.directories = changed(&plan.directories, false);
    plan.modes = changed(&plan.modes, true);
}

/// Directory and name of a path; the directory of a top-level name is `/`.
pub(super) fn split(path: &str) -> (&str, &str) {
    match path.rsplit_once('/') {
        Some(("", name)) => ("/", name),
        Some(parts) => parts,
        None => ("/", path),
    }
}

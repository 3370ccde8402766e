//! Syncs changed layer files to a running machine: a destination and layers in; files in place, configured services and a report out.
//!
//! A machine has a record of its inputs: its manifest, and the digest of each layer. Only files that a changed layer names are touched, and only
//! where their parent directories exist on the machine: links on the machine are not followed, except those of the merged `/usr`. A file appears whole, with its
//! owner and mode, by rename(2) from a directory that only root can change. Other changes are reported, see [`SyncReport::new_image`].

mod options;
mod destination;
mod state;
mod error;
mod script;
mod ssh;
mod machine;
mod resolve;
mod desired;
mod keys;
mod actions;
mod apply;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vmbake_firstboot::plan::Plan;

pub use actions::SyncAction;
pub use destination::Destination;
pub use error::SyncError;

use actions::Actions;
use desired::{Desired, DesiredNode};
use machine::{Installed, Questions};
use vmbake_layer::{HYGIENE, Layer, Layers};

/// Options of a sync.
#[derive(Debug)]
pub struct SyncRequest {
    /// The machine.
    pub to: Destination,
    pub layers: Layers,
    /// Layers whose files can be sent.
    pub own: BTreeSet<String>,
    /// Required kind of the machine.
    pub kind: Option<String>,
    /// Whether to change nothing on the machine.
    pub dry_run: bool,
}

/// Result of a sync.
#[derive(Debug, Serialize)]
pub struct SyncReport {
    /// The machine as given.
    pub to: String,
    /// Its name.
    pub hostname: String,
    /// Kind, operating system and architecture of its image.
    pub image: String,
    /// Layers whose files were compared.
    pub layers: Vec<String>,
    /// Actions, done or planned.
    pub actions: Vec<SyncAction>,
    /// Files that are no longer in layers, but stay on the machine.
    pub left: Vec<SyncNote>,
    /// Changes that require a new image.
    pub new_image: Vec<NewImage>,
    /// Keys that cannot be compared with the machine: changes of them require a new image as well.
    pub unknown: Vec<NewImage>,
    /// Layers of `--layers` that the kind does not require.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unrelated: Vec<String>,
    /// Whether an earlier sync was interrupted before the machine was configured.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Resulting state of the machine; absent if nothing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub machine: Option<MachineState>,
}

/// State of a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MachineState {
    /// Its services use the sent files.
    Configured,
    /// It waits for user data.
    Waiting,
}

/// A note about a path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SyncNote {
    pub path: String,
    /// The note.
    pub note: String,
}

/// A change that requires a new image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NewImage {
    pub layer: String,
    /// A key of `layer.json`, or a path.
    pub what: String,
    /// Why it cannot be sent.
    pub why: String,
}

impl NewImage {
    fn of(layer: &str, what: &str, why: String) -> Self {
        Self { layer: layer.to_owned(), what: what.to_owned(), why }
    }
}

/// Sends changed files.
pub fn sync(request: &SyncRequest) -> Result<SyncReport, SyncError> {
    let SyncRequest { to, layers, own, kind, dry_run } = request;
    if own.is_empty() {
        return Err(SyncError::NoLayers);
    }
    let installed = machine::installed(to)?;
    let content = installed.manifest.content();
    if let Some(expected) = kind.as_ref().filter(|kind| **kind != content.kind) {
        let (host, found) = (to.shown.clone(), content.kind.clone());
        return Err(SyncError::Kind { host, expected: expected.clone(), found });
    }
    let resolved = layers.resolve(&content.kind, &content.os.name)?;
    let is_required = |name: &String| resolved.iter().any(|layer| layer.schema.name == *name);
    if !own.iter().any(is_required) {
        let layers = own.iter().cloned().collect::<Vec<_>>().join(", ");
        return Err(SyncError::Unrelated { host: to.shown.clone(), kind: content.kind.clone(), layers });
    }
    let mut desired = desired::files(&resolved, content)?;
    let (scope, foreign) = scope(&resolved, own, &desired, &installed);
    desired.retain(|_, desired| scope.iter().any(|layer| layer.schema.name == desired.layer));
    let mut unknown = Vec::new();
    desired.retain(|path, desired| {
        let is_reserved = installed.is_reserved(path);
        if is_reserved {
            let why = "this file belongs to the machine, so it is not sent";
            unknown.push(NewImage::of(&desired.layer, path, why.to_owned()));
        }
        !is_reserved
    });
    let mut plan = desired::joined(&resolved, content)?;
    // Users can only be added by a new image.
    plan.accounts = installed.plan.accounts.clone();
    let found = machine::look(to, &questions(&desired, &plan, &scope, &installed))?;
    desired::without_links(&mut plan, &found, &installed);
    let has_plan = compares_plan(&scope, &installed);
    let refused = match !has_plan || serde_json::to_value(&plan)? == installed.plan_text {
        true => None,
        false => add_plan(&mut desired, &plan, &resolved, &foreign, &installed)?,
    };
    let own_plan = if !has_plan || refused.is_some() { &installed.plan } else { &plan };
    let mut actions = actions::compare(&desired, &scope, own_plan, &installed, &found);
    actions.new_image.extend(foreign.into_iter().chain(refused));
    for layer in scope.iter().filter(|layer| is_changed(layer, &installed)) {
        let keys = keys::compare(layer, &installed, &found)?;
        actions.new_image.extend(keys.differs);
        unknown.extend(keys.unknown);
    }
    let has_work = !actions.list.is_empty() || installed.state.pending;
    let machine = if has_work && !dry_run { Some(apply::apply(to, &installed, &actions)?) } else { None };
    let Actions { list, new_image, mut left, .. } = actions;
    left.extend(left_by_plan(&installed.plan, own_plan));
    Ok(SyncReport {
        to: to.shown.clone(),
        hostname: installed.hostname.clone(),
        image: installed.manifest.name(),
        layers: scope.iter().map(|layer| layer.schema.name.clone()).collect(),
        actions: list,
        left,
        new_image,
        unknown,
        unrelated: own.iter().filter(|name| !is_required(name)).cloned().collect(),
        interrupted: installed.state.pending,
        machine,
    })
}

/// The desired file at a path of the machine, where `/lib` is `/usr/lib`.
fn wanted<'a>(desired: &'a BTreeMap<String, Desired>, path: &str) -> Option<&'a DesiredNode> {
    let of_layer = || desired.get(path.strip_prefix("/usr")?);
    desired.get(path).or_else(of_layer).map(|desired| &desired.node)
}

fn is_changed(layer: &Layer, installed: &Installed) -> bool {
    installed.record.layers.get(&layer.schema.name).is_none_or(|known| known.digest != layer.digest)
}

/// Whether to compare the plan: a layer counts as changed, or a plan was sent earlier and may have to be replaced by that of the image.
fn compares_plan(scope: &[&Layer], installed: &Installed) -> bool {
    !scope.is_empty() || installed.state.files.contains_key(vmbake_firstboot::plan::PATH)
}

/// The layers to compare: changed ones, and those whose files were sent or whose units were changed; and layers that require a new image.
fn scope<'a>(
    resolved: &'a [Layer],
    own: &BTreeSet<String>,
    desired: &BTreeMap<String, Desired>,
    installed: &Installed,
) -> (Vec<&'a Layer>, Vec<NewImage>) {
    let (mut scope, mut foreign) = (Vec::new(), Vec::new());
    for layer in resolved {
        let name = &layer.schema.name;
        let Some(known) = installed.record.layers.get(name) else {
            foreign.push(NewImage::of(
                name,
                "requires",
                "the kind now requires this layer, but the image was baked without it".to_owned(),
            ));
            continue;
        };
        let sent =
            || installed.state.files.iter().filter(|(path, sent)| sent.layer == *name && !installed.is_plan_file(path));
        let was_sent = sent().next().is_some();
        let has_units = installed.state.units.contains_key(name);
        if !is_changed(layer, installed) && !was_sent && !has_units {
            continue;
        }
        if own.contains(name) {
            scope.push(layer);
        } else if !is_changed(layer, installed) {
            let others =
                sent().filter(|(path, sent)| wanted(desired, path).is_none_or(|node| node.digest() != sent.digest));
            let why = "the machine has different content, sent from a directory that is not in --layers";
            foreign.extend(others.map(|(path, _)| NewImage::of(name, path, why.to_owned())));
            if has_units {
                let why = "units were enabled, disabled or masked by a layer in a directory that is not in --layers";
                foreign.push(NewImage::of(name, "units", why.to_owned()));
            }
        } else {
            let (found, here) = (&known.version, &layer.schema.version);
            let why = format!(
                "its content, version {here}, differs from that in the image, version {found}; it is not in --layers, so it is not sent"
            );
            foreign.push(NewImage::of(name, "layer", why));
        }
    }
    let bundled: BTreeSet<&String> =
        installed.manifest.content().bundles.values().flat_map(|bundle| &bundle.layers).collect();
    for name in installed.record.layers.keys() {
        let is_there = resolved.iter().any(|layer| layer.schema.name == *name) || bundled.contains(name);
        if !is_there && name != HYGIENE {
            foreign.push(NewImage::of(
                name,
                "requires",
                "the kind no longer requires this layer, but the image contains it".to_owned(),
            ));
        }
    }
    (scope, foreign)
}

/// What the first-boot program made for an earlier plan.
fn left_by_plan(before: &Plan, now: &Plan) -> Vec<SyncNote> {
    let files = before.files.iter().filter(|rule| !now.files.iter().any(|other| other.path == rule.path));
    let directories = before.directories.keys().filter(|path| !now.directories.contains_key(path));
    let modes = before.modes.keys().filter(|path| !now.modes.contains_key(path));
    let services = before.services.iter().filter(|rule| !now.services.iter().any(|other| other.unit == rule.unit));
    let paths = files.map(|rule| &rule.path).chain(directories);
    let made = paths
        .map(|path| (path, "made by the first-boot program for an earlier plan; remove it there if it is not needed"));
    let modes =
        modes.map(|path| (path, "has the mode of an earlier plan of the first boot; bake a new image to restore it"));
    let enabled = services.map(|rule| {
        (&rule.unit, "enabled by the first-boot program for an earlier plan; disable it there if it is not needed")
    });
    made.chain(modes)
        .chain(enabled)
        .map(|(path, note)| SyncNote { path: path.clone(), note: note.to_owned() })
        .collect()
}

/// Adds the plan to the files to send, or returns why it is not possible.
fn add_plan(
    desired: &mut BTreeMap<String, Desired>,
    plan: &Plan,
    resolved: &[Layer],
    foreign: &[NewImage],
    installed: &Installed,
) -> Result<Option<NewImage>, SyncError> {
    let kind = &installed.manifest.content().kind;
    let refuse = |why: &str| Ok(Some(NewImage::of(kind, "first_boot", why.to_owned())));
    if !foreign.is_empty() {
        return refuse(
            "the plan of the first boot depends on all layers, but some of them differ from those in the image",
        );
    }
    if !installed.manifest.content().bundles.is_empty() {
        return refuse(
            "the plan of the first boot depends on all layers, but the layers of the image's bundles are not available here",
        );
    }
    let owners = plan.directories.iter().chain(&plan.modes).map(|(_, owner)| owner);
    let absent = |owner: &&vmbake_firstboot::plan::Ownership| {
        !installed.users.contains(&owner.owner) || !installed.groups.contains_key(&owner.group)
    };
    if let Some(owner) = owners.clone().find(absent) {
        return refuse(&format!("user {} or group {} does not exist on the machine", owner.owner, owner.group));
    }
    desired.extend(desired::plan_files(plan, resolved)?);
    Ok(None)
}

fn questions(desired: &BTreeMap<String, Desired>, plan: &Plan, scope: &[&Layer], installed: &Installed) -> Questions {
    let mut questions = Questions::default();
    let mut ask = |path: &str| questions.paths.extend(resolve::questions(path));
    desired.keys().chain(installed.state.files.keys()).for_each(|path| ask(path));
    installed.state.directories.iter().for_each(|path| ask(path));
    plan.directories.keys().for_each(|path| ask(path));
    ask(vmbake_firstboot::plan::PATH);
    plan.inputs.iter().for_each(|inputs| ask(&inputs.defaults));
    for schema in scope.iter().map(|layer| &layer.schema) {
        questions
            .units
            .extend(installed.state.units.get(&schema.name).into_iter().flat_map(|units| units.keys().cloned()));
        installed.own_files(schema).for_each(|path| ask(&path));
        schema.alternatives.keys().for_each(|name| ask(&format!("/etc/alternatives/{name}")));
        schema.remove.iter().filter(|path| !path.contains('*')).for_each(|path| ask(path));
        let units = &schema.units;
        questions.units.extend([&units.enable, &units.disable, &units.mask].into_iter().flatten().cloned());
        units.mask.iter().for_each(|unit| ask(&format!("/etc/systemd/system/{unit}")));
    }
    questions.units.extend(plan.services.iter().map(|service| service.unit.clone()));
    questions.directories.clone_from(&installed.state.directories);
    questions.real.extend(desired::linked(plan));
    questions
}

//! Checks a plan with all of its layers: a [`Compiled`] in; [`PlanFault`]s, each with its position in a `layer.json`, out. In addition to
//! the checks of the first-boot program, it checks references to files, units and accounts of the image.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_firstboot::plan::{Content, Inputs, Ownership, Plan};

use super::calls::calls;
use super::{Clash, Compiled, PART, PlanSource};
use crate::{Install, Layer, child, validate};

/// Something wrong with a plan.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanFault {
    /// Position of the fault.
    pub source: PlanSource,
    /// Whether it is only a warning.
    pub warning: bool,
    /// What is wrong.
    pub message: String,
}

impl std::fmt::Display for PlanFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.source, self.message)
    }
}

/// What can be known of the image.
pub trait Surroundings {
    /// The text of a file, for templates.
    fn text(&self, path: &str) -> Option<String>;

    fn has_user(&self, name: &str) -> bool;

    fn has_group(&self, name: &str) -> bool;

    /// What is wrong with a unit that is to be enabled; a warning where the rest of the image may set it right.
    fn unit(&self, unit: &str) -> Option<Diagnostic>;

    /// The error in a program to run, which must be from a layer if `of_layer` is set.
    fn program(&self, path: &str, of_layer: bool) -> Option<Diagnostic>;

    /// What is wrong where something should be.
    fn missing(&self, path: &str) -> Option<Diagnostic>;

    /// What conflicts with a file to write or a directory to create.
    fn unreachable(&self, path: &str, directory: bool) -> Option<Diagnostic>;
}

/// What seems wrong.
pub struct Diagnostic {
    pub warning: bool,
    pub message: String,
}

/// Everything that is wrong with the plan of `layers`, sorted by its place.
pub fn check(compiled: &Compiled, clashes: &[Clash], layers: &[&Layer], image: &impl Surroundings) -> Vec<PlanFault> {
    let last = layers.last().map(|layer| layer.schema.name.clone()).unwrap_or_default();
    let mut found = Faults { compiled, last, faults: BTreeSet::new() };
    for Clash { first, second } in clashes {
        let message = format!("already defined by layer {first}");
        found.faults.insert(PlanFault { source: second.clone(), warning: false, message });
    }
    for finding in vmbake_firstboot::check::check(&compiled.plan, &compiled.plan, &|path| image.text(path)) {
        found.value(finding.pointer, Some(finding.message));
    }
    accounts(&mut found, &compiled.plan, image);
    for (index, service) in compiled.plan.services.iter().enumerate() {
        if !is_baked(&compiled.plan, &service.unit) {
            found.doubt(format!("/services/{index}/unit"), image.unit(&service.unit));
        }
    }
    programs(&mut found, &compiled.plan, layers, image);
    places(&mut found, &compiled.plan, image);
    written_twice(&mut found, &compiled.plan, layers);
    found.faults.into_iter().collect()
}

/// The faults found so far.
struct Faults<'a> {
    compiled: &'a Compiled,
    /// The layer that is named for faults without a layer.
    last: String,
    faults: BTreeSet<PlanFault>,
}

impl Faults<'_> {
    /// Records that a value of the plan is wrong, if there is a message.
    fn value(&mut self, pointer: String, message: Option<String>) {
        self.doubt(pointer, message.map(|message| Diagnostic { warning: false, message }));
    }

    fn doubt(&mut self, pointer: String, doubt: Option<Diagnostic>) {
        let Some(Diagnostic { warning, message }) = doubt else { return };
        let unknown = || PlanSource { layer: self.last.clone(), pointer: PART.to_owned() };
        let source = self.compiled.source(&pointer).unwrap_or_else(unknown);
        self.faults.insert(PlanFault { source, warning, message });
    }
}

/// Whether the plan itself writes a unit that can be enabled, and the image has it from the beginning.
fn is_baked(plan: &Plan, unit: &str) -> bool {
    let path = format!("/etc/systemd/system/{unit}");
    let rule = plan.files.iter().find(|rule| rule.bake && rule.path == path);
    matches!(rule.map(|rule| &rule.content), Some(Content::Text(text)) if validate::has_install(text.as_bytes()))
}

/// Owners and groups exist, or are made on the machine.
fn accounts(found: &mut Faults<'_>, plan: &Plan, image: &impl Surroundings) {
    let user = |name: &str| {
        let known = plan.users.get(name).is_some() || image.has_user(name);
        (!known).then(|| format!("user {name:?} is created neither by a layer nor by Debian"))
    };
    let group = |name: &str| {
        let known = plan.users.get(name).is_some() || image.has_group(name);
        (!known).then(|| format!("group {name:?} is created neither by a layer nor by Debian"))
    };
    let mut owned: Vec<(String, &Ownership)> = Vec::new();
    for (parent, map) in
        [("/directories", &plan.directories), ("/modes", &plan.modes), ("/optional_modes", &plan.optional_modes)]
    {
        owned.extend(map.iter().map(|(path, owner)| (child(parent, path), owner)));
    }
    for (index, rule) in plan.files.iter().enumerate() {
        found.value(format!("/files/{index}/owner"), user(&rule.owner));
        found.value(format!("/files/{index}/group"), group(&rule.group));
        owned.extend(rule.directory.iter().map(|owner| (format!("/files/{index}/directory"), owner)));
    }
    for (pointer, owner) in owned {
        found.value(format!("{pointer}/owner"), user(&owner.owner));
        found.value(format!("{pointer}/group"), group(&owner.group));
    }
    let received = plan.received.iter().map(|(name, place)| (child("/received", name), &place.group));
    let keys = plan.keys.iter().map(|(name, place)| (child("/keys", name), &place.group));
    for (pointer, name) in received.chain(keys) {
        found.value(format!("{pointer}/group"), group(name));
    }
}

/// Programs are there and units call them; units call no others.
fn programs(found: &mut Faults<'_>, plan: &Plan, layers: &[&Layer], image: &impl Surroundings) {
    let calls: Vec<_> = layers.iter().flat_map(|layer| calls(layer).map(|call| (&layer.schema.name, call))).collect();
    for (name, exec) in &plan.exec {
        let pointer = child("/exec", name);
        found.doubt(format!("{pointer}/program"), image.program(&exec.program, true));
        let called = calls.iter().any(|(_, call)| call.name == name);
        found.value(pointer, (!called).then(|| format!("no unit of the layers calls `firstboot exec {name}`")));
    }
    for (index, command) in plan.commands.iter().enumerate() {
        let program = command.first().and_then(|program| image.program(program, false));
        found.doubt(format!("/commands/{index}/0"), program);
    }
    for (name, user) in &plan.users {
        found.doubt(child("/users", name) + "/shell", image.program(&user.shell, false));
    }
    for (layer, call) in calls.iter().filter(|(_, call)| plan.exec.get(call.name).is_none()) {
        let message = format!(
            "files{}:{}: calls `firstboot exec {}`, which is not in `exec` of any layer",
            call.file, call.line, call.name
        );
        let source = PlanSource { layer: (*layer).clone(), pointer: format!("{PART}/exec") };
        found.faults.insert(PlanFault { source, warning: false, message });
    }
}

/// What is written has its place, and what is changed is there.
fn places(found: &mut Faults<'_>, plan: &Plan, image: &impl Surroundings) {
    let of_part = |found: &Faults<'_>, pointer: &str| found.compiled.source(pointer).is_some_and(|s| s.is_of_part());
    for path in plan.directories.keys() {
        let pointer = child("/directories", path);
        if of_part(found, &pointer) {
            found.doubt(pointer, image.unreachable(path, true));
        }
    }
    for path in plan.modes.keys() {
        let pointer = child("/modes", path);
        if of_part(found, &pointer) {
            found.doubt(pointer, image.missing(path));
        }
    }
    for (index, rule) in plan.files.iter().enumerate().filter(|(_, rule)| is_literal(&rule.path)) {
        found.doubt(format!("/files/{index}/path"), image.unreachable(&rule.path, false));
    }
    for (index, block) in plan.blocks.iter().enumerate() {
        found.doubt(format!("/blocks/{index}/path"), image.unreachable(&block.path, false));
    }
    for (key, path) in plan.inputs.iter().flat_map(inputs) {
        found.doubt(format!("/inputs/{key}"), image.unreachable(path, false));
    }
}

fn inputs(inputs: &Inputs) -> [(&str, &str); 5] {
    let Inputs { user_data, detected, mutable, defaults, marker } = inputs;
    [("user_data", user_data), ("detected", detected), ("mutable", mutable), ("defaults", defaults), ("marker", marker)]
}

/// No path is written by two of them: a rule, an input, the layers themselves.
fn written_twice(found: &mut Faults<'_>, plan: &Plan, layers: &[&Layer]) {
    let mut writers: BTreeMap<&str, String> = BTreeMap::new();
    writers.extend(validate::GENERATED.map(|path| (path, "is written by the bake itself".to_owned())));
    for layer in layers {
        let name = &layer.schema.name;
        for path in layer.files.keys() {
            writers.insert(path, format!("is also below files/ of layer {name}"));
        }
        for path in layer.schema.symlinks.keys() {
            writers.insert(path, format!("is also a symbolic link of layer {name}"));
        }
        for (_, artifact, install) in layer.schema.installs() {
            if let Install::File { path, .. } = install {
                writers.insert(path, format!("is also artifact {artifact} of layer {name}"));
            }
        }
    }
    for (key, path) in plan.inputs.iter().flat_map(inputs) {
        let taken = writers.insert(path, format!("is also `{key}` of the inputs"));
        found.value(format!("/inputs/{key}"), taken.map(|other| format!("path {path:?} {other}")));
    }
    for (index, rule) in plan.files.iter().enumerate().filter(|(_, rule)| is_literal(&rule.path)) {
        let path = &rule.path;
        let taken = writers.get(path.as_str()).map(|other| format!("path {path:?} {other}"));
        found.value(format!("/files/{index}/path"), taken);
    }
    // Blocks have their file in common with others, but not with a rule that writes all of it.
    for (index, block) in plan.blocks.iter().enumerate() {
        let whole = plan.files.iter().any(|rule| rule.path == block.path);
        let message = format!("path {:?} is also written by a rule of `files`", block.path);
        found.value(format!("/blocks/{index}/path"), whole.then_some(message));
    }
}

/// Whether a template always makes the same text: the template.
fn is_literal(template: &str) -> bool {
    !["{{", "{%", "{#"].iter().any(|mark| template.contains(mark))
}

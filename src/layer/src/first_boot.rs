//! Merges the first-boot parts of layers: ordered [`Layer`]s in, a [`Plan`] with the origin of each entry out.
//!
//! Every entry belongs to exactly one layer. Maps are merged, and duplicate keys are an error; lists are concatenated; at most one layer
//! has `inputs`, and at most one `receive`.

mod layer_plan;
mod calls;
mod check;
mod reads;

pub use check::PlanFault;
pub use check::{Diagnostic, Surroundings, check};
pub use layer_plan::check as check_layer_plan;
pub use reads::{ForeignRead, foreign_reads};

use std::collections::BTreeMap;
use std::fmt;

use vmbake_common::hint::Hint;
use vmbake_firstboot::plan::{Account, Named, Ownership, Plan};

use crate::{Install, Layer, Schema, child};

/// A layer's part of the plan, in its `layer.json`.
const PART: &str = "/first_boot";

/// A plan, and where its entries came from.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub plan: Plan,
    /// The entries by their pointers (RFC 6901) in the plan: one key, or one key and what is below it.
    sources: BTreeMap<String, PlanSource>,
}

/// Position of a value in the `layer.json` of a layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PlanSource {
    /// Name of the layer.
    pub layer: String,
    /// The value (RFC 6901) in its `layer.json`.
    pub pointer: String,
}

/// An entry that two layers have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{second}: already defined by layer {first}")]
pub struct Clash {
    /// The layer that comes first.
    pub first: String,
    /// The entry of the layer that comes second.
    pub second: PlanSource,
}

impl Hint for Clash {}

impl PlanSource {
    /// Whether it is in the layer's part of the plan, and not in another key.
    pub fn is_of_part(&self) -> bool {
        self.pointer.starts_with(PART)
    }
}

impl fmt::Display for PlanSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "layer {}: {}", self.layer, self.pointer)
    }
}

impl Compiled {
    /// Where the value came from that `pointer` names in the plan.
    pub fn source(&self, pointer: &str) -> Option<PlanSource> {
        let ends = pointer.match_indices('/').map(|(at, _)| at).skip(1).chain([pointer.len()]);
        let mut entries = ends.take(2).filter_map(|end| pointer.split_at_checked(end));
        entries.find_map(|(entry, rest)| {
            let PlanSource { layer, pointer } = self.sources.get(entry)?;
            Some(PlanSource { layer: layer.clone(), pointer: format!("{pointer}{rest}") })
        })
    }
}

/// Joins the parts of `layers`, each after those that it requires; `multiarch` is Debian's name of the architecture in paths.
pub fn compile(layers: &[Layer], multiarch: &str) -> Result<Compiled, Clash> {
    let (compiled, clashes) = join(layers.iter().map(|layer| &layer.schema), multiarch);
    match clashes.into_iter().next() {
        None => Ok(compiled),
        Some(clash) => Err(clash),
    }
}

/// Joins the parts of layers as far as they go together.
pub fn join<'a>(schemas: impl IntoIterator<Item = &'a Schema>, multiarch: &str) -> (Compiled, Vec<Clash>) {
    let mut joiner = Joiner::default();
    for schema in schemas {
        joiner.layer.clone_from(&schema.name);
        joiner.own(schema, multiarch);
        if let Some(part) = &schema.first_boot {
            joiner.part(part);
        }
    }
    (joiner.compiled, joiner.clashes)
}

#[derive(Default)]
struct Joiner {
    compiled: Compiled,
    clashes: Vec<Clash>,
    /// The layer whose part is joined.
    layer: String,
}

impl Joiner {
    /// What a layer says about users, directories and modes outside of its part. There, as in the image, a later layer wins.
    fn own(&mut self, schema: &Schema, multiarch: &str) {
        for (name, user) in &schema.users {
            let account = Account {
                id: user.id,
                home: user.home.clone().unwrap_or_else(|| format!("/home/{name}")),
                shell: user.shell.clone(),
                groups: user.groups.clone(),
                optional_groups: user.optional_groups.clone(),
            };
            let source = PlanSource { layer: self.layer.clone(), pointer: child("/users", name) };
            self.compiled.plan.accounts.insert(name.clone(), account);
            self.compiled.sources.insert(child("/accounts", name), source);
        }
        for (path, rule) in schema.directories.iter().filter(|(_, rule)| rule.mode.is_some()) {
            self.owned("/directories", path, child("/directories", path), &rule.ownership());
        }
        for (pointer, _, install) in schema.installs() {
            if let Install::File { path, mode, .. } = install {
                let owner = Ownership { mode: *mode, owner: "root".to_owned(), group: "root".to_owned() };
                self.owned("/modes", path, pointer, &owner);
            }
        }
        for (path, owner) in &schema.modes {
            self.owned("/modes", &path.replace("{multiarch}", multiarch), child("/modes", path), owner);
        }
    }

    fn owned(&mut self, parent: &str, path: &str, pointer: String, owner: &Ownership) {
        let entry = child(parent, path);
        let source = PlanSource { layer: self.layer.clone(), pointer };
        if let Some(first) = self.compiled.sources.get(&entry).filter(|first| first.is_of_part()) {
            self.clashes.push(Clash { first: first.layer.clone(), second: source });
            return;
        }
        let plan = &mut self.compiled.plan;
        let map = if parent == "/modes" { &mut plan.modes } else { &mut plan.directories };
        map.insert(path.to_owned(), owner.clone());
        self.compiled.sources.insert(entry, source);
    }

    fn part(&mut self, part: &Plan) {
        // Every field is named, so that a new one cannot be forgotten.
        let Plan {
            inputs,
            variables,
            detect,
            values,
            checks,
            connect,
            users,
            accounts,
            directories,
            modes,
            optional_modes,
            files,
            blocks,
            commands,
            services,
            exec,
            receive,
            received,
            keys,
        } = part;
        self.single("/inputs", |plan| &mut plan.inputs, inputs.as_ref());
        self.map("/variables", |plan| &mut plan.variables, variables);
        self.list("/detect", |plan| &mut plan.detect, detect);
        self.list("/values", |plan| &mut plan.values, values);
        self.list("/checks", |plan| &mut plan.checks, checks);
        self.list("/connect", |plan| &mut plan.connect, connect);
        self.map("/users", |plan| &mut plan.users, users);
        self.map("/accounts", |plan| &mut plan.accounts, accounts);
        self.map("/directories", |plan| &mut plan.directories, directories);
        self.map("/modes", |plan| &mut plan.modes, modes);
        self.map("/optional_modes", |plan| &mut plan.optional_modes, optional_modes);
        self.list("/files", |plan| &mut plan.files, files);
        self.list("/blocks", |plan| &mut plan.blocks, blocks);
        self.list("/commands", |plan| &mut plan.commands, commands);
        self.list("/services", |plan| &mut plan.services, services);
        self.map("/exec", |plan| &mut plan.exec, exec);
        self.single("/receive", |plan| &mut plan.receive, receive.as_ref());
        self.map("/received", |plan| &mut plan.received, received);
        self.map("/keys", |plan| &mut plan.keys, keys);
    }

    fn single<T: Clone>(&mut self, entry: &str, of: impl Fn(&mut Plan) -> &mut Option<T>, part: Option<&T>) {
        let Some(value) = part else { return };
        if self.take(entry.to_owned(), entry) {
            *of(&mut self.compiled.plan) = Some(value.clone());
        }
    }

    fn map<T: Clone>(&mut self, parent: &str, of: impl Fn(&mut Plan) -> &mut Named<T>, part: &Named<T>) {
        for (key, value) in part {
            let entry = child(parent, key);
            if self.take(entry.clone(), &entry) {
                of(&mut self.compiled.plan).insert(key.clone(), value.clone());
            }
        }
    }

    fn list<T: Clone>(&mut self, parent: &str, of: impl Fn(&mut Plan) -> &mut Vec<T>, part: &[T]) {
        for (index, value) in part.iter().enumerate() {
            let at = of(&mut self.compiled.plan).len();
            self.take(format!("{parent}/{at}"), &format!("{parent}/{index}"));
            of(&mut self.compiled.plan).push(value.clone());
        }
    }

    /// Records that the `entry` of the plan is what the layer's part has at `inside`, unless another one has it.
    fn take(&mut self, entry: String, inside: &str) -> bool {
        let source = PlanSource { layer: self.layer.clone(), pointer: format!("{PART}{inside}") };
        if let Some(first) = self.compiled.sources.get(&entry) {
            self.clashes.push(Clash { first: first.layer.clone(), second: source });
            return false;
        }
        self.compiled.sources.insert(entry, source);
        true
    }
}

#[cfg(test)]
mod tests;

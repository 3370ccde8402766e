//! The first-boot plan: all layers and the merged tree in; the plan, the defaults of its variables and the files that can be rendered
//! during a bake out, each with the layer that requested it as its origin.

use vmbake_common::escape;
use vmbake_common::message::Message;
use vmbake_disk::tree::{Kind, Origin, components};
use vmbake_firstboot::error::Error;
use vmbake_firstboot::plan::{Named, Ownership, PATH, Variable};
use vmbake_firstboot::settings::Variables;
use vmbake_firstboot::{detect, files, mutable};

use super::grants::Step;
use super::place::Target;
use super::unit_grants::BundleLayers;
use super::{MergeError, accounts, expand, units};
use crate::stage::FIRSTBOOT;
use vmbake_layer::first_boot::{self, Compiled, Diagnostic, PlanFault, PlanSource, Surroundings, foreign_reads};
pub use vmbake_layer::{Layer, child};
use vmbake_manifest::Content;

/// Writes the plan of `layers`, if they have any, into their merged tree.
pub(super) fn write(target: &mut Target, layers: &[Layer], manifest: &Content) -> Result<(), MergeError> {
    let program = layers.iter().find(|layer| layer.schema.artifacts.contains_key(FIRSTBOOT));
    let part = layers.iter().find(|layer| layer.schema.first_boot.is_some());
    let Some(owner) = program.or(part) else { return Ok(()) };
    let schemas = layers.iter().map(|layer| &layer.schema);
    let (mut compiled, clashes) = first_boot::join(schemas, expand::multiarch(PATH, &manifest.os.arch)?);
    let among: Vec<&Layer> = layers.iter().collect();
    let mut faults = first_boot::check(&compiled, &clashes, &among, &Merged(target));
    faults.extend(foreign_variables(target, &among, &BundleLayers::of(&manifest.bundles)));
    if !faults.is_empty() {
        return Err(MergeError::FirstBoot { faults });
    }
    compiled.plan.directories = real(target, &compiled, "/directories", false, &compiled.plan.directories)?;
    compiled.plan.modes = real(target, &compiled, "/modes", true, &compiled.plan.modes)?;
    let text = serde_json::to_string_pretty(&compiled.plan).map_err(|source| {
        MergeError::Message(Message::new("cannot serialize the plan of the first boot as JSON").by(source))
    })? + "\n";
    let before = target.origin().clone();
    file(target, &owner.schema.name, PATH, text.into_bytes())?;
    defaults(target, &compiled)?;
    baked(target, layers, &compiled, manifest)?;
    target.enter(before);
    Ok(())
}

/// Variables that layers of bundles read without requiring the layer that declares them, also in templates from archives.
fn foreign_variables(target: &Target, layers: &[&Layer], bundles: &BundleLayers) -> Vec<PlanFault> {
    let mut faults = Vec::new();
    for (layer, grants) in &target.grants {
        let own = layers.iter().copied().filter(|other| other.schema.name == *layer);
        let same = layers.iter().map(|other| other.schema.name.as_str()).filter(|other| bundles.is_same(layer, other));
        let readable = same.chain(grants.variables.iter().map(String::as_str)).collect();
        let template = |path: &str| Merged(target).text(path);
        for read in foreign_reads(&own.collect::<Vec<_>>(), &readable, layers, &template) {
            let file = read.file.map(|file| format!("{}: ", escape::line(file))).unwrap_or_default();
            let (name, other) = (read.variable, read.declared_by);
            let message = format!(
                "{file}reads variable {name}, which layer {other} declares: expected the layer in `requires` of the bundle"
            );
            let source = PlanSource { layer: read.layer.to_owned(), pointer: read.pointer };
            faults.push(PlanFault { source, warning: false, message });
        }
    }
    faults
}

/// Writes a world-readable file for `layer`.
fn file(target: &mut Target, layer: &str, path: &str, content: Vec<u8>) -> Result<(), MergeError> {
    target.enter(Origin { layer: layer.to_owned(), ..Origin::default() });
    let meta = target.meta(0o644);
    target.file(path, meta, content)
}

/// Paths of the plan without the symbolic links that lead to them, which the program does not follow; at their end only where
/// `last` says so. What another layer removed is left out, what the machine is to make stays.
fn real(
    target: &Target,
    compiled: &Compiled,
    parent: &str,
    last: bool,
    paths: &Named<Ownership>,
) -> Result<Named<Ownership>, MergeError> {
    let mut real = Named::default();
    for (path, owner) in paths {
        let found = target.wrap(target.tree.real_path(path.as_bytes(), last))?;
        let asked = || compiled.source(&child(parent, path)).is_some_and(|source| source.is_of_part());
        let source = compiled.source(&child(parent, path));
        let place = match found {
            Some((real, _)) => {
                if let Some(source) = source {
                    target.check_real(&source.layer, &real)?;
                    target.check_mode(&source.layer, &real, owner.mode)?;
                }
                String::from_utf8_lossy(&real).into_owned()
            }
            None if asked() => path.clone(),
            None => continue,
        };
        real.insert(place, owner.clone());
    }
    Ok(real)
}

/// Writes the defaults of the variables that may change.
fn defaults(target: &mut Target, compiled: &Compiled) -> Result<(), MergeError> {
    let (Some(inputs), Some(source)) = (&compiled.plan.inputs, compiled.source("/inputs")) else { return Ok(()) };
    target.check_generated(&[&inputs.defaults])?;
    let text = mutable::merged(&compiled.plan, &[]).map_err(|source| MergeError::Baked { source })?;
    file(target, &source.layer, &inputs.defaults, text.into_bytes())
}

/// Writes the files that a machine without settings has, too.
fn baked(target: &mut Target, layers: &[Layer], compiled: &Compiled, manifest: &Content) -> Result<(), MergeError> {
    let bundles = BundleLayers::of(&manifest.bundles);
    let mut plan = compiled.plan.clone();
    // Only a machine has them.
    let free = |variable: &Variable| Variable { required: false, ..variable.clone() };
    plan.variables = compiled.plan.variables.iter().map(|(name, variable)| (name.clone(), free(variable))).collect();
    let mut facts: Variables = detect::NAMES.iter().map(|name| ((*name).to_owned(), String::new())).collect();
    facts.insert("kind".to_owned(), manifest.kind.clone());
    let read = |path: &str| Merged(target).text(path).ok_or_else(|| Error::missing(path.as_ref()));
    let made = files::baked(&plan, &facts, &read).map_err(|source| MergeError::Baked { source })?;
    for (rule, path, content) in made {
        let index = plan.files.iter().position(|other| std::ptr::eq(other, rule)).unwrap_or_default();
        let source = compiled.source(&format!("/files/{index}"));
        let asked = source.and_then(|source| layers.iter().find(|layer| layer.schema.name == source.layer));
        let Some(layer) = asked else { continue };
        let name = layer.schema.name.as_str();
        target.enter(Origin { layer: name.to_owned(), ..Origin::default() });
        let before = target.snapshot(name);
        let landing = target.check_landing(name, path.as_bytes())?;
        target.check_mode(name, &landing, rule.mode)?;
        if let (Some(directory), Some((parent, _))) = (&rule.directory, path.rsplit_once('/')) {
            let landing = target.check_landing(name, parent.as_bytes())?;
            target.check_mode(name, &landing, directory.mode)?;
            let meta = accounts::metadata(target, &layer.schema, directory)?;
            target.directory(parent, meta)?;
        }
        let owner = Ownership { mode: rule.mode, owner: rule.owner.clone(), group: rule.group.clone() };
        let meta = accounts::metadata(target, &layer.schema, &owner)?;
        target.file(&path, meta, content.into_bytes())?;
        target.check_changes(name, before.as_ref(), Step::Content, &bundles)?;
    }
    Ok(())
}

/// The merged tree, which knows all.
struct Merged<'a>(&'a Target);

impl Merged<'_> {
    /// The kind and mode of what is at `path`, links followed.
    fn resolved(&self, path: &str) -> Option<(&Kind, u16)> {
        let id = self.0.tree.resolve(path.as_bytes()).ok()?;
        let inode = self.0.tree.inode(id);
        Some((&inode.kind, inode.meta.mode))
    }
}

fn fault(message: String) -> Option<Diagnostic> {
    Some(Diagnostic { warning: false, message })
}

impl Surroundings for Merged<'_> {
    fn text(&self, path: &str) -> Option<String> {
        // The program follows no link.
        self.0.tree.lookup(path.as_bytes())?;
        self.0.text(path).ok()
    }

    fn has_user(&self, name: &str) -> bool {
        matches!(accounts::lookup(self.0, "/etc/passwd", name), Ok(Some(_)))
    }

    fn has_group(&self, name: &str) -> bool {
        matches!(accounts::lookup(self.0, "/etc/group", name), Ok(Some(_)))
    }

    fn unit(&self, unit: &str) -> Option<Diagnostic> {
        match units::has_install(self.0, unit) {
            Ok(true) => None,
            Ok(false) => fault(format!("unit {unit:?} has no [Install] section that would enable it")),
            Err(MergeError::Unit { unit, fault: found, .. }) => fault(format!("unit {unit:?} {found}")),
            Err(error) => fault(error.to_string()),
        }
    }

    fn program(&self, path: &str, _of_layer: bool) -> Option<Diagnostic> {
        match self.resolved(path) {
            Some((Kind::File(_), mode)) if mode & 0o111 != 0 => None,
            Some((Kind::File(_), mode)) => fault(format!("program {path:?} cannot be run with mode {mode:04o}")),
            Some((other, _)) => fault(format!("program {path:?} is a {}", other.name())),
            None => fault(format!("program {path:?} is not in any layer, artifact or package")),
        }
    }

    fn missing(&self, path: &str) -> Option<Diagnostic> {
        let found = self.resolved(path).is_some();
        (!found).then(|| {
            fault(format!("{path:?} is not in the image; use `optional_modes` for paths that may be missing"))
        })?
    }

    fn unreachable(&self, path: &str, directory: bool) -> Option<Diagnostic> {
        let mut dir = vmbake_disk::tree::ROOT;
        let mut names = components(path.as_bytes()).peekable();
        while let Some(name) = names.next() {
            dir = self.0.tree.entry(dir, name)?;
            match &self.0.tree.inode(dir).kind {
                Kind::Directory(_) if directory || names.peek().is_some() => {}
                Kind::File(_) if !directory && names.peek().is_none() => {}
                found => {
                    let name = String::from_utf8_lossy(name);
                    return fault(format!("path {path:?}: its {name:?} is a {} in the image", found.name()));
                }
            }
        }
        None
    }
}

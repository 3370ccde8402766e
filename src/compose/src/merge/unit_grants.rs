//! Checks units in layers with grants: such a layer enables, replaces, extends and removes only units of its bundle, unless a grant names
//! the exact path. A grant of a directory of units covers only units of the bundle.
//!
//! The finished tree is compared, so the result does not depend on the key, archive or script that created a link, or on the order of
//! layers.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{Inode, InodeId, Kind, Tree};
use vmbake_firstboot::plan::Plan;

use super::MergeError;
use super::place::Target;
pub use vmbake_layer::{
    Layer, UNIT_SCOPES, UnitInstall, UnitRole, is_of_systemd, is_wants, path_of_unit, unit_file, unit_place,
};
use vmbake_manifest::{LayerGrants, PinnedBundle};

/// Where System V scripts are, of which systemd makes units.
const SCRIPTS: &str = "/etc/init.d";

/// The layers of each bundle, by its name.
#[derive(Clone, Default)]
pub(super) struct BundleLayers(BTreeMap<String, BTreeSet<String>>);

impl BundleLayers {
    pub(super) fn of(bundles: &BTreeMap<String, PinnedBundle>) -> Self {
        Self(bundles.iter().map(|(name, bundle)| (name.clone(), bundle.layers.clone())).collect())
    }

    #[cfg(test)]
    pub(super) fn named(bundle: &str, layers: BTreeSet<String>) -> Self {
        Self(BTreeMap::from([(bundle.to_owned(), layers)]))
    }

    /// Whether `other` is `layer`, or of the same bundle.
    pub(super) fn is_same(&self, layer: &str, other: &str) -> bool {
        layer == other || self.0.values().any(|bundle| bundle.contains(layer) && bundle.contains(other))
    }

    /// A layer, with its bundle, for messages.
    pub(super) fn describe(&self, layer: &str) -> String {
        let bundle = self.0.iter().find(|(_, layers)| layers.contains(layer));
        bundle.map_or_else(|| format!("layer {layer}"), |(name, _)| format!("layer {layer} of bundle {name}"))
    }

    /// Fails if a layer changes or removes what is in a directory of units and not of its bundle; `old` was at `path`.
    pub(super) fn check_change(
        &self,
        layer: &str,
        grants: &LayerGrants,
        before: &Tree,
        (path, old): (&[u8], &Inode),
    ) -> Result<(), MergeError> {
        let path = String::from_utf8_lossy(path);
        let is_foreign = !self.is_same(layer, &before.origin(old.origin).layer);
        match unit_place(&path).filter(|_| is_foreign && !matches!(old.kind, Kind::Directory(_))) {
            Some(place) if !place.is_named(&path, &grants.paths) => Err(refused(layer, &path, place.unit)),
            _ => Ok(()),
        }
    }
}

/// Fails if a layer with grants affects units outside its bundle, in the finished tree or on the first boot.
pub(super) fn check(target: &Target, layers: &[Layer], bundles: &BundleLayers) -> Result<(), MergeError> {
    for (layer, grants) in &target.grants {
        let is_same = |other: &str| bundles.is_same(layer, other);
        let plans = layers.iter().filter(|other| is_same(&other.schema.name));
        let plans: Vec<&Plan> = plans.filter_map(|layer| layer.schema.first_boot.as_ref()).collect();
        for scope in UNIT_SCOPES {
            let own = written(&plans)
                .filter_map(|path| path.rsplit_once('/').map(|(dir, name)| (dir.to_owned(), name.to_owned())));
            let own = own.filter(|(dir, _)| scope.contains(&dir.as_str())).map(|(_, name)| name).collect();
            let mut units = Units { target, layer, grants, is_same: &is_same, scope, own, others: BTreeSet::new() };
            units.collect();
            units.tree()?;
            let plan = layers.iter().find(|other| other.schema.name == *layer);
            plan.and_then(|layer| layer.schema.first_boot.as_ref()).map_or(Ok(()), |plan| units.plan(plan))?;
        }
    }
    Ok(())
}

/// Every path that plans write.
fn written<'a>(plans: &'a [&Plan]) -> impl Iterator<Item = String> + 'a {
    plans.iter().flat_map(|plan| {
        let files = plan.files.iter().map(|file| file.path.clone());
        let blocks = plan.blocks.iter().map(|block| block.path.clone());
        let received = plan.received.iter().map(|(name, place)| format!("{}/{name}", place.directory));
        let keys = plan.keys.iter().map(|(name, place)| format!("{}/{name}", place.directory));
        files.chain(blocks).chain(received).chain(keys)
    })
}

/// Units as they are seen from one layer.
struct Units<'a> {
    target: &'a Target,
    layer: &'a str,
    grants: &'a LayerGrants,
    /// Whether a layer is of the same bundle.
    is_same: &'a dyn Fn(&str) -> bool,
    scope: &'static [&'static str],
    /// Names of the bundle's own units.
    own: BTreeSet<String>,
    /// Names of all others.
    others: BTreeSet<String>,
}

impl<'a> Units<'a> {
    fn entries(&self, dir: &str) -> Vec<(String, InodeId)> {
        let tree = &self.target.tree;
        match tree.resolve(dir.as_bytes()).ok().map(|id| &tree.inode(id).kind) {
            Some(Kind::Directory(entries)) => {
                entries.iter().map(|(name, id)| (String::from_utf8_lossy(name).into_owned(), *id)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn layer_of(&self, id: InodeId) -> &str {
        self.target.layer_of(id)
    }

    fn is_directory(&self, id: InodeId) -> bool {
        matches!(self.target.tree.inode(id).kind, Kind::Directory(_))
    }

    fn collect(&mut self) {
        for dir in self.scope {
            for (name, id) in
                self.entries(dir).into_iter().filter(|(_, id)| !self.is_directory(*id)).collect::<Vec<_>>()
            {
                let is_own = (self.is_same)(self.layer_of(id));
                if is_own {
                    self.own.insert(name)
                } else {
                    self.others.insert(name)
                };
            }
        }
        let scripts = self.entries(SCRIPTS).into_iter().filter(|(_, id)| !(self.is_same)(self.layer_of(*id)));
        let scripts: Vec<String> = scripts.map(|(name, _)| format!("{name}.service")).collect();
        self.others.extend(scripts);
    }

    /// Whether a unit, or the template of an instance, is not the bundle's, also if only a generator of systemd creates it on the machine.
    fn is_foreign(&self, unit: &str) -> bool {
        let is_mounted = || path_of_unit(unit).is_some_and(|path| self.target.is_mount_point(&path));
        self.others.contains(unit) || self.others.contains(&unit_file(unit)) || is_of_systemd(unit) || is_mounted()
    }

    /// Whether a unit is only in the bundle.
    fn is_own(&self, unit: &str) -> bool {
        !self.is_foreign(unit) && (self.own.contains(unit) || self.own.contains(&unit_file(unit)))
    }

    /// Everything of the layer in the directories of units.
    fn tree(&self) -> Result<(), MergeError> {
        for dir in self.scope {
            for (name, id) in self.entries(dir) {
                let path = format!("{dir}/{name}");
                if !self.is_directory(id) {
                    self.node(&path, id)?;
                    continue;
                }
                for (inner, id) in self.entries(&path) {
                    self.node(&format!("{path}/{inner}"), id)?;
                }
            }
        }
        Ok(())
    }

    fn node(&self, path: &str, id: InodeId) -> Result<(), MergeError> {
        let Some(place) = unit_place(path).filter(|_| self.layer_of(id) == self.layer) else { return Ok(()) };
        self.about(path)?;
        match &self.target.tree.inode(id).kind {
            Kind::Symlink(_) if !place.is_named(path, &self.grants.paths) => self.link(path),
            Kind::File(_) if place.role != UnitRole::Wanted => self.install(path, place.unit),
            _ => Ok(()),
        }
    }

    /// Fails if a path is about a unit of others.
    fn about(&self, path: &str) -> Result<(), MergeError> {
        let Some(place) = unit_place(path).filter(|place| self.scope.contains(&place.dir)) else { return Ok(()) };
        let is_fine = match place.role {
            // A name that only the machine knows may be that of any unit.
            UnitRole::Unit => !self.is_foreign(place.unit) && !place.unit.contains('{') && !is_wants(place.unit),
            UnitRole::DropIn | UnitRole::Wanted => self.is_own(place.unit) && !place.is_of_many(),
        };
        match is_fine || place.is_named(path, &self.grants.paths) {
            true if place.role == UnitRole::Unit => self.path_of(path, place.unit),
            true => Ok(()),
            false => Err(refused(self.layer, path, place.unit)),
        }
    }

    /// Fails if a unit is for a path that is not granted, such as a mount point, unless a grant names the unit.
    fn path_of(&self, path: &str, unit: &str) -> Result<(), MergeError> {
        let Some(of) = path_of_unit(unit).filter(|_| !self.grants.paths.iter().any(|granted| granted == path)) else {
            return Ok(());
        };
        match of.starts_with('/') && self.target.check_end(self.layer, of.as_bytes()).is_ok() {
            true => Ok(()),
            false => Err(MergeError::UnitPath { layer: self.layer.to_owned(), path: path.to_owned(), of }),
        }
    }

    /// Fails if a path that only the machine knows may be one of units, and its directory is not.
    fn templated(&self, path: &str) -> Result<(), MergeError> {
        let beginning = path.find('{').and_then(|at| path.get(..at)).unwrap_or(path);
        let is_above = self.scope.iter().any(|dir| format!("{dir}/").starts_with(beginning));
        let rest = path.get(beginning.len()..).unwrap_or_default();
        match is_above && !rest.is_empty() {
            true => Err(refused(self.layer, path, rest)),
            false => Ok(()),
        }
    }

    /// Fails if a link leads to what is not of the bundle.
    fn link(&self, path: &str) -> Result<(), MergeError> {
        let Ok(Some((real, id))) = self.target.tree.real_path(path.as_bytes(), true) else { return Ok(()) };
        match real == b"/dev/null" || (self.is_same)(self.layer_of(id)) {
            true => Ok(()),
            false => Err(refused(self.layer, path, &String::from_utf8_lossy(&real))),
        }
    }

    /// Fails if enabling a unit would enable or replace one of others. `path` is its file or a drop-in.
    fn install(&self, path: &str, unit: &str) -> Result<(), MergeError> {
        let mut install = UnitInstall::new(unit);
        // systemctl does not enable a unit whose file it cannot read.
        if self.target.bytes(path).map_or(true, |bytes| install.read(path, &bytes).is_err()) {
            return Ok(());
        }
        let aliases = install.each_link().flatten().filter(|link| link.is_alias);
        let mut foreign = aliases.map(|link| link.name).filter(|name| self.is_foreign(name));
        let also = install.also().iter().find(|other| !self.is_own(other));
        match foreign
            .find(|name| !self.is_granted(name))
            .or_else(|| also.filter(|name| !self.is_granted(name)).cloned())
        {
            Some(unit) => Err(refused(self.layer, &format!("{}/{unit}", self.scope[0]), &unit)),
            None => Ok(()),
        }
    }

    /// Whether a grant names a unit of that name.
    fn is_granted(&self, unit: &str) -> bool {
        let is_unit = |dir: &&str| self.grants.paths.contains(&format!("{dir}/{unit}"));
        self.scope.iter().any(is_unit)
    }

    /// What the layer writes and enables on the first boot.
    fn plan(&self, plan: &Plan) -> Result<(), MergeError> {
        written(&[plan]).try_for_each(|path| self.about(&path).and_then(|()| self.templated(&path)))?;
        let is_system = self.scope.contains(&super::units::ETC);
        let mut services = plan.services.iter().map(|service| &service.unit).filter(|_| is_system);
        match services.find(|unit| !self.is_own(unit) && !self.is_granted(unit)) {
            Some(unit) => Err(refused(self.layer, &format!("{}/{unit}", super::units::ETC), unit)),
            None => Ok(()),
        }
    }
}

fn refused(layer: &str, path: &str, unit: &str) -> MergeError {
    MergeError::OtherUnit { layer: layer.to_owned(), path: path.to_owned(), unit: unit.to_owned() }
}

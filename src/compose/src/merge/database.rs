//! dpkg's database in the tree: packages, their files, diversions and overrides.

use std::collections::{BTreeMap, BTreeSet};

use super::accounts::Ids;
use super::debconf::Debconf;
use super::initrd::Due;
use super::overrides::Overrides;
use super::owners::Owners;
use super::place::Target;
use super::removal::Removals;
use super::status::{STATUS, Status};
use super::{DatabaseFault, MergeError, SatisfiedPackage, deferred, present, relations};
use crate::stage::StagedArtifact;
use vmbake_layer::Layer;

/// dpkg's database of the tree, and the pending work of installed packages.
#[derive(Debug)]
pub(super) struct Database {
    /// The image's architecture, by Debian's name.
    pub(super) arch: String,
    pub(super) owners: Owners,
    pub(super) overrides: Overrides,
    pub(super) status: Status,
    /// Questions of packages, and their answers.
    pub(super) debconf: Debconf,
    /// Triggers that are set off, by the stem of the package that is interested in them.
    pub(super) pending: BTreeMap<String, BTreeSet<String>>,
    /// The ids of the accounts that scripts make.
    pub(super) ids: Ids,
    /// Triggers that a package that is configured has to process on the machine, by its stem.
    pub(super) left: BTreeMap<String, BTreeSet<String>>,
    /// Whether a script has run ldconfig(8), or a package has set off its trigger.
    pub(super) is_linked: bool,
    /// Versions of kernels for which mkinitramfs(8) is to run.
    pub(super) initrds: BTreeMap<String, Due>,
    /// Packages that are configured on the first boot.
    pub(super) waiting: BTreeSet<String>,
    /// Whether the image has what configures packages on the first boot.
    deferred: bool,
}

/// What a script changes of it.
pub(super) struct Changeable {
    overrides: Overrides,
    debconf: Debconf,
    pending: BTreeMap<String, BTreeSet<String>>,
    ids: Ids,
    left: BTreeMap<String, BTreeSet<String>>,
    is_linked: bool,
    initrds: BTreeMap<String, Due>,
}

impl Database {
    /// Whether the package lists the file at `path`, or the one that is diverted to it.
    pub(super) fn owns(&self, target: &Target, package: &str, path: &[u8]) -> bool {
        let diverted = std::str::from_utf8(path).ok().and_then(|path| self.overrides.diverted_from(path));
        self.owners.owns(&target.tree, package, diverted.map_or(path, str::as_bytes))
    }

    /// The package that has a configuration file at `path`.
    pub(super) fn owner_of_conffile(&self, path: &str) -> Option<&str> {
        let mut stanzas = self.status.stanzas().map(|(control, _)| control);
        stanzas.find(|control| super::upgrade::conffiles(control).contains_key(path))?.get("Package")
    }

    /// What a script may change, to take it back.
    pub(super) fn changeable(&self) -> Changeable {
        let Self { overrides, debconf, pending, ids, left, is_linked, initrds, .. } = self;
        let (overrides, debconf, pending) = (overrides.clone(), debconf.clone(), pending.clone());
        Changeable {
            overrides,
            debconf,
            pending,
            ids: ids.clone(),
            left: left.clone(),
            is_linked: *is_linked,
            initrds: initrds.clone(),
        }
    }

    /// Takes back what a script has changed.
    pub(super) fn restore(&mut self, before: Changeable) {
        let Changeable { overrides, debconf, pending, ids, left, is_linked, initrds } = before;
        (self.overrides, self.debconf, self.pending, self.ids, self.left) = (overrides, debconf, pending, ids, left);
        (self.is_linked, self.initrds) = (is_linked, initrds);
    }

    /// Reads what the base has.
    pub(super) fn read(target: &Target, arch: &str) -> Result<Self, MergeError> {
        Ok(Self {
            arch: arch.to_owned(),
            owners: Owners::read(target)?,
            overrides: Overrides::read(target)?,
            status: Status::read(target)?,
            debconf: Debconf::default(),
            pending: BTreeMap::new(),
            ids: Ids::default(),
            left: BTreeMap::new(),
            is_linked: false,
            initrds: BTreeMap::new(),
            waiting: BTreeSet::new(),
            deferred: false,
        })
    }

    /// Takes out what the base has already, and fails where the rest does not fit to it.
    pub(super) fn satisfied(
        &self,
        artifacts: &mut Vec<StagedArtifact>,
        layers: &[Layer],
        removals: &Removals,
    ) -> Result<Vec<SatisfiedPackage>, MergeError> {
        removals.check_artifacts(artifacts, layers)?;
        let kept = present::satisfied(&self.status, artifacts, layers)?;
        relations::check(&self.status, artifacts, removals)?;
        Ok(kept)
    }

    /// Puts the packages on hold that a layer holds.
    pub(super) fn hold(&mut self, target: &mut Target, layer: &str, names: &[String]) -> Result<(), MergeError> {
        for name in names {
            if !self.status.hold(name)? {
                let (package, layer) = (name.clone(), layer.to_owned());
                return Err(MergeError::content(STATUS, DatabaseFault::NotHeld { package, layer }));
            }
        }
        self.status.write(target)
    }

    /// Brings what configures packages on the first boot, once.
    pub(super) fn defer(&mut self, target: &mut Target) -> Result<(), MergeError> {
        if std::mem::replace(&mut self.deferred, true) { Ok(()) } else { deferred::apply(target) }
    }
}

//! A tree between the base and the finished image: begun from the base, changed by one layer after the other, and finished.

use std::collections::{BTreeMap, BTreeSet};

use vmbake_disk::tree::{Origin, Timestamp, Tree};

use super::cleaned::{self, Brought};
use super::database::Database;
use super::given::Given;
use super::grants::Step;
use super::maintainer::check_deferred;
use super::place::Target;
use super::privileged::{self, Privileged};
use super::removal::{self, Removals};
use super::unit_grants::{self, BundleLayers};
use super::{
    DeferredPackage, MergeError, Merged, Pins, RECORD, SatisfiedPackage, accounts, admin_directory, alternatives,
    auto_installed, boot_grants, debconf, expand, extracted, finished, first_boot, host_keys, initrd, ldcache, logins,
    merged_usr, missing, own_content, programs, regenerate,
};
use crate::stage::{FIRSTBOOT, StagedArtifact, StagedContent};
use vmbake_fetch::images::Layout;
use vmbake_layer::{AuditedScript, GENERATED, HYGIENE, Layer};
use vmbake_manifest::{LayerGrants, Manifest};

pub(super) struct Merging<'a> {
    manifest: &'a Manifest,
    arch: &'a str,
    layers: &'a [Layer],
    /// The artifacts; those that a layer has placed are `None`.
    artifacts: Vec<Option<StagedArtifact>>,
    /// The names of all artifacts that are archives.
    archives: Vec<String>,
    bundles: BundleLayers,
    audited: Vec<AuditedScript>,
    /// Whether the first package made dpkg's administrative directory.
    is_new: bool,
    /// Files of the base that run with other privileges than those of the user.
    base_privileged: Privileged,
    /// The base's version of the files from which others are generated.
    sources: regenerate::Before,
    target: Target,
    packages: Database,
    removals: Removals,
    given: Given,
    kept: Vec<SatisfiedPackage>,
    deferred: Vec<DeferredPackage>,
    setuid: BTreeSet<String>,
    warnings: Vec<String>,
}

impl<'a> Merging<'a> {
    /// Takes the base, and removes the packages of it that layers remove.
    pub(super) fn begin(
        base: Tree,
        layers: &'a [Layer],
        mut artifacts: Vec<StagedArtifact>,
        manifest: &'a Manifest,
        grants: &BTreeMap<String, LayerGrants>,
        pins: Pins,
        epoch: Timestamp,
    ) -> Result<Self, MergeError> {
        let content = manifest.content();
        let mut target = Target::new(base, epoch);
        target.read_mounts()?;
        let base_privileged = privileged::find(&target.tree);
        let sources = regenerate::Before::find(&target);
        target.by_name = chosen_by_name(manifest);
        target.grants.clone_from(grants);
        let bundles = BundleLayers::of(&content.bundles);
        target.bundles.clone_from(&bundles);
        let packages = Database::read(&target, &content.os.arch)?;
        let removals = Removals::of(&target, &packages, layers)?;
        let kept = packages.satisfied(&mut artifacts, layers, &removals)?;
        let mut merging = Self {
            manifest,
            arch: &content.os.arch,
            layers,
            archives: cleaned::archives(&artifacts),
            artifacts: Vec::new(),
            bundles,
            audited: layers.iter().flat_map(|layer| &layer.schema.scripts).cloned().collect(),
            is_new: false,
            base_privileged,
            sources,
            target,
            packages,
            removals,
            given: Given::default(),
            kept,
            deferred: Vec::new(),
            setuid: BTreeSet::new(),
            warnings: Vec::new(),
        };
        merging.prepare_database(&artifacts)?;
        merging.packages.ids.pin(content.accounts.as_ref(), pins);
        merging.artifacts = artifacts.into_iter().map(Some).collect();
        let Self { target, packages, removals, audited, .. } = &mut merging;
        removal::from_base(target, packages, removals, layers, audited)?;
        Ok(merging)
    }

    /// Prepares dpkg's administrative directory as dpkg does when it starts, if a layer installs or removes packages.
    fn prepare_database(&mut self, artifacts: &[StagedArtifact]) -> Result<(), MergeError> {
        let installs = artifacts.iter().find(|artifact| matches!(artifact.content, StagedContent::Deb(_)));
        let installs = installs.map(|artifact| artifact.layer).or_else(|| self.removals.first_layer());
        let Some(layer) = installs.and_then(|layer| self.layers.get(layer)) else { return Ok(()) };
        if admin_directory::is_current(&self.target)? {
            return Ok(());
        }
        self.target.enter(own(layer));
        self.is_new = admin_directory::prepare(&mut self.target)?;
        if self.is_new {
            merged_usr::link(&mut self.target, artifacts, self.arch)?;
        }
        self.packages = Database::read(&self.target, self.arch)?;
        Ok(())
    }

    /// Applies a layer: its accounts, packages, archives and other artifacts, and then its other content.
    pub(super) fn layer(&mut self, index: usize, layer: &Layer, images: Option<&Layout>) -> Result<(), MergeError> {
        let (schema, name) = (&layer.schema, layer.schema.name.as_str());
        self.target.enter(own(layer));
        let multiarch = expand::multiarch("setuid", self.arch).unwrap_or_default();
        self.setuid.extend(self.target.enter_layer(schema, multiarch));
        let before = self.target.snapshot(name);
        extracted::check_in_place(&self.target, schema, |_, _| true)?;
        accounts::create(&mut self.target, schema)?;
        self.target.check_changes(name, before.as_ref(), Step::Accounts, &self.bundles)?;
        let before = self.target.snapshot(name);
        let mine = self.artifacts.iter_mut().filter_map(|slot| slot.take_if(|artifact| artifact.layer == index));
        // Packages first, so that archives and files meet the directories and links that packages bring.
        let is_deb = |artifact: &StagedArtifact| matches!(artifact.content, StagedContent::Deb(_));
        let (debs, others): (Vec<_>, Vec<_>) = mine.partition(is_deb);
        self.packages(index, layer, debs)?;
        self.others(layer, others)?;
        self.own(layer)?;
        if let (Some(path), Some(images)) = (&schema.images, images) {
            place_images(&mut self.target, name, path, images)?;
        }
        self.target.leave_layer(schema)?;
        self.target.check_generated(&GENERATED)?;
        self.given.leave_layer(&self.target, schema, self.arch)?;
        self.target.check_changes(name, before.as_ref(), Step::Content, &self.bundles)
    }

    /// Removes, unpacks and configures the packages of a layer.
    fn packages(&mut self, index: usize, layer: &Layer, mut debs: Vec<StagedArtifact>) -> Result<(), MergeError> {
        let Self { target, packages, audited, .. } = self;
        if self.is_new {
            debs.sort_by_key(|artifact| artifact.deb().map_or(usize::MAX, |deb| admin_directory::rank(deb.name())));
        }
        let removed = self.removals.remove_from_layers(target, packages, index, audited)?;
        self.deferred.retain(|waits| !removed.contains(&waits.package));
        debconf::select(&mut packages.debconf, target, &layer.schema, debs.iter().filter_map(StagedArtifact::deb))?;
        let mut unpacked = Vec::new();
        for artifact in debs {
            target.enter(origin(layer, &artifact));
            let source = target.tree.sources_mut().add(artifact.source);
            if let StagedContent::Deb(deb) = &artifact.content {
                unpacked.push(packages.unpack(target, deb, source, audited)?);
            }
        }
        self.deferred.extend(packages.configure(target, unpacked, audited)?);
        auto_installed::record(target, layer, self.manifest.content(), self.arch)?;
        extracted::check_before_packages(target, &layer.schema, packages)?;
        let is_of_package = |path: &str, origin: &Origin| {
            origin.layer == layer.schema.name && !layer.schema.before_packages.iter().any(|other| other == path)
        };
        extracted::check_in_place(target, &layer.schema, is_of_package)?;
        target.enter(own(layer));
        packages.hold(target, &layer.schema.name, &layer.schema.hold)
    }

    /// Places the archives of a layer, and then its single files.
    fn others(&mut self, layer: &Layer, mut others: Vec<StagedArtifact>) -> Result<(), MergeError> {
        others.sort_by_key(|artifact| matches!(artifact.content, StagedContent::File { .. }));
        let is_archive = |artifact: &&StagedArtifact| matches!(artifact.content, StagedContent::Members(..));
        let unpacked: BTreeSet<String> =
            others.iter().filter(is_archive).map(|artifact| artifact.name.clone()).collect();
        for artifact in others {
            self.target.enter(origin(layer, &artifact));
            place(&mut self.target, artifact)?;
        }
        let is_unpacked =
            |_: &str, origin: &Origin| origin.artifact.as_ref().is_some_and(|name| unpacked.contains(name));
        extracted::check_in_place(&self.target, &layer.schema, is_unpacked)
    }

    /// Applies the content of a layer that is not an artifact. Before the last one, `hygiene`, the files that depend on all layers are generated, and the paths
    /// are found that no layer keeps.
    fn own(&mut self, layer: &Layer) -> Result<(), MergeError> {
        let target = &mut self.target;
        target.enter(own(layer));
        let is_last = layer.schema.name == HYGIENE;
        let brought = is_last.then(|| Brought::find(target, self.layers, &self.archives)).transpose()?;
        if let Some(brought) = &brought {
            let made = self.sources.regenerate(target, &mut self.packages, self.manifest, brought, &self.audited)?;
            self.deferred.extend(made.deferred);
            self.warnings.extend(made.warnings);
        }
        let kept = self.layers.iter().filter(|_| is_last).flat_map(|layer| &layer.schema.keep);
        target.kept = cleaned::kept(target, kept.chain(&layer.schema.truncate))?.into_iter().collect();
        if !is_last {
            self.warnings.extend(cleaned::not_there(target, &layer.schema)?);
        }
        own_content::apply(target, layer, self.manifest)?;
        brought.iter().try_for_each(|brought| brought.check(target))
    }

    /// Writes what depends on all layers, and checks the whole tree.
    pub(super) fn finish(mut self) -> Result<Merged, MergeError> {
        let (target, layers) = (&mut self.target, self.layers);
        alternatives::check_choices(target, layers)?;
        let made = initrd::make(target, &mut self.packages)?;
        self.deferred.extend(made.deferred);
        self.warnings.extend(made.warnings);
        host_keys::apply(target)?;
        record(target, layers, self.manifest)?;
        first_boot::write(target, layers, self.manifest.content())?;
        unit_grants::check(target, layers, &self.bundles)?;
        boot_grants::check(target, layers, &self.bundles)?;
        check_deferred(target, &self.deferred, self.arch)?;
        self.warnings.extend(self.removals.warning(target, &self.packages)?);
        self.warnings.extend(missing::warnings(target, layers)?);
        self.warnings.extend(finished::check(target, layers)?);
        ldcache::update(target, self.arch, self.packages.is_linked)?;
        programs::check(&target.tree, self.arch, &target.by_name)?;
        privileged::check(target, &self.packages, &self.base_privileged, &self.setuid)?;
        Ok(Merged {
            tree: self.target.tree,
            kept: self.kept,
            deferred: self.deferred,
            accounts: self.packages.ids.given(),
            privileged: self.target.granted.into_inner(),
            setuid: self.setuid,
            logins: logins::find(layers),
            keep: layers.iter().flat_map(|layer| layer.schema.keep.iter().cloned()).collect(),
            warnings: self.warnings,
        })
    }
}

/// The origin of what a layer writes itself.
fn own(layer: &Layer) -> Origin {
    Origin { layer: layer.schema.name.clone(), ..Origin::default() }
}

fn origin(layer: &Layer, artifact: &StagedArtifact) -> Origin {
    Origin { artifact: Some(artifact.name.clone()), digest: Some(artifact.digest.clone()), ..own(layer) }
}

/// The artifacts that were chosen as packages by name, with all that they depend on.
fn chosen_by_name(manifest: &Manifest) -> BTreeSet<String> {
    let chosen = manifest.content().dependencies.iter().filter(|(_, entry)| entry.chosen.is_some());
    chosen.map(|(name, _)| name.clone()).collect()
}

/// Places an artifact that is not a package.
pub(super) fn place(target: &mut Target, artifact: StagedArtifact) -> Result<(), MergeError> {
    let source = target.tree.sources_mut().add(artifact.source);
    match &artifact.content {
        StagedContent::File { path, mode, len } => {
            target.check_visible(path.as_bytes())?;
            target.artifact_file(path, *mode, source, *len)
        }
        StagedContent::Members(entries, None) => target.entries(entries, source, true),
        StagedContent::Members(entries, Some(option)) => target.extract(entries, source, *option),
        // All packages of the layer have been unpacked before.
        StagedContent::Deb(_) => Ok(()),
    }
}

/// Places an OCI image layout below `path`.
fn place_images(target: &mut Target, layer: &str, path: &str, images: &Layout) -> Result<(), MergeError> {
    target.check_visible(format!("{path}/image").as_bytes())?;
    for (name, file) in &images.files {
        let (artifact, digest) = file.image.clone().map(|(image, digest)| (image, digest.to_string())).unzip();
        target.enter(Origin { layer: layer.to_owned(), artifact, digest });
        let source = target.tree.sources_mut().add(file.source.clone());
        target.artifact_file(&format!("{path}/{name}"), 0o644, source, file.len)?;
    }
    Ok(())
}

/// Writes the manifest for the layer that installs the first-boot program.
fn record(target: &mut Target, layers: &[Layer], manifest: &Manifest) -> Result<(), MergeError> {
    let Some(owner) = layers.iter().find(|layer| layer.schema.artifacts.contains_key(FIRSTBOOT)) else { return Ok(()) };
    let before = target.origin().clone();
    target.enter(Origin { layer: owner.schema.name.clone(), ..Origin::default() });
    let meta = target.meta(0o644);
    target.file(RECORD, meta, manifest.text().to_vec())?;
    target.enter(before);
    Ok(())
}

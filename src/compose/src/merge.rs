//! Applies layers to the base's tree, one after the other: [`Staged`] in, [`Tree`] out.
//!
//! A later layer overwrites files of an earlier one. Two artifacts that write the same path are an error.

mod accounts;
mod admin_directory;
mod auto_installed;
mod advice;
mod alternatives;
mod audited;
mod cleaned;
mod config;
mod configure;
mod conffiles;
mod database;
mod debconf;
mod deferred;
mod dpkg;
mod error;
mod expand;
pub mod extension;
mod extracted;
mod fault;
mod filters;
mod finished;
mod first_boot;
mod given;
mod grants;
mod host_keys;
mod initrd;
mod ldcache;
mod locales;
mod logins;
mod maintainer;
mod merged_usr;
mod missing;
mod named_accounts;
mod os_release;
mod overrides;
mod owners;
mod place;
mod placed;
mod present;
mod privileged;
mod programs;
mod regenerate;
mod relations;
mod removal;
mod status;
mod swap;
mod sysusers;
mod tmpfiles;
mod triggers;
mod unit_grants;
mod boot_grants;
mod units;
mod upgrade;

pub use debconf::{DebconfFault, PresetFault, TemplateFault};
pub use error::{MergeError, OtherVersion, RemovalFault, TakenAway};
pub use fault::{
    AlternativeFault, ConffileFault, ContentFault, DatabaseFault, LibraryFault, ListedFault, TriggerFault, UnitFault,
    WordFault,
};
pub use logins::Login;
pub use maintainer::{Makes, Occasion, ScriptFault};
pub use present::SatisfiedPackage;
pub use programs::check as check_programs;
use regenerate::Directories;
pub use regenerate::is_processed;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use crate::stage::{FIRSTBOOT, Member, Staged, StagedArtifact, StagedContent};
use cleaned::Brought;
use grants::Step;
use place::Target;
use removal::Removals;
use unit_grants::BundleLayers;
use vmbake_fetch::images::Layout;
pub use vmbake_layer::{GENERATED, HYGIENE, Layer, LayerFile, default_mode};
use vmbake_manifest::{Content, LayerGrants, Manifest, PinnedAccounts};

/// Where the manifest is recorded in every image.
pub const RECORD: &str = vmbake_layer::MANIFEST;

/// The language of logins (update-locale(8)).
const LOCALE: &str = "/etc/default/locale";
/// The program that reads `/etc/sudoers.d`.
const SUDO: &str = "/usr/bin/sudo";

/// Largest text file that is read to be changed, in bytes: dpkg's status file is the largest, with 1 to 10 MB.
const MAX_TEXT: u64 = 64 << 20;

/// What became of a base and of layers.
pub struct Merged {
    /// The files of the image.
    pub tree: Tree,
    /// Packages of the manifest that the base has, in the order of the layers.
    pub kept: Vec<SatisfiedPackage>,
    /// Packages that are configured on the first boot, in the order in which they were installed.
    pub deferred: Vec<DeferredPackage>,
    /// The ids of the accounts that maintainer scripts have made.
    pub accounts: PinnedAccounts,
    /// Files of packages chosen by name that have set-uid or set-gid bits or file capabilities, by path.
    pub privileged: BTreeMap<String, String>,
    /// Files that layers list in `setuid`, by path.
    pub setuid: BTreeSet<String>,
    /// Paths that layers list in `keep`.
    pub keep: BTreeSet<String>,
    /// What a layer says that has no effect, or not everywhere: for the user to read.
    pub warnings: Vec<String>,
    /// Users that layers let log in by a password or keys.
    pub logins: BTreeMap<String, Login>,
}

/// How strictly accounts get the ids that a manifest pins for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pins {
    /// A pinned id that belongs to another account is an error.
    #[default]
    Fixed,
    /// The account gets another id, which is to be pinned.
    Preferred,
}

/// A package that is not configured here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeferredPackage {
    /// Its name.
    pub package: String,
    /// Why it waits.
    pub reason: String,
}

/// Applies all layers to `base`. Files of the layers themselves get the time `epoch`. A layer named in `grants` may change only what it is granted.
pub fn merge(
    base: Tree,
    staged: Staged,
    manifest: &Manifest,
    grants: &BTreeMap<String, LayerGrants>,
    pins: Pins,
    epoch: Timestamp,
) -> Result<Merged, MergeError> {
    let Staged { layers, mut artifacts, images } = staged;
    let arch = &manifest.content().os.arch;
    let mut target = Target::new(base, epoch);
    target.read_mounts()?;
    let base_privileged = privileged::find(&target.tree);
    let found = regenerate::Before::find(&target);
    target.by_name = chosen_by_name(manifest);
    target.grants.clone_from(grants);
    let bundles = BundleLayers::of(&manifest.content().bundles);
    target.bundles.clone_from(&bundles);
    let mut packages = database::Database::read(&target, arch)?;
    let mut removals = Removals::of(&target, &packages, &layers)?;
    let kept = packages.satisfied(&mut artifacts, &layers, &removals)?;
    let mut is_new = false;
    let installs = artifacts.iter().find(|artifact| matches!(artifact.content, StagedContent::Deb(_)));
    let installs = installs.map(|artifact| artifact.layer).or_else(|| removals.first_layer());
    if let Some(layer) = installs.and_then(|layer| layers.get(layer))
        && !admin_directory::is_current(&target)?
    {
        target.enter(Origin { layer: layer.schema.name.clone(), ..Origin::default() });
        is_new = admin_directory::prepare(&mut target)?;
        if is_new {
            merged_usr::link(&mut target, &artifacts, arch)?;
        }
        packages = database::Database::read(&target, arch)?;
    }
    packages.ids.pin(manifest.content().accounts.as_ref(), pins);
    let audited: Vec<_> = layers.iter().flat_map(|layer| &layer.schema.scripts).cloned().collect();
    removal::from_base(&mut target, &mut packages, &mut removals, &layers, &audited)?;
    let archives = cleaned::archives(&artifacts);
    let mut artifacts: Vec<_> = artifacts.into_iter().map(Some).collect();
    let mut given = given::Given::default();
    let (mut deferred, mut setuid, mut warnings) = (Vec::new(), BTreeSet::new(), Vec::new());
    for (index, layer) in layers.iter().enumerate() {
        let own = || Origin { layer: layer.schema.name.clone(), ..Origin::default() };
        target.enter(own());
        setuid.extend(target.enter_layer(&layer.schema, expand::multiarch("setuid", arch).unwrap_or_default()));
        let name = layer.schema.name.as_str();
        let before = target.snapshot(name);
        extracted::check_in_place(&target, &layer.schema, |_, _| true)?;
        accounts::create(&mut target, &layer.schema)?;
        target.check_changes(name, before.as_ref(), Step::Accounts, &bundles)?;
        let before = target.snapshot(name);
        let mine = artifacts.iter_mut().filter_map(|slot| slot.take_if(|artifact| artifact.layer == index));
        // Packages first, so that archives and files meet the directories and links that packages bring.
        let is_deb = |artifact: &StagedArtifact| matches!(artifact.content, StagedContent::Deb(_));
        let (mut debs, mut others): (Vec<_>, Vec<_>) = mine.partition(is_deb);
        others.sort_by_key(|artifact| matches!(artifact.content, StagedContent::File { .. }));
        if is_new {
            debs.sort_by_key(|artifact| match &artifact.content {
                StagedContent::Deb(deb) => admin_directory::rank(deb.name()),
                _ => usize::MAX,
            });
        }
        let origin = |artifact: &StagedArtifact| {
            let (name, digest) = (Some(artifact.name.clone()), Some(artifact.digest.clone()));
            Origin { artifact: name, digest, ..own() }
        };
        let mine = debs.iter().filter_map(|artifact| match &artifact.content {
            StagedContent::Deb(deb) => Some(deb),
            _ => None,
        });
        let removed = removals.remove_from_layers(&mut target, &mut packages, index, &audited)?;
        deferred.retain(|waits: &DeferredPackage| !removed.contains(&waits.package));
        debconf::select(&mut packages.debconf, &target, &layer.schema, mine)?;
        let mut unpacked = Vec::new();
        for artifact in debs {
            target.enter(origin(&artifact));
            let source = target.tree.sources_mut().add(artifact.source);
            if let StagedContent::Deb(deb) = &artifact.content {
                unpacked.push(packages.unpack(&mut target, deb, source, &audited)?);
            }
        }
        deferred.extend(packages.configure(&mut target, unpacked, &audited)?);
        auto_installed::record(&mut target, layer, manifest.content(), arch)?;
        let is_own = |origin: &Origin| origin.layer == name;
        extracted::check_before_packages(&target, &layer.schema, &packages)?;
        let is_of_package = |path: &str, origin: &Origin| {
            is_own(origin) && !layer.schema.before_packages.iter().any(|other| other == path)
        };
        extracted::check_in_place(&target, &layer.schema, is_of_package)?;
        target.enter(own());
        packages.hold(&mut target, name, &layer.schema.hold)?;
        let is_archive = |artifact: &&StagedArtifact| matches!(artifact.content, StagedContent::Members(..));
        let unpacked: BTreeSet<String> =
            others.iter().filter(is_archive).map(|artifact| artifact.name.clone()).collect();
        for artifact in others {
            target.enter(origin(&artifact));
            install(&mut target, artifact)?;
        }
        let is_unpacked =
            |_: &str, origin: &Origin| origin.artifact.as_ref().is_some_and(|name| unpacked.contains(name));
        extracted::check_in_place(&target, &layer.schema, is_unpacked)?;
        target.enter(own());
        let is_last = name == HYGIENE;
        let brought = is_last.then(|| Brought::find(&target, &layers, &archives)).transpose()?;
        if let Some(brought) = &brought {
            let made = found.regenerate(&mut target, &mut packages, brought, &audited)?;
            deferred.extend(made.deferred);
            warnings.extend(made.warnings);
        }
        let kept = layers.iter().filter(|_| is_last).flat_map(|layer| &layer.schema.keep);
        target.kept = cleaned::kept(&target, kept.chain(&layer.schema.truncate))?.into_iter().collect();
        if !is_last {
            warnings.extend(cleaned::not_there(&target, &layer.schema)?);
        }
        apply(&mut target, layer, manifest)?;
        brought.iter().try_for_each(|brought| brought.check(&target))?;
        if let (Some(path), Some(images)) = (&layer.schema.images, &images) {
            place_images(&mut target, &layer.schema.name, path, images)?;
        }
        target.leave_layer(&layer.schema)?;
        target.check_generated(&GENERATED)?;
        given.leave_layer(&target, &layer.schema, arch)?;
        target.check_changes(name, before.as_ref(), Step::Content, &bundles)?;
    }
    alternatives::check_choices(&target, &layers)?;
    let made = initrd::make(&mut target, &mut packages)?;
    deferred.extend(made.deferred);
    warnings.extend(made.warnings);
    host_keys::apply(&mut target)?;
    record(&mut target, &layers, manifest)?;
    first_boot::write(&mut target, &layers, manifest.content())?;
    unit_grants::check(&target, &layers, &bundles)?;
    boot_grants::check(&target, &layers, &bundles)?;
    maintainer::check_deferred(&target, &deferred, arch)?;
    warnings.extend(removals.warning(&target, &packages)?);
    warnings.extend(missing::warnings(&target, &layers)?);
    warnings.extend(finished::check(&target, &layers)?);
    ldcache::update(&mut target, arch, packages.is_linked)?;
    programs::check(&target.tree, arch, &target.by_name)?;
    privileged::check(&target, &packages, &base_privileged, &setuid)?;
    Ok(Merged {
        tree: target.tree,
        kept,
        deferred,
        accounts: packages.ids.given(),
        privileged: target.granted.into_inner(),
        setuid,
        logins: logins::find(&layers),
        keep: layers.iter().flat_map(|layer| layer.schema.keep.iter().cloned()).collect(),
        warnings,
    })
}

/// The artifacts that were chosen as packages by name, with all that they depend on.
fn chosen_by_name(manifest: &Manifest) -> BTreeSet<String> {
    let chosen = manifest.content().dependencies.iter().filter(|(_, entry)| entry.chosen.is_some());
    chosen.map(|(name, _)| name.clone()).collect()
}

fn install(target: &mut Target, artifact: StagedArtifact) -> Result<(), MergeError> {
    let source = target.tree.sources_mut().add(artifact.source);
    match &artifact.content {
        StagedContent::File { path, mode, len } => {
            target.check_visible(path.as_bytes())?;
            target.artifact_file(path, *mode, source, *len)
        }
        StagedContent::Members(entries, None) => target.entries(entries, source, true),
        StagedContent::Members(entries, Some(option)) => target.extract(entries, source, *option),
        // Packages are unpacked before, all together.
        StagedContent::Deb(_) => Ok(()),
    }
}

/// Does what ldconfig(8) would do to a finished tree: links from sonames to libraries, and the dynamic linker's cache,
/// where the tree has one. What is made gets the time `epoch`.
pub fn ldconfig(tree: Tree, arch: &str, epoch: Timestamp) -> Result<Tree, MergeError> {
    let mut target = Target::new(tree, epoch);
    ldcache::update(&mut target, arch, false)?;
    Ok(target.tree)
}

/// A file of a layer in which the words that only a bake knows are replaced.
pub fn expanded(path: &str, file: &LayerFile, content: &Content) -> Result<Vec<u8>, MergeError> {
    Ok(expand::expand(path, &text(path, file)?, content)?.into_bytes())
}

/// Debian's name of an architecture in paths: its multiarch tuple.
pub fn multiarch(arch: &str) -> Result<&str, MergeError> {
    expand::multiarch("first_boot", arch)
}

/// Reads a maintainer script in every way in which dpkg runs one. For fuzzers, which know no packages.
#[doc(hidden)]
pub fn run_script(script: &[u8]) {
    maintainer::run_without_packages(script);
}

/// A tree of nothing but the members of one archive, whose contents are ranges of `source`.
pub fn unpack(entries: &[Member], source: Arc<dyn ReadAt>, origin: Origin) -> Result<Tree, MergeError> {
    let root = Metadata::root(0o755, Timestamp::default());
    let mut target = Target::new(Tree::new(root, origin.clone()), Timestamp::default());
    target.enter(origin);
    let source = target.tree.sources_mut().add(source);
    target.entries(entries, source, false)?;
    Ok(target.tree)
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

/// Applies a layer without its artifacts, in the order of its documentation.
fn apply(target: &mut Target, layer: &Layer, manifest: &Manifest) -> Result<(), MergeError> {
    let schema = &layer.schema;
    for (path, rule) in &schema.directories {
        target.check_visible(path.as_bytes())?;
        let meta = accounts::metadata(target, schema, &rule.ownership())?;
        match rule.mode {
            Some(_) => target.directory(path, meta)?,
            None => target.ensure_directory(path, meta)?,
        }
    }
    for (path, file) in &layer.files {
        target.check_visible(path.as_bytes())?;
        let meta = match schema.files.get(path) {
            Some(file) => accounts::metadata(target, schema, &file.ownership(path))?,
            None => target.meta(default_mode(path)),
        };
        let content = match schema.expand.contains(path) {
            true => expand::expand(path, &text(path, file)?, manifest.content())?.into_bytes(),
            false => file.content.clone(),
        };
        // Since Debian 13 this is a link to the file that systemd reads, and update-locale(8) writes to its target.
        let real = (path == LOCALE && schema.locale.is_some()).then(|| target.tree.real_path(path.as_bytes(), true));
        let real = real.and_then(|found| String::from_utf8(found.ok()??.0).ok());
        target.file(real.as_ref().unwrap_or(path), meta, content)?;
    }
    swap::write(target, schema)?;
    for (path, owner) in &schema.modes {
        let arch = expand::multiarch(path, &manifest.content().os.arch)?;
        let meta = accounts::metadata(target, schema, owner)?;
        target.set_mode(&path.replace("{multiarch}", arch), &meta)?;
    }
    for (path, text) in &schema.capabilities {
        privileged::give(target, path, text)?;
    }
    for (path, to) in &schema.symlinks {
        target.check_visible(path.as_bytes())?;
        target.symlink(path, to)?;
    }
    for (name, choice) in &schema.alternatives {
        alternatives::choose(target, name, choice)?;
    }
    if let Some(name) = schema.sudoers.keys().next().filter(|_| target.tree.resolve(SUDO.as_bytes()).is_err()) {
        return Err(MergeError::content(
            format!("/etc/sudoers.d/{name}"),
            ContentFault::Message(message!("is read by {}, which is not in the image", SUDO)),
        ));
    }
    locales::check(target, schema)?;
    units::apply(target, schema)?;
    let wanted = if schema.remove.is_empty() { Vec::new() } else { units::removed::dependency_links(target) };
    for path in &schema.remove {
        target.remove(path)?;
    }
    units::removed::unlink(target, &wanted)?;
    for path in &schema.empty {
        target.require_no_directory(path)?;
        target.empty(path)?;
    }
    for path in &schema.truncate {
        target.require_file(path)?;
        target.truncate(path)?;
    }
    os_release::set(target, &schema.os_release, manifest)
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

/// The text of a layer's file.
fn text(path: &str, file: &LayerFile) -> Result<String, MergeError> {
    String::from_utf8(file.content.clone()).map_err(|_| MergeError::content(path, ContentFault::NotUtf8))
}

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
mod merging;
mod missing;
mod named_accounts;
mod os_release;
mod overrides;
mod own_content;
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

use vmbake_disk::source::ReadAt;
use vmbake_disk::tree::{Metadata, Origin, Timestamp, Tree};

use crate::stage::{Member, Staged};
use merging::Merging;
use place::Target;
pub use vmbake_layer::{GENERATED, HYGIENE, Layer, LayerFile, default_mode};
use vmbake_manifest::{Content, LayerGrants, Manifest, PinnedAccounts};

/// Where the manifest is recorded in every image.
pub const RECORD: &str = vmbake_layer::MANIFEST;

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
    let Staged { layers, artifacts, images } = staged;
    let mut merging = Merging::begin(base, &layers, artifacts, manifest, grants, pins, epoch)?;
    for (index, layer) in layers.iter().enumerate() {
        merging.layer(index, layer, images.as_ref())?;
    }
    merging.finish()
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

/// The text of a layer's file.
fn text(path: &str, file: &LayerFile) -> Result<String, MergeError> {
    String::from_utf8(file.content.clone()).map_err(|_| MergeError::content(path, ContentFault::NotUtf8))
}

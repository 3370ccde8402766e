//! Errors of merging layers.

use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_disk::tree::TreeError;

use super::debconf::PresetFault;
use super::fault::{ContentFault, UnitFault};
use super::maintainer::{Makes, Occasion, ScriptFault};
use vmbake_common::escape;
use vmbake_image::elf::ElfError;
use vmbake_layer::first_boot::PlanFault;

/// Why layers cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    #[error("layer {layer}")]
    Tree { layer: String, source: TreeError },
    #[error("layer {layer}: {verb} {path}, which is not granted")]
    NotGranted {
        layer: String,
        verb: &'static str,
        /// The path, with symbolic links resolved.
        path: String,
    },
    #[error("layer {layer}: {path}: the name has a control, bidirectional or zero-width character")]
    HiddenCharacter {
        layer: String,
        /// The path, with the bytes of such characters in hexadecimal.
        path: String,
    },
    #[error("layer {layer}: {path}: {what}, without a grant for that file")]
    BootConfig {
        layer: String,
        /// The file, with the number of the line if it is one.
        path: String,
        what: String,
    },
    #[error(
        "layer {layer}: {path}: configures {unit}, which is not a unit of the bundle, without a grant for that path"
    )]
    OtherUnit { layer: String, path: String, unit: String },
    #[error("layer {layer}: {path}: is for {of}, which is not granted")]
    UnitPath {
        layer: String,
        /// The unit.
        path: String,
        /// The path that its name stands for.
        of: String,
    },
    #[error("{package}: its {script} would run {path}, which {owner} installed, in the name of {package}")]
    ForeignProgram {
        package: String,
        script: &'static str,
        path: String,
        /// The layer, and its bundle.
        owner: String,
    },
    #[error("{package}: its postinst waits for the first boot, where it may run {path}, which {owner} installed")]
    DeferredProgram {
        package: String,
        path: String,
        /// The layer, and its bundle.
        owner: String,
    },
    #[error("layer {layer}: {entry} in `remove` leads to {directory}, a system directory that the image needs")]
    SystemDirectory {
        layer: String,
        /// The entry of `remove`.
        entry: String,
        directory: &'static str,
    },
    #[error("{path}: layer {layer} contains it, and layer hygiene {verb} it")]
    Cleaned {
        /// The path, with symbolic links resolved.
        path: String,
        layer: String,
        verb: &'static str,
    },
    #[error("{path}: layer {layer} contains it, but {reason}")]
    Hidden { path: String, layer: String, reason: String },
    #[error("{path}: {writer} contains it, but the bake writes this file itself")]
    Generated {
        path: String,
        /// The layer, and the artifact if it is from one.
        writer: String,
    },
    #[error("{path}: {artifact} needs a {wanted}, found a {found}")]
    Occupied { path: String, artifact: String, found: &'static str, wanted: &'static str },
    #[error(
        "{artifact}: {path} belongs to the {what} {name:?}, whose id depends on the order in which accounts are created"
    )]
    MemberOwner { path: String, artifact: String, what: &'static str, name: String },
    #[error("{path}: `in_place` of layer {layer} expects a missing path or a file of root{wanted}, found a {found}")]
    InPlace {
        path: String,
        layer: String,
        found: String,
        /// What the file must be like.
        wanted: String,
    },
    #[error(
        "{path}: layer {layer} writes it before installing packages, but {artifact} contains a {found} there, which replaces or changes it"
    )]
    BeforePackages { path: String, layer: String, artifact: String, found: &'static str },
    #[error(
        "{path}: layer {layer} writes it before installing packages, but it is a conffile of {package}: dpkg would prompt"
    )]
    ConffilePrompt { path: String, layer: String, package: String },
    #[error("{package}: depends on {relation}, which neither the base nor a layer provides")]
    Depends { package: String, relation: String },
    #[error("{package}: depends on {relation}, but the base has version {found} of {other}")]
    DependsOther {
        package: String,
        relation: String,
        /// Name of the package of the base.
        other: String,
        found: String,
    },
    #[error("{path}: {package} contains it, but it is also in package {owner} ({version})")]
    Overwrites { path: String, package: String, owner: String, version: String },
    #[error(
        "{path}: is a conffile of {package}, but belongs to {owner} in the base: moving conffiles between packages is not supported"
    )]
    ConffileMoves { path: String, package: String, owner: String },
    #[error("{packages}: trigger cycle")]
    TriggerCycle { packages: String },
    #[error("{package}: its scripts need the {what} {name}, which no layer creates")]
    Needs {
        package: String,
        /// `user` or `group`.
        what: &'static str,
        name: String,
    },
    #[error("{package}: conflicts with {relation}, found {found}")]
    Conflicts {
        package: String,
        relation: String,
        found: String,
        /// The package of the base that would have to go.
        of_base: Option<String>,
    },
    #[error("{package}: layer {layer} removes it, but {by} depends on {relation}")]
    StillNeeded { package: String, layer: String, by: String, relation: String },
    #[error("layer {layer}: cannot index its kernel modules")]
    Modules { layer: String, source: Box<vmbake_kmod::KmodError> },
    #[error("{package}: layer {layer} removes it, but {fault}")]
    Removes { package: String, layer: String, fault: RemovalFault },
    #[error("{package}: depends on {relation}, satisfied only by the version being replaced")]
    Loses { package: String, relation: String },
    #[error(transparent)]
    Version(Box<OtherVersion>),
    #[error(
        "{package}: the base has version {found}, which is newer than the pinned {wanted}: packages are never downgraded"
    )]
    Downgrade { package: String, found: String, wanted: String },
    #[error("{package}: the base has version {version} for {found}, but the manifest pins the package for {wanted}")]
    Architecture { package: String, found: String, version: String, wanted: String },
    #[error("{package}: the base has version {found} on hold")]
    Hold { package: String, found: String },
    #[error("{package}: its {script} (sha256 {sha256}): {fault}")]
    Script {
        package: String,
        script: &'static str,
        sha256: String,
        occasion: Occasion,
        makes: Box<Makes>,
        fault: Box<ScriptFault>,
    },
    #[error("layer {layer}: debconf {question}")]
    Preset {
        layer: String,
        question: String,
        #[source]
        fault: Box<PresetFault>,
    },
    #[error("{path}: {fault}")]
    Content { path: String, fault: ContentFault },
    #[error("layer {layer}: `setuid` lists {path}, a symbolic link to {to}")]
    LinkPrivilege { layer: String, path: String, to: String },
    #[error("layer {layer}: unit {unit} {fault}")]
    Unit { layer: String, unit: String, fault: UnitFault },
    #[error("layer {layer}: {what} {name} is unknown")]
    UnknownAccount {
        layer: String,
        /// `user` or `group`.
        what: &'static str,
        name: String,
    },
    #[error("layer {layer}: {what} {name} with id {id} collides with {found}")]
    Account {
        layer: String,
        /// `user` or `group`.
        what: &'static str,
        name: String,
        id: u32,
        found: String,
    },
    #[error("the id {id} is pinned for the {what} {name}, but belongs to {found}")]
    PinnedId {
        /// `user` or `group`.
        what: &'static str,
        name: String,
        id: u32,
        found: String,
    },
    #[error("no free id for the {what} {name}")]
    NoFreeId {
        /// `user` or `group`.
        what: &'static str,
        name: String,
    },
    #[error("{arch}: unsupported architecture of programs: expected amd64 or arm64")]
    Arch { arch: String },
    #[error("{path} of {artifact}: invalid ELF file")]
    Program { path: String, artifact: String, source: ElfError },
    #[error("{path} of {artifact}: is for {found}, but the image is for {expected}")]
    Machine { path: String, artifact: String, found: String, expected: String },
    #[error("{path} of {artifact}: its interpreter {interpreter} is not in the image")]
    Interpreter { path: String, artifact: String, interpreter: String },
    #[error("{path} of {artifact}: needs {library}, which the loader of {program} does not find")]
    Library { path: String, artifact: String, library: String, program: String },
    #[error("{path}: {writer} would write through the symbolic link {link}, which {owner} installed")]
    Through { path: String, writer: String, link: String, owner: String },
    #[error("{path}: artifact {artifact} contains it with {privilege}, which layer {layer} does not list in `setuid`")]
    Privilege { path: String, artifact: String, layer: String, privilege: String },
    #[error("{path}: layer {layer} lists it in `setuid`, but it has neither a setuid or setgid bit nor capabilities")]
    NoPrivilege { layer: String, path: String },
    #[error(transparent)]
    TakenAway(Box<TakenAway>),
    #[error("{}", escape::each_line(.faults))]
    FirstBoot { faults: Vec<PlanFault> },
    #[error("layer {layer}: the image has no {what} {value}: {path} does not exist")]
    Setting { layer: String, what: &'static str, value: String, path: String },
    #[error("{path}, of layer {layer}: {what}")]
    Unread {
        path: String,
        layer: String,
        /// What would have to be made of it.
        what: String,
        hint: &'static str,
    },
    #[error("cannot write a file of the first boot into the image")]
    Baked { source: vmbake_firstboot::error::Error },
    #[error(transparent)]
    Message(#[from] Message),
}

/// Why a package cannot be removed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemovalFault {
    #[error("it is neither in the base nor installed by an earlier layer")]
    Missing,
    #[error("it has `{field}: yes`, which forbids that")]
    Unremovable { field: &'static str },
    #[error("the base has it on hold")]
    Held,
    #[error("layer {layer} installs it")]
    Installed { layer: String },
}

impl MergeError {
    pub(super) fn content(path: impl Into<String>, fault: impl Into<ContentFault>) -> Self {
        Self::Content { path: path.into(), fault: fault.into() }
    }
}

/// A package that the base has in an earlier version, which no layer says may be replaced.
#[derive(Debug, thiserror::Error)]
#[error("{package}: the base has version {found}, but the manifest pins {wanted}")]
pub struct OtherVersion {
    /// Name of the package.
    pub package: String,
    /// The base's version.
    pub found: String,
    /// The version of the manifest.
    pub wanted: String,
    /// The layer that installs it.
    pub layer: String,
    /// The artifact that is the package.
    pub artifact: String,
}

impl Hint for OtherVersion {}

/// A mode, capabilities or set-id bits of a layer that do not last.
#[derive(Debug, thiserror::Error)]
#[error(
    "{path}: layer {first} gives it {wanted} with `{key}`, but layer {second} changes it: expected {wanted}, found {found}"
)]
pub struct TakenAway {
    pub path: String,
    /// The key of the layer that gives it.
    pub key: &'static str,
    pub first: String,
    pub wanted: String,
    /// The layer that changes it.
    pub second: String,
    pub found: String,
}

impl Hint for TakenAway {}

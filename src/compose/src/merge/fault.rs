//! Errors in files of the base, of a package or of a layer, by subject.

use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

use crate::stage::ControlFault;
pub use vmbake_layer::{InstallFault, Location};

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum ContentFault {
    #[error("is not UTF-8")]
    NotUtf8,
    #[error(transparent)]
    Alternative(#[from] AlternativeFault),
    #[error(transparent)]
    Conffile(#[from] ConffileFault),
    #[error(transparent)]
    Listed(#[from] ListedFault),
    #[error(transparent)]
    Database(#[from] DatabaseFault),
    #[error(transparent)]
    Trigger(#[from] TriggerFault),
    #[error(transparent)]
    Library(#[from] LibraryFault),
    #[error(transparent)]
    Word(#[from] WordFault),
    #[error("is a {found}, but `{key}` only supports regular files")]
    NotEmptied { found: &'static str, key: &'static str },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ContentFault {
    vmbake_common::causes!(Alternative, Conffile, Listed, Database, Trigger, Library, Word, Message);
}

/// What is wrong with an alternative (update-alternatives(1)).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlternativeFault {
    #[error("is not a valid link group of update-alternatives")]
    Group,
    #[error("cannot add the choice: {message}")]
    Failed { message: String },
    #[error("the new choice {path} is not in the image")]
    NoChoice { path: String },
    #[error("does not exist: no package has installed this alternative")]
    NoGroup,
    #[error("has no choice {path}: expected one of: {}", choices.join(", "))]
    Unregistered { path: String, choices: Vec<String> },
    #[error("cannot create the link {link} for {name}, to {path}")]
    Name {
        /// Name of the alternative or of a slave.
        name: String,
        link: String,
        /// What the link would lead to.
        path: String,
    },
    #[error("the link is {found}, expected {wanted}")]
    Link { found: String, wanted: String },
    #[error("the link of the slave {name} is {found}, expected {wanted}")]
    SlaveLink { name: String, found: String, wanted: String },
    #[error("is a {found}, but the alternative {name} needs a link there")]
    Occupied { name: String, found: &'static str },
}

impl Hint for AlternativeFault {}

/// What is wrong with a conffile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConffileFault {
    #[error("is a hard link to a conffile, which upgrades do not support")]
    HardLink,
    #[error("is listed as a conffile of {package}, but missing from the package")]
    Missing { package: String },
    #[error("exists already, but is a conffile of {package}")]
    Exists { package: String },
    #[error("is a {found} in the base: expected a conffile to upgrade")]
    Kind { found: &'static str },
    #[error("is a conffile that {package} removes on upgrade: remove it from the base first")]
    Removed { package: String },
}

impl Hint for ConffileFault {}

/// What is wrong with a path that a package lists.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListedFault {
    #[error("is contained in {package}, but its name is not a single line of UTF-8")]
    Name { package: String },
    #[error("is the diversion of {from}, but also contained in {package}")]
    Diverted { from: String, package: String },
    #[error("is a hard link to {to}, which still belongs to another package")]
    HardLink { to: String },
}

impl Hint for ListedFault {}

/// What is wrong with a file of dpkg's database.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseFault {
    #[error("has a stanza without the field Package")]
    Stanza,
    #[error("control file: {0}")]
    Control(ControlFault),
    #[error("has {package} in the state {state}{}: complete its installation or purge it first", if *.removed { ", to be removed" } else { "" })]
    Unfinished {
        package: String,
        /// Its state, as in the field `Status`.
        state: String,
        /// Whether it is installed, and wanted to be removed.
        removed: bool,
    },
    #[error("layer {layer} holds {package}, which is not installed")]
    NotHeld { package: String, layer: String },
    #[error("expected three lines for each diversion")]
    Diversions,
    #[error("line {line:?} is invalid: expected a user, a group, a mode and a path")]
    Override { line: String },
    #[error("names the {what} {name:?}, which is not in {file}")]
    Account {
        /// `user` or `group`.
        what: &'static str,
        name: String,
        file: &'static str,
    },
    #[error("loses its last file {path}: dpkg would remove the package")]
    LastFile { path: String },
}

impl Hint for DatabaseFault {}

/// What is wrong with the triggers of a package (deb-triggers(5)).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerFault {
    #[error("line {line:?} has an unknown directive")]
    Directive { line: String },
    #[error("line {line:?} has no trigger name")]
    Name { line: String },
}

impl Hint for TriggerFault {}

/// What is wrong with the cache of the dynamic linker, or with what goes into it.
#[derive(Debug, thiserror::Error)]
pub enum LibraryFault {
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for LibraryFault {
    vmbake_common::causes!(Message);
}

/// What is wrong with a word that a bake replaces.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordFault {
    #[error("has an unclosed @{{")]
    Open,
    #[error("has the unknown placeholder @{{{word}}}")]
    Unknown { word: String },
    #[error("has the placeholder @{{codename}}, but the codename of {os} is not known")]
    Codename { os: String },
    #[error("needs exactly one image {name} in the manifest, found {found}")]
    Image { name: String, found: usize },
    #[error("the architecture {arch} has no multiarch directory")]
    Arch { arch: String },
}

impl Hint for WordFault {}

/// What is wrong with a unit that a layer or a package enables or disables.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitFault {
    #[error("has no [Install] section that would enable it")]
    NoInstall,
    #[error("cannot be enabled: {0}")]
    Install(InstallFault),
    #[error("is not a valid unit name")]
    Template,
    #[error("is of a unit type without templates")]
    NoTemplate,
    #[error("cannot be enabled: {path} is {found}")]
    Occupied { path: String, found: String },
    #[error("cannot be masked: {path} is {found}")]
    Unmaskable { path: String, found: String },
    #[error("is masked by {path}")]
    Masked { path: String },
    #[error("cannot be enabled: {path} is a link to {to}; name that unit")]
    Linked { path: String, to: String },
    #[error("is not in the image")]
    Missing,
    #[error("is removed, but layer {layer} has {path}, which needs it")]
    Removed { layer: String, path: String },
    #[error("{}is refused by systemd together with its drop-ins: {message}", place.as_ref().map(|place| format!("({place}) ")).unwrap_or_default())]
    Refused { place: Option<Location>, message: String },
    #[error("({place}) {message}")]
    Unmet { place: Location, message: String, hint: &'static str },
}

impl Hint for UnitFault {}

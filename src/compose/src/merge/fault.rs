//! What is wrong with a file of the base, of a package or of a layer: each subject has its kinds.

use vmbake_common::hint::Hint;
use vmbake_common::message::Message;

use crate::stage::ControlFault;
pub use vmbake_layer::InstallFault;

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
    #[error("is a {found}; `{key}` is for regular files")]
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
    #[error("is not a group of alternatives")]
    Group,
    #[error("cannot get the choice: {message}")]
    Failed { message: String },
    #[error("gets the choice {path}, which is not in the tree")]
    NoChoice { path: String },
    #[error("does not exist: no package has installed this alternative")]
    NoGroup,
    #[error("does not have the choice {path}, but {}", choices.join(", "))]
    Unregistered { path: String, choices: Vec<String> },
    #[error("cannot get the link {link} of the name {name} to {path}")]
    Name {
        /// Name of the alternative or of a slave.
        name: String,
        link: String,
        /// What the link would lead to.
        path: String,
    },
    #[error("has the link {found}, not {wanted}")]
    Link { found: String, wanted: String },
    #[error("has the link {found} for its slave {name}, not {wanted}")]
    SlaveLink { name: String, found: String, wanted: String },
    #[error("is a {found}, where the alternative {name} needs its link")]
    Occupied { name: String, found: &'static str },
}

impl Hint for AlternativeFault {}

/// What is wrong with a conffile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConffileFault {
    #[error("is a hard link of a conffile, which no upgrade takes over")]
    HardLink,
    #[error("is listed as a conffile of {package}, which does not bring it")]
    Missing { package: String },
    #[error("exists already, but is a conffile of {package}")]
    Exists { package: String },
    #[error("is a {found} in the base, in the place of a conffile that is upgraded")]
    Kind { found: &'static str },
    #[error("is a conffile that {package} removes on an upgrade; remove it from the base before")]
    Removed { package: String },
}

impl Hint for ConffileFault {}

/// What is wrong with a path that a package lists.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListedFault {
    #[error("is not a name in one line of UTF-8, but {package} contains it")]
    Name { package: String },
    #[error("is where {from} is diverted to, but {package} contains it, too")]
    Diverted { from: String, package: String },
    #[error("is a hard link to {to}, which stays with another package")]
    HardLink { to: String },
}

impl Hint for ListedFault {}

/// What is wrong with a file of dpkg's database.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseFault {
    #[error("has a stanza without a package")]
    Stanza,
    #[error("control file: {0}")]
    Control(ControlFault),
    #[error("has {package} as {state}{}: finish that or purge it before", if *.removed { ", to be removed" } else { "" })]
    Unfinished {
        package: String,
        /// Its state, as in the field `Status`.
        state: String,
        /// Whether it is installed, and wanted to be removed.
        removed: bool,
    },
    #[error("does not have {package} as installed, which layer {layer} holds")]
    NotHeld { package: String, layer: String },
    #[error("does not have three lines for each diversion")]
    Diversions,
    #[error("line {line:?} is not a user, a group, a mode and a path")]
    Override { line: String },
    #[error("names the {what} {name:?}, which {file} does not have")]
    Account {
        /// `user` or `group`.
        what: &'static str,
        name: String,
        file: &'static str,
    },
    #[error("would lose its last file {path}: dpkg would remove the package")]
    LastFile { path: String },
}

impl Hint for DatabaseFault {}

/// What is wrong with the triggers of a package (deb-triggers(5)).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerFault {
    #[error("line {line:?} has an unknown directive")]
    Directive { line: String },
    #[error("line {line:?} does not name a trigger")]
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
    #[error("has a @{{ without its }}")]
    Open,
    #[error("has the unknown word @{{{word}}}")]
    Unknown { word: String },
    #[error("needs exactly one image {name} in the manifest, which has {found}")]
    Image { name: String, found: usize },
    #[error("the architecture {arch} has no known name in paths")]
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
    #[error("is not the name of a unit")]
    Template,
    #[error("is of a kind that has no templates")]
    NoTemplate,
    #[error("cannot be enabled: {path} is {found}")]
    Occupied { path: String, found: String },
    #[error("cannot be masked: {path} is {found}")]
    Unmaskable { path: String, found: String },
    #[error("is masked by {path}")]
    Masked { path: String },
    #[error("cannot be enabled: {path} is a link to {to}; name that unit")]
    Linked { path: String, to: String },
    #[error("is not in the tree")]
    Missing,
}

impl Hint for UnitFault {}

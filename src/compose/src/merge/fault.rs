//! What is wrong with a file of the base, of a package or of a layer: each subject has its kinds.

use vmbake_disk::tree::TreeError;

use crate::stage::ControlFault;
pub use vmbake_layer::InstallFault;

/// What is wrong with a file.
#[derive(Debug, thiserror::Error)]
pub enum ContentFault {
    /// A text that is read to be changed has other bytes.
    #[error("is not UTF-8")]
    NotUtf8,
    /// A group of alternatives, or the link of one.
    #[error(transparent)]
    Alternative(#[from] AlternativeFault),
    /// A conffile of a package.
    #[error(transparent)]
    Conffile(#[from] ConffileFault),
    /// Another path that a package lists.
    #[error(transparent)]
    Listed(#[from] ListedFault),
    /// A file of dpkg's database.
    #[error(transparent)]
    Database(#[from] DatabaseFault),
    /// The triggers of a package.
    #[error(transparent)]
    Trigger(#[from] TriggerFault),
    /// The cache of the dynamic linker, or what goes into it.
    #[error(transparent)]
    Library(#[from] LibraryFault),
    /// A layer's file with words that a bake replaces.
    #[error(transparent)]
    Word(#[from] WordFault),
    /// A file of sysusers.d(5) or tmpfiles.d(5) that a script uses is nowhere.
    #[error("is used by a script, but no package brings it")]
    NoConfig,
    /// A line of sysusers.d(5) means something that is not known.
    #[error("line {line:?} is not understood")]
    Line { line: String },
    /// A program that reads the file is missing.
    #[error("is read by {program}, which the image does not have")]
    NoReader { program: &'static str },
    /// Only regular files have capabilities.
    #[error("is a {found}; only a regular file has capabilities")]
    NoFile { found: &'static str },
    /// Only regular files are made empty.
    #[error("is a {found}; `{key}` is for regular files")]
    NotEmptied { found: &'static str, key: &'static str },
}

/// What is wrong with an alternative (update-alternatives(1)).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum AlternativeFault {
    /// The file of choices is damaged.
    #[error("is not a group of alternatives")]
    Group,
    /// What update-alternatives says when it fails.
    #[error("cannot get the choice: {message}")]
    Failed { message: String },
    /// The new choice is no file of the tree.
    #[error("gets the choice {path}, which is not in the tree")]
    NoChoice { path: String },
    /// No package has installed the alternative.
    #[error("does not exist: no package has installed this alternative")]
    NoGroup,
    /// The choice of a layer is not one of the group's.
    #[error("does not have the choice {path}, but {}", choices.join(", "))]
    Unregistered { path: String, choices: Vec<String> },
    /// A name that is no file name, or a path that is not absolute.
    #[error("cannot get the link {link} of the name {name} to {path}")]
    Name {
        /// Name of the alternative or of a slave.
        name: String,
        link: String,
        /// What the link would lead to.
        path: String,
    },
    /// The group has its link elsewhere.
    #[error("has the link {found}, not {wanted}")]
    Link { found: String, wanted: String },
    /// The group has the link of a slave elsewhere.
    #[error("has the link {found} for its slave {name}, not {wanted}")]
    SlaveLink { name: String, found: String, wanted: String },
    /// Something that is no symbolic link stands where the link goes.
    #[error("is a {found}, where the alternative {name} needs its link")]
    Occupied { name: String, found: &'static str },
}

/// What is wrong with a conffile.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConffileFault {
    /// It shares its inode with another file of the package.
    #[error("is a hard link of a conffile, which no upgrade takes over")]
    HardLink,
    /// The package has no regular file there.
    #[error("is listed as a conffile of {package}, which does not bring it")]
    Missing { package: String },
    /// The base has a file there, and no older version of the package.
    #[error("exists already, but is a conffile of {package}")]
    Exists { package: String },
    /// The base has no regular file there.
    #[error("is a {found} in the base, in the place of a conffile that is upgraded")]
    Kind { found: &'static str },
    /// The new version of the package removes it.
    #[error("is a conffile that {package} removes on an upgrade; remove it from the base before")]
    Removed { package: String },
}

/// What is wrong with a path that a package lists.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum ListedFault {
    /// dpkg's list of files could not hold it.
    #[error("is no name in one line of UTF-8, but {package} brings it")]
    Name { package: String },
    /// A diversion moves another file here.
    #[error("is where {from} is diverted to, but {package} brings it too")]
    Diverted { from: String, package: String },
    /// The first name of the file is not placed.
    #[error("is a hard link to {to}, which stays with another package")]
    HardLink { to: String },
}

/// What is wrong with a file of dpkg's database.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatabaseFault {
    /// A stanza of the status file does not say of which package it is.
    #[error("has a stanza without a package")]
    Stanza,
    /// A stanza of the status file cannot be read.
    #[error("control file: {0}")]
    Control(ControlFault),
    /// A package is neither installed nor gone: dpkg would not take it for a new one.
    #[error("has {package} as {state}{}: finish that or purge it before", if *.removed { ", to be removed" } else { "" })]
    Unfinished {
        package: String,
        /// Its state, as in the field `Status`.
        state: String,
        /// Whether it is installed, and wanted to be removed.
        removed: bool,
    },
    /// A layer holds a package that is not installed.
    #[error("does not have {package} as installed, which layer {layer} holds")]
    NotHeld { package: String, layer: String },
    /// The list of diversions ends early.
    #[error("does not have three lines for each diversion")]
    Diversions,
    /// A line of the overrides of owners and modes is damaged.
    #[error("line {line:?} is not a user, a group, a mode and a path")]
    Override { line: String },
    /// An override names an account that the base does not have.
    #[error("names the {what} {name:?}, which {file} does not have")]
    Account {
        /// `user` or `group`.
        what: &'static str,
        name: String,
        file: &'static str,
    },
    /// A package would lose its last file to others.
    #[error("would lose its last file {path}: dpkg would remove the package")]
    LastFile { path: String },
}

/// What is wrong with the triggers of a package (deb-triggers(5)).
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum TriggerFault {
    /// A line begins with no directive.
    #[error("line {line:?} has an unknown directive")]
    Directive { line: String },
    /// What follows the directive is no name of a trigger.
    #[error("line {line:?} does not name a trigger")]
    Name { line: String },
}

/// What is wrong with the cache of the dynamic linker, or with what goes into it.
#[derive(Debug, thiserror::Error)]
pub enum LibraryFault {
    /// The cache of the base has another form.
    #[error("is not a cache that glibc 2.33 or a later one wrote")]
    Cache,
    /// The new cache would not fit into its own form.
    #[error("would be larger than 4 GiB")]
    CacheLen,
    /// A library with such a name cannot be linked to.
    #[error("is the name of a library, but not UTF-8")]
    Name,
    /// The list of directories, or a file that it includes, cannot be read.
    #[error("is no configuration of libraries: {error}")]
    Unread {
        /// Why the tree does not have it.
        error: TreeError,
    },
    /// Files include each other, or there are too many.
    #[error("is included by too many files")]
    Included,
    /// A pattern of files to include has what is not understood.
    #[error("includes {pattern:?}: of patterns only * and ? are known")]
    Pattern { pattern: String },
    /// A pattern of files to include fits to more than are read.
    #[error("includes {pattern:?}: fits too many paths")]
    TooMany { pattern: String },
}

/// What is wrong with a word that a bake replaces.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum WordFault {
    /// A word does not end.
    #[error("has a @{{ without its }}")]
    Open,
    /// There is no such word.
    #[error("has @{{{word}}}, which means nothing")]
    Unknown { word: String },
    /// None or several images of the manifest have the name.
    #[error("needs exactly one image {name} in the manifest, which has {found}")]
    Image { name: String, found: usize },
    /// Paths have no name for the architecture.
    #[error("the architecture {arch} has no known name in paths")]
    Arch { arch: String },
}

/// What is wrong with a unit that a layer or a package enables or disables.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnitFault {
    /// Nothing says where its links would be.
    #[error("has no [Install] section that would enable it")]
    NoInstall,
    /// A file of it has an `[Install]` section that systemctl refuses.
    #[error("cannot be enabled: {0}")]
    Install(InstallFault),
    /// It is not a name.
    #[error("is not the name of a unit")]
    Template,
    /// Units of its kind are known by their names.
    #[error("is of a kind that has no templates")]
    NoTemplate,
    /// Something that enabling does not replace is in the place of a link or of the unit.
    #[error("cannot be enabled: {path} is {found}")]
    Occupied { path: String, found: String },
    /// A file or another link is in the place of the link to `/dev/null`.
    #[error("cannot be masked: {path} is {found}")]
    Unmaskable { path: String, found: String },
    /// A link to `/dev/null`, or an empty file.
    #[error("is masked by {path}")]
    Masked { path: String },
    /// It is another name of a unit.
    #[error("cannot be enabled: {path} is a link to {to}; name that unit")]
    Linked { path: String, to: String },
    /// No directory of units has it.
    #[error("is not in the tree")]
    Missing,
}

//! The types of objects in `layer.json`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use vmbake_firstboot::plan::{Ownership, octal};

use crate::{Text, validate};

/// How an artifact is installed.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Install {
    /// Installs a Debian package, as dpkg would.
    Deb,
    /// Installs the artifact as a single file.
    File {
        /// Absolute path in the image.
        path: String,
        /// Permissions, four octal digits.
        #[serde(deserialize_with = "octal")]
        #[schemars(with = "String", regex(pattern = "^[0-7]{4}$"))]
        mode: u16,
        /// Whether to decompress the artifact first.
        #[serde(default)]
        decompress: bool,
    },
    /// Extracts files, directories and links of a tar archive.
    Tar {
        /// Absolute path of the target directory.
        path: String,
        /// Number of leading components to strip from member names. Members without further components are not extracted.
        #[serde(default)]
        strip: usize,
        /// Members to extract; all if empty. A directory includes everything below it.
        #[serde(default)]
        members: Vec<String>,
        /// Paths in the image that the archive must not contain, because the layer has other files there.
        #[serde(default)]
        absent: Vec<String>,
        /// Extracts as GNU tar does when root runs it with this option: existing directories also get the mode in the archive.
        #[serde(default)]
        extract: Option<ExtractOption>,
    },
    /// Extracts files, directories and links of a zip file.
    Zip {
        /// Absolute path of the target directory.
        path: String,
        /// Number of leading components to strip from member names. Members without further components are not extracted.
        #[serde(default)]
        strip: usize,
        /// Members to extract; all if empty. A directory includes everything below it.
        #[serde(default)]
        members: Vec<String>,
    },
}

/// Required state of a file that a script wrote in place.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InPlace {
    /// Required mode of an existing file, four octal digits; any if absent, which means that the script set the mode.
    #[serde(default, deserialize_with = "some_octal")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-7]{4}$"))]
    pub mode: Option<u16>,
}

/// Ownership option of GNU tar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtractOption {
    /// Members keep their owners from the archive.
    SameOwner,
    /// New members are owned by root.
    NoSameOwner,
}

/// A reviewed maintainer script, which is replaced by the listed effects. It is identified by its digest, so that a changed script in a later
/// version is interpreted again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditedScript {
    /// Name of the package.
    pub package: String,
    /// Name of the script: `preinst` or `postinst`; with `upgrade` also `prerm` or `postrm` of the replaced version, with `remove` of the
    /// removed package.
    pub script: String,
    /// SHA-256 of the script, in hexadecimal.
    pub sha256: String,
    /// Whether the entry also applies to an upgrade of the package.
    #[serde(default)]
    pub upgrade: bool,
    /// Whether the entry applies to the removal of the package, in place of all calls of its `prerm` or `postrm`.
    #[serde(default)]
    pub remove: bool,
    /// Runs the script on the first boot: the bake installs the package without configuring it. Only for a `postinst`.
    #[serde(default)]
    pub defer: bool,
    /// Skips the script, for this reason.
    #[serde(default)]
    pub skip: Option<String>,
    /// Triggers: the entry replaces what the `postinst` of a package of the base does for them.
    #[serde(default)]
    pub triggers: Vec<String>,
    /// Users that the script needs; a layer must create them.
    #[serde(default)]
    pub users: Vec<String>,
    /// Groups that the script needs; a layer must create them.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Directories that the script creates or changes, by absolute path.
    #[serde(default)]
    pub directories: BTreeMap<String, Ownership>,
    /// Files of the package whose mode or owner the script sets, by absolute path.
    #[serde(default)]
    pub files: BTreeMap<String, Ownership>,
    /// Targets of symbolic links that the script creates, by absolute path.
    #[serde(default)]
    pub symlinks: BTreeMap<String, String>,
    /// Alternatives that the script installs.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    /// Effects of the script on units.
    #[serde(default)]
    pub units: ScriptUnits,
}

/// Effects of a maintainer script on units.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptUnits {
    /// Units that the script enables.
    #[serde(default)]
    pub enable: Vec<String>,
}

/// An alternative, with the arguments of `update-alternatives --install`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// Generic path, such as `/usr/bin/editor`.
    pub link: String,
    /// Name of the group.
    pub name: String,
    /// Path of the program or file to select.
    pub path: String,
    /// Priority; the highest one in the group is selected.
    pub priority: i32,
    /// Generic path and target of slave links, by name.
    #[serde(default)]
    pub slaves: BTreeMap<String, (String, String)>,
}

/// A user with a fixed id. An id below `UID_MIN` of `/etc/login.defs` creates a system user.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Id of the user and of the group with the same name.
    pub id: u32,
    /// Home directory, created with the user; `/home/<name>` by default.
    #[serde(default)]
    pub home: Option<String>,
    /// Login shell.
    #[serde(default = "nologin")]
    pub shell: String,
    /// Secondary groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Secondary groups to join if they exist.
    #[serde(default)]
    pub optional_groups: Vec<String>,
    /// Subordinate user and group ids, as in subuid(5) and subgid(5).
    #[serde(default)]
    pub subordinate: Option<Subordinate>,
    /// Hash of the password (crypt(5)): `$y$…`, `$6$…` or `$5$…`. Without it, the user cannot log in with a password.
    #[serde(default)]
    pub password_hash: Option<String>,
    /// Public SSH keys of the user, written to `.ssh/authorized_keys` in the home directory.
    #[serde(default)]
    pub ssh_authorized_keys: Vec<String>,
}

impl Account {
    /// The home directory, if the user has this name.
    pub fn home_of(&self, name: &str) -> String {
        self.home.clone().unwrap_or_else(|| format!("/home/{name}"))
    }
}

/// A range of subordinate ids.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Subordinate {
    /// The first id.
    pub start: u32,
    /// Number of ids.
    pub count: u32,
}

/// Changes to systemd units.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// Units to enable, as with `systemctl enable`; also instances, and templates with a default instance.
    #[serde(default)]
    pub enable: Vec<String>,
    /// Units to disable: all links to them below `/etc/systemd/system` are removed.
    #[serde(default)]
    pub disable: Vec<String>,
    /// Units to mask, with a link to `/dev/null`.
    #[serde(default)]
    pub mask: Vec<String>,
    /// Text of additional units, by name, written to `/etc/systemd/system`.
    #[serde(default)]
    pub files: BTreeMap<String, Text>,
}

/// Mode and owner of a directory.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryRule {
    /// Permissions, four octal digits. Without them, an existing directory keeps its mode, owner and group, and a new one gets 0755.
    #[serde(default, deserialize_with = "some_octal")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-7]{4}$"))]
    pub mode: Option<u16>,
    /// Name of the owner; `root` by default. Requires `mode`.
    #[serde(default)]
    pub owner: Option<String>,
    /// Name of the group; `root` by default. Requires `mode`.
    #[serde(default)]
    pub group: Option<String>,
}

impl DirectoryRule {
    /// Mode and owner of a new directory.
    pub fn ownership(&self) -> Ownership {
        let name = |name: &Option<String>| name.clone().unwrap_or_else(root);
        Ownership { mode: self.mode.unwrap_or(0o755), owner: name(&self.owner), group: name(&self.group) }
    }
}

/// A file of the layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FileRule {
    /// Permissions, four octal digits. The default is 0644, or 0755 below a `bin` or `sbin` directory and for files that their owner may execute.
    #[serde(default, deserialize_with = "some_octal")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-7]{4}$"))]
    pub mode: Option<u16>,
    /// Name of the owner.
    #[serde(default = "root")]
    pub owner: String,
    /// Name of the group.
    #[serde(default = "root")]
    pub group: String,
    /// Content of the file, unless it is below `files/`.
    #[serde(default)]
    pub content: Option<Text>,
}

impl FileRule {
    /// A file of root with a mode and the other defaults.
    pub(crate) fn with_mode(mode: u16) -> Self {
        Self { mode: Some(mode), owner: root(), group: root(), content: None }
    }

    /// Mode and owner of the file at `path`.
    pub fn ownership(&self, path: &str) -> Ownership {
        let Self { mode, owner, group, .. } = self;
        let mode = mode.unwrap_or_else(|| validate::default_mode(path));
        Ownership { mode, owner: owner.clone(), group: group.clone() }
    }
}

fn some_octal<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<u16>, D::Error> {
    octal(deserializer).map(Some)
}

fn root() -> String {
    "root".to_owned()
}

fn nologin() -> String {
    "/usr/sbin/nologin".to_owned()
}

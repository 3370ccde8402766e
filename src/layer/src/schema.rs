//! The format of `layer.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use vmbake_firstboot::plan::{Ownership, Plan, octal};

use super::{Container, Download, Keyboard, LocalArtifact, Requirement, Scalar, Swap, Text, Words, child, validate};
use vmbake_common::digest::Digest;
use vmbake_manifest::package_request::{Choice, PackagePattern, PackageRequest, System};

/// One layer: its description and its files.
#[derive(Clone, Debug)]
pub struct Layer {
    /// The content of `layer.json`.
    pub schema: Schema,
    /// The files below `files/`, by absolute path in the image.
    pub files: BTreeMap<String, LayerFile>,
    /// The files below `local/`, by their paths in the layer's directory.
    pub local: BTreeMap<String, LocalFile>,
    /// Digest of `layer.json` and of all files, see [`Layers::load`](super::Layers::load).
    pub digest: Digest,
}

impl Layer {
    /// Paths on the host and digests of its files that are installed as artifacts.
    pub fn local_files(&self) -> impl Iterator<Item = (PathBuf, Digest)> {
        self.local.values().map(|file| (file.path.clone(), file.digest))
    }
}

/// A file below `files/`.
#[derive(Clone, Debug)]
pub struct LayerFile {
    /// Content.
    pub content: Vec<u8>,
    /// Whether its owner may execute it on the host.
    pub is_executable: bool,
}

/// A file of the layer's directory that is installed as an artifact.
#[derive(Clone, Debug)]
pub struct LocalFile {
    /// Path on the host.
    pub path: PathBuf,
    /// Digest at the time when the layer was read.
    pub digest: Digest,
}

/// The content of `layer.json`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "layer.json")]
pub struct Schema {
    /// Name; must be the name of the layer's directory.
    pub name: String,
    /// Version. A released layer needs a new one with each change.
    pub version: String,
    /// Purpose of the layer, in one sentence.
    pub description: String,
    /// Supported operating systems, such as `debian-13`.
    pub os: BTreeSet<String>,
    /// Digest of the base image, by architecture. The layer cannot be installed in any other base image.
    #[serde(default)]
    pub bases: BTreeMap<String, Digest>,
    /// Layers that are applied before this one: `name`, or `name@version` for exactly that version.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Bundles to add to images of this kind: `registry.example/acme/agent:1.0`, without a tag for the locked version, or paths of packed bundles.
    #[serde(default)]
    pub bundles: Vec<String>,
    /// Artifacts to install, by their names in the manifest.
    #[serde(default)]
    pub artifacts: BTreeMap<String, Install>,
    /// Files and archives to download from addresses that are not in `sources.json`, by their future names in the manifest.
    #[serde(default)]
    pub downloads: BTreeMap<String, Download>,
    /// Packages, archives and other files of the layer's directory, by their future names in the manifest.
    #[serde(default)]
    pub local_files: BTreeMap<String, LocalArtifact>,
    /// Container images, such as `docker.io/library/redis:7`, to add to the directory that a layer of the kind names in `images`.
    #[serde(default)]
    pub container_images: Vec<String>,
    /// Debian packages to install with their dependencies: `name`, or `name=VERSION`, in which `*` matches any characters.
    #[serde(default)]
    pub packages: Vec<PackagePattern>,
    /// Whether to install recommended packages: `true` for those of all packages, or a list of packages.
    #[serde(default)]
    pub recommends: Choice,
    /// Debian system, made of packages, that the kind has in place of a base image. Such a kind has no boot loader: its formats are archives
    /// and container images.
    #[serde(default)]
    pub system: Option<System>,
    /// Additional archive for packages, by its name in `sources.json`.
    #[serde(default)]
    pub archive: Option<String>,
    /// Packages to put on hold in the image, as by `apt-mark hold`. Packages of the base also keep their version, even if others need a newer one.
    #[serde(default)]
    pub hold: Vec<String>,
    /// Packages to leave out: `vmbake update` selects another alternative, or stops.
    #[serde(default)]
    pub without: Vec<String>,
    /// Packages of the base that a newer version may replace, or `true` for all. Applies to artifacts of type `deb` and to Debian packages.
    #[serde(default)]
    pub upgrade: Choice,
    /// Packages of the base, or of layers that are applied before this one, to remove with their configuration, as by `apt-get purge`. Packages that
    /// depend on them are never removed with them: list them too.
    #[serde(default)]
    pub remove_packages: Vec<String>,
    /// Maintainer scripts to replace, and their effects.
    #[serde(default)]
    pub scripts: Vec<AuditedScript>,
    /// Answers to debconf questions of the layer's packages, by question.
    #[serde(default)]
    pub debconf: BTreeMap<String, String>,
    /// Group ids, by group name.
    #[serde(default)]
    pub groups: BTreeMap<String, u32>,
    /// Users by name; each has a group with the same name and id.
    #[serde(default)]
    pub users: BTreeMap<String, Account>,
    /// Directories by absolute path.
    #[serde(default)]
    pub directories: BTreeMap<String, DirectoryRule>,
    /// Files below `files/` with another mode or owner than the default, and files with inline content, by absolute path.
    #[serde(default)]
    pub files: BTreeMap<String, FileRule>,
    /// Files below `files/` in which `@{kind}`, `@{version}`, `@{os}`, `@{codename}`, `@{arch}` and `@{image:NAME}` are replaced.
    #[serde(default)]
    pub expand: Vec<String>,
    /// File capabilities in the format of setcap(8), such as `cap_net_bind_service+ep`, by absolute path.
    #[serde(default)]
    pub capabilities: BTreeMap<String, String>,
    /// Selected alternatives, by group name. The selection is kept when other packages are installed later.
    #[serde(default)]
    pub alternatives: BTreeMap<String, String>,
    /// Rules for sudo, by their file names in `/etc/sudoers.d`.
    #[serde(default)]
    pub sudoers: BTreeMap<String, Text>,
    /// Mode and owner of files of artifacts and of the base, by absolute path. Links are followed; `{multiarch}` is replaced by Debian's name of the
    /// architecture in paths, such as `x86_64-linux-gnu`.
    #[serde(default)]
    pub modes: BTreeMap<String, Ownership>,
    /// Files of the layer that replace what a script wrote in place, by absolute path. If the image already has the path, it must be a regular
    /// file of root, because such a script keeps mode and owner.
    #[serde(default)]
    pub in_place: BTreeMap<String, InPlace>,
    /// Files, links and directories that a script created before it installed the packages of the layer. dpkg keeps existing directories, stops at
    /// configuration files unless `keep_conffiles` lists their package, and replaces anything else: a package with anything but a directory there
    /// stops the bake.
    #[serde(default)]
    pub before_packages: Vec<String>,
    /// Packages that a script installed with `--force-confold` or `--force-confdef`: dpkg keeps their configuration files that are in
    /// `before_packages`.
    #[serde(default)]
    pub keep_conffiles: Vec<String>,
    /// Absolute paths of all files with set-uid, set-gid or sticky bits, or file capabilities. No other file may have them, except files of
    /// `packages`.
    #[serde(default)]
    pub setuid: Vec<String>,
    /// Directory for the container images of the manifest, as an OCI image layout.
    #[serde(default)]
    pub images: Option<String>,
    /// Targets of symbolic links, by absolute path.
    #[serde(default)]
    pub symlinks: BTreeMap<String, String>,
    /// systemd units to enable, disable, mask or add.
    #[serde(default)]
    pub units: Units,
    /// Paths to remove, with everything below them. `*` in the last component matches any bytes; `**` as the last component matches all regular
    /// files below, at any depth, and keeps their directories.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Files to empty, or to create empty.
    #[serde(default)]
    pub empty: Vec<String>,
    /// Kernel parameters to set on every boot (sysctl(8)), by name. All layers of an image must have the same value for one parameter.
    #[serde(default)]
    pub sysctl: BTreeMap<String, Scalar>,
    /// Kernel modules to load on every boot.
    #[serde(default)]
    pub modules_load: Vec<String>,
    /// Host name of every machine. Without it, the cloud names the machine.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Time zone, such as `Europe/Berlin`.
    #[serde(default)]
    pub timezone: Option<String>,
    /// Kernel arguments to append to every entry of the boot menu. All layers of an image must have the same values for one argument.
    #[serde(default)]
    pub kernel_arguments: Vec<String>,
    /// Default locale, such as `C.UTF-8`, or a list of locales, of which the first is the default. The image must contain all of them.
    #[serde(default)]
    pub locale: Option<Words>,
    /// Keyboard layout of the console.
    #[serde(default)]
    pub keyboard: Option<Keyboard>,
    /// Public SSH keys for the default user, which cloud-init creates on the first boot. Two layers must not have different lists.
    #[serde(default)]
    pub ssh_authorized_keys: Vec<String>,
    /// Text to show after a login.
    #[serde(default)]
    pub motd: Option<Text>,
    /// Files to empty if they exist. They keep owner and mode, and `remove` of the same layer does not remove them.
    #[serde(default)]
    pub truncate: Vec<String>,
    /// Files, directories and links of the layer that the layer `hygiene` must not remove.
    #[serde(default)]
    pub keep: Vec<String>,
    /// Swap file of every machine.
    #[serde(default)]
    pub swap: Option<Swap>,
    /// Values to set in `/etc/os-release`, by key; `{kind}` and `{version}` are replaced.
    #[serde(default)]
    pub os_release: BTreeMap<String, String>,
    /// Settings of the container image that `--format oci` writes.
    #[serde(default)]
    pub container: Option<Container>,
    /// Configuration that depends on the machine, applied on each boot.
    #[serde(default)]
    pub first_boot: Option<Plan>,
}

impl Schema {
    /// Modes of files that the first boot sets: JSON pointer in `layer.json`, path and mode.
    pub fn first_boot_modes(&self) -> impl Iterator<Item = (String, &String, u16)> {
        self.first_boot.iter().flat_map(|plan| {
            let named = [("modes", &plan.modes), ("optional_modes", &plan.optional_modes)];
            let modes = named.into_iter().flat_map(|(key, modes)| {
                let place = move |path: &String| child(&format!("/first_boot/{key}"), path) + "/mode";
                modes.iter().map(move |(path, owner)| (place(path), path, owner.mode))
            });
            let files = plan.files.iter().enumerate();
            modes.chain(files.map(|(index, file)| (format!("/first_boot/files/{index}/mode"), &file.path, file.mode)))
        })
    }

    /// Names of users and groups that the layer creates, in the image or on the first boot.
    pub fn accounts(&self) -> impl Iterator<Item = &str> {
        let scripts = self.scripts.iter().flat_map(|script| script.users.iter().chain(&script.groups));
        let plans = self.first_boot.iter().flat_map(|plan| plan.users.keys().chain(plan.accounts.keys()));
        self.users.keys().chain(self.groups.keys()).chain(scripts).chain(plans).map(String::as_str)
    }

    /// Names of users that the layer creates, in the image or on the first boot.
    pub fn user_names(&self) -> impl Iterator<Item = &str> {
        let scripts = self.scripts.iter().flat_map(|script| &script.users);
        let plans = self.first_boot.iter().flat_map(|plan| plan.users.keys().chain(plan.accounts.keys()));
        self.users.keys().chain(scripts).chain(plans).map(String::as_str)
    }

    /// The request for Debian packages.
    pub fn request(&self) -> PackageRequest {
        let upgrade = match &self.upgrade {
            Choice::Some(names) => {
                let mut names = names.clone();
                names.retain(|name| self.install(name).is_none());
                if names.is_empty() { Choice::default() } else { Choice::Some(names) }
            }
            all => all.clone(),
        };
        let (packages, recommends, archive) = (self.packages.clone(), self.recommends.clone(), self.archive.clone());
        PackageRequest {
            system: self.system.clone(),
            packages,
            recommends,
            archive,
            hold: self.hold.clone(),
            without: self.without.clone(),
            upgrade,
            remove_packages: self.remove_packages.clone(),
        }
    }
}

impl Schema {
    /// Home directories that the layer sets explicitly.
    pub fn homes(&self) -> impl Iterator<Item = &String> {
        self.users.values().filter_map(|user| user.home.as_ref())
    }
}

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
    pub(super) fn with_mode(mode: u16) -> Self {
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

//! The format of `layer.json`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use vmbake_firstboot::plan::{Ownership, Plan, octal};

use super::{Download, Keyboard, LocalArtifact, Requirement, Scalar, Swap, Text, Words, child, validate};
use vmbake_common::digest::Digest;
use vmbake_manifest::package_request::{Choice, PackagePattern, PackageRequest};

/// One layer: its description and its files.
#[derive(Clone, Debug)]
pub struct Layer {
    /// What `layer.json` says.
    pub schema: Schema,
    /// The files below `files/`, by absolute path in the image.
    pub files: BTreeMap<String, LayerFile>,
    /// The files below `local/`, by their paths in the layer's directory.
    pub local: BTreeMap<String, LocalFile>,
    /// Digest of `layer.json` and of all files, see [`Layers::load`](super::Layers::load).
    pub digest: Digest,
}

impl Layer {
    /// Its files that are installed as artifacts: where they are, and their digests.
    pub fn local_files(&self) -> impl Iterator<Item = (PathBuf, Digest)> {
        self.local.values().map(|file| (file.path.clone(), file.digest))
    }
}

/// A file that a layer brings itself.
#[derive(Clone, Debug)]
pub struct LayerFile {
    /// Its bytes.
    pub content: Vec<u8>,
    /// Whether its owner may run it where it was read from.
    pub is_executable: bool,
}

/// A file of the layer's directory that is installed as an artifact.
#[derive(Clone, Debug)]
pub struct LocalFile {
    /// Where it is.
    pub path: PathBuf,
    /// Its digest, when the layer was read.
    pub digest: Digest,
}

/// The content of `layer.json`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "layer.json")]
pub struct Schema {
    /// Name, equal to the layer's folder.
    pub name: String,
    /// Version; changes whenever the layer does.
    pub version: String,
    /// What it is for, in one sentence.
    pub description: String,
    /// Operating systems it supports, such as `debian-13`.
    pub os: BTreeSet<String>,
    /// Digests of the base images that it is made for, by architecture: it cannot be installed in another one.
    #[serde(default)]
    pub bases: BTreeMap<String, Digest>,
    /// Layers that must come before it: `name`, or `name@version` for exactly that version.
    #[serde(default)]
    pub requires: Vec<Requirement>,
    /// Bundles that an image of this kind gets: `registry.example/acme/agent:1.0`, the same without a tag for the version that is locked, or paths of
    /// what was packed.
    #[serde(default)]
    pub bundles: Vec<String>,
    /// How artifacts of the manifest are installed, by their names there.
    #[serde(default)]
    pub artifacts: BTreeMap<String, Install>,
    /// Files and archives from addresses that the layer states itself, by the names that they get in the manifest.
    #[serde(default)]
    pub downloads: BTreeMap<String, Download>,
    /// Packages, archives and other files of the layer's own directory, by the names that they get in the manifest.
    #[serde(default)]
    pub local_files: BTreeMap<String, LocalArtifact>,
    /// Container images, such as `docker.io/library/redis:7`: they go where `images` of any layer of the kind says.
    #[serde(default)]
    pub container_images: Vec<String>,
    /// Packages of the archives of the operating system, `name` or `name=VERSION` with `*` for any characters: what they depend
    /// on comes with them.
    #[serde(default)]
    pub packages: Vec<PackagePattern>,
    /// Whether what packages recommend comes as well: of all, or of those of a list.
    #[serde(default)]
    pub recommends: Choice,
    /// An archive of the sources that packages may come from as well.
    #[serde(default)]
    pub archive: Option<String>,
    /// Packages that dpkg holds in the image, as `apt-mark hold` does. Those of the base keep their version, whatever others need.
    #[serde(default)]
    pub hold: Vec<String>,
    /// Packages that do not come, whatever others need or recommend.
    #[serde(default)]
    pub without: Vec<String>,
    /// Packages of the base that a newer version may take the place of: artifacts of the type `deb`, and packages of an archive. Of
    /// all packages of the base with `true`.
    #[serde(default)]
    pub upgrade: Choice,
    /// Maintainer scripts that do not run, and what is done in their place.
    #[serde(default)]
    pub scripts: Vec<AuditedScript>,
    /// Answers to the questions that the layer's packages ask through debconf, by the questions' names.
    #[serde(default)]
    pub debconf: BTreeMap<String, String>,
    /// Groups by name, with their ids.
    #[serde(default)]
    pub groups: BTreeMap<String, u32>,
    /// Users by name; each has a group with the same name and id.
    #[serde(default)]
    pub users: BTreeMap<String, Account>,
    /// Directories by absolute path.
    #[serde(default)]
    pub directories: BTreeMap<String, DirectoryRule>,
    /// Files of the layer whose mode or owner is not the default, or whose content stands here.
    #[serde(default)]
    pub files: BTreeMap<String, FileRule>,
    /// Files below `files/` in which `@{kind}`, `@{version}`, `@{os}`, `@{arch}` and `@{image:NAME}` are replaced.
    #[serde(default)]
    pub expand: Vec<String>,
    /// Capabilities of files, as setcap(8) takes them, by absolute path: `cap_net_bind_service+ep`.
    #[serde(default)]
    pub capabilities: BTreeMap<String, String>,
    /// Alternatives that lead to this choice whatever is installed later, by the names of their groups.
    #[serde(default)]
    pub alternatives: BTreeMap<String, String>,
    /// Rules for sudo by the names of their files in `/etc/sudoers.d`.
    #[serde(default)]
    pub sudoers: BTreeMap<String, Text>,
    /// Mode and owner of files that packages bring; links are followed, and `{multiarch}` stands for Debian's name of the
    /// architecture in paths, such as `x86_64-linux-gnu`.
    #[serde(default)]
    pub modes: BTreeMap<String, Ownership>,
    /// Files that a script wrote in place before they became part of the layer. The image may have nothing there before the layer, or a file
    /// of root, which would have kept its mode.
    #[serde(default)]
    pub in_place: BTreeMap<String, InPlace>,
    /// Files, links and directories that a script created before it installed the packages of the layer. dpkg leaves an existing directory as
    /// it is, stops at a configuration file unless `keep_conffiles` lists its package, and would replace anything else, so that a package may
    /// not have anything else there.
    #[serde(default)]
    pub before_packages: Vec<String>,
    /// Packages that a script installed with `--force-confold` or `--force-confdef`: dpkg keeps the configuration files of `before_packages`.
    #[serde(default)]
    pub keep_conffiles: Vec<String>,
    /// Files of artifacts and of the layer that have set-uid, set-gid or sticky bits, or file capabilities, by absolute path:
    /// nothing else may have them.
    #[serde(default)]
    pub setuid: Vec<String>,
    /// Directory of an OCI image layout with the container images of the manifest.
    #[serde(default)]
    pub images: Option<String>,
    /// Symbolic links: absolute path to target.
    #[serde(default)]
    pub symlinks: BTreeMap<String, String>,
    /// Units of systemd.
    #[serde(default)]
    pub units: Units,
    /// Paths that are deleted with everything below; `*` in the last component stands for any bytes, and `**` for the regular
    /// files below, whose directories stay.
    #[serde(default)]
    pub remove: Vec<String>,
    /// Files that are made empty, or created empty.
    #[serde(default)]
    pub empty: Vec<String>,
    /// Variables of sysctl(8) and their values, set on every boot.
    #[serde(default)]
    pub sysctl: BTreeMap<String, Scalar>,
    /// Kernel modules that are loaded on every boot.
    #[serde(default)]
    pub modules_load: Vec<String>,
    /// Name of each machine. Without it, a machine has the name that its cloud gives it.
    #[serde(default)]
    pub hostname: Option<String>,
    /// Time zone, such as `Europe/Berlin`.
    #[serde(default)]
    pub timezone: Option<String>,
    /// Arguments of the kernel that are appended to those of the base's boot menu.
    #[serde(default)]
    pub kernel_arguments: Vec<String>,
    /// Locale of the system, such as `C.UTF-8`, or a list of locales, of which the first is that of the system. The image must have them.
    #[serde(default)]
    pub locale: Option<Words>,
    /// Keyboard of the console.
    #[serde(default)]
    pub keyboard: Option<Keyboard>,
    /// Public keys that may log in as the default user of the image, which cloud-init makes.
    #[serde(default)]
    pub ssh_authorized_keys: Vec<String>,
    /// What is shown after a login.
    #[serde(default)]
    pub motd: Option<Text>,
    /// Files that are emptied if they exist. They keep owner and mode, and `remove` of the same layer does not remove them.
    #[serde(default)]
    pub truncate: Vec<String>,
    /// Files, directories and links of the layer that `hygiene` does not remove.
    #[serde(default)]
    pub keep: Vec<String>,
    /// A swap file that every machine uses.
    #[serde(default)]
    pub swap: Option<Swap>,
    /// Keys of `/etc/os-release` that are set; `{kind}` and `{version}` are replaced.
    #[serde(default)]
    pub os_release: BTreeMap<String, String>,
    /// What is left to do on the machine.
    #[serde(default)]
    pub first_boot: Option<Plan>,
}

impl Schema {
    /// The modes that the first boot gives to files: the place of each in `layer.json`, the path and the mode.
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

    /// Names of users and groups that it makes, in the image or on the first boot.
    pub fn accounts(&self) -> impl Iterator<Item = &str> {
        let scripts = self.scripts.iter().flat_map(|script| script.users.iter().chain(&script.groups));
        let plans = self.first_boot.iter().flat_map(|plan| plan.users.keys().chain(plan.accounts.keys()));
        self.users.keys().chain(self.groups.keys()).chain(scripts).chain(plans).map(String::as_str)
    }

    /// What it asks of the archives.
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
            packages,
            recommends,
            archive,
            hold: self.hold.clone(),
            without: self.without.clone(),
            upgrade,
        }
    }
}

impl Schema {
    /// The home directories that stand in the layer.
    pub fn homes(&self) -> impl Iterator<Item = &String> {
        self.users.values().filter_map(|user| user.home.as_ref())
    }
}

/// How an artifact gets into the tree.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Install {
    /// A Debian package, as dpkg would install it.
    Deb,
    /// The artifact itself becomes one file.
    File {
        /// Absolute path in the image.
        path: String,
        /// Permissions, octal.
        #[serde(deserialize_with = "octal")]
        #[schemars(with = "String", regex(pattern = "^[0-7]{4}$"))]
        mode: u16,
        /// Whether to decompress the artifact.
        #[serde(default)]
        decompress: bool,
    },
    /// Files, directories and links of a tar archive.
    Tar {
        /// Absolute path of the directory they go to.
        path: String,
        /// Leading components of member names that are dropped.
        #[serde(default)]
        strip: usize,
        /// The members to install, all when empty. A directory includes everything below it.
        #[serde(default)]
        members: Vec<String>,
        /// Paths of the image that the archive must not bring, since its layer has other files there.
        #[serde(default)]
        absent: Vec<String>,
        /// As GNU tar run by root with this option extracts it: existing directories get the mode of the archive, too.
        #[serde(default)]
        extract: Option<ExtractOption>,
    },
    /// Files, directories and links of a zip file.
    Zip {
        /// As for `tar`.
        path: String,
        /// As for `tar`.
        #[serde(default)]
        strip: usize,
        /// As for `tar`.
        #[serde(default)]
        members: Vec<String>,
    },
}

/// A file that a script wrote in place.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InPlace {
    /// The mode that a file there must have, octal; any if the script has set it.
    #[serde(default, deserialize_with = "some_octal")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-7]{4}$"))]
    pub mode: Option<u16>,
}

/// An option of tar(1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ExtractOption {
    /// Members keep the owners that the archive has for them.
    SameOwner,
    /// New members belong to root.
    NoSameOwner,
}

/// A reviewed maintainer script: its listed effects are applied in its place. The script is known by its digest, so that another
/// one, of a later version, is interpreted again.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AuditedScript {
    /// Package.
    pub package: String,
    /// `preinst` or `postinst`; with `upgrade` also `prerm` or `postrm`, of the version that is replaced.
    pub script: String,
    /// SHA-256 of the script, hexadecimal.
    pub sha256: String,
    /// The entry is about an upgrade, too: then the script has no other effects.
    #[serde(default)]
    pub upgrade: bool,
    /// Runs on the first boot instead: the package is installed but not configured. Only for a `postinst`.
    #[serde(default)]
    pub defer: bool,
    /// Why nothing of the script is done.
    #[serde(default)]
    pub skip: Option<String>,
    /// Triggers for which the script is answered for. It is then that of an interested package of the base.
    #[serde(default)]
    pub triggers: Vec<String>,
    /// Users that it needs, which a layer makes before.
    #[serde(default)]
    pub users: Vec<String>,
    /// Groups that it needs, which a layer makes before.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Directories that it makes, or whose mode and owner it sets.
    #[serde(default)]
    pub directories: BTreeMap<String, Ownership>,
    /// Files of the package whose mode and owner it sets.
    #[serde(default)]
    pub files: BTreeMap<String, Ownership>,
    /// Symbolic links that it makes: absolute path to target.
    #[serde(default)]
    pub symlinks: BTreeMap<String, String>,
    /// Alternatives that it installs.
    #[serde(default)]
    pub alternatives: Vec<Alternative>,
    /// Units that it enables.
    #[serde(default)]
    pub units: ScriptUnits,
}

/// What a maintainer script does with units.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScriptUnits {
    /// Units that it enables.
    #[serde(default)]
    pub enable: Vec<String>,
}

/// One choice of an alternative, as `update-alternatives --install` takes it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Alternative {
    /// The generic name that users call.
    pub link: String,
    /// Name of the group.
    pub name: String,
    /// What the choice points to.
    pub path: String,
    /// The highest priority wins.
    pub priority: i32,
    /// Slave links: name to generic name and path.
    #[serde(default)]
    pub slaves: BTreeMap<String, (String, String)>,
}

/// A user with a fixed id: below `UID_MIN` of `/etc/login.defs` a system user.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// User id, and the id of the group of the same name.
    pub id: u32,
    /// Home directory, made with the user; `/home/<name>` by default.
    #[serde(default)]
    pub home: Option<String>,
    /// Login shell.
    #[serde(default = "nologin")]
    pub shell: String,
    /// Secondary groups.
    #[serde(default)]
    pub groups: Vec<String>,
    /// Secondary groups where the image has them.
    #[serde(default)]
    pub optional_groups: Vec<String>,
    /// Subordinate user and group ids, as in subuid(5) and subgid(5).
    #[serde(default)]
    pub subordinate: Option<Subordinate>,
    /// Encrypted password (crypt(5)): `$y$…`, `$6$…` or `$5$…`. Without it no password matches.
    #[serde(default)]
    pub password_hash: Option<String>,
    /// Public keys that may log in, in `.ssh/authorized_keys` of the home directory.
    #[serde(default)]
    pub ssh_authorized_keys: Vec<String>,
}

impl Account {
    /// The home directory of the user of that name.
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
    /// How many there are.
    pub count: u32,
}

/// What happens to units.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Units {
    /// Units that get the links of their `[Install]` section; also instances, and templates with a default instance.
    #[serde(default)]
    pub enable: Vec<String>,
    /// Units that lose every link to them below `/etc/systemd/system`.
    #[serde(default)]
    pub disable: Vec<String>,
    /// Units that are linked to `/dev/null`.
    #[serde(default)]
    pub mask: Vec<String>,
    /// Units of the layer's own, with their text; they go to `/etc/systemd/system`.
    #[serde(default)]
    pub files: BTreeMap<String, Text>,
}

/// A directory of the layer.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryRule {
    /// Permissions, octal. Without them, an existing directory keeps its mode, owner and group, and a new one gets 0755.
    #[serde(default, deserialize_with = "some_octal")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-7]{4}$"))]
    pub mode: Option<u16>,
    /// User, by name; `root` by default. Requires `mode`.
    #[serde(default)]
    pub owner: Option<String>,
    /// Group, by name; `root` by default. Requires `mode`.
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
    /// Permissions, octal; 0644 by default, below a bin directory 0755.
    #[serde(default, deserialize_with = "some_octal")]
    #[schemars(with = "Option<String>", regex(pattern = "^[0-7]{4}$"))]
    pub mode: Option<u16>,
    /// User, by name.
    #[serde(default = "root")]
    pub owner: String,
    /// Group, by name.
    #[serde(default = "root")]
    pub group: String,
    /// The content, unless the file is below `files/`.
    #[serde(default)]
    pub content: Option<Text>,
}

impl FileRule {
    /// An executable file with nothing else to say.
    pub(super) fn executable() -> Self {
        Self { mode: Some(0o755), owner: root(), group: root(), content: None }
    }

    /// Mode and owner of the file, which is at `path`.
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

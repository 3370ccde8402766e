//! The format of `layer.json`.

mod values;

pub use values::{
    Account, Alternative, AuditedScript, DirectoryRule, ExtractOption, FileRule, InPlace, Install, ScriptUnits,
    Subordinate, Units,
};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;
use vmbake_firstboot::plan::{Ownership, Plan};

use super::{Container, Download, Keyboard, LocalArtifact, Requirement, Scalar, Swap, Text, Words, child};
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
    /// Debian system, made of packages, that the kind has in place of a base image. Such a kind is baked as an archive or container image: a
    /// disk image needs GRUB, whose packages are refused in layers.
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

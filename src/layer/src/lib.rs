//! Layers: the software and settings of an image, as data.
//!
//! `<layer>/layer.json` and the files below `<layer>/files/`, from directories and from the program itself, in; the ordered list of the
//! layers of a kind out. `layers/README.md` documents the format.

mod requirement;
mod schema;
mod settings;
mod ssh_key;
mod sysctl;
mod skeleton;
mod text;
mod capability;
mod password;
mod position;
mod by_arch;
mod document;
mod download;
mod removal;
pub mod processed;
mod validate;
pub mod unit_place;
pub mod command_line;
mod boot_config;
mod unit_install;
mod keys;
pub mod real_path;
pub mod effects;
mod findings;
mod check;
mod references;
pub mod first_boot;
mod read;
mod released;
mod set;
mod consistency;
mod authoring;

pub use authoring::{check, release};
pub use by_arch::ByArch;
pub use download::{Download, LocalArtifact};
pub use keys::container::Container;
pub use keys::swap::Swap;
pub use requirement::Requirement;
pub use schema::{
    Account, Alternative, AuditedScript, DirectoryRule, ExtractOption, FileRule, InPlace, Install, Layer, LayerFile,
    LocalFile, Schema, ScriptUnits, Subordinate, Units,
};
pub use set::Layers;
pub use settings::Keyboard;
pub use skeleton::init;
pub use sysctl::{SysctlLine, sysctl_entries, sysctl_lines, sysctl_name};
pub use text::{Scalar, Text, Words};

pub use boot_config::{BootConfig, BootEffect};
pub use capability::{ATTRIBUTE, attribute};
pub use check::{
    AptSource, NameSource, NamedAccount, NftInclude, PamRule, PamTarget, RotatedLog, SshdLine, TmpfilesConflict,
    UnitCommand, UnitRefusal, UnitSetting, apt_sources, calendar_zone, is_run_by_parts, is_skipped_by_logrotate,
    is_true, name_sources, named_accounts, named_route_tables, network_zones, nft_includes, pam_rules, rotated_logs,
    route_tables, sshd_lines, tmpfiles_conflicts, unit_commands, unit_refusal, unit_settings, unit_words,
};
pub use keys::swap::PAGE;
pub use keys::{DevSync, KEYS, Key};
pub use position::child;
pub use removal::{FILES_BELOW, system_directory};
pub use set::HYGIENE;
pub use text::without_comments;
pub use unit_install::{InstallFault, InstallLink, Location, UnitForm, UnitInstall, unit_form};
pub use unit_place::{UNIT_SCOPES, UnitRole, is_of_systemd, is_wants, path_of_unit, unit_place};
pub use validate::{GENERATED, MANIFEST, ORIGINS, default_mode, hidden_because, hidden_by, unit_file};

use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;

use vmbake_common::atomic_file::PublishError;
use vmbake_common::catalog::CatalogError;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::message::FileError;
use vmbake_common::spelling::{did_you_mean, near, of_path};

pub use vmbake_firstboot::plan::Ownership;

/// Something wrong in a layer's directory.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Fault {
    /// The file.
    pub path: PathBuf,
    /// Line and column, both counted from 1, where the fault is one of a text.
    pub position: Option<(usize, usize)>,
    /// Whether it is only a warning.
    pub warning: bool,
    /// The error.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.path.display())?;
        if let Some((line, column)) = self.position {
            write!(f, ":{line}:{column}")?;
        }
        write!(f, ": {}{}", if self.warning { "warning: " } else { "" }, self.message)
    }
}

/// Why layers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    #[error("{path}: cannot read the layer")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{name}: is the name of a built-in layer")]
    BuiltIn { name: String },
    #[error("{}", escape::each_line(.0))]
    Faults(Vec<Fault>),
    #[error("layer {name} does not exist: expected one of: {known}")]
    Unknown {
        /// The layer that is asked for.
        name: String,
        known: String,
    },
    #[error("layer {name} does not support {os}: expected one of: {supported}")]
    Unsupported {
        /// The layer that is asked for.
        name: String,
        /// The system that it is asked for.
        os: String,
        supported: String,
    },
    #[error("{name} is installed by the layers {first} and {second}: names of downloads must be unique")]
    DownloadTwice { name: String, first: String, second: String },
    #[error("{entry}: conflicting values in `{key}` of the layers {first} and {second}")]
    Contradiction { key: &'static str, entry: String, first: String, second: String },
    #[error("layer {first} removes package {package}, but layer {second} installs it")]
    Removes { package: String, first: String, second: String },
    #[error("layer {layer}: download {name} has no `{key}` for {arch}")]
    NoArch { layer: String, name: String, key: &'static str, arch: String },
    #[error("layer {layer} has container images, but no layer of {kind} sets their directory with `images`")]
    NoImages { layer: String, kind: String },
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for LayerError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Faults(_) => "run `vmbake schema layer` to print the JSON Schema; layers/README.md explains the keys",
            Self::Read { source, .. } if source.kind() == ErrorKind::NotADirectory => {
                "use --layers with a directory of layers, each a directory with a layer.json"
            }
            Self::Read { path, source } => {
                let other = "run `vmbake layer list` to list the built-in layers, which need no directory";
                return of_path(path, source, other);
            }
            Self::Unknown { name, known } => match &near(name, known.split(", "))[..] {
                [] => "run `vmbake layer list` to describe the built-in layers, or use --layers to add custom layers",
                near => return Some(did_you_mean(near)),
            },
            Self::BuiltIn { .. } => "choose another name: `vmbake layer list` lists the built-in ones",
            Self::NoArch { .. } => "add the key to the layer, or use --arch to choose other architectures",
            Self::Contradiction { .. } => "remove the entry from one of the layers",
            Self::Removes { first, second, .. } => {
                return Some(format!(
                    "take the package out of `packages` of layer {second}, or out of `remove_packages` of layer {first}"
                ));
            }
            Self::DownloadTwice { .. } => "rename one of the downloads in its layer",
            Self::NoImages { .. } => {
                "require the layer container-images, which imports them into containerd, or add \"images\": \
                 \"/var/lib/container-images/oci\" and import them with a unit, as in docs/layer-artifacts.md#container-images"
            }
            Self::Unsupported { .. } => "use --os with a supported operating system",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Faults(_))
    }

    vmbake_common::causes!(Catalog, Publish, File; Read);
}

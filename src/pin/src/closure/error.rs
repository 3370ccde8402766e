//! Errors of dependency resolution.

use std::path::PathBuf;

use super::Refusal;
use crate::resolve::ResolveError;
use crate::root_base::RootBaseError;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::{did_you_mean, near};

/// Why the packages that layers request cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum ClosureError {
    #[error("layer {layer}: {key}: package {package} not found in {}", archives.join(", "))]
    Unknown {
        layer: String,
        /// The key in `layer.json`.
        key: &'static str,
        package: String,
        archives: Vec<String>,
        /// Similar names.
        near: Vec<String>,
    },
    #[error(
        "layer {layer}: remove_packages: package {package} is neither in the base nor installed by an earlier layer"
    )]
    NotInstalled {
        layer: String,
        package: String,
        /// Similar names of installed packages.
        near: Vec<String>,
    },
    #[error("layer {layer}: remove_packages: package {package} has `{field}: yes`, which forbids removing it")]
    Unremovable { layer: String, package: String, field: &'static str },
    #[error("layer {layer}: remove_packages: the base has package {package} on hold")]
    RemovesHeld { layer: String, package: String },
    #[error("layer {layer}: remove_packages: the manifest has package {package} as an artifact")]
    RemovesGiven { layer: String, package: String },
    #[error("package {package} not found")]
    NoPackage {
        package: String,
        /// Similar names.
        near: Vec<String>,
    },
    #[error("layer {layer}: {key}: package {package} is available only for {found}, not for {arch}")]
    OtherArch {
        layer: String,
        /// The key in `layer.json`.
        key: &'static str,
        package: String,
        arch: String,
        found: String,
    },
    #[error("layer {layer}: {key}: {package} is a virtual package, provided by {}", providers.join(", "))]
    Virtual {
        layer: String,
        /// The key in `layer.json`.
        key: &'static str,
        package: String,
        providers: Vec<String>,
    },
    #[error("layer {layer}: no version matches {}, available: {}", wanted.join(" and "), found.join(", "))]
    NoVersion { layer: String, wanted: Vec<String>, found: Vec<String> },
    #[error("layer {layer}: archive {archive} is not listed in the sources, known archives: {}", known.join(", "))]
    UnknownArchive { layer: String, archive: String, known: Vec<String> },
    #[error("no archive for packages of {os} in the sources")]
    NoArchive { os: String },
    #[error("the manifest of {manifest} pins no base image yet, which is required to resolve dependencies")]
    NoBase { manifest: String },
    #[error("the manifest pins {url} as the base image, which is a local file")]
    LocalBase { url: String },
    #[error("{path}: the base image has no dpkg status file, so packages cannot be installed")]
    NoStatus { path: PathBuf },
    #[error("package {package} is required, but the manifest has another artifact with this name")]
    Name { package: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Root(#[from] RootBaseError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ClosureError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { near, .. } | Self::NoPackage { near, .. } | Self::NotInstalled { near, .. }
                if !near.is_empty() =>
            {
                did_you_mean(near)
            }
            Self::NotInstalled { .. } => "remove the entry: there is nothing to remove".to_owned(),
            Self::Unremovable { .. } => "remove the entry: dpkg refuses to remove such a package".to_owned(),
            Self::RemovesHeld { .. } => "use a base that does not have it on hold, or remove the entry".to_owned(),
            Self::RemovesGiven { .. } => {
                "remove the artifact from its layer, or the package from `remove_packages`".to_owned()
            }
            Self::Unknown { .. } => "use `archive` of the layer to name another archive".to_owned(),
            Self::OtherArch { found, .. } => {
                format!("use --arch {found} to create the manifest for that architecture only")
            }
            Self::Virtual { .. } => "name one of these packages".to_owned(),
            Self::NoVersion { .. } => "in a pattern, `*` matches any characters: `containerd=1.7.*`".to_owned(),
            Self::UnknownArchive { archive, known, .. } => match &near(archive, known.iter().map(String::as_str))[..] {
                [] => "use --sources FILE to add an archive with its keyring".to_owned(),
                near => did_you_mean(near),
            },
            Self::NoArchive { .. } => "set `archive` of the system in the sources".to_owned(),
            Self::NoBase { .. } => "run `vmbake update` without --only to pin the base first".to_owned(),
            Self::LocalBase { .. } => "use --image to name the file".to_owned(),
            Self::NoStatus { .. } => "use an image of Debian".to_owned(),
            Self::Name { .. } => "rename the artifact in the sources".to_owned(),
            _ => return None,
        })
    }

    vmbake_common::causes!(Refused, Resolve, Message);
}

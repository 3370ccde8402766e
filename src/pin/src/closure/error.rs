//! Why no packages can be chosen.

use std::path::PathBuf;

use super::Refusal;
use crate::resolve::ResolveError;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::{did_you_mean, near};

/// Why the packages that layers ask for cannot be chosen.
#[derive(Debug, thiserror::Error)]
pub enum ClosureError {
    #[error("layer {layer}: {key}: there is no package {package} in {}", archives.join(", "))]
    Unknown {
        layer: String,
        /// The key of `layer.json`.
        key: &'static str,
        package: String,
        archives: Vec<String>,
        /// Names that may have been meant.
        near: Vec<String>,
    },
    #[error("there is no package {package}")]
    NoPackage {
        package: String,
        /// Names that may have been meant.
        near: Vec<String>,
    },
    #[error("layer {layer}: {key}: package {package} is there for {found} alone, not for {arch}")]
    OtherArch {
        layer: String,
        /// The key of `layer.json`.
        key: &'static str,
        package: String,
        arch: String,
        found: String,
    },
    #[error("layer {layer}: {key}: no package is called {package}, some only provide it: {}", providers.join(", "))]
    Virtual {
        layer: String,
        /// The key of `layer.json`.
        key: &'static str,
        package: String,
        providers: Vec<String>,
    },
    #[error("layer {layer}: no version fits {}: there are {}", wanted.join(" and "), found.join(", "))]
    NoVersion { layer: String, wanted: Vec<String>, found: Vec<String> },
    #[error("layer {layer}: archive {archive} is not listed in the sources: known are {}", known.join(", "))]
    UnknownArchive { layer: String, archive: String, known: Vec<String> },
    #[error("the sources name no archive for packages of {os}")]
    NoArchive { os: String },
    #[error("the manifest of {manifest} pins no base image yet, and which packages are needed depends on what it has")]
    NoBase { manifest: String },
    #[error("the manifest pins {url} as base image, a file that only the user has")]
    LocalBase { url: String },
    #[error("{path}: the base image has no record of dpkg's, so that nothing can be installed with it")]
    NoStatus { path: PathBuf },
    #[error("package {package} is needed, but the manifest has another artifact of that name")]
    Name { package: String },
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ClosureError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { near, .. } | Self::NoPackage { near, .. } if !near.is_empty() => did_you_mean(near),
            Self::Unknown { .. } => "`archive` of the layer names another archive that may have it".to_owned(),
            Self::OtherArch { found, .. } => format!("--arch {found} makes the manifest for that architecture alone"),
            Self::Virtual { .. } => "name one of those packages".to_owned(),
            Self::NoVersion { .. } => "in a pattern, `*` stands for any characters: `containerd=1.7.*`".to_owned(),
            Self::UnknownArchive { archive, known, .. } => match &near(archive, known.iter().map(String::as_str))[..] {
                [] => "--sources FILE adds an archive, with the keyring that must have signed it".to_owned(),
                near => did_you_mean(near),
            },
            Self::NoArchive { .. } => "`archive` of the system in the sources names it".to_owned(),
            Self::NoBase { .. } => "`vmbake update` without --only pins the base first".to_owned(),
            Self::LocalBase { .. } => "--image names the file".to_owned(),
            Self::NoStatus { .. } => "take an image of Debian".to_owned(),
            Self::Name { .. } => "give the artifact another name in the sources".to_owned(),
            _ => return None,
        })
    }

    vmbake_common::causes!(Refused, Resolve, Message);
}

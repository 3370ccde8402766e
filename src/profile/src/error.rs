//! Errors of rendering a profile.

use std::fmt;
use std::path::PathBuf;

use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::{did_you_mean, near, of_path};

/// A place in a file that people wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The file.
    pub path: PathBuf,
    pub line: usize,
    pub column: usize,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

/// Why a profile is not rendered.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: expected UTF-8")]
    NotText { path: PathBuf },
    #[error("{spot}: not valid YAML: {message}")]
    Syntax { spot: Location, message: String },
    #[error("{spot}: {what}")]
    Unsupported { spot: Location, what: &'static str },
    #[error("{spot}: unknown field {field}")]
    UnknownField { spot: Location, field: String, known: Vec<&'static str> },
    #[error("{spot}: missing field {field}")]
    MissingField { spot: Location, field: &'static str },
    #[error("{spot}: expected {expected}, found {found}")]
    Value { spot: Location, expected: String, found: String },
    #[error("{spot}: {what} is refused: {why}")]
    Refused { spot: Location, what: String, why: &'static str },
    #[error("{spot}: template: {message}")]
    Template {
        /// Where: the line of its fault, or the first one.
        spot: Location,
        message: String,
    },
    #[error("--set {option}: unknown option of OSM")]
    UnknownOption { option: String, known: Vec<&'static str> },
    #[error("--set {option}: expected {expected}")]
    Option { option: String, expected: String },
    #[error("undefined profile field .{field}")]
    NotGiven { field: &'static str, option: &'static str },
    #[error("kubelet {kubelet} requires a cloud-config for {provider}, which vmbake does not support")]
    CloudConfig { kubelet: String, provider: String },
    #[error("cloud-init would read {what} differently")]
    NotCarried { what: String, hint: &'static str },
    #[error("cloud-init does not install units: {unit} would be missing on the machine")]
    Unit { unit: String },
    #[error(transparent)]
    Message(#[from] Message),
}

impl ProfileError {
    pub(super) fn value(spot: Location, expected: impl Into<String>, found: impl Into<String>) -> Self {
        Self::Value { spot, expected: expected.into(), found: found.into() }
    }
}

impl Hint for ProfileError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, source } => of_path(path, source, "use the path of a YAML file"),
            Self::UnknownField { field, known, .. } | Self::UnknownOption { option: field, known } => {
                Some(match near(field, known.iter().copied()) {
                    names if names.is_empty() => format!("use one of: {}", known.join(", ")),
                    names => did_you_mean(&names),
                })
            }
            Self::NotGiven { option, .. } => Some(format!("set it with --set {option}=…")),
            Self::CloudConfig { .. } => {
                Some("use --set external-cloud-provider=true, or overwriteCloudConfig of the deployment".to_owned())
            }
            Self::NotCarried { hint, .. } => Some((*hint).to_owned()),
            Self::Unit { .. } => Some("add the unit to `files` and enable it with a command".to_owned()),
            Self::Syntax { .. } | Self::Value { .. } | Self::NotText { .. } | Self::MissingField { .. } => {
                Some("see examples/profiles for a profile and a deployment".to_owned())
            }
            _ => None,
        }
    }

    vmbake_common::causes!(Message; Read);
}

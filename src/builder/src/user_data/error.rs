//! Why there is no user data.

use std::path::PathBuf;

use vmbake_firstboot::error::Error;

use super::{Origin, Sizes, names};
use crate::escape;
use crate::hint::Hint;
use crate::spelling::of_path;

/// Something about a setting that keeps a machine from being configured.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Nobody asks for it.
    #[error("{name} means nothing to this kind{}", names::suggestion(near))]
    Unknown {
        /// Its name.
        name: String,
        /// Names that look like it.
        near: Vec<String>,
    },
    /// Its text cannot be written down safely.
    #[error("{name}: expected {expected}")]
    Text {
        /// Name of the setting.
        name: String,
        /// What it may be.
        expected: &'static str,
    },
    /// The first-boot program would stop.
    #[error("{}", vmbake_firstboot::output::chain(.0))]
    FirstBoot(Error),
}

/// Why there is no user data.
#[derive(Debug, thiserror::Error)]
pub enum UserDataError {
    /// A file that was named is not readable.
    #[error("cannot read {path}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// It does not assign anything to a name.
    #[error("{option}: expected NAME=VALUE with a name of letters, digits and underscores, found none")]
    Assignment {
        /// Where it was given.
        option: String,
    },
    /// The value is no text.
    #[error("--set: {name}: expected UTF-8")]
    NotText {
        /// The variable.
        name: String,
    },
    /// Two origins do not give one value.
    #[error("{name} is given twice: by {first} and by {second}")]
    Twice {
        /// The variable.
        name: String,
        /// Where it was given.
        first: Origin,
        /// Where it was given again.
        second: Origin,
    },
    /// A file does not have its form.
    #[error("{path}: expected {expected}, found {found}")]
    Input {
        /// The file.
        path: PathBuf,
        /// The form.
        expected: &'static str,
        /// What stands there.
        found: String,
    },
    /// The kind does not know it.
    #[error("{option} means nothing to kind {kind}")]
    Option {
        /// The option.
        option: &'static str,
        /// The kind.
        kind: String,
    },
    /// No machine of the kind looks for them.
    #[error("kind {kind} takes no settings: none of its layers has `inputs` of the first boot")]
    Unheard {
        /// The kind.
        kind: String,
    },
    /// The first boot would refuse them.
    #[error("these settings cannot configure a machine of kind {kind}:{}", lines(.problems))]
    Settings {
        /// The kind.
        kind: String,
        /// What is wrong with each.
        problems: Vec<Problem>,
    },
    /// No machine of the provider would get them.
    #[error("the user data has {} bytes, which is more than the {limit} that {} takes", .sizes.total, .sizes.provider())]
    TooLarge {
        /// Its length, in parts.
        sizes: Box<Sizes>,
        /// The most that the provider takes, in bytes.
        limit: usize,
    },
    /// A file that was named is wrong.
    #[error(transparent)]
    File(#[from] Error),
}

impl Hint for UserDataError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Settings { kind, problems } if problems.iter().any(|one| matches!(one, Problem::Unknown { .. })) => {
                Some(format!("`vmbake user-data keys --kind {kind}` lists the settings that there are"))
            }
            Self::Settings { kind, .. } => Some(format!(
                "--set NAME=VALUE and --env FILE give settings; `vmbake user-data keys --kind {kind}` says what each may be"
            )),
            Self::Read { path, source } => {
                of_path(path, source, "`vmbake user-data render --help` says what each file is")
            }
            Self::TooLarge { .. } => Some(
                "settings that may change can come later, by the agent; of several certificates the root may be enough"
                    .to_owned(),
            ),
            Self::Unheard { .. } => Some(
                "the layer `settings` makes machines wait for settings: a layer of the kind may require it".to_owned(),
            ),
            _ => None,
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Settings { .. })
    }
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {}", escape::line(problem.to_string()))).collect()
}

//! Why there is no user data.

use std::path::PathBuf;

use vmbake_common::message::Message;
use vmbake_firstboot::env;
use vmbake_firstboot::error::Error;

use super::{Sizes, fields, names};
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::spelling::of_path;

/// Something about a setting that keeps a machine from being configured.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{name} means nothing to this kind{}", names::suggestion(near))]
    Unknown { name: String, near: Vec<String> },
    #[error("{name}: unknown placeholder{}", names::suggestion(near))]
    Placeholder { name: String, near: Vec<String> },
    #[error("{name}: expected a value of at most {} KiB, found one that may have {bytes} bytes once its placeholders are filled", env::MAX_VALUE_BYTES >> 10)]
    Long { name: String, bytes: usize },
    #[error("{name}: expected --provider, which decides the size limit and the checks")]
    Provider { name: String },
    #[error("{name}: expected {expected}")]
    Text { name: String, expected: &'static str },
    #[error("{}", vmbake_firstboot::output::chain(.0))]
    FirstBoot(Error),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for Problem {
    vmbake_common::causes!(Message);
}

/// Why there is no user data.
#[derive(Debug, thiserror::Error)]
pub enum UserDataError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {name}: expected a file without placeholders, as it is encoded in base64, found \"{{{{\"")]
    EncodedPlaceholder { name: String, path: PathBuf },
    #[error("{option} means nothing to kind {kind}")]
    Option { option: &'static str, kind: String },
    #[error("kind {kind} takes no settings: none of its layers has `inputs` of the first boot")]
    Unheard { kind: String },
    #[error("these settings cannot configure a machine of kind {kind}:{}", lines(.problems))]
    Settings { kind: String, problems: Vec<Problem> },
    #[error(
        "the settings take {}{bytes} bytes, which is more than the {} that a machine reads",
        if *.is_longest { "up to " } else { "" },
        env::MAX_BYTES
    )]
    TooManySettings {
        /// Length of the file with the settings.
        bytes: usize,
        /// Whether placeholders have their longest values.
        is_longest: bool,
    },
    #[error(
        "the user data has {}{} bytes, which is more than the {limit} that {} takes",
        if .sizes.is_longest { "up to " } else { "" },
        .sizes.total,
        .sizes.provider()
    )]
    TooLarge {
        sizes: Box<Sizes>,
        /// The most that the provider takes, in bytes.
        limit: usize,
    },
    #[error(transparent)]
    File(#[from] Error),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for UserDataError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Settings { kind, problems } if problems.iter().any(|one| matches!(one, Problem::Unknown { .. })) => {
                Some(format!("`vmbake user-data keys --kind {kind}` lists the settings that there are"))
            }
            Self::Settings { problems, .. }
                if problems.iter().any(|one| matches!(one, Problem::Placeholder { .. })) =>
            {
                Some(format!("Nstance fills {}", fields::paths()))
            }
            Self::Settings { kind, .. } => Some(format!(
                "--set NAME=VALUE and --env FILE give settings; `vmbake user-data keys --kind {kind}` says what each may be"
            )),
            Self::Read { path, source } => {
                of_path(path, source, "`vmbake user-data render --help` says what each file is")
            }
            Self::TooLarge { .. } | Self::TooManySettings { .. } => Some(
                "settings that may change can come later, by the agent; of several certificates the root may be enough"
                    .to_owned(),
            ),
            Self::EncodedPlaceholder { name, .. } => Some(format!(
                "--set '{name}={{{{ .Vars.NAME }}}}' takes the whole value from the server, in base64 already; for braces that are text, encode the \
                 file first: --set \"{name}=$(base64 -w 0 FILE)\""
            )),
            Self::Unheard { .. } => Some(
                "the layer `settings` makes machines wait for settings: a layer of the kind may require it".to_owned(),
            ),
            _ => None,
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Settings { .. })
    }

    vmbake_common::causes!(Message; Read);
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {}", escape::line(problem.to_string()))).collect()
}

//! Error while creating user data.

use std::path::PathBuf;

use vmbake_common::message::Message;
use vmbake_firstboot::env;
use vmbake_firstboot::error::Error;

use super::{Provider, Sizes, fields, names};
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::spelling::of_path;

/// A problem with a setting that would keep a machine from being configured.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    #[error("{name}: unknown setting of this kind{}", names::suggestion(near))]
    Unknown { name: String, near: Vec<String> },
    #[error("{name}: unknown placeholder{}", names::suggestion(near))]
    Placeholder { name: String, near: Vec<String> },
    #[error("{name}: expected a value of at most {} KiB, found one of up to {bytes} bytes with filled placeholders", env::MAX_VALUE_BYTES >> 10)]
    Long { name: String, bytes: usize },
    #[error("{name}: --provider is required, which determines the size limit and the checks")]
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

/// Error while creating user data.
#[derive(Debug, thiserror::Error)]
pub enum UserDataError {
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: {name}: expected a file without placeholders, as it is encoded in base64, found \"{{{{\"")]
    EncodedPlaceholder { name: String, path: PathBuf },
    #[error("{option} is not supported by kind {kind}")]
    Option { option: &'static str, kind: String },
    #[error("provider {}: a template of Nstance does not reach cloud-init", Provider::Google.name())]
    TemplateProvider,
    #[error("kind {kind} has no settings: none of its layers has `inputs` of the first boot")]
    Unheard { kind: String },
    #[error("invalid settings for kind {kind}:{}", lines(.problems))]
    Settings { kind: String, problems: Vec<Problem> },
    #[error(
        "the settings have {}{bytes} bytes, more than the limit of {}",
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
        "the user data has {}{} bytes, more than the limit of {limit} of {}",
        if .sizes.is_longest { "up to " } else { "" },
        .sizes.total,
        .sizes.provider()
    )]
    TooLarge {
        sizes: Box<Sizes>,
        /// Limit of the provider, in bytes.
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
                Some(format!("list the settings with `vmbake user-data keys --kind {kind}`"))
            }
            Self::Settings { problems, .. }
                if problems.iter().any(|one| matches!(one, Problem::Placeholder { .. })) =>
            {
                Some(format!("Nstance fills {}", fields::paths()))
            }
            Self::Settings { kind, .. } => Some(format!(
                "use --set NAME=VALUE or --env FILE; list the settings with `vmbake user-data keys --kind {kind}`"
            )),
            Self::Read { path, source } => {
                of_path(path, source, "see `vmbake user-data render --help` for the expected files")
            }
            Self::TooLarge { .. } | Self::TooManySettings { .. } => {
                Some("leave mutable settings to the agent, or use a single root certificate".to_owned())
            }
            Self::EncodedPlaceholder { name, .. } => Some(format!(
                "use --set '{name}={{{{ .Vars.NAME }}}}' for a value from the server, encoded in base64; for literal braces, encode the file \
                 first: --set \"{name}=$(base64 -w 0 FILE)\""
            )),
            Self::TemplateProvider => Some(
                "Nstance sets only the metadata key startup-script on Google, and cloud-init reads only user-data: render without --template, and set \
                 the metadata key user-data of each machine yourself"
                    .to_owned(),
            ),
            Self::Unheard { .. } => Some("require the layer `settings` in a layer of the kind".to_owned()),
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

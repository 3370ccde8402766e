//! Why there is no user data.

use std::path::PathBuf;

use vmbake_firstboot::env;
use vmbake_firstboot::error::Error;

use super::{Origin, Sizes, fields, names};
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::spelling::of_path;

/// Something about a setting that keeps a machine from being configured.
#[derive(Debug, thiserror::Error)]
pub enum Problem {
    /// Nobody asks for it.
    #[error("{name} means nothing to this kind{}", names::suggestion(near))]
    Unknown { name: String, near: Vec<String> },
    /// The server does not fill it.
    #[error("{name}: unknown placeholder{}", names::suggestion(near))]
    Placeholder { name: String, near: Vec<String> },
    /// A placeholder that is not the whole value of a setting whose format the value must have.
    #[error(
        "{name}: expected {{{{ {path} }}}} as the whole value, as the value must have a certain format, found other text or placeholders next to it"
    )]
    Part { name: String, path: String },
    /// The name of the machine, and so its host name, is known to the server alone.
    #[error(
        "{name}: expected text with at most one placeholder, {{{{ .Instance.ID }}}}, as it becomes the host name, found {found}"
    )]
    HostName { name: &'static str, found: String },
    /// A value that may become longer than the first boot allows.
    #[error("{name}: expected a value of at most {} KiB, found one that may have {bytes} bytes once its placeholders are filled", env::MAX_VALUE_BYTES >> 10)]
    Long { name: String, bytes: usize },
    /// A provider that only the server knows.
    #[error("{name}: expected --provider, which decides the size limit and the checks")]
    Provider { name: String },
    /// Its text cannot be written down safely.
    #[error("{name}: expected {expected}")]
    Text { name: String, expected: &'static str },
    /// The first-boot program would stop.
    #[error("{}", vmbake_firstboot::output::chain(.0))]
    FirstBoot(Error),
}

/// Why there is no user data.
#[derive(Debug, thiserror::Error)]
pub enum UserDataError {
    /// A file that was named is not readable.
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: std::io::Error },
    /// It does not assign anything to a name.
    #[error("{option}: expected NAME=VALUE with a name of letters, digits and underscores, found none")]
    Assignment { option: String },
    /// The value is no text.
    #[error("--set: {name}: expected UTF-8")]
    NotText { name: String },
    /// A file of which the server would not see the placeholder.
    #[error("{path}: {name}: expected a file without placeholders, as it is encoded in base64, found \"{{{{\"")]
    EncodedPlaceholder { name: String, path: PathBuf },
    /// A token of one machine for a template of many.
    #[error("a template takes no nonce: the server fills in one for each machine")]
    NonceInTemplate,
    /// Two origins do not give one value.
    #[error("{name} is given twice: by {first} and by {second}")]
    Twice { name: String, first: Origin, second: Origin },
    /// A file does not have its form.
    #[error("{path}: expected {expected}, found {found}")]
    Input { path: PathBuf, expected: &'static str, found: String },
    /// The kind does not know it.
    #[error("{option} means nothing to kind {kind}")]
    Option { option: &'static str, kind: String },
    /// No machine of the kind looks for them.
    #[error("kind {kind} takes no settings: none of its layers has `inputs` of the first boot")]
    Unheard { kind: String },
    /// The first boot would refuse them.
    #[error("these settings cannot configure a machine of kind {kind}:{}", lines(.problems))]
    Settings { kind: String, problems: Vec<Problem> },
    /// The first boot reads no such file.
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
    /// No machine of the provider would get them.
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
}

fn lines(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n  {}", escape::line(problem.to_string()))).collect()
}

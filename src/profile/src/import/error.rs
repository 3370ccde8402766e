//! Errors of importing a profile.

use std::path::PathBuf;

use crate::ProfileError;
use vmbake_common::atomic_file::PublishError;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_common::spelling::of_path;
use vmbake_layer::LayerError;

/// Further keys of a document of rules.
const RULES_KEYS: &str = "`packages`, `archive`, `recommends`, `downloads`, `absent`";

/// A command of a script, with its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLocation {
    /// The script: a path of the profile's files, a unit, or `bootcmd` and `runcmd` of a phase.
    pub script: String,
    /// Its line, from 1; with templates rendered.
    pub line: u32,
    /// The command, expanded.
    pub command: String,
}

impl std::fmt::Display for CommandLocation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { script, line, command } = self;
        match command.is_empty() {
            true => write!(f, "{script}:{line}"),
            false => write!(f, "{script}:{line}: `{}`", escape::line(command)),
        }
    }
}

/// Why a profile does not become layers.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error(transparent)]
    Layer(#[from] LayerError),
    #[error(transparent)]
    Publish(#[from] PublishError),
    #[error("{path}: cannot read or create")]
    File { path: PathBuf, source: std::io::Error },
    #[error("{path}: {message}")]
    Document {
        path: PathBuf,
        /// What is wrong, with line and column.
        message: String,
    },
    #[error("unsupported operating system {found}: expected {known}")]
    System { found: String, known: String },
    #[error("{asked} is not tested")]
    Untested {
        /// System, provider, architecture and Kubernetes version that are asked for.
        asked: String,
        /// The combination that is most like it.
        nearest: String,
    },
    #[error("{place}: {reason}")]
    Statement { place: CommandLocation, reason: String },
    #[error("{place}: fails with status {status}{}", if .stderr.is_empty() { String::new() } else { format!(": {stderr}") })]
    Failed {
        place: CommandLocation,
        status: u8,
        /// The last line that it wrote to standard error.
        stderr: String,
    },
    #[error("{place}: {what}")]
    Limit {
        place: CommandLocation,
        /// What there is too much of.
        what: String,
    },
    #[error("{path} adds a package repository whose key is not pinned")]
    Repository { path: String },
    #[error("nothing verifies the download of {url} to {path}")]
    Unproven { url: String, path: String },
    #[error("{path}: .{field} changes a part of a line, or the end of the file")]
    Choice { path: String, field: &'static str },
    #[error("{path}: .{field} is not written in the same whole lines for each element")]
    List { path: String, field: &'static str },
    #[error("{path}: a multi-line value that only machines know is surrounded by other text")]
    SeveralLines { path: String },
    #[error("{path}: private-use characters (U+E000 to U+E00F) are not supported")]
    PrivateUse { path: String },
    #[error("{path}: {what}")]
    Tree { path: String, what: String },
    #[error("--set {option}: the image would contain this secret")]
    Secret { option: &'static str },
    #[error("--set {option}: {value:?} contains characters with a special meaning in systemd, shells or YAML")]
    Hostile { option: &'static str, value: String },
    #[error("{lock}: {name} {version} was imported with different content ({known}, now {found})")]
    Changed {
        lock: PathBuf,
        name: String,
        version: String,
        /// Digest of its `spec` at that time.
        known: String,
        /// Digest of its `spec` now.
        found: String,
    },
    #[error("{}", .0.join("\n"))]
    Collisions(Vec<String>),
    #[error("{lock}: {name} not found")]
    NoInstance { lock: PathBuf, name: String, known: Vec<String> },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ImportError {
    fn hint(&self) -> Option<String> {
        let rule = |key: &str| {
            Some(format!(
                "add a rule with --rules FILE: {{\"statements\": [{{\"command\": \"{key}\", \"drop\": \"why\"}}]}}; other keys are {RULES_KEYS}"
            ))
        };
        match self {
            Self::File { path, source } => of_path(path, source, "name a directory"),
            Self::System { .. } => Some("use --as debian-13 for images of Debian 13".to_owned()),
            Self::Untested { nearest, .. } => Some(format!(
                "use the closest tested combination, {nearest}, or skip this check with --untested; `vmbake profile list` shows all combinations"
            )),
            Self::Statement { place, .. } | Self::Failed { place, .. } => rule(&pattern(&place.command)),
            Self::Repository { path } => Some(format!(
                "in --rules FILE, drop the command that writes {path}; then replace its packages by Debian's in `packages`, or set `archive` to \
                 an archive of a --sources file, which pins the key"
            )),
            Self::Unproven { url, .. } => Some(format!(
                "verify it with sha256sum in the script, or add {{\"downloads\": {{\"{url}\": {{\"sha256\": \"...\"}}}}}} to --rules FILE"
            )),
            Self::Choice { field, .. } => Some(format!(
                "let a condition on .{field} add or remove whole lines; at the end of a file, also set `encoding: b64`"
            )),
            Self::List { field, .. } => {
                Some(format!("let `range .{field}` write whole lines; at the end of a file, also set `encoding: b64`"))
            }
            Self::SeveralLines { .. } => Some("write the value to a separate file".to_owned()),
            Self::Secret { .. } => Some("pass it to `vmbake user-data render`".to_owned()),
            Self::Changed { .. } => Some("increase spec.version of the profile".to_owned()),
            Self::Collisions(_) => Some("rename or remove the duplicates in the layers of --extend".to_owned()),
            Self::NoInstance { known, .. } if known.is_empty() => {
                Some("set --dir to the directory of `vmbake profile import --out`".to_owned())
            }
            Self::NoInstance { known, .. } => Some(format!("use one of {}", known.join(", "))),
            _ => None,
        }
    }

    fn has_lines(&self) -> bool {
        matches!(self, Self::Collisions(_))
    }

    vmbake_common::causes!(Profile, Layer, Publish, Message; File);
}

/// A command as the pattern of a rule, in JSON.
fn pattern(command: &str) -> String {
    let text = serde_json::Value::from(escape::line(command)).to_string();
    text.trim_matches('"').to_owned()
}

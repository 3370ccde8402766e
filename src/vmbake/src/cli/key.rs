//! `vmbake key`: keys that sign releases.

use std::io::Write as _;
use std::path::PathBuf;

use clap::{Args, Subcommand};
use zeroize::Zeroizing;

use super::{Failure, Outcome, files};
use vmbake_bake::release::key::{KeyError, MAX_KEY, PrivateKey};
use vmbake_common::atomic_file::{Pending, PublishError};
use vmbake_common::escape;
use vmbake_common::hint::Hint;

const EXAMPLES: &str = "\
Examples:
  vmbake key generate                             # writes release.key and release.pub
  vmbake key generate --out keys/images";

#[derive(Debug, Subcommand)]
pub(super) enum KeyCommand {
    /// Create a key pair for signing releases (ECDSA P-256)
    #[command(after_help = EXAMPLES)]
    Generate(GenerateArgs),
}

#[derive(Debug, Args)]
pub(super) struct GenerateArgs {
    /// Write NAME.key (private, mode 0600) and NAME.pub (public)
    #[arg(long, value_name = "NAME", default_value = "release")]
    out: PathBuf,
}

/// Location of a private key.
#[derive(Clone, Debug)]
pub(super) enum KeySource {
    File(PathBuf),
    /// Name of an environment variable.
    Variable(String),
}

impl std::str::FromStr for KeySource {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.strip_prefix("env://") {
            Some(name) => Self::Variable(name.to_owned()),
            None => Self::File(text.into()),
        })
    }
}

/// Error while loading a private key.
#[derive(Debug, thiserror::Error)]
pub(super) enum KeySourceError {
    #[error("{}: cannot read the key", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("environment variable {name:?} is not set to a key")]
    Unset { name: String },
    #[error("{place}: not usable as a private key")]
    Unusable { place: String, source: KeyError },
    #[error("{}: already exists: keys are never replaced", path.display())]
    Exists { path: PathBuf },
}

impl Hint for KeySourceError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => None,
            Self::Unset { .. } => {
                Some("--key env://NAME reads a PEM key from the environment variable NAME".to_owned())
            }
            Self::Unusable { source, .. } => source.hint(),
            Self::Exists { .. } => Some("choose another name with --out".to_owned()),
        }
    }

    vmbake_common::causes!(; Read, Unusable);
}

impl KeySource {
    /// Loads the key. `COSIGN_PASSWORD` decrypts it if necessary.
    pub(super) fn load(&self) -> Result<PrivateKey, KeySourceError> {
        let (place, pem) = match self {
            Self::File(path) => {
                let pem = vmbake_bake::release::read(path, MAX_KEY);
                let pem = pem.map_err(|source| KeySourceError::Read { path: path.clone(), source })?;
                (path.display().to_string(), pem)
            }
            Self::Variable(name) => {
                let unset = || KeySourceError::Unset { name: name.clone() };
                // `env::var` would panic on such a name.
                let is_name = !name.is_empty() && !name.contains(['=', '\0']);
                let text = if is_name { std::env::var(name).ok() } else { None };
                (format!("env://{name}"), text.filter(|text| !text.is_empty()).ok_or_else(unset)?.into_bytes())
            }
        };
        let pem = Zeroizing::new(pem);
        let password = || {
            use std::os::unix::ffi::OsStringExt as _;
            std::env::var_os("COSIGN_PASSWORD").map(|text| Zeroizing::new(text.into_vec()))
        };
        PrivateKey::from_pem(&pem, password).map_err(|source| KeySourceError::Unusable { place, source })
    }
}

pub(super) fn run(command: KeyCommand) -> Result<Outcome, Failure> {
    let KeyCommand::Generate(GenerateArgs { out }) = command;
    let named = |end: &str| {
        let mut name = out.clone().into_os_string();
        name.push(end);
        PathBuf::from(name)
    };
    let (private, public) = (named(".key"), named(".pub"));
    let exists = |error| match error {
        PublishError::Exists { path } => KeySourceError::Exists { path }.into(),
        other => Failure::from(other),
    };
    let key = PrivateKey::generate();
    let files = [
        (Pending::create_private(&private, false), key.to_pem()?),
        (Pending::create(&public, false), Zeroizing::new(key.public_pem()?)),
    ];
    // Both are on disk before either is renamed.
    let [private_file, public_file] = files.map(|(pending, text)| {
        let pending = pending.map_err(exists)?;
        pending.file().write_all(text.as_bytes())?;
        Ok::<_, Failure>(pending)
    });
    let (private_file, public_file) = (private_file?, public_file?);
    private_file.publish_new().map_err(exists)?;
    public_file.publish_new().map_err(exists)?;
    let line = |path: &PathBuf| escape::line(path.display().to_string()) + "\n";
    files::show(&[&private, &public].map(line).concat())
}

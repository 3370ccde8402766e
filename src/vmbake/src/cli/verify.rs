//! `vmbake verify`: verifies a release, or single links of a chain of trust to find out why one fails.

use std::error::Error;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Failure, Outcome, files};
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::input;

pub(super) mod signers;
pub(super) mod image;
mod rebuild;
mod apt;
mod checksum;
mod sigstore;
mod cosign;
mod oci;

#[cfg(feature = "report")]
pub(super) use image::place;

#[derive(Debug, Subcommand)]
pub(super) enum Verify {
    /// Verify a release: digests, signatures, provenance, origin of files, and proofs of all inputs
    Image(Box<image::Args>),
    /// Verify a package of a local apt repository: InRelease, Packages, .deb
    Apt(apt::Args),
    /// Verify a file against a checksum file
    Checksum(checksum::Args),
    /// Verify a file against a sigstore bundle, or one of several in a .jsonl file
    Sigstore(sigstore::Args),
    /// Verify a file against a cosign signature and certificate
    Cosign(cosign::Args),
    /// Verify a container image in an OCI layout: index, manifest, config, layers
    Oci(oci::Args),
}

pub(super) fn run(verify: Verify) -> Result<Outcome, Failure> {
    match verify {
        Verify::Image(args) => image::run(&args),
        Verify::Apt(args) => apt::run(&args),
        Verify::Checksum(args) => checksum::run(&args),
        Verify::Sigstore(args) => sigstore::run(&args),
        Verify::Cosign(args) => cosign::run(&args),
        Verify::Oci(args) => oci::run(&args),
    }
}

pub(super) fn time(text: &str) -> Result<Timestamp, jiff::Error> {
    text.parse()
}

/// Error of a verification.
#[derive(Debug, thiserror::Error)]
pub(super) enum EvidenceError {
    #[error("{}: cannot read", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: larger than {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },
    #[error("{}: not usable", path.display())]
    Unusable { path: PathBuf, source: Box<dyn Error + Send + Sync> },
    #[error("{}: not proven by {}", artifact.display(), by.display())]
    Unproven { artifact: PathBuf, by: PathBuf, source: Box<dyn Error + Send + Sync> },
}

impl Hint for EvidenceError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Read { .. } | Self::TooLarge { .. } | Self::Unusable { .. } => {
                "see --help of the command for the expected files"
            }
            Self::Unproven { .. } => {
                "the file or its proof may be corrupt or of another version; set the expected signer with --key or the --certificate options \
                 (see --help)"
            }
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(; Read);
}

impl EvidenceError {
    /// Adds the path to an error.
    fn unusable(path: &Path, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unusable { path: path.to_owned(), source: error.into() }
    }

    /// Adds the artifact and the file that should prove it to an error.
    fn unproven(artifact: &Path, by: &Path, error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Unproven { artifact: artifact.to_owned(), by: by.to_owned(), source: error.into() }
    }
}

/// Reads a file of at most `limit` bytes.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, EvidenceError> {
    let failed = |source| EvidenceError::Read { path: path.to_owned(), source };
    let file = input::open(path).map_err(failed)?;
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).map_err(failed)?;
    if content.len() as u64 > limit {
        return Err(EvidenceError::TooLarge { path: path.to_owned(), limit });
    }
    Ok(content)
}

/// Prints the result: one `key value` per line, lists separated by spaces, or a JSON object.
fn print(facts: &[(&str, Value)], json: bool) -> Result<(), Failure> {
    if json {
        let object: Map<_, _> = facts.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        files::print_json(&object)?;
    } else {
        let line = |(key, value): &(&str, Value)| format!("{key} {}\n", escape::line(plain(value)));
        files::show(&facts.iter().map(line).collect::<String>())?;
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(values) => values.iter().map(plain).collect::<Vec<_>>().join(" "),
        other => other.to_string(),
    }
}

//! `vmbake verify checksum`: a file against a checksum file.

use std::path::PathBuf;
use vmbake_common::hint::Hint;

use super::super::{Failure, Outcome};
use vmbake_common::digest::Digest;
use vmbake_common::input;
use vmbake_proof::checksum::{self, Algorithm, ChecksumError};

const EXAMPLES: &str = "\
Examples:
  vmbake verify checksum --sums SHA256SUMS containerd-2.1.4-linux-amd64.tar.gz
  vmbake verify checksum --sums SHA512SUMS --algorithm sha512 debian-13-genericcloud-amd64.qcow2";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// Checksum file
    #[arg(long, value_name = "FILE")]
    sums: PathBuf,
    /// The only algorithm that counts [default: the strongest that the file has]
    #[arg(long)]
    algorithm: Option<Algorithm>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// The file to check; its name is looked up in the checksum file
    artifact: PathBuf,
}

/// Why a file is not the one that a checksum file describes.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: proves nothing")]
    Sums { path: PathBuf, source: ChecksumError },
    #[error("{path}: has digest {found}, the checksum file says {expected}")]
    Digest { path: PathBuf, expected: Box<Digest>, found: Box<Digest> },
}

impl Hint for Refused {
    vmbake_common::causes!(; Read, Sums);
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = args.artifact.file_name().unwrap_or_default().to_string_lossy();
    let sums = super::read(&args.sums, checksum::MAX_LEN as u64)?;
    let expected = checksum::find(&sums, &name, args.algorithm)
        .map_err(|source| Refused::Sums { path: args.sums.clone(), source })?;
    let read = |source| Refused::Read { path: args.artifact.clone(), source };
    let (found, size) = expected.of_stream(input::open(&args.artifact).map_err(read)?).map_err(read)?;
    if found != expected {
        let (path, expected, found) = (args.artifact.clone(), Box::new(expected), Box::new(found));
        return Err(Refused::Digest { path, expected, found }.into());
    }
    let facts = [("artifact", name.into_owned().into()), ("digest", found.to_string().into()), ("size", size.into())];
    super::print(&facts, args.json)?;
    Ok(Outcome::Clean)
}

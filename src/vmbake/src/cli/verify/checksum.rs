//! `vmbake verify checksum`: verifies a file against a checksum file.

use std::path::PathBuf;

use super::super::{Failure, Outcome};
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_common::message;
use vmbake_common::message::{FileError, Message};
use vmbake_proof::checksum::{self, Algorithm};

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
    /// Algorithm to use [default: the strongest in the checksum file]
    #[arg(long)]
    algorithm: Option<Algorithm>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// File to verify; its name is looked up in the checksum file
    artifact: PathBuf,
}

/// Error of a verification by checksum file.
#[derive(Debug, thiserror::Error)]
enum Refused {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for Refused {
    vmbake_common::causes!(File, Message);
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let name = args.artifact.file_name().unwrap_or_default().to_string_lossy();
    let sums = super::read(&args.sums, checksum::MAX_LEN as u64)?;
    let expected = checksum::find(&sums, &name, args.algorithm)
        .map_err(|source| Refused::Message(message!("{}: not a proof", args.sums.display()).by(source)))?;
    let read = |source| Refused::File(FileError::new(args.artifact.clone(), "read", source));
    let (found, size) = expected.of_stream(input::open(&args.artifact).map_err(read)?).map_err(read)?;
    if found != expected {
        let (path, expected, found) = (args.artifact.clone(), Box::new(expected), Box::new(found));
        return Err(Refused::Message(message!(
            "{}: expected digest {expected} of the checksum file, found {found}",
            path.display()
        ))
        .into());
    }
    let facts = [("artifact", name.into_owned().into()), ("digest", found.to_string().into()), ("size", size.into())];
    super::print(&facts, args.json)?;
    Ok(Outcome::Clean)
}

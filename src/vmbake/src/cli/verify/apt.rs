//! `vmbake verify apt`: verifies a package of a local repository, from the signature to the file.

use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use super::super::{Failure, Outcome};
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_common::message::FileError;
use vmbake_proof::apt::{Expect, IndexFile, Package, Packages, Release};
use vmbake_proof::openpgp::Keyring;

/// Maximum length of an `InRelease`; the verifier has a smaller limit.
const MAX_IN_RELEASE: u64 = 64 << 20;

const EXAMPLES: &str = "\
Examples:
  vmbake verify apt --keyring trust/debian-archive.asc --suite trixie --component main --arch amd64 --package runc /srv/debian";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// Trusted keys, armored or binary
    #[arg(long, value_name = "FILE")]
    keyring: PathBuf,
    /// Suite or codename, as in dists/; for a flat repository, / or a directory with a trailing /
    #[arg(long, value_parser = suite)]
    suite: String,
    /// Component; omit it for a flat repository
    #[arg(long, value_parser = path)]
    component: Option<String>,
    /// Debian architecture
    #[arg(long, value_parser = path)]
    arch: String,
    /// Package; its newest version is verified
    #[arg(long)]
    package: String,
    /// Verification time, RFC 3339 [default: now]
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    now: Option<Timestamp>,
    /// Date of the last seen InRelease; older ones are refused
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    previous_date: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Local repository with dists/ and pool/, or flat
    #[arg(value_name = "DIR")]
    repository: PathBuf,
}

/// Error while opening a file of the repository.
#[derive(Debug, thiserror::Error)]
enum RepositoryError {
    #[error("{dir}: no index that InRelease lists was found")]
    NoIndex { dir: PathBuf },
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for RepositoryError {
    vmbake_common::causes!(File);
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let keyring = Keyring::load(&args.keyring)?;
    let dists = match args.suite.strip_suffix('/') {
        Some(directory) => args.repository.join(directory),
        None => args.repository.join("dists").join(&args.suite),
    };
    let now = args.now.unwrap_or_else(Timestamp::now);
    let expect = Expect { suite: &args.suite, now, previous: args.previous_date };
    let in_release = dists.join("InRelease");
    let release = match in_release.exists() || !dists.join("Release.gpg").exists() {
        true => Release::verify(&read(&in_release)?, &keyring, &expect)?,
        false => {
            let signature = read(&dists.join("Release.gpg"))?;
            Release::verify_detached(&read(&dists.join("Release"))?, &signature, &keyring, &expect)?
        }
    };
    let (index, file) = open_index(&dists, release.indexes(args.component.as_deref(), &args.arch)?)?;
    let packages = Packages::read(&index, file, &[&args.package])?;
    let package = packages.newest(&args.package)?;
    package.check(&package.filename, open(&args.repository.join(&package.filename))?)?;
    print(args, &release, package)?;
    Ok(Outcome::Clean)
}

/// The first existing index, by digest if the archive supports by-hash.
fn open_index(dists: &Path, indexes: Vec<IndexFile>) -> Result<(IndexFile, File), RepositoryError> {
    for index in indexes {
        let by_hash = index.by_hash.as_ref().map(|path| dists.join(path));
        for path in by_hash.into_iter().chain([dists.join(&index.path)]) {
            match input::open_regular(&path) {
                Ok(file) => return Ok((index, file)),
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(source) => return Err(RepositoryError::File(FileError::new(path, "read", source))),
            }
        }
    }
    Err(RepositoryError::NoIndex { dir: dists.to_owned() })
}

fn open(path: &Path) -> Result<File, RepositoryError> {
    input::open(path).map_err(|source| RepositoryError::File(FileError::new(path, "read", source)))
}

fn read(path: &Path) -> Result<Vec<u8>, RepositoryError> {
    let mut bytes = Vec::new();
    let read = open(path)?.take(MAX_IN_RELEASE).read_to_end(&mut bytes);
    read.map_err(|source| RepositoryError::File(FileError::new(path, "read", source)))?;
    Ok(bytes)
}

fn print(args: &Args, release: &Release, package: &Package) -> Result<(), Failure> {
    let mut facts: Vec<(&str, Value)> = vec![
        ("package", package.package.as_str().into()),
        ("version", package.version.to_string().into()),
        ("arch", package.arch.as_str().into()),
        ("filename", package.filename.as_str().into()),
        ("size", package.size.into()),
        ("digest", package.digest.to_string().into()),
        ("suite", release.suite().into()),
        ("date", release.date().to_string().into()),
        ("signers", release.signers().into()),
    ];
    facts.extend(release.valid_until().map(|until| ("valid_until", until.to_string().into())));
    super::print(&facts, args.json)
}

/// A suite, or the directory of a flat archive.
fn suite(text: &str) -> Result<String, String> {
    let inner = text.strip_suffix('/').unwrap_or(text);
    if inner.is_empty() && !text.is_empty() { Ok(text.to_owned()) } else { path(inner).map(|_| text.to_owned()) }
}

/// A name that is used as a path component.
fn path(text: &str) -> Result<String, String> {
    let plain = |part: &str| !matches!(part, "" | "." | "..");
    if text.split('/').all(plain) { Ok(text.to_owned()) } else { Err("not a relative path".to_owned()) }
}

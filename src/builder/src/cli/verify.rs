//! `vmbake verify`: each chain of verification by hand, for those who look into one that does not hold.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Failure, Outcome, files};
use crate::escape;

mod apt;
mod checksum;
mod sigstore;
mod cosign;
mod oci;

#[derive(Debug, Subcommand)]
pub(super) enum Verify {
    /// Prove a package of a local apt repository: InRelease, Packages, deb
    Apt(apt::Args),
    /// Prove a file by a checksum file
    Checksum(checksum::Args),
    /// Prove a file with a sigstore bundle, or one of several in a .jsonl
    Sigstore(sigstore::Args),
    /// Prove a file with the .sig and .cert of cosign
    Cosign(cosign::Args),
    /// Prove a container image of an OCI layout: index, manifest, config, layers
    Oci(oci::Args),
}

pub(super) fn run(verify: Verify) -> Result<Outcome, Failure> {
    match verify {
        Verify::Apt(args) => apt::run(&args),
        Verify::Checksum(args) => checksum::run(&args),
        Verify::Sigstore(args) => sigstore::run(&args),
        Verify::Cosign(args) => cosign::run(&args),
        Verify::Oci(args) => oci::run(&args),
    }
}

/// A time on the command line: RFC 3339.
fn time(text: &str) -> Result<Timestamp, jiff::Error> {
    text.parse()
}

/// A file of at most `limit` bytes.
fn read(path: &Path, limit: u64) -> Result<Vec<u8>, Failure> {
    let at = |error: String| format!("{}: {error}", path.display());
    let file = File::open(path).map_err(|error| at(error.to_string()))?;
    let mut content = Vec::new();
    file.take(limit + 1).read_to_end(&mut content).map_err(|error| at(error.to_string()))?;
    if content.len() as u64 > limit {
        return Err(at(format!("more than {limit} bytes")).into());
    }
    Ok(content)
}

/// Prints what was proven: one `key value` a line, lists with spaces, or a JSON object.
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

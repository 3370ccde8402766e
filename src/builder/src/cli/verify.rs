//! `vmbake verify`: each chain of verification by hand, for those who look into one that does not hold.

use clap::Subcommand;
use jiff::Timestamp;
use serde_json::{Map, Value};

use super::{Failure, Outcome};

mod apt;
mod cosign;
mod sigstore;

#[derive(Debug, Subcommand)]
pub(super) enum Verify {
    /// Prove a package of a local apt repository: InRelease, Packages, deb
    Apt(apt::Args),
    /// Prove a file with a sigstore bundle, or one of several in a .jsonl
    Sigstore(sigstore::Args),
    /// Prove a file with the .sig and .cert of cosign
    Cosign(cosign::Args),
}

pub(super) fn run(verify: Verify) -> Result<Outcome, Failure> {
    match verify {
        Verify::Apt(args) => apt::run(&args),
        Verify::Sigstore(args) => sigstore::run(&args),
        Verify::Cosign(args) => cosign::run(&args),
    }
}

/// A time on the command line: RFC 3339.
fn time(text: &str) -> Result<Timestamp, jiff::Error> {
    text.parse()
}

/// Prints what was proven: one `key value` a line, lists with spaces, or a JSON object.
fn print(facts: &[(&str, Value)], json: bool) -> Result<(), Failure> {
    if json {
        let object: Map<_, _> = facts.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        println!("{}", serde_json::to_string_pretty(&object)?);
    } else {
        facts.iter().for_each(|(key, value)| println!("{key} {}", plain(value)));
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

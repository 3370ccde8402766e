//! `vmbake sign`: signs the outputs of a bake.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::key::KeySource;
use super::{Failure, Outcome, files};
use vmbake_bake::release::sign::sign;
use vmbake_common::escape;

const EXAMPLES: &str = "\
Examples:
  vmbake sign dist --key release.key
  vmbake sign dist --key cosign.key               # with the password in $COSIGN_PASSWORD
  vmbake sign dist --key env://SIGNING_KEY --label ci";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct SignArgs {
    /// Output directory of a bake
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Private key: PKCS#8 PEM, cosign.key with $COSIGN_PASSWORD, or env://NAME for an environment variable
    #[arg(long, value_name = "KEY")]
    key: KeySource,
    /// Write NAME.LABEL.sigstore.json, to keep signatures of others
    #[arg(long, value_parser = label)]
    label: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A part of a file's name.
pub(super) fn label(text: &str) -> Result<String, &'static str> {
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "-_".contains(char);
    if !text.is_empty() && text.len() <= 64 && text.chars().all(is_plain) {
        return Ok(text.to_owned());
    }
    Err("expected at most 64 letters, digits, - and _")
}

pub(super) fn run(args: &SignArgs) -> Result<Outcome, Failure> {
    let key = args.key.load()?;
    let signed = sign(&args.folder, &key, args.label.as_deref())?;
    if args.json {
        return files::print_json(&json!({"key_hint": key.hint()?, "bundles": signed}));
    }
    files::show(&signed.iter().map(|path| escape::line(path.display().to_string()) + "\n").collect::<String>())
}

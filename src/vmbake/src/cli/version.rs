//! `vmbake --version`; with `--json`, also the digests of the built-in first-boot programs, on which the bytes of images depend.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Failure, Outcome, files};
use vmbake_embedded::PROGRAMS;

/// What `--json` prints.
#[derive(Serialize)]
struct Version {
    version: &'static str,
    /// By architecture.
    firstboot: BTreeMap<&'static str, Program>,
}

#[derive(Serialize)]
struct Program {
    digest: String,
    /// In bytes.
    size: usize,
}

pub(super) fn run(json: bool) -> Result<Outcome, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let program = |digest: &str, bytes: &[u8]| Program { digest: format!("sha256:{digest}"), size: bytes.len() };
    let firstboot = PROGRAMS.iter().map(|(arch, digest, bytes)| (*arch, program(digest, bytes))).collect();
    let text = match json {
        true => serde_json::to_string_pretty(&Version { version, firstboot })?,
        false => format!("vmbake {version}"),
    };
    files::print(&(text + "\n"))?;
    Ok(Outcome::Clean)
}

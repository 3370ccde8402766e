//! Sigstore and cosign signatures: real ones, those of sigstore's conformance suite, and forged ones.

use std::path::{Path, PathBuf};

mod log;
mod cases;
mod bundles;
mod statements;
mod detached;

/// A file below `tests/data/sigstore/`.
fn path(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/sigstore").join(name)
}

fn data(name: &str) -> Vec<u8> {
    std::fs::read(path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// An error with everything that caused it, as the command line prints it.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

//! Layers: what is installed into an image and why, as data.
//!
//! What enters are `<layer>/layer.json` and the files below `<layer>/files/`, from a directory or from the program
//! itself; what leaves is the ordered list of layers that make up a kind. `layers/README.md` documents the format.

mod schema;
mod set;

pub use schema::{
    Account, Alternative, AuditedScript, Install, Layer, LayerFile, Ownership, Schema, ScriptUnits, Subordinate, Units,
};
pub use set::Layers;

use std::path::PathBuf;

/// Why layers cannot be used.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "each message says what its variant means")]
pub enum LayerError {
    #[error("{path}: cannot read the layer")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}:{line}:{column}: {message}")]
    Syntax { path: PathBuf, line: usize, column: usize, message: String },
    #[error("{path}: {message}")]
    Invalid { path: PathBuf, message: String },
    #[error("layer {name} does not exist; there are {known}")]
    Unknown { name: String, known: String },
    #[error("layer {name} does not support {os}, only {supported}")]
    Unsupported { name: String, os: String, supported: String },
    #[error("layers require each other in a circle: {path}")]
    Cycle { path: String },
}

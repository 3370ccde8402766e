//! `vmbake schema`: the forms of files that people write, for editors and other programs.

use clap::Subcommand;

use super::{Failure, Outcome, files};
use crate::layer;

#[derive(Debug, Subcommand)]
pub(super) enum Schema {
    /// The form of layer.json, as JSON Schema draft 2020-12
    Layer,
}

pub(super) fn run(what: &Schema) -> Result<Outcome, Failure> {
    let schema = match what {
        Schema::Layer => schemars::schema_for!(layer::Schema),
    };
    files::print(&(serde_json::to_string_pretty(&schema)? + "\n"))
}

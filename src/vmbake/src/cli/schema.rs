//! `vmbake schema`: the forms of files that people or vmbake write, for editors and other programs.

use clap::Subcommand;

use super::{Failure, Outcome, examples, files};
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::release::policy::ReleasePolicy;
use vmbake_distribute::bundle::document::BundleDocument;
use vmbake_layer as layer;
use vmbake_profile::import::Rules;

#[derive(Debug, Subcommand)]
pub(super) enum SchemaCommand {
    /// The form of layer.json, as JSON Schema draft 2020-12
    #[command(after_help = examples::SCHEMA_LAYER)]
    Layer,
    /// The form of NAME.inputs.json, which a bake writes beside its images, as JSON Schema draft 2020-12
    #[command(after_help = examples::SCHEMA_INPUTS)]
    Inputs,
    /// The form of a policy for `vmbake verify image`, as JSON Schema draft 2020-12
    #[command(after_help = examples::SCHEMA_POLICY)]
    Policy,
    /// The form of rules for `vmbake profile import`, as JSON Schema draft 2020-12
    #[command(after_help = examples::SCHEMA_RULES)]
    Rules,
    /// The form of bundle.json, as JSON Schema draft 2020-12
    #[command(after_help = examples::SCHEMA_BUNDLE)]
    Bundle,
}

pub(super) fn run(what: &SchemaCommand) -> Result<Outcome, Failure> {
    let schema = match what {
        SchemaCommand::Layer => schemars::schema_for!(layer::Schema),
        SchemaCommand::Inputs => schemars::schema_for!(BuildInputs),
        SchemaCommand::Policy => schemars::schema_for!(ReleasePolicy),
        SchemaCommand::Rules => schemars::schema_for!(Rules),
        SchemaCommand::Bundle => schemars::schema_for!(BundleDocument),
    };
    files::print(&(serde_json::to_string_pretty(&schema)? + "\n"))
}

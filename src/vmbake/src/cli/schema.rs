//! `vmbake schema`: JSON Schemas of input and output files.

use clap::Subcommand;

use super::{Failure, Outcome, files};
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::release::policy::ReleasePolicy;
use vmbake_bundle::document::BundleDocument;
use vmbake_layer as layer;
#[cfg(feature = "profile")]
use vmbake_profile::import::Rules;

const LAYER_EXAMPLES: &str = "\
Examples:
  vmbake schema layer > layer.schema.json         # for completion and checks in an editor";

const INPUTS_EXAMPLES: &str = "\
Examples:
  vmbake schema inputs > inputs.schema.json";

const POLICY_EXAMPLES: &str = "\
Examples:
  vmbake schema policy > policy.schema.json";

#[cfg(feature = "profile")]
const RULES_EXAMPLES: &str = "\
Examples:
  vmbake schema rules > rules.schema.json";

const BUNDLE_EXAMPLES: &str = "\
Examples:
  vmbake schema bundle > bundle.schema.json";

#[derive(Debug, Subcommand)]
pub(super) enum SchemaCommand {
    /// Print the JSON Schema of layer.json (draft 2020-12)
    #[command(after_help = LAYER_EXAMPLES)]
    Layer,
    /// Print the JSON Schema of NAME.inputs.json, the record of a bake's inputs (draft 2020-12)
    #[command(after_help = INPUTS_EXAMPLES)]
    Inputs,
    /// Print the JSON Schema of a policy for `vmbake verify image` (draft 2020-12)
    #[command(after_help = POLICY_EXAMPLES)]
    Policy,
    #[cfg(feature = "profile")]
    /// Print the JSON Schema of rules for `vmbake profile import` (draft 2020-12)
    #[command(after_help = RULES_EXAMPLES)]
    Rules,
    /// Print the JSON Schema of bundle.json (draft 2020-12)
    #[command(after_help = BUNDLE_EXAMPLES)]
    Bundle,
}

pub(super) fn run(what: &SchemaCommand) -> Result<Outcome, Failure> {
    let schema = match what {
        SchemaCommand::Layer => schemars::schema_for!(layer::Schema),
        SchemaCommand::Inputs => schemars::schema_for!(BuildInputs),
        SchemaCommand::Policy => schemars::schema_for!(ReleasePolicy),
        #[cfg(feature = "profile")]
        SchemaCommand::Rules => schemars::schema_for!(Rules),
        SchemaCommand::Bundle => schemars::schema_for!(BundleDocument),
    };
    files::print(&(serde_json::to_string_pretty(&schema)? + "\n"))
}

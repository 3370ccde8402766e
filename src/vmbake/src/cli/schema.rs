//! `vmbake schema`: the forms of files that people or vmbake write, for editors and other programs.

use clap::Subcommand;

use super::{Failure, Outcome, files};
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::release::policy::ReleasePolicy;
use vmbake_distribute::bundle::document::BundleDocument;
use vmbake_layer as layer;
#[cfg(feature = "profile")]
use vmbake_profile::import::Rules;

const LAYER_EXAMPLES: &str = "\
Examples:
  vmbake schema layer > layer.schema.json         # for the editor's completion and checks";

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
    /// The form of layer.json, as JSON Schema draft 2020-12
    #[command(after_help = LAYER_EXAMPLES)]
    Layer,
    /// The form of NAME.inputs.json, which a bake writes beside its images, as JSON Schema draft 2020-12
    #[command(after_help = INPUTS_EXAMPLES)]
    Inputs,
    /// The form of a policy for `vmbake verify image`, as JSON Schema draft 2020-12
    #[command(after_help = POLICY_EXAMPLES)]
    Policy,
    #[cfg(feature = "profile")]
    /// The form of rules for `vmbake profile import`, as JSON Schema draft 2020-12
    #[command(after_help = RULES_EXAMPLES)]
    Rules,
    /// The form of bundle.json, as JSON Schema draft 2020-12
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

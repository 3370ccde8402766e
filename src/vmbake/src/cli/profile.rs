//! `vmbake profile`: profiles of the operating-system-manager.

mod import;
mod look;
mod render;

use clap::Subcommand;

use super::{Failure, Outcome, examples};

#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// Print what the operating-system-manager makes of a profile, and on stderr how large the user data is
    #[command(after_help = examples::PROFILE_RENDER)]
    Render(render::RenderArgs),
    /// Make layers and manifests of a profile, so that its machines start from an image and install nothing
    #[command(after_help = examples::PROFILE_IMPORT)]
    Import(Box<import::ImportArgs>),
    /// Tell what differs between two imports of profiles, and whether machines have to be replaced; exit 1 if anything does
    #[command(after_help = examples::PROFILE_DIFF)]
    Diff(look::DiffArgs),
    /// List systems, providers, architectures and versions of Kubernetes for which imports are tested
    #[command(after_help = examples::PROFILE_LIST)]
    List(look::ListArgs),
    /// List everything that baking an imported profile takes, with digests, sizes and proofs, or write it to one file
    #[command(after_help = examples::PROFILE_MATERIALS)]
    Materials(Box<look::MaterialsArgs>),
}

pub(super) fn run(what: ProfileCommand) -> Result<Outcome, Failure> {
    match what {
        ProfileCommand::Render(args) => render::run(&args),
        ProfileCommand::Import(args) => import::run(*args),
        ProfileCommand::Diff(args) => look::diff(&args),
        ProfileCommand::List(args) => look::list(&args),
        ProfileCommand::Materials(args) => look::materials(*args),
    }
}

/// The name and the value of one option.
fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

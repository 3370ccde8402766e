//! `vmbake profile`: profiles of the operating-system-manager.

mod import;
mod look;
mod render;

use clap::Subcommand;

use super::{Failure, Outcome};

const RENDER_EXAMPLES: &str = "\
Examples:
  vmbake profile render examples/profiles/debian.yaml --machine-deployment examples/profiles/deployment.yaml \\
      --set server-url=https://api.example.org:6443 --set api-server-token=token --set kubernetes-ca-bundle=ca.pem
  vmbake profile render examples/profiles/debian.yaml --machine-deployment examples/profiles/deployment.yaml \\
      --set server-url=https://api.example.org:6443 --set api-server-token=token --set kubernetes-ca-bundle=ca.pem \\
      --user-data bootstrap > user-data";

const IMPORT_EXAMPLES: &str = "\
Examples:
  vmbake profile import examples/profiles/debian.yaml --machine-deployment examples/profiles/deployment.yaml --out workers
  vmbake profile import osp-ubuntu.yaml --as debian-13 --machine-deployment workers.yaml --rules rules.json --out workers";

const DIFF_EXAMPLES: &str = "\
Examples:
  vmbake profile diff example-debian-workers-0a1b2c3d example-debian-workers-4e5f6a7b --dir workers";

const LIST_EXAMPLES: &str = "\
Examples:
  vmbake profile list
  vmbake profile list --json";

const MATERIALS_EXAMPLES: &str = "\
Examples:
  vmbake profile materials example-debian-workers-0a1b2c3d --dir workers
  vmbake profile materials example-debian-workers-0a1b2c3d --dir workers -o workers.tar";

#[derive(Debug, Subcommand)]
pub(super) enum ProfileCommand {
    /// Print what the operating-system-manager makes of a profile, and on stderr how large the user data is
    #[command(after_help = RENDER_EXAMPLES)]
    Render(render::RenderArgs),
    /// Make layers and manifests of a profile, so that its machines start from an image and install nothing
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(Box<import::ImportArgs>),
    /// Tell what differs between two imports of profiles, and whether machines have to be replaced; exit 1 if anything does
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(look::DiffArgs),
    /// List systems, providers, architectures and versions of Kubernetes for which imports are tested
    #[command(after_help = LIST_EXAMPLES)]
    List(look::ListArgs),
    /// List everything that baking an imported profile takes, with digests, sizes and proofs, or write it to one file
    #[command(after_help = MATERIALS_EXAMPLES)]
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

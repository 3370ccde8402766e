//! `vmbake profile`: profiles of the operating-system-manager.

mod import;
mod queries;
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
    /// Render a profile as the operating-system-manager does; print the size of the user data to stderr
    #[command(after_help = RENDER_EXAMPLES)]
    Render(render::RenderArgs),
    /// Convert a profile into layers and manifests, so that machines boot from a complete image
    #[command(after_help = IMPORT_EXAMPLES)]
    Import(Box<import::ImportArgs>),
    /// Compare two imports, and show whether machines must be replaced; exit 1 if they differ
    #[command(after_help = DIFF_EXAMPLES)]
    Diff(queries::DiffArgs),
    /// List tested systems, providers, architectures and versions of Kubernetes
    #[command(after_help = LIST_EXAMPLES)]
    List(queries::ListArgs),
    /// List all inputs of an imported profile with digests, sizes and proofs, or write them to an archive
    #[command(after_help = MATERIALS_EXAMPLES)]
    Materials(Box<queries::MaterialsArgs>),
}

pub(super) fn run(what: ProfileCommand) -> Result<Outcome, Failure> {
    match what {
        ProfileCommand::Render(args) => render::run(&args),
        ProfileCommand::Import(args) => import::run(*args),
        ProfileCommand::Diff(args) => queries::diff(&args),
        ProfileCommand::List(args) => queries::list(&args),
        ProfileCommand::Materials(args) => queries::materials(*args),
    }
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}

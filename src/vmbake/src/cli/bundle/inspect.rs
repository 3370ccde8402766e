//! `vmbake bundle inspect` and `check`, and loading bundles from a directory, a layout or a registry.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::catalog::{CatalogArgs, LayersArgs};
use super::super::network::RegistryArgs;
use super::super::{Failure, Outcome, files};
use vmbake_bundle::check::complaints;
use vmbake_bundle::contents::{BundleContents, DOCUMENT};
use vmbake_bundle::inspect::BundleSummary;
use vmbake_bundle::packed::PackedContents;
use vmbake_bundle::place::BundlePlace;
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_oci::RemoteName;
use vmbake_store::registry::{Access, Repository};

/// Prefix of registry references, which distinguishes them from paths.
const SCHEME: &str = "oci://";

const INSPECT_EXAMPLES: &str = "\
Examples:
  vmbake bundle inspect agent.oci
  vmbake bundle inspect oci://ghcr.io/acme/agent:1.0 --json";

#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub(in super::super) struct InspectArgs {
    #[command(flatten)]
    from: LocationArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

const CHECK_EXAMPLES: &str = "\
Examples:
  vmbake bundle check agent
  vmbake bundle check oci://ghcr.io/acme/agent:1.0";

#[derive(Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub(in super::super) struct CheckArgs {
    #[command(flatten)]
    from: LocationArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// Location of a bundle.
#[derive(Debug, Args)]
pub(super) struct LocationArgs {
    /// Bundle: source directory, packed bundle, or [oci://]HOST/NAME:TAG in a registry
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// A bundle that was given on the command line.
pub(super) enum Named {
    Folder(PathBuf, Box<BundleContents>),
    Packed(Box<PackedContents>),
}

impl LocationArgs {
    /// Location of a packed bundle.
    pub(super) fn location(&self) -> Result<BundlePlace, Failure> {
        locate(&self.bundle, |name| Ok((self.registry.repository(&name.repository, Access::Pull)?, name)))
    }

    /// Loads the bundle. Its layers may require layers of `catalog`.
    pub(super) fn read(&self, catalog: &Catalog) -> Result<Named, Failure> {
        if self.bundle.join(DOCUMENT).exists() {
            let contents = BundleContents::of_folder(&self.bundle, catalog)?;
            return Ok(Named::Folder(self.bundle.clone(), Box::new(contents)));
        }
        Ok(Named::Packed(Box::new(PackedContents::read(self.location()?, catalog, None)?)))
    }
}

/// The layout at a path, or the remote bundle: `open` returns its repository, and the name with a tag or digest.
pub(in super::super) fn locate(
    bundle: &Path,
    open: impl FnOnce(RemoteName) -> Result<(Repository, RemoteName), Failure>,
) -> Result<BundlePlace, Failure> {
    let Some(name) = remote_name(bundle)? else { return Ok(BundlePlace::open(bundle)?) };
    let (repository, name) = open(name)?;
    Ok(BundlePlace::Registry { repository: Box::new(repository), name })
}

/// The registry reference of a bundle; `None` for a path.
pub(super) fn remote_name(bundle: &Path) -> Result<Option<RemoteName>, Failure> {
    let text = bundle.to_string_lossy();
    Ok(match text.strip_prefix(SCHEME) {
        Some(name) => Some(name.parse()?),
        // A missing file can be a registry reference.
        None if bundle.symlink_metadata().is_err() => text.parse().ok(),
        None => None,
    })
}

pub(super) fn inspect(args: &InspectArgs) -> Result<Outcome, Failure> {
    let summary = match args.from.read(&args.layers.catalog(&args.catalog))? {
        Named::Folder(_, contents) => BundleSummary::of_folder(&contents),
        Named::Packed(packed) => BundleSummary::of_packed(&packed, packed.place.signatures(&packed.digest)?.len()),
    };
    if args.json {
        return files::print_json(&summary);
    }
    files::show(&summary.to_text())
}

pub(super) fn check(args: &CheckArgs) -> Result<Outcome, Failure> {
    let (path, complaints) = match args.from.read(&args.layers.catalog(&args.catalog))? {
        Named::Folder(path, contents) => (path, complaints(&contents)),
        Named::Packed(packed) => (packed.place.path(), complaints(&packed.contents)),
    };
    let line = |what: &String| escape::line(format!("{}: {what}", path.display())) + "\n";
    files::show(&complaints.iter().map(line).collect::<String>())?;
    Ok(if complaints.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

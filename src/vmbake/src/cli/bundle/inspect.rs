//! `vmbake bundle inspect` and `check`: bundles of a folder, a layout or a registry.

use std::path::{Path, PathBuf};

use clap::Args;

use super::super::catalog::{CatalogArgs, LayersArgs};
use super::super::network::RegistryArgs;
use super::super::{Failure, Outcome, files};
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_distribute::bundle::contents::{BundleContents, DOCUMENT};
use vmbake_distribute::bundle::inspect::BundleSummary;
use vmbake_distribute::bundle::packed::PackedContents;
use vmbake_distribute::bundle::place::BundlePlace;
use vmbake_distribute::bundle::rules::complaints;
use vmbake_oci::RemoteName;
use vmbake_store::registry::{Access, Repository};

/// How names in a registry begin, where they could be taken for paths.
const SCHEME: &str = "oci://";

const INSPECT_EXAMPLES: &str = "\
Examples:
  vmbake bundle inspect agent.oci
  vmbake bundle inspect oci://ghcr.io/acme/agent:1.0 --json";

#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub(in super::super) struct InspectArgs {
    #[command(flatten)]
    from: PlaceArgs,
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
    from: PlaceArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// Where a bundle is.
#[derive(Debug, Args)]
pub(super) struct PlaceArgs {
    /// Folder of a bundle, what `vmbake bundle pack` wrote, or HOST/NAME:TAG of a registry, perhaps with oci:// before it
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    #[command(flatten)]
    registry: RegistryArgs,
}

/// A bundle that is named on the command line.
pub(super) enum Named {
    Folder(PathBuf, Box<BundleContents>),
    Packed(Box<PackedContents>),
}

impl PlaceArgs {
    /// Where a packed bundle is.
    pub(super) fn place(&self) -> Result<BundlePlace, Failure> {
        place(&self.bundle, |name| Ok((self.registry.repository(&name.repository, Access::Pull)?, name)))
    }

    /// The bundle, whose layers may require those of `catalog`.
    pub(super) fn read(&self, catalog: &Catalog) -> Result<Named, Failure> {
        if self.bundle.join(DOCUMENT).exists() {
            let contents = BundleContents::of_folder(&self.bundle, catalog)?;
            return Ok(Named::Folder(self.bundle.clone(), Box::new(contents)));
        }
        Ok(Named::Packed(Box::new(PackedContents::read(self.place()?, catalog, None)?)))
    }
}

/// The layout at a path, or what a name in a registry stands for: `locate` gives its repository, and the name with a tag or a digest.
pub(in super::super) fn place(
    bundle: &Path,
    locate: impl FnOnce(RemoteName) -> Result<(Repository, RemoteName), Failure>,
) -> Result<BundlePlace, Failure> {
    let Some(name) = remote_name(bundle)? else { return Ok(BundlePlace::open(bundle)?) };
    let (repository, name) = locate(name)?;
    Ok(BundlePlace::Registry { repository: Box::new(repository), name })
}

/// The name of a bundle in a registry; `None` of a path.
pub(super) fn remote_name(bundle: &Path) -> Result<Option<RemoteName>, Failure> {
    let text = bundle.to_string_lossy();
    Ok(match text.strip_prefix(SCHEME) {
        Some(name) => Some(name.parse()?),
        // A file that is not there may be a name.
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

//! `vmbake publish aws gc`.

use std::num::NonZeroUsize;

use clap::Args;

use super::super::catalog::CatalogArgs;
use super::super::network::NetworkArgs;
use super::super::{Failure, Outcome, files};
use super::{AccountArgs, confirm};
use vmbake_aws::ami::gc::{Collection, Leftover, collect as remove, plan};
use vmbake_common::escape;
use vmbake_common::progress::emit_message;

#[derive(Debug, Args)]
pub(super) struct GcArgs {
    /// Family of the machine images (tag vmbake:family)
    #[arg(long)]
    family: String,
    /// Number of machine images to keep per architecture
    #[arg(long, value_name = "N")]
    keep: NonZeroUsize,
    /// Show what would be removed without changing anything
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Do not prompt for confirmation
    #[arg(long)]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    account: AccountArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

/// Removes old images after confirmation.
pub(super) fn collect(args: &GcArgs) -> Result<Outcome, Failure> {
    let aws = args.account.open(&args.network)?;
    let mut collection = plan(&aws, &args.family, args.keep.get())?;
    let goes = collection.images.iter().chain(&collection.snapshots).any(|leftover| leftover.kept.is_none());
    if !args.dry_run && goes {
        if !args.yes {
            emit_message(table(&collection).trim_end());
            confirm("machine images and snapshots will be removed")?;
        }
        remove(&aws, &mut collection)?;
    }
    if args.json {
        return files::print_json(&collection);
    }
    files::show(&table(&collection))
}

fn table(collection: &Collection) -> String {
    let row = |Leftover { id, name, kept }: &Leftover| {
        let (state, why) = kept.as_deref().map_or(("removed", String::new()), |why| ("kept", format!("  {why}")));
        escape::line(format!("{state:<8}  {id:<22}  {name}{why}")) + "\n"
    };
    let rows = collection.images.iter().chain(&collection.snapshots).map(row);
    let unfinished = collection.unfinished.iter().map(|id| format!("{:<8}  {id:<22}  unfinished\n", "kept"));
    rows.chain(unfinished).collect()
}

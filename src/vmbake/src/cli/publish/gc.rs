//! Removes old images of a cloud: `vmbake publish aws gc`.

use std::num::NonZeroUsize;

use clap::Args;

use super::super::catalog::CatalogArgs;
use super::super::network::NetworkArgs;
use super::super::{Failure, Outcome, files};
use super::{Account, confirm};
use vmbake_common::escape;
use vmbake_common::progress::emit_message;
use vmbake_publish::{Collection, Leftover, Publisher};

#[derive(Debug, Args)]
pub(super) struct GcArgs<A: Account> {
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
    account: A,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

impl<A: Account> GcArgs<A> {
    /// Removes old images after confirmation.
    pub(super) fn run(&self) -> Result<Outcome, Failure> {
        let cloud = self.account.open(&self.network)?;
        let mut collection = cloud.list(&self.family, self.keep.get())?;
        let goes = collection.images.iter().chain(&collection.snapshots).any(|leftover| leftover.kept.is_none());
        if !self.dry_run && goes {
            if !self.yes {
                emit_message(table(&collection).trim_end());
                confirm("machine images and snapshots will be removed")?;
            }
            cloud.remove(&mut collection)?;
        }
        if self.json {
            return files::print_json(&collection);
        }
        files::show(&table(&collection))
    }
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

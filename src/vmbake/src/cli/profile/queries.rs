//! `vmbake profile diff`, `list` and `materials`.

use std::path::PathBuf;

use clap::Args;

use super::super::archive::{self, CreateArgs};
use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::NetworkArgs;
use super::super::pinned::PinnedArgs;
use super::super::{Failure, Outcome, files, manifest};
use super::import::{LAYERS, MANIFESTS};
use vmbake_common::escape;
use vmbake_common::progress::emit_message;
use vmbake_profile::import::{InstanceDifference, Lock, SUPPORT};

#[derive(Debug, Args)]
pub(in crate::cli) struct DiffArgs {
    /// Kind of the earlier import
    old: String,
    /// Kind of the later import
    new: String,
    /// Directory of the imports
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct ListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct MaterialsArgs {
    /// Kind of the import
    kind: String,
    /// Directory of the imports
    #[arg(long, value_name = "DIR")]
    dir: PathBuf,
    /// Architecture of the images
    #[arg(long, default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: String,
    /// Write all inputs to an archive for `vmbake archive apply`
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: Option<PathBuf>,
    /// Base image, if the manifest pins a custom one
    #[arg(long, value_name = "FILE", requires = "out")]
    base: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn diff(args: &DiffArgs) -> Result<Outcome, Failure> {
    let lock = Lock::open(&args.dir)?;
    let found = lock.instance(&args.old)?.differences(lock.instance(&args.new)?);
    match args.json {
        true => drop(files::print_json(&found)?),
        false => drop(files::show(&found.iter().map(line).collect::<String>())?),
    }
    let rotates = found.iter().any(|difference| difference.rotates);
    emit_message(match (found.is_empty(), rotates) {
        (true, _) => "no differences",
        (false, true) => "replace the machines: their image differs",
        (false, false) => "the image is unchanged: machines can be kept",
    });
    Ok(if found.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

fn line(difference: &InstanceDifference) -> String {
    let InstanceDifference { what, old, new, .. } = difference;
    let shown = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    escape::line(format!("{what}: {} -> {}", shown(old), shown(new))) + "\n"
}

pub(super) fn list(args: &ListArgs) -> Result<Outcome, Failure> {
    if args.json {
        return files::print_json(&*SUPPORT);
    }
    let lines = SUPPORT.tested.iter().map(|tested| {
        let join = |set: &std::collections::BTreeSet<String>| set.iter().cloned().collect::<Vec<_>>().join(", ");
        format!("{}  {:22}  {:13}  {}\n", tested.os, tested.provider, join(&tested.arches), join(&tested.kubernetes))
    });
    files::show(&lines.collect::<String>())
}

pub(super) fn materials(args: MaterialsArgs) -> Result<Outcome, Failure> {
    let lock = Lock::open(&args.dir)?;
    let instance = lock.instance(&args.kind)?;
    let manifests = args.dir.join(MANIFESTS);
    let Some(out) = args.out else {
        let file = manifests.join(format!("{}.{}.{}.json", args.kind, instance.os, args.arch));
        return manifest::show(&file, args.json, (&args.network, &args.trust, &args.catalog));
    };
    let pinned = PinnedArgs::of(args.kind.clone(), instance.os.clone(), args.arch, None, manifests);
    let layers = args.layers.with(args.dir.join(LAYERS));
    let create = CreateArgs::of_kind(pinned, (args.base, out), (layers, args.network), (args.trust, args.catalog));
    archive::run(archive::ArchiveCommand::Create(Box::new(create)))
}

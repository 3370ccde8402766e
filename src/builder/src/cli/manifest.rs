//! `vmbake manifest`: what a manifest pins, and who answers for it.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde::Serialize;

use super::{Failure, Outcome, files};
use crate::escape;
use crate::manifest::{Manifest, Proof};
use crate::policy;
use crate::progress::human_bytes;
use crate::sources::Sources;

#[derive(Debug, Args)]
pub(super) struct ManifestArgs {
    #[command(subcommand)]
    command: ManifestCommand,
}

#[derive(Debug, Subcommand)]
enum ManifestCommand {
    /// List the entries of a manifest with their proofs; exit 1 if one is weaker than its source demands
    Show {
        /// The manifest's file
        file: PathBuf,
        /// Where upstreams live and what proves them, instead of what is built in
        #[arg(long, value_name = "FILE")]
        sources: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// One line of the list.
#[derive(Serialize)]
struct Line {
    name: String,
    version: String,
    size: u64,
    digest: String,
    url: String,
    proof: Option<Proof>,
}

pub(super) fn run(args: ManifestArgs) -> Result<Outcome, Failure> {
    let ManifestCommand::Show { file, sources, json } = args.command;
    let manifest = Manifest::load(&file)?;
    let lines = lines(&manifest);
    match json {
        true => files::print_json(&lines)?,
        false => files::show(&lines.iter().map(show).collect::<String>())?,
    };
    policy::check(&Sources::load(sources.as_deref())?, manifest.content())?;
    Ok(Outcome::Clean)
}

fn lines(manifest: &Manifest) -> Vec<Line> {
    let content = manifest.content();
    let base = content.os.image.iter().map(|image| ("os.image", image));
    let dependencies = content.dependencies.iter().map(|(name, dependency)| (name.as_str(), dependency));
    let artifacts = base.chain(dependencies).map(|(name, entry)| Line {
        name: name.to_owned(),
        version: entry.version.clone(),
        size: entry.size,
        digest: entry.digest.to_string(),
        url: entry.url.clone(),
        proof: entry.proof.clone(),
    });
    let images = content.images.iter().map(|image| Line {
        name: image.image.clone(),
        version: image.platform.clone(),
        size: image.size,
        digest: image.digest.to_string(),
        url: format!("index {}", image.index),
        proof: image.proof.clone(),
    });
    artifacts.chain(images).collect()
}

fn show(line: &Line) -> String {
    let proof = line.proof.as_ref().map_or_else(|| "none".to_owned(), ToString::to_string);
    let [name, version, url, proof] = [&line.name, &line.version, &line.url, &proof].map(escape::line);
    let digest = &line.digest;
    let size = human_bytes(line.size);
    format!("{name} {version}, {size}\n    from   {url}\n    digest {digest}\n    proof  {proof}\n")
}

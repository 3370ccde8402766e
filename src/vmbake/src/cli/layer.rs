//! `vmbake layer`: checks, lists and releases layers.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::catalog::{CatalogArgs, LayersArgs};
use super::{Failure, Outcome, files};
use vmbake_common::catalog::{Catalog, Root};
use vmbake_common::escape;
use vmbake_layer::{self as layer, Layers};

const CHECK_EXAMPLES: &str = "\
Examples:
  vmbake layer check layers/node
  vmbake layer check layers/*/";

const LIST_EXAMPLES: &str = "\
Examples:
  vmbake layer list
  vmbake layer list --layers layers --json";

const RELEASE_EXAMPLES: &str = "\
Examples:
  vmbake layer release layers/node";

#[derive(Debug, Subcommand)]
pub(super) enum LayerCommand {
    /// Check layers, and print all errors with file, line and column; exit 1 on an error
    #[command(after_help = CHECK_EXAMPLES)]
    Check {
        /// Directories of layers; siblings are searched for required layers
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        #[command(flatten)]
        layers: LayersArgs,
        #[command(flatten)]
        catalog: CatalogArgs,
    },
    /// List layers with their versions and requirements
    #[command(after_help = LIST_EXAMPLES)]
    List {
        #[command(flatten)]
        layers: LayersArgs,
        #[command(flatten)]
        catalog: CatalogArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Record layer versions as released in released.json; later changes then need a new version
    #[command(after_help = RELEASE_EXAMPLES)]
    Release {
        /// Directories of layers
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
        #[command(flatten)]
        layers: LayersArgs,
        #[command(flatten)]
        catalog: CatalogArgs,
    },
}

pub(super) fn run(what: LayerCommand) -> Result<Outcome, Failure> {
    match what {
        LayerCommand::Check { dirs, layers, catalog } => check(&dirs, &layers.catalog(&catalog)),
        LayerCommand::List { layers, catalog, json } => list(&layers.load(&catalog)?.complete()?, json),
        LayerCommand::Release { dirs, layers, catalog } => release(&dirs, &layers.catalog(&catalog)),
    }
}

fn check(dirs: &[PathBuf], catalog: &Catalog) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Clean;
    for dir in dirs {
        for fault in layer::check(dir, catalog)? {
            files::show(&(escape::line(fault.to_string()) + "\n"))?;
            if !fault.warning {
                outcome = Outcome::Findings;
            }
        }
    }
    Ok(outcome)
}

fn release(dirs: &[PathBuf], catalog: &Catalog) -> Result<Outcome, Failure> {
    for dir in dirs {
        let (layer, is_new) = layer::release(dir, catalog)?;
        let what = if is_new { "released" } else { "already released" };
        let line = format!("{} {}: {what}, {}", layer.schema.name, layer.schema.version, layer.digest);
        files::show(&(escape::line(line) + "\n"))?;
    }
    Ok(Outcome::Clean)
}

#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    version: &'a str,
    description: &'a str,
    /// Directory of the layer; `None` if built in.
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<String>,
    os: Vec<&'a str>,
    requires: Vec<String>,
    artifacts: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    packages: Vec<String>,
}

fn list(layers: &Layers, json: bool) -> Result<Outcome, Failure> {
    let lines = layers.with_roots().map(|(root, layer)| {
        let schema = &layer.schema;
        Line {
            name: &schema.name,
            version: &schema.version,
            description: &schema.description,
            from: (*root != Root::BuiltIn).then(|| root.to_string()),
            os: schema.os.iter().map(String::as_str).collect(),
            requires: schema.requires.iter().map(ToString::to_string).collect(),
            artifacts: schema.artifacts.keys().map(String::as_str).collect(),
            packages: schema.packages.iter().map(ToString::to_string).collect(),
        }
    });
    if json {
        return files::print_json(&lines.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(&escape::line(format!("{} {}: {}", line.name, line.version, line.description)));
        text.push('\n');
        let (requires, installs) = (line.requires.join(", "), line.artifacts.join(", "));
        let (from, packages) = (line.from.unwrap_or_default(), line.packages.join(", "));
        for (what, names) in [("from", from), ("requires", requires), ("installs", installs), ("packages", packages)] {
            if !names.is_empty() {
                text.push_str(&format!("    {what} {}\n", escape::line(names)));
            }
        }
    }
    files::show(&text)
}

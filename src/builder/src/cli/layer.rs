//! `vmbake layer`: what is wrong with layers, and which there are.

use std::path::PathBuf;

use clap::Subcommand;
use serde::Serialize;

use super::{Failure, Outcome, files};
use crate::escape;
use crate::layer::{self, Layers};

#[derive(Debug, Subcommand)]
pub(super) enum Layer {
    /// Print everything that is wrong with layers, with file, line and column; exit 1 if anything is
    Check {
        /// Directories of layers; what they require is looked for beside them, then among the built-in layers
        #[arg(required = true, value_name = "DIR")]
        dirs: Vec<PathBuf>,
    },
    /// List layers with their versions and what they require
    List {
        /// Directory of layers to list instead of the built-in ones
        #[arg(long, value_name = "DIR")]
        layers: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub(super) fn run(what: Layer) -> Result<Outcome, Failure> {
    match what {
        Layer::Check { dirs } => check(&dirs),
        Layer::List { layers, json } => list(&Layers::load(layers.as_deref())?, json),
    }
}

fn check(dirs: &[PathBuf]) -> Result<Outcome, Failure> {
    let mut outcome = Outcome::Clean;
    for dir in dirs {
        for fault in layer::check(dir)? {
            files::show(&(escape::line(fault.to_string()) + "\n"))?;
            if !fault.warning {
                outcome = Outcome::Findings;
            }
        }
    }
    Ok(outcome)
}

/// One line of the list.
#[derive(Serialize)]
struct Line<'a> {
    name: &'a str,
    version: &'a str,
    description: &'a str,
    os: Vec<&'a str>,
    requires: Vec<&'a str>,
    artifacts: Vec<&'a str>,
}

fn list(layers: &Layers, json: bool) -> Result<Outcome, Failure> {
    let lines = layers.iter().map(|layer| {
        let schema = &layer.schema;
        Line {
            name: &schema.name,
            version: &schema.version,
            description: &schema.description,
            os: schema.os.iter().map(String::as_str).collect(),
            requires: schema.requires.iter().map(String::as_str).collect(),
            artifacts: schema.artifacts.keys().map(String::as_str).collect(),
        }
    });
    if json {
        return files::print_json(&lines.collect::<Vec<_>>());
    }
    let mut text = String::new();
    for line in lines {
        text.push_str(&escape::line(format!("{} {}: {}", line.name, line.version, line.description)));
        text.push('\n');
        for (what, names) in [("requires", line.requires), ("installs", line.artifacts)] {
            if !names.is_empty() {
                text.push_str(&format!("    {what} {}\n", escape::line(names.join(", "))));
            }
        }
    }
    files::show(&text)
}

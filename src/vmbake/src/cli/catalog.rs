//! Options for the locations of layers, sources and trust anchors.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Failure;
use vmbake_common::catalog::{Catalog, Override, SORTS};
use vmbake_common::progress::{self, Event};
use vmbake_layer::Layers;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;

/// The help heading of these options. Each option has it, since clap applies the heading of a group to the options after the group as well.
pub(super) const INPUT_OPTIONS: &str = "Input options";

#[derive(Clone, Debug, Args)]
pub(super) struct CatalogArgs {
    /// Ignore built-in layers, sources and trust anchors: all, or the listed types
    #[arg(long, help_heading = INPUT_OPTIONS, value_name = "WHAT,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(default_missing_values = ["layers", "sources", "trust"])]
    no_builtin: Vec<BuiltIn>,
    /// Allow this entry, such as layers/vm or archives/debian, to override an earlier or built-in one; may be repeated
    #[arg(long = "override", help_heading = INPUT_OPTIONS, value_name = "TYPE/NAME", value_parser = entry)]
    overrides: Vec<String>,
}

/// Built-in catalog.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BuiltIn {
    Layers,
    Sources,
    Trust,
}

#[derive(Clone, Debug, Args)]
pub(super) struct LayersArgs {
    /// Directory of additional layers; may be repeated [default: ./layers, if it exists]
    #[arg(long, help_heading = INPUT_OPTIONS, value_name = "DIR")]
    layers: Vec<PathBuf>,
}

/// Default directory of layers.
pub(super) const DIRECTORY: &str = "layers";

#[derive(Clone, Debug, Args)]
pub(super) struct SourcesArgs {
    /// Additional sources file: upstream locations and required proofs; may be repeated
    #[arg(long, help_heading = INPUT_OPTIONS, value_name = "FILE")]
    sources: Vec<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct TrustArgs {
    /// Directory of additional trust anchors; may be repeated
    #[arg(long, help_heading = INPUT_OPTIONS, value_name = "DIR")]
    trust: Vec<PathBuf>,
}

fn entry(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((sort, name)) if SORTS.contains(&sort) && !name.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("expected TYPE/NAME, with TYPE one of {}", SORTS.join(", "))),
    }
}

impl CatalogArgs {
    fn catalog(&self, what: BuiltIn, paths: &[PathBuf]) -> Catalog {
        Catalog::new(!self.no_builtin.contains(&what), paths.iter().cloned()).overriding(self.overrides.iter().cloned())
    }
}

impl LayersArgs {
    /// Adds a directory.
    #[cfg(feature = "profile")]
    pub(super) fn with(mut self, directory: PathBuf) -> Self {
        self.layers.push(directory);
        self
    }

    pub(super) fn catalog(&self, catalog: &CatalogArgs) -> Catalog {
        let usual = Path::new(DIRECTORY);
        match self.layers.is_empty() && usual.is_dir() {
            true => catalog.catalog(BuiltIn::Layers, &[usual.to_owned()]),
            false => catalog.catalog(BuiltIn::Layers, &self.layers),
        }
    }

    pub(super) fn load(&self, catalog: &CatalogArgs) -> Result<Layers, Failure> {
        let layers = Layers::load(&self.catalog(catalog))?;
        report_overrides(layers.overridden());
        Ok(layers)
    }
}

impl SourcesArgs {
    pub(super) fn catalog(&self, catalog: &CatalogArgs) -> Catalog {
        catalog.catalog(BuiltIn::Sources, &self.sources)
    }

    pub(super) fn load(&self, catalog: &CatalogArgs) -> Result<Sources, Failure> {
        let sources = Sources::load(&self.catalog(catalog))?;
        report_overrides(sources.overridden());
        Ok(sources)
    }
}

impl TrustArgs {
    pub(super) fn catalog(&self, catalog: &CatalogArgs) -> Catalog {
        catalog.catalog(BuiltIn::Trust, &self.trust)
    }

    pub(super) fn load(&self, catalog: &CatalogArgs) -> Result<Anchors, Failure> {
        let anchors = Anchors::load(&self.catalog(catalog))?;
        report_overrides(anchors.overridden());
        Ok(anchors)
    }
}

/// Reports overridden entries, regardless of the verbosity.
fn report_overrides(overridden: &[Override]) {
    overridden.iter().for_each(|one| progress::emit(&Event::Override(one.clone())));
}

//! Options that say where layers, sources and trust anchors are looked up, for all commands that need any of them.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::Failure;
use vmbake_common::catalog::{Catalog, Override, SORTS};
use vmbake_common::progress::{self, Event};
use vmbake_layer::Layers;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;

/// The heading of these options in the help. It is given to each: a heading of a group goes on to the options behind the group.
pub(super) const LOOK_UP: &str = "Look-up options";

#[derive(Clone, Debug, Args)]
pub(super) struct CatalogArgs {
    /// Leave out what is built in: all of it, or what is listed
    #[arg(long, help_heading = LOOK_UP, value_name = "WHAT,...", num_args = 0..=1, require_equals = true, value_delimiter = ',')]
    #[arg(default_missing_values = ["layers", "sources", "trust"])]
    no_builtin: Vec<BuiltIn>,
    /// Let this entry of a later directory or file count, such as layers/vm or archives/debian, though an earlier one or the
    /// built-in one differs; may be repeated
    #[arg(long = "override", help_heading = LOOK_UP, value_name = "SORT/NAME", value_parser = entry)]
    overrides: Vec<String>,
}

/// What the program brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum BuiltIn {
    Layers,
    Sources,
    Trust,
}

#[derive(Clone, Debug, Args)]
pub(super) struct LayersArgs {
    /// Directory of layers, beside the built-in ones; may be repeated [default: layers, where it is]
    #[arg(long, help_heading = LOOK_UP, value_name = "DIR")]
    layers: Vec<PathBuf>,
}

/// Where layers are, unless somebody says where.
pub(super) const DIRECTORY: &str = "layers";

#[derive(Clone, Debug, Args)]
pub(super) struct SourcesArgs {
    /// Where upstreams live and what proves them, beside what is built in; may be repeated
    #[arg(long, help_heading = LOOK_UP, value_name = "FILE")]
    sources: Vec<PathBuf>,
}

#[derive(Clone, Debug, Args)]
pub(super) struct TrustArgs {
    /// Directory of trust anchors, beside the built-in ones; may be repeated
    #[arg(long, help_heading = LOOK_UP, value_name = "DIR")]
    trust: Vec<PathBuf>,
}

/// The name of an entry.
fn entry(text: &str) -> Result<String, String> {
    match text.split_once('/') {
        Some((sort, name)) if SORTS.contains(&sort) && !name.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("not SORT/NAME, where SORT is one of {}", SORTS.join(", "))),
    }
}

impl CatalogArgs {
    fn catalog(&self, what: BuiltIn, paths: &[PathBuf]) -> Catalog {
        Catalog::new(!self.no_builtin.contains(&what), paths.iter().cloned()).overriding(self.overrides.iter().cloned())
    }
}

impl LayersArgs {
    /// The same with one more directory.
    #[cfg(feature = "profile")]
    pub(super) fn with(mut self, directory: PathBuf) -> Self {
        self.layers.push(directory);
        self
    }

    /// Where layers are.
    pub(super) fn catalog(&self, catalog: &CatalogArgs) -> Catalog {
        let usual = Path::new(DIRECTORY);
        match self.layers.is_empty() && usual.is_dir() {
            true => catalog.catalog(BuiltIn::Layers, &[usual.to_owned()]),
            false => catalog.catalog(BuiltIn::Layers, &self.layers),
        }
    }

    /// All layers.
    pub(super) fn load(&self, catalog: &CatalogArgs) -> Result<Layers, Failure> {
        let layers = Layers::load(&self.catalog(catalog))?;
        tell(layers.overridden());
        Ok(layers)
    }
}

impl SourcesArgs {
    /// Where sources are.
    pub(super) fn catalog(&self, catalog: &CatalogArgs) -> Catalog {
        catalog.catalog(BuiltIn::Sources, &self.sources)
    }

    pub(super) fn load(&self, catalog: &CatalogArgs) -> Result<Sources, Failure> {
        let sources = Sources::load(&self.catalog(catalog))?;
        tell(sources.overridden());
        Ok(sources)
    }
}

impl TrustArgs {
    /// Where trust anchors are.
    pub(super) fn catalog(&self, catalog: &CatalogArgs) -> Catalog {
        catalog.catalog(BuiltIn::Trust, &self.trust)
    }

    pub(super) fn load(&self, catalog: &CatalogArgs) -> Result<Anchors, Failure> {
        let anchors = Anchors::load(&self.catalog(catalog))?;
        tell(anchors.overridden());
        Ok(anchors)
    }
}

/// Says which entries took the place of others, whatever else is not said.
fn tell(overridden: &[Override]) {
    overridden.iter().for_each(|one| progress::tell(&Event::Override(one.clone())));
}

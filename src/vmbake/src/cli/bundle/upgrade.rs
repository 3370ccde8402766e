//! `vmbake bundle upgrade`: finds newer versions of a kind's bundles, checks them as a bake does, and writes the lock file.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::super::network::NetworkArgs;
use super::super::pinned::{Pinned, PinnedArgs};
use super::super::{Failure, Outcome, catalog, files};
use super::inspect::remote_name;
use vmbake_bundle::BundleError;
use vmbake_bundle::compose::{ComposeRequest, Composition};
use vmbake_bundle::lock::{BundleLock, LOCK, LockRules, LockedBundle};
use vmbake_bundle::newest::newest;
use vmbake_bundle::packed::title_of;
use vmbake_bundle::place::BundlePlace;
use vmbake_bundle::publisher::FOLDER;
use vmbake_bundle::upgrade::BundleUpgrade;
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_common::progress::{Event, emit, emit_message};
use vmbake_layer::Layers;
use vmbake_manifest::Manifest;
use vmbake_oci::RemoteName;
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_proof::sigstore::{self, SigstoreRoot};
use vmbake_store::registry::Repository;

const EXAMPLES: &str = "\
Examples:
  vmbake bundle upgrade node --dry-run
  vmbake bundle upgrade node acme.agent
  vmbake bundle upgrade node --with ghcr.io/acme/agent:1.1";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct UpgradeArgs {
    /// Kind of image: the name of its top layer
    #[arg(value_name = "KIND")]
    kind: String,
    /// Bundles to upgrade, as PUBLISHER.NAME [default: bundles of --with, otherwise all of the kind]
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// New version of a bundle: packed bundle, HOST/NAME:TAG, or HOST/NAME for the highest version; may be repeated
    #[arg(long = "with", value_name = "BUNDLE")]
    with: Vec<PathBuf>,
    /// Operating system of the base image
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Architectures, as Debian names them
    #[arg(long, value_delimiter = ',', default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: Vec<String>,
    /// Directory of the manifests and of bundles.lock.json
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    /// Directory of trusted publishers of bundles
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    publishers: PathBuf,
    /// Allow newly required settings: the user data of all machines contains them
    #[arg(long)]
    user_data_is_ready: bool,
    /// Show the changes without writing the lock file
    #[arg(long)]
    dry_run: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    layers: catalog::LayersArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: catalog::TrustArgs,
    #[command(flatten)]
    catalog: catalog::CatalogArgs,
}

/// A bundle of the new lock.
struct Selected {
    title: String,
    place: BundlePlace,
}

/// Selection of bundles.
struct Choice<'a> {
    args: &'a UpgradeArgs,
    lock: &'a BundleLock,
    /// Bundles to upgrade; all if empty.
    names: BTreeSet<String>,
}

pub(super) fn run(args: UpgradeArgs) -> Result<Outcome, Failure> {
    let sources = args.network.sources(&args.catalog)?;
    let (layers, anchors) = (args.layers.catalog(&args.catalog), args.trust.load(&args.catalog)?);
    let mut images = Vec::new();
    for arch in &args.arch {
        let (kind, os, folder) = (args.kind.clone(), args.os.clone(), args.manifests.clone());
        images.extend(PinnedArgs::of(kind, os, arch.clone(), None, folder).each(&sources, &layers)?);
    }
    let lock = BundleLock::load(&args.manifests)?;
    let composition = compose(&args, &layers, &anchors, &lock)?;
    for image in &images {
        check_images(&args, &composition, image, &layers, &anchors)?;
    }
    let upgrades = composition.upgrades(&lock);
    finish(&args, &composition, &upgrades)
}

/// Loads the bundles of the kind after the upgrade.
fn compose(args: &UpgradeArgs, layers: &Catalog, anchors: &Anchors, lock: &BundleLock) -> Result<Composition, Failure> {
    let mut choice = Choice { args, lock, names: args.names.iter().cloned().collect() };
    let places = choice.all(layers)?;
    let names = choice.names;
    let request = ComposeRequest {
        publishers: &args.publishers,
        manifests: &args.manifests,
        lock: lock.clone(),
        rules: &|title| LockRules { upgrade: names.is_empty() || names.contains(title), downgrade: false },
        layers,
        root: &SigstoreRoot::parse(&anchors.read(sigstore::ROOT)?)?,
        now: Timestamp::now(),
    };
    Ok(Composition::read(places, request)?)
}

/// Fails if a bake of the image would refuse the bundles, as far as that is known without their artifacts.
fn check_images(
    args: &UpgradeArgs,
    composition: &Composition,
    Pinned { target, manifest }: &Pinned,
    layers: &Catalog,
    anchors: &Anchors,
) -> Result<(), Failure> {
    composition.require_compatible(target, layers)?;
    let additions = composition.additions(target)?;
    Layers::load(&composition.layers(layers))?.resolve_with(&target.kind, &target.os, &additions.layers)?;
    Manifest::load_with(manifest, &additions)?;
    let sources = Sources::load(&composition.sources(&args.network.sources_catalog(&args.catalog)))?;
    Ok(composition.prove(target, &sources, anchors)?)
}

/// Prints the changes, and writes the lock file unless newly required settings need preparation.
fn finish(args: &UpgradeArgs, composition: &Composition, upgrades: &[BundleUpgrade]) -> Result<Outcome, Failure> {
    let required = |one: &BundleUpgrade| {
        let names = one.variables.newly_required.clone().into_iter();
        names.map(|name| format!("{name} of bundle {}", one.name)).collect::<Vec<_>>()
    };
    let required: Vec<String> = upgrades.iter().flat_map(required).collect();
    let is_stopped = !required.is_empty() && !args.user_data_is_ready;
    let is_written = !is_stopped && !args.dry_run && composition.save_lock()?;
    match args.json {
        true => files::print_json(&json!({"bundles": upgrades, "written": is_written}))?,
        false => files::show(&upgrades.iter().map(BundleUpgrade::to_text).collect::<String>())?,
    };
    for one in upgrades {
        for path in &one.state.dropped {
            let warning = format!("bundle {} {} no longer keeps state in {path}", one.name, one.to);
            emit(&Event::Warning { warning });
        }
    }
    if is_stopped {
        return Err(BundleError::NewlyRequired { variables: required.join(", ") }.into());
    }
    let path = escape::line(args.manifests.join(LOCK).display().to_string());
    emit_message(&format!("{:>9}  {path}", if is_written { "wrote" } else { "unchanged" }));
    Ok(Outcome::Clean)
}

impl Choice<'_> {
    /// Bundles required by layers of the kind, then others of `--with`, then requested ones that are only in the lock file.
    fn all(&mut self, layers: &Catalog) -> Result<Vec<BundlePlace>, Failure> {
        let mut given = Vec::new();
        for bundle in &self.args.with {
            let place = self.newest(bundle)?;
            given.push((bundle, Selected { title: title_of(&place)?, place }));
        }
        // With explicit new versions, other bundles are not upgraded.
        self.names.extend(given.iter().map(|(_, chosen)| chosen.title.clone()));
        let mut all: Vec<Selected> = Vec::new();
        for layer in Layers::load(layers)?.resolve(&self.args.kind, &self.args.os)? {
            for bundle in &layer.schema.bundles {
                let own = self.of_layer(Path::new(bundle))?;
                match given.iter().position(|(_, chosen)| chosen.title == own.title) {
                    Some(at) => {
                        let (with, chosen) = given.remove(at);
                        self.require_same(&layer.schema.name, bundle, &own, with, &chosen)?;
                        all.push(chosen);
                    }
                    None => all.push(own),
                }
            }
        }
        all.extend(given.into_iter().map(|(_, chosen)| chosen));
        for title in &self.args.names {
            if !all.iter().any(|chosen| chosen.title == *title) {
                all.push(Selected { title: title.clone(), place: self.by_name(title)? });
            }
        }
        match all.is_empty() {
            true => Err(format!("no layer of {} requires a bundle: add one with --with", self.args.kind).into()),
            false => Ok(all.into_iter().map(|chosen| chosen.place).collect()),
        }
    }

    /// The bundle that a layer requires: the locked version unless it is to be upgraded.
    fn of_layer(&self, bundle: &Path) -> Result<Selected, Failure> {
        if let Some(name) = remote_name(bundle)?
            && let Some((title, locked)) = self.lock.from_repository(&name.repository.to_string())
            && !(self.names.is_empty() || self.names.contains(title))
        {
            let name = RemoteName { tag: None, digest: Some(locked.digest), ..name };
            return Ok(Selected { title: title.to_owned(), place: self.in_registry(name)? });
        }
        let place = self.newest(bundle)?;
        Ok(Selected { title: title_of(&place)?, place })
    }

    /// The bundle at a path, by tag or digest, or the highest version of a repository.
    fn newest(&self, bundle: &Path) -> Result<BundlePlace, Failure> {
        match remote_name(bundle)? {
            None => Ok(BundlePlace::open(bundle)?),
            Some(name) if name.tag.is_some() || name.digest.is_some() => self.in_registry(name),
            Some(name) => {
                let known = self.lock.from_repository(&name.repository.to_string());
                self.highest(name, known.map(|(_, locked)| locked))
            }
        }
    }

    /// The highest version of a repository; an error if it is lower than the locked one.
    fn highest(&self, name: RemoteName, known: Option<&LockedBundle>) -> Result<BundlePlace, Failure> {
        let repository = self.repository(&name)?;
        let found = newest(&repository.tags()?, known.map(|locked| &locked.version));
        let (tag, digest) = match (found, known) {
            (Some((version, _)), Some(locked)) if version.compare(&locked.version).is_le() => {
                (None, Some(locked.digest))
            }
            (Some((_, tag)), _) => (Some(tag), None),
            (None, Some(locked)) => (None, Some(locked.digest)),
            (None, None) => return Err(BundleError::NoVersion { name: name.to_string() }.into()),
        };
        let name = RemoteName { tag, digest, ..name };
        Ok(BundlePlace::Registry { repository: Box::new(repository), name })
    }

    /// A bundle that is only in the lock file.
    fn by_name(&self, title: &str) -> Result<BundlePlace, Failure> {
        let unknown = |why: String| BundleError::NoReference { title: title.to_owned(), why };
        let Some(locked) = self.lock.get(title) else {
            let known = self.lock.titles().collect::<Vec<_>>().join(", ");
            let known = if known.is_empty() { "nothing".to_owned() } else { known };
            return Err(
                unknown(format!("not required by a layer of {}: expected one of: {known}", self.args.kind)).into()
            );
        };
        let Some(repository) = &locked.repository else {
            return Err(unknown("added from a file, so the location of other versions is unknown".to_owned()).into());
        };
        self.highest(repository.parse()?, Some(locked))
    }

    /// Fails if the layer would make the next bake use a different bundle than the given one.
    fn require_same(
        &self,
        layer: &str,
        fixed: &str,
        own: &Selected,
        with: &Path,
        chosen: &Selected,
    ) -> Result<(), Failure> {
        let is_open = remote_name(Path::new(fixed))?.is_some_and(|name| name.tag.is_none() && name.digest.is_none());
        if is_open || own.place.index()?.0 == chosen.place.index()?.0 {
            return Ok(());
        }
        let (layer, title, fixed) = (layer.to_owned(), chosen.title.clone(), fixed.to_owned());
        Err(BundleError::Fixed { layer, title, fixed, with: with.display().to_string() }.into())
    }

    fn in_registry(&self, name: RemoteName) -> Result<BundlePlace, Failure> {
        Ok(BundlePlace::Registry { repository: Box::new(self.repository(&name)?), name })
    }

    fn repository(&self, name: &RemoteName) -> Result<Repository, Failure> {
        self.args.network.repository(&name.repository, false)
    }
}

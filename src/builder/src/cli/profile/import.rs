//! `vmbake profile import`: a profile becomes layers, pinned manifests and a kind.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;

use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::NetworkArgs;
use super::super::update::{self, UpdateArgs};
use super::super::{Failure, Outcome, files};
use super::assignment;
use crate::atomic_file::write_file;
use crate::catalog::Catalog;
use crate::digest::Digest;
use crate::distribute::bundle::conflicts::collisions;
use crate::escape;
use crate::layer::{Layer, Layers};
use crate::profile::import::{ImportError, ImportRequest, Imported, Lock, Rules, import};
use crate::profile::{ControllerOptions, Deployment, Profile};
use crate::progress::remark;

/// Folders of what an import writes.
pub(super) const LAYERS: &str = "layers";
pub(super) const MANIFESTS: &str = "manifests";
const REPORTS: &str = "reports";

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// OperatingSystemProfile, YAML
    file: PathBuf,
    /// MachineDeployment that the machines belong to, YAML
    #[arg(long, value_name = "FILE")]
    machine_deployment: PathBuf,
    /// Operating system of the images, where the profile is for another one
    #[arg(long = "as", value_name = "OS", value_parser = ["debian-13"])]
    system: Option<String>,
    /// Option of the operating-system-manager, by its name; what only machines know becomes the default of a setting
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// What becomes of commands, packages and files that vmbake does not know, JSON; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Directory of layers that the images get, too
    #[arg(long, value_name = "DIR")]
    extend: Vec<PathBuf>,
    /// Directory for layers, manifests, reports and profile.lock.json; several imports may share one
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Import for a system, provider or version of Kubernetes that is not tested
    #[arg(long)]
    untested: bool,
    /// Write layers, and leave it to `vmbake update` to pin what they bring
    #[arg(long)]
    no_pin: bool,
    /// Architectures whose manifests are pinned
    #[arg(long, value_delimiter = ',', default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: Vec<String>,
    /// Pin this disk image as base, in place of the published one
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Print JSON: the kind, and what every command of the scripts came to
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

pub(super) fn run(args: ImportArgs) -> Result<Outcome, Failure> {
    let extensions = extensions(&args)?;
    let request = ImportRequest {
        profile: Profile::open(&args.file)?,
        deployment: Deployment::open(&args.machine_deployment)?,
        options: ControllerOptions::open(&args.set)?,
        system: args.system.clone(),
        rules: Rules::open(&args.rules)?,
        extensions: extensions.clone(),
        is_untested_fine: args.untested,
    };
    let mut lock = Lock::open(&args.out)?;
    let mut imported = import(request)?;
    lock.admit(&imported.instance)?;
    write(&args, &mut imported, &extensions)?;
    lock.add(&imported.kind, imported.instance.clone());
    lock.write()?;
    let counts = imported.report.counts();
    for (class, count) in &counts {
        remark(&format!("{:10}  {count} commands", class.name()));
    }
    if !args.no_pin {
        pin(&args, &mut imported)?;
        lock.add(&imported.kind, imported.instance.clone());
        lock.write()?;
    }
    match args.json {
        true => files::print_json(&json!({"kind": imported.kind, "report": imported.report.to_json()})),
        false => files::print(&(imported.kind + "\n")),
    }
}

/// The layers that extend the profile, checked.
fn extensions(args: &ImportArgs) -> Result<Vec<Layer>, Failure> {
    let catalog =
        args.extend.iter().fold(args.layers.catalog(&args.catalog), |catalog, path| catalog.with(path.clone()));
    let all = Layers::load(&catalog)?;
    let mut found = Vec::new();
    for directory in &args.extend {
        let own = all.with_roots().filter(|(root, _)| **root == crate::catalog::Root::Path(directory.clone()));
        found.extend(own.map(|(_, layer)| layer.clone()));
    }
    Ok(found)
}

/// Writes layers beside their place, judges them there, and moves them where they belong.
fn write(args: &ImportArgs, imported: &mut Imported, extensions: &[Layer]) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ImportError::File { path, source }
    };
    let layers = args.out.join(LAYERS);
    fs::create_dir_all(&layers).map_err(failed(&layers))?;
    let staging = tempfile::Builder::new().prefix(".import-").tempdir_in(&args.out).map_err(failed(&args.out))?;
    for (path, content) in &imported.files {
        let path = staging.path().join(path);
        let parent = path.parent().unwrap_or(&path);
        fs::create_dir_all(parent).map_err(failed(parent))?;
        fs::write(&path, content).map_err(failed(&path))?;
    }
    for directory in &args.extend {
        copy(directory, staging.path(), extensions)?;
    }
    let catalog: Catalog = args.layers.catalog(&args.catalog).with(staging.path().to_owned());
    let judged = Layers::load(&catalog)?;
    let resolved = judged.resolve(&imported.kind, &imported.instance.os)?;
    let own = format!("{}-profile", imported.kind);
    let side = |names: &dyn Fn(&str) -> bool| {
        resolved.iter().filter(|layer| names(&layer.schema.name)).cloned().collect::<Vec<Layer>>()
    };
    let is_extension = |name: &str| extensions.iter().any(|layer| layer.schema.name == name);
    let built_in = side(&|name| name != own && name != imported.kind && !is_extension(name));
    let (built_in, mine, more) = (("vmbake", &built_in[..]), side(&|name| name == own), side(&is_extension));
    let (mine, more) = (("the profile", &mine[..]), ("a layer of --extend", &more[..]));
    let found: Vec<String> = [(built_in, mine), (built_in, more), (mine, more)]
        .into_iter()
        .flat_map(|(one, other)| collisions(one, other))
        .collect();
    if !found.is_empty() {
        return Err(ImportError::Collisions(found).into());
    }
    let names: Vec<String> = [imported.kind.clone(), own]
        .into_iter()
        .chain(extensions.iter().map(|layer| layer.schema.name.clone()))
        .collect();
    for name in names {
        let layer = resolved.iter().find(|layer| layer.schema.name == name);
        imported.instance.layers.extend(layer.map(|layer| (name.clone(), layer.digest)));
        publish(&staging.path().join(&name), &layers.join(&name))?;
    }
    let reports = args.out.join(REPORTS);
    fs::create_dir_all(&reports).map_err(failed(&reports))?;
    let text = escape::json(&imported.report.to_json())?;
    write_file(&reports.join(format!("{}.json", imported.kind)), text.as_bytes(), true)?;
    Ok(())
}

/// Copies the layers of a directory that are among `extensions`.
fn copy(from: &Path, to: &Path, extensions: &[Layer]) -> Result<(), ImportError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| ImportError::File { path, source }
    };
    for layer in extensions {
        let mut todo = vec![PathBuf::from(&layer.schema.name)];
        while let Some(path) = todo.pop() {
            let source = from.join(&path);
            if !source.exists() {
                continue;
            }
            if !source.is_dir() {
                fs::copy(&source, to.join(&path)).map_err(failed(&source))?;
                continue;
            }
            fs::create_dir_all(to.join(&path)).map_err(failed(&source))?;
            for entry in fs::read_dir(&source).map_err(failed(&source))? {
                todo.push(path.join(entry.map_err(failed(&source))?.file_name()));
            }
        }
    }
    Ok(())
}

/// Moves a layer to its place; one that is there is replaced.
fn publish(from: &Path, to: &Path) -> Result<(), ImportError> {
    let failed = |source| ImportError::File { path: to.to_owned(), source };
    if to.exists() {
        fs::remove_dir_all(to).map_err(failed)?;
    }
    fs::rename(from, to).map_err(failed)
}

/// Pins what the layers bring, and remembers the manifests.
fn pin(args: &ImportArgs, imported: &mut Imported) -> Result<(), Failure> {
    let manifests = args.out.join(MANIFESTS);
    fs::create_dir_all(&manifests).map_err(|source| ImportError::File { path: manifests.clone(), source })?;
    let (kind, os) = (imported.kind.clone(), imported.instance.os.clone());
    update::run(UpdateArgs::of_kind(
        (kind.clone(), os.clone(), args.arch.clone()),
        (args.image.clone(), manifests.clone()),
        (args.network.clone(), args.trust.clone()),
        (args.layers.clone().with(args.out.join(LAYERS)), args.catalog.clone()),
    ))?;
    let mut pinned = BTreeMap::new();
    for arch in &args.arch {
        let path = manifests.join(format!("{kind}.{os}.{arch}.json"));
        let text = fs::read(&path).map_err(|source| ImportError::File { path, source })?;
        pinned.insert(format!("{os}.{arch}"), Digest::of(&text));
    }
    imported.instance.manifests = pinned;
    Ok(())
}

//! `vmbake profile import`: converts a profile into layers, pinned manifests and a kind.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::json;
use vmbake_disk::disk::Arch;

use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::NetworkArgs;
use super::super::update::{self, UpdateArgs};
use super::super::{Failure, Outcome, files};
use super::assignment;
use vmbake_bundle::conflicts::collisions;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::input;
use vmbake_common::progress::{counted, emit_message};
use vmbake_image::disk::DiskImage;
use vmbake_image::identity::{self, BaseIdentity, IdentityError};
use vmbake_layer::{Layer, Layers};
use vmbake_profile::import::{ImportBase, ImportError, ImportRequest, ImportedProfile, Lock, Rules, import};
use vmbake_profile::{ControllerOptions, Deployment, Profile};

/// Subdirectories of an import.
pub(super) const LAYERS: &str = "layers";
pub(super) const MANIFESTS: &str = "manifests";
const REPORTS: &str = "reports";

#[derive(Debug, Args)]
pub(in crate::cli) struct ImportArgs {
    /// OperatingSystemProfile, YAML
    file: PathBuf,
    /// MachineDeployment of the machines, YAML
    #[arg(long, value_name = "FILE")]
    machine_deployment: PathBuf,
    /// Operating system of the images, if it differs from the profile's
    #[arg(long = "as", value_name = "OS", value_parser = ["debian-13"])]
    system: Option<String>,
    /// Set an option of the operating-system-manager; per-machine values become defaults of settings
    #[arg(long, value_name = "KEY=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// Rules for unknown commands, packages and files, JSON; may be repeated
    #[arg(long, value_name = "FILE")]
    rules: Vec<PathBuf>,
    /// Directory of layers to add to the images
    #[arg(long, value_name = "DIR")]
    extend: Vec<PathBuf>,
    /// Output directory for layers, manifests, reports and profile.lock.json; can be shared by several imports
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Allow an untested system, provider or version of Kubernetes
    #[arg(long)]
    untested: bool,
    /// Write layers only; `vmbake update` pins their artifacts later
    #[arg(long)]
    no_pin: bool,
    /// Architectures to pin
    #[arg(long, value_delimiter = ',', default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: Vec<String>,
    /// Pin this disk image as the base, instead of the published one
    #[arg(long, value_name = "FILE")]
    image: Option<PathBuf>,
    /// Evaluate the scripts on the files of this disk image, and pin it as the base; the layers then require this base
    #[arg(long, value_name = "FILE", conflicts_with = "image")]
    base: Option<PathBuf>,
    /// Number of its root partition, if it is ambiguous
    #[arg(long, value_name = "N", requires = "base")]
    partition: Option<u32>,
    /// Print JSON: the kind, and the result of each script command
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
    let mut request = ImportRequest {
        profile: Profile::open(&args.file)?,
        deployment: Deployment::open(&args.machine_deployment)?,
        options: ControllerOptions::open(&args.set)?,
        system: args.system.clone(),
        rules: Rules::open(&args.rules)?,
        extensions: extensions.clone(),
        base: None,
        is_untested_fine: args.untested,
    };
    if let Some(path) = &args.base {
        let [arch] = &args.arch[..] else {
            let found = args.arch.join(",");
            return Err(format!(
                "expected one architecture with --base, found --arch {found}: use the architecture of the disk image"
            )
            .into());
        };
        request.base = Some(base((path, args.partition), request.os()?, arch)?);
    }
    let mut lock = Lock::open(&args.out)?;
    let mut imported = import(request)?;
    lock.admit(&imported.instance)?;
    let failed = failed(&args.out);
    fs::create_dir_all(&args.out).map_err(&failed)?;
    let staging = tempfile::Builder::new().prefix(".import-").tempdir_in(&args.out).map_err(&failed)?;
    write(&args, staging.path(), &mut imported, &extensions)?;
    for (class, count) in &imported.report.counts() {
        emit_message(&format!("{:10}  {}", class.name(), counted(*count, "command")));
    }
    for warning in &imported.report.warnings {
        emit_message(&format!("{:>10}  {warning}", "warning"));
    }
    if !args.no_pin {
        pin(&args, staging.path(), &mut imported)?;
    }
    publish(&args.out, staging.path())?;
    lock.add(&imported.kind, imported.instance.clone());
    lock.write()?;
    match args.json {
        true => files::print_json(&json!({"kind": imported.kind, "report": imported.report.to_json()})),
        false => files::print(&(imported.kind + "\n")),
    }
}

/// Opens a disk image, which must have the given system and architecture.
fn base((path, partition): (&Path, Option<u32>), os: &str, arch: &str) -> Result<ImportBase, Failure> {
    let image = DiskImage::open(path)?;
    let root = image.root(partition)?;
    if let Some(found) = Arch::of(root.kind).map(Arch::name).filter(|found| *found != arch) {
        let (path, expected, found) = (path.to_owned(), arch.to_owned(), found.to_owned());
        return Err(IdentityError::Arch { path, expected, found }.into());
    }
    let tree = image.tree(root, None)?;
    identity::check(path, &tree, BaseIdentity { os, codename: None, arch })?;
    let (digest, _) = Digest::of(b"").of_stream(input::open(path).map_err(failed(path))?).map_err(failed(path))?;
    Ok(ImportBase { arch: arch.to_owned(), digest, tree })
}

/// Loads and checks the layers that extend the profile.
fn extensions(args: &ImportArgs) -> Result<Vec<Layer>, Failure> {
    let catalog =
        args.extend.iter().fold(args.layers.catalog(&args.catalog), |catalog, path| catalog.with(path.clone()));
    let all = Layers::load(&catalog)?.complete()?;
    let mut found = Vec::new();
    for directory in &args.extend {
        let own = all.with_roots().filter(|(root, _)| **root == vmbake_common::catalog::Root::Path(directory.clone()));
        found.extend(own.map(|(_, layer)| layer.clone()));
    }
    Ok(found)
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> ImportError {
    let path = path.to_owned();
    move |source| ImportError::File { path: path.clone(), source }
}

/// Writes layers and report to a temporary directory, and checks the layers there.
fn write(
    args: &ImportArgs,
    staging: &Path,
    imported: &mut ImportedProfile,
    extensions: &[Layer],
) -> Result<(), Failure> {
    let layers = staging.join(LAYERS);
    for (path, content) in &imported.files {
        put(&layers.join(path), content)?;
    }
    for directory in &args.extend {
        copy(directory, &layers, extensions)?;
    }
    let text = escape::json(&imported.report.to_json())?;
    put(&staging.join(REPORTS).join(format!("{}.json", imported.kind)), text.as_bytes())?;
    let catalog: Catalog = args.layers.catalog(&args.catalog).with(layers);
    let resolved = Layers::load(&catalog)?.resolve(&imported.kind, &imported.instance.os)?;
    let own = format!("{}-profile", imported.kind);
    let is_extension = |name: &str| extensions.iter().any(|layer| layer.schema.name == name);
    let side = |is_of: &dyn Fn(&str) -> bool| {
        resolved.iter().filter(|layer| is_of(&layer.schema.name)).cloned().collect::<Vec<Layer>>()
    };
    let built_in = side(&|name| name != own && name != imported.kind && !is_extension(name));
    let (mine, more) = (side(&|name| name == own), side(&is_extension));
    let sides = [("vmbake", &built_in[..]), ("the profile", &mine[..]), ("a layer of --extend", &more[..])];
    let pairs = [(sides[0], sides[1]), (sides[0], sides[2]), (sides[1], sides[2])];
    let found: Vec<String> = pairs.into_iter().flat_map(|(one, other)| collisions(one, other)).collect();
    if !found.is_empty() {
        return Err(ImportError::Collisions(found).into());
    }
    let is_new = |name: &str| name == own || name == imported.kind || is_extension(name);
    let new = resolved.iter().filter(|layer| is_new(&layer.schema.name));
    imported.instance.layers = new.map(|layer| (layer.schema.name.clone(), layer.digest)).collect();
    Ok(())
}

fn put(path: &Path, content: &[u8]) -> Result<(), ImportError> {
    let parent = path.parent().unwrap_or(path);
    fs::create_dir_all(parent).map_err(failed(parent))?;
    fs::write(path, content).map_err(failed(path))
}

/// Copies the layers of a directory that are among `extensions`. Loading has ensured that they consist of files and directories only.
fn copy(from: &Path, to: &Path, extensions: &[Layer]) -> Result<(), ImportError> {
    let mut todo: Vec<PathBuf> = extensions.iter().map(|layer| PathBuf::from(&layer.schema.name)).collect();
    while let Some(path) = todo.pop() {
        let source = from.join(&path);
        if source.is_dir() {
            for entry in fs::read_dir(&source).map_err(failed(&source))? {
                todo.push(path.join(entry.map_err(failed(&source))?.file_name()));
            }
        } else if source.exists() {
            put(&to.join(&path), &input::read(&source, input::MAX_INPUT).map_err(failed(&source))?)?;
        }
    }
    Ok(())
}

/// Pins the artifacts of the layers. Pins of an earlier import of the same profile are kept.
fn pin(args: &ImportArgs, staging: &Path, imported: &mut ImportedProfile) -> Result<(), Failure> {
    let (kind, os) = (imported.kind.clone(), imported.instance.os.clone());
    let name = |arch: &String| format!("{kind}.{os}.{arch}.json");
    let (manifests, before) = (staging.join(MANIFESTS), args.out.join(MANIFESTS));
    fs::create_dir_all(&manifests).map_err(failed(&manifests))?;
    for name in args.arch.iter().map(name).filter(|name| before.join(name).exists()) {
        let path = before.join(&name);
        put(&manifests.join(name), &input::read(&path, input::MAX_INPUT).map_err(failed(&path))?)?;
    }
    update::run(UpdateArgs::of_kind(
        (kind.clone(), os.clone(), args.arch.clone()),
        (args.image.clone().or_else(|| args.base.clone()), args.partition, manifests.clone()),
        (args.network.clone(), args.trust.clone()),
        (args.layers.clone().with(staging.join(LAYERS)), args.catalog.clone()),
    ))?;
    for arch in &args.arch {
        let path = manifests.join(name(arch));
        let digest = Digest::of(&input::read(&path, input::MAX_INPUT).map_err(failed(&path))?);
        imported.instance.manifests.insert(format!("{os}.{arch}"), digest);
    }
    Ok(())
}

/// Moves everything into place, and replaces existing layers.
fn publish(out: &Path, staging: &Path) -> Result<(), ImportError> {
    for folder in [LAYERS, MANIFESTS, REPORTS] {
        let (from, to) = (staging.join(folder), out.join(folder));
        if !from.exists() {
            continue;
        }
        fs::create_dir_all(&to).map_err(failed(&to))?;
        for entry in fs::read_dir(&from).map_err(failed(&from))? {
            let name = entry.map_err(failed(&from))?.file_name();
            let (new, old) = (from.join(&name), to.join(&name));
            if old.is_dir() {
                fs::remove_dir_all(&old).map_err(failed(&old))?;
            }
            fs::rename(&new, &old).map_err(failed(&old))?;
        }
    }
    Ok(())
}

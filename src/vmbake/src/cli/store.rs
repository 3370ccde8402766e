//! `vmbake store`: verifies, cleans up and queries the artifact store.

use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use super::{Failure, Outcome, files};
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::incremental::record;
use vmbake_common::digest::Digest;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::progress::{counted, emit_message, human_bytes};
use vmbake_manifest::Manifest;
use vmbake_store::store::{Store, StoreError};

/// Suffix of a record of inputs.
const INPUTS: &str = ".inputs.json";
/// Maximum length of a record of inputs.
const MAX_INPUTS: u64 = 4 << 20;

/// Error while determining the blobs to keep.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreCommandError {
    #[error("{path}: has digest {found}, but {inputs} records manifest {expected}")]
    OtherManifest {
        /// The manifest.
        path: PathBuf,
        inputs: PathBuf,
        expected: Box<Digest>,
        found: Box<Digest>,
    },
}

impl Hint for StoreCommandError {}

#[derive(Debug, Args)]
pub(super) struct StoreArgs {
    #[command(subcommand)]
    command: StoreCommand,
    /// Artifact store [default: $XDG_CACHE_HOME/vmbake/store]
    #[arg(long, value_name = "DIR", global = true)]
    store: Option<PathBuf>,
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  vmbake store verify
  vmbake store verify --store /srv/store --json";

const GC_EXAMPLES: &str = "\
Examples:
  vmbake store gc --dry-run                       # blobs that no manifest in manifests/ references
  vmbake store gc --manifests manifests --manifests /srv/manifests
  vmbake store gc --manifests manifests --manifests dist  # also keeps the inputs of images in dist";

const PATH_EXAMPLES: &str = "\
Examples:
  vmbake store path
  vmbake store path sha256:fad4f807a369677f0954bd4c61e56ddb2dd8b3f4aec30c3834c3165fc6d3c19f";

#[derive(Debug, Subcommand)]
enum StoreCommand {
    /// Verify all blobs, and remove corrupt blobs and all caches; exit 1 if a blob was corrupt
    #[command(after_help = VERIFY_EXAMPLES)]
    Verify,
    /// Remove unreferenced blobs
    #[command(after_help = GC_EXAMPLES)]
    Gc {
        /// Manifests whose artifacts are kept, NAME.inputs.json of images to keep rebuildable, or directories of either
        #[arg(long, value_name = "PATH", default_value = "manifests")]
        manifests: Vec<PathBuf>,
        /// Show what would be removed without removing it
        #[arg(long)]
        dry_run: bool,
    },
    /// Print the path of a blob or of the store
    #[command(after_help = PATH_EXAMPLES)]
    Path {
        /// Digest: sha256:<hex> or sha512:<hex>
        digest: Option<Digest>,
    },
}

pub(super) fn run(args: StoreArgs) -> Result<Outcome, Failure> {
    let store = Store::open(args.store)?;
    match args.command {
        StoreCommand::Verify => verify(&store, args.json),
        StoreCommand::Gc { manifests, dry_run } => collect(&store, &manifests, dry_run, args.json),
        StoreCommand::Path { digest: None } => {
            files::show(&name(store.root()))?;
            Ok(Outcome::Clean)
        }
        StoreCommand::Path { digest: Some(digest) } => {
            let path = store.path(&digest);
            if !path.exists() {
                return Err(StoreError::Absent { digest: Box::new(digest), path: store.root().to_owned() }.into());
            }
            files::show(&name(&path))?;
            Ok(Outcome::Clean)
        }
    }
}

/// A path of this machine, escaped to one line.
fn name(path: &Path) -> String {
    escape::name(path.as_os_str().as_bytes()) + "\n"
}

fn verify(store: &Store, json: bool) -> Result<Outcome, Failure> {
    let (count, corrupt) = store.verify(std::thread::available_parallelism()?)?;
    if json {
        files::print(&escape::json_line(&serde_json::json!({ "blobs": count, "removed": corrupt }))?)?;
    } else {
        for blob in &corrupt {
            let found = blob
                .found
                .map_or_else(|| "not a file named by its digest".to_owned(), |found| format!("holds {found}"));
            files::show(&(escape::line(format!("{}: {found}; removed", blob.path.display())) + "\n"))?;
        }
        emit_message(&format!("{}, {} of them corrupt", counted(count, "blob"), corrupt.len()));
    }
    Ok(if corrupt.is_empty() { Outcome::Clean } else { Outcome::Findings })
}

fn collect(store: &Store, manifests: &[PathBuf], dry_run: bool, json: bool) -> Result<Outcome, Failure> {
    let keep = || -> Result<BTreeSet<Digest>, Failure> {
        let mut keep = BTreeSet::new();
        for path in manifests.iter().map(|path| documents(path)).collect::<Result<Vec<_>, _>>()?.concat() {
            let (manifest, base) = load(&path)?;
            keep.extend(vmbake_fetch::blobs(&manifest, store));
            keep.extend(base);
        }
        Ok(keep)
    };
    let garbage = store.collect_garbage(keep, record::stale, dry_run)?;
    if json {
        files::print(&escape::json_line(&garbage)?)?;
        return Ok(Outcome::Clean);
    }
    files::show(&garbage.files.iter().map(|path| name(path)).collect::<String>())?;
    let verb = if dry_run { "would be removed" } else { "removed" };
    emit_message(&format!("{}, {} {verb}", counted(garbage.files.len() as u64, "file"), human_bytes(garbage.bytes)));
    Ok(Outcome::Clean)
}

/// The document at `path`, or all manifests and records of inputs in that directory.
fn documents(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let path = entry?.path();
        let name = file_name(&path);
        // <kind>.<os>.<arch>.json: other documents of that directory have fewer dots.
        if name.ends_with(INPUTS) || (name.ends_with(".json") && name.split('.').count() == 4) {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// A manifest, or the manifest next to a record of inputs, with the base image of the record.
fn load(path: &Path) -> Result<(Manifest, Option<Digest>), Failure> {
    let name = file_name(path);
    let Some(stem) = name.strip_suffix(INPUTS) else { return Ok((Manifest::load(path)?, None)) };
    let inputs = BuildInputs::parse(path, &vmbake_bake::release::read(path, MAX_INPUTS)?)?;
    let sidecar = path.with_file_name(Sidecar::Manifest.file_name(stem));
    let manifest = Manifest::load(&sidecar)?;
    if manifest.digest() != inputs.manifest {
        let (expected, found) = (Box::new(inputs.manifest), Box::new(manifest.digest()));
        return Err(StoreCommandError::OtherManifest { path: sidecar, inputs: path.to_owned(), expected, found }.into());
    }
    Ok((manifest, inputs.base))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

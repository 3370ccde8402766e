//! `vmbake bundle sysext`: writes a bundle as a system extension for running machines.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use jiff::Timestamp;

use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::NetworkArgs;
use super::super::{Failure, Outcome};
use super::inspect::locate;
use vmbake_bundle::BundleError;
use vmbake_bundle::compose::{ComposeRequest, Composition};
use vmbake_bundle::lock::{BundleLock, LockRules};
use vmbake_bundle::publisher::FOLDER;
use vmbake_common::escape;
use vmbake_common::progress::{Progress, emit_message, human_bytes};
use vmbake_fetch::Supply;
use vmbake_manifest::Target;
use vmbake_pin::sources::Sources;
use vmbake_proof::sigstore::{self, SigstoreRoot};
use vmbake_sysext::{Extension, ExtensionForm, ExtensionFormat, ExtensionIdentity, ExtensionKind, ExtensionTools};

const EXAMPLES: &str = "\
Examples:
  vmbake bundle sysext agent.oci -o acme-agent.raw
  vmbake bundle sysext agent.oci --format squashfs --verity -o acme-agent.raw
  vmbake bundle sysext ghcr.io/acme/agent:1.0 --confext --arch arm64 -o acme-agent.raw";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct SysextArgs {
    /// Packed bundle, or HOST/NAME:TAG in a registry
    #[arg(value_name = "BUNDLE")]
    bundle: PathBuf,
    /// Extension to write: NAME.raw, or NAME for a directory; systemd uses this name
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Format of the extension
    #[arg(long, default_value = "ext4")]
    format: ExtensionFormat,
    /// Also write the dm-verity hash tree NAME.verity and root hash NAME.roothash
    #[arg(long)]
    verity: bool,
    /// Write a configuration extension of /etc (systemd-confext) instead of /usr
    #[arg(long)]
    confext: bool,
    /// Operating system of the machines
    #[arg(long, default_value = "debian-13")]
    os: String,
    /// Architecture of the machines, as Debian names it
    #[arg(long, default_value = "amd64", value_parser = ["amd64", "arm64"])]
    arch: String,
    /// Directory of trusted publishers of bundles
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    publishers: PathBuf,
    /// Directory of bundles.lock.json, which pins versions to digests
    #[arg(long, value_name = "DIR", default_value = "manifests")]
    manifests: PathBuf,
    /// Do not use the network: the bundle must be a file
    #[arg(long)]
    offline: bool,
    /// Replace existing files
    #[arg(long)]
    force: bool,
    /// Number of concurrent downloads
    #[arg(short = 'j', long = "jobs", value_name = "N", default_value = "4")]
    jobs: NonZeroUsize,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn run(args: &SysextArgs) -> Result<Outcome, Failure> {
    let kind = if args.confext { ExtensionKind::Confext } else { ExtensionKind::Sysext };
    let identity = ExtensionIdentity::of_path(&args.out, args.format, kind, &args.os, &args.arch)?;
    let (layers, anchors) = (args.layers.catalog(&args.catalog), args.trust.load(&args.catalog)?);
    let from = locate(&args.bundle, |name| match args.offline {
        true => Err(BundleError::Remote { name: name.to_string() }.into()),
        false => Ok((args.network.repository(&name.repository, false)?, name)),
    })?;
    let request = ComposeRequest {
        publishers: &args.publishers,
        manifests: &args.manifests,
        lock: BundleLock::load(&args.manifests)?,
        // Any version is allowed unless the lock file has it with another digest. The lock file is not changed.
        rules: &|_| LockRules { upgrade: true, downgrade: true },
        layers: &layers,
        root: &SigstoreRoot::parse(&anchors.read(sigstore::ROOT)?)?,
        now: Timestamp::now(),
    };
    let composition = Composition::read(vec![from], request)?;
    let sources = Sources::load(&composition.sources(&args.network.sources_catalog(&args.catalog)))?;
    let store = args.network.store()?;
    let _shared = store.share_if_writable()?;
    let client = if args.offline { None } else { Some(args.network.client(&sources)?) };
    let supply =
        Supply { store: &store, sources: &sources, anchors: &anchors, client: client.as_ref(), threads: args.jobs };
    let tools = ExtensionTools { supply: &supply, progress: &Progress::new(false) };
    for bundle in composition.bundles() {
        let path = bundle.place.path();
        let extension = Extension::new(&path, &bundle.contents, identity.clone())?;
        let target = Target { kind: bundle.contents.document.title(), os: args.os.clone(), arch: args.arch.clone() };
        composition.fetch(&target, &store)?;
        let form = ExtensionForm { format: args.format, verity: args.verity, force: args.force };
        for (path, len) in extension.write(&args.out, form, &tools)? {
            let shown = escape::line(path.display().to_string());
            emit_message(&format!("{:>9}  {shown}, {}", "wrote", human_bytes(len)));
        }
    }
    Ok(Outcome::Clean)
}

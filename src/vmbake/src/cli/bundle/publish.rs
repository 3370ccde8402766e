//! `vmbake bundle push`, `verify` and `trust`: publishes bundles, and trusts their publishers.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::network::RegistryArgs;
use super::super::verify::signers::{RootArgs, SignerArgs};
use super::super::{Failure, Outcome, files};
use super::inspect::LocationArgs;
use vmbake_bundle::BundleError;
use vmbake_bundle::inspect::BundleSummary;
use vmbake_bundle::packed::{PackedContents, require_signed};
use vmbake_bundle::place::BundlePlace;
use vmbake_bundle::publisher::{FOLDER, Publisher};
use vmbake_bundle::push::{BundlePushReport, push};
use vmbake_common::atomic_file::write_file;
use vmbake_common::escape;
use vmbake_common::progress::{counted, emit_message};
use vmbake_oci::RemoteName;
use vmbake_store::registry::Access;

const PUSH_EXAMPLES: &str = "\
Examples:
  vmbake bundle push agent.oci oci://ghcr.io/acme/agent";

#[derive(Debug, Args)]
#[command(after_help = PUSH_EXAMPLES)]
pub(in super::super) struct PushArgs {
    /// Packed bundle
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Destination: [oci://]HOST/NAME[:TAG] [default tag: the bundle's version]
    #[arg(value_name = "REF")]
    reference: String,
    /// Move an existing tag
    #[arg(long)]
    force: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    registry: RegistryArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  vmbake bundle verify agent.oci --key acme.pub
  vmbake bundle verify oci://ghcr.io/acme/agent:1.0 --publisher acme";

#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub(in super::super) struct VerifyArgs {
    #[command(flatten)]
    from: LocationArgs,
    #[command(flatten)]
    signers: SignerArgs,
    /// Publisher that must have signed the bundle
    #[arg(long, value_name = "NAME", conflicts_with_all = ["key", "certificate_identity"])]
    publisher: Option<String>,
    /// Directory of trusted publishers
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    publishers: PathBuf,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

const TRUST_EXAMPLES: &str = "\
Examples:
  vmbake bundle trust oci://ghcr.io/acme/agent:1.0 --key acme.pub";

#[derive(Debug, Args)]
#[command(after_help = TRUST_EXAMPLES)]
pub(in super::super) struct TrustBundleArgs {
    #[command(flatten)]
    from: LocationArgs,
    #[command(flatten)]
    signers: SignerArgs,
    /// Directory of trusted publishers
    #[arg(long, value_name = "DIR", default_value = FOLDER)]
    publishers: PathBuf,
    /// Do not prompt for confirmation
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    root: RootArgs,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn push_bundle(args: &PushArgs) -> Result<Outcome, Failure> {
    let text = args.reference.strip_prefix("oci://").unwrap_or(&args.reference);
    let RemoteName { repository, tag, digest } = text.parse()?;
    if digest.is_some() {
        return Err("the destination must not have a digest: use HOST/NAME or HOST/NAME:TAG".into());
    }
    let from = BundlePlace::open(&args.path)?;
    let packed = PackedContents::read(from, &args.layers.catalog(&args.catalog), None)?;
    packed.require_sound()?;
    let tag = tag.unwrap_or_else(|| packed.contents.document.version.tag());
    let to = args.registry.repository(&repository, Access::Push)?;
    let report = push(&packed, &to, &tag, args.force)?;
    if args.json {
        return files::print_json(&report);
    }
    let BundlePushReport { digest, tag, sent, reused, signatures } = report;
    let signatures = counted(signatures, "signature");
    emit_message(&format!(
        "sent {}; {} already present; attached {signatures}",
        counted(sent, "blob"),
        counted(reused, "blob")
    ));
    files::show(&format!("{repository}:{tag}@{digest}\n"))
}

pub(super) fn verify(args: &VerifyArgs) -> Result<Outcome, Failure> {
    let place = args.from.location()?;
    let root = args.root.load(&args.trust.load(&args.catalog)?)?;
    let publisher = args.publisher.as_ref().map(|name| Publisher::load(&args.publishers, name)).transpose()?;
    let mut signers = args.signers.named()?;
    if let (Some(publisher), Some(name)) = (&publisher, &args.publisher) {
        signers.push(publisher.signer(&Publisher::path(&args.publishers, name))?);
    }
    if signers.is_empty() {
        return Err(BundleError::NoSigner { path: place.path() }.into());
    }
    let (digest, signed_by) = require_signed(&place, &signers, &root, Timestamp::now())?;
    let packed = PackedContents::read(place, &args.layers.catalog(&args.catalog), Some(digest))?;
    packed.require_sound()?;
    if let Some(publisher) = &publisher {
        publisher.check_grant(&packed.place, &packed.contents.document)?;
    }
    let document = &packed.contents.document;
    if args.json {
        return files::print_json(&serde_json::json!({
            "bundle": document.title(), "version": document.version, "digest": digest, "signed_by": signed_by,
        }));
    }
    let said = format!("{} {}: signed by {}", document.title(), document.version, signed_by.join(", "));
    emit_message(&escape::line(said));
    files::show(&format!("{digest}\n"))
}

pub(super) fn trust(args: &TrustBundleArgs) -> Result<Outcome, Failure> {
    let place = args.from.location()?;
    let root = args.root.load(&args.trust.load(&args.catalog)?)?;
    let signers = args.signers.named()?;
    let ([_], Some((key, certificate))) = (&signers[..], args.signers.only()?) else {
        return Err(BundleError::NoSigner { path: place.path() }.into());
    };
    let (digest, _) = require_signed(&place, &signers, &root, Timestamp::now())?;
    let packed = PackedContents::read(place, &args.layers.catalog(&args.catalog), Some(digest))?;
    packed.require_sound()?;
    let document = &packed.contents.document;
    let registry = match &packed.place {
        BundlePlace::Registry { name, .. } => Some(name.repository.to_string()),
        _ => None,
    };
    let mut publisher = Publisher::granting(document, key, certificate, registry);
    let path = Publisher::path(&args.publishers, &document.publisher);
    if path.symlink_metadata().is_ok() {
        publisher.widen(&Publisher::load(&args.publishers, &document.publisher)?, &path)?;
    }
    files::show(&BundleSummary::of_packed(&packed, signers.len()).to_text())?;
    if !args.yes && !confirm(&document.publisher, &path)? {
        emit_message("not confirmed: nothing was written");
        return Ok(Outcome::Findings);
    }
    write_file(&path, &publisher.to_text()?, true)?;
    emit_message(&format!("{:>9}  {}", "wrote", escape::line(path.display().to_string())));
    Ok(Outcome::Clean)
}

/// Prompts on the terminal. An empty answer means no.
fn confirm(name: &str, path: &Path) -> Result<bool, Failure> {
    let stdin = std::io::stdin();
    if !stdin.is_terminal() {
        return Err(BundleError::Unattended { name: name.to_owned() }.into());
    }
    let mut stderr = std::io::stderr();
    let path = escape::line(path.display().to_string());
    write!(stderr, "Grant these permissions to bundles of {name}, in {path}? [y/N] ")?;
    stderr.flush()?;
    let mut answer = String::new();
    stdin.read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

//! `vmbake verify image`: verifies a release, from its signatures to the proofs of its inputs.

use std::num::NonZeroUsize;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::json;

use super::super::catalog::{CatalogArgs, LayersArgs, TrustArgs};
use super::super::key::KeySource;
use super::super::network::NetworkArgs;
use super::super::sign::label;
use super::super::{Failure, Outcome, files, threads};
use super::EvidenceError;
use super::rebuild::Rebuild;
use super::signers::{RootArgs, SignerArgs, keys};
use vmbake_bake::release::policy::ReleasePolicy;
use vmbake_bake::release::provenance::BuilderId;
use vmbake_bake::release::sign::attest;
use vmbake_bake::release::verify::{Documented, SignatureDemand, VerifiedRelease, VerifyRequest, image_name, verify};
use vmbake_common::escape;
use vmbake_common::output_format::OutputFormat;

/// Requirements for a release.
#[derive(Debug, clap::Args)]
pub(in super::super) struct DemandArgs {
    #[command(flatten)]
    signers: SignerArgs,
    /// Policy file: required builders, keys, sources, ages
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  vmbake verify image dist --key release.pub
  vmbake verify image dist/node.debian-13.amd64.qcow2 --policy policy.json --json
  vmbake verify image dist --key release.pub --rebuild        # also rebuilds it from its inputs
  vmbake verify image dist --certificate-identity https://github.com/example/images/.github/workflows/release.yml@refs/heads/main \\
      --certificate-oidc-issuer https://token.actions.githubusercontent.com";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// Output directory of a bake, or one image in it
    #[arg(value_name = "DIR|IMAGE")]
    release: PathBuf,
    #[command(flatten)]
    demands: DemandArgs,
    /// Rebuild each image from its inputs without caches, and compare every byte
    #[arg(long)]
    rebuild: bool,
    /// Base disk image for --rebuild [default: the base image that the manifest pins]
    #[arg(long, value_name = "FILE", requires = "rebuild")]
    base: Option<PathBuf>,
    /// Sign the release after successful verification: private key, as for `vmbake sign`
    #[arg(long, value_name = "KEY", requires_all = ["rebuild", "builder_id"])]
    sign: Option<KeySource>,
    /// Builder ID to record in the statements of --sign
    #[arg(long, value_name = "URI", requires = "sign")]
    builder_id: Option<BuilderId>,
    /// With --sign, write NAME.LABEL.sigstore.json
    #[arg(long, requires = "sign", default_value = "rebuild", value_parser = label)]
    label: String,
    #[command(flatten)]
    layers: LayersArgs,
    #[command(flatten)]
    root: RootArgs,
    /// Verification time, RFC 3339: reference for ages; later signatures are refused [default: now]
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    now: Option<Timestamp>,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let (folder, image) = place(&args.release)?;
    let anchors = args.trust.load(&args.catalog)?;
    let root = args.root.load(&anchors)?;
    let (policy, signatures) = args.demands.load()?;
    let threads = threads(args.jobs)?;
    let request = VerifyRequest {
        folder,
        image,
        signatures,
        policy,
        root: &root,
        store: &args.network.store()?,
        sources: &args.network.sources(&args.catalog)?,
        anchors: &anchors,
        now: args.now.unwrap_or_else(Timestamp::now),
        threads,
    };
    // An unusable key is reported before anything is baked.
    let signs = match (&args.sign, &args.builder_id) {
        (Some(key), Some(builder)) => Some((key.load()?, builder)),
        _ => None,
    };
    let VerifiedRelease { mut report, images, lists } = verify(&request);
    let mut differences = String::new();
    if args.rebuild {
        let (layers, base) = (args.layers.catalog(&args.catalog), args.base.clone());
        let rebuild = Rebuild { base, layers, quiet: args.json };
        for image in &images {
            differences += &rebuild.check(image, &request, &mut report)?;
        }
    }
    let mut signed = Vec::new();
    if let Some((key, builder)) = signs.filter(|_| report.is_ok()) {
        let statement = |image: &Documented| Ok((image.name.clone(), image.statement_text(builder)?));
        let statements = images.iter().map(statement).collect::<Result<_, serde_json::Error>>()?;
        signed = attest(folder, &key, Some(&args.label), &lists, &statements)?;
    }
    let signed: Vec<String> = signed.iter().map(|path| escape::name(path.as_os_str().as_bytes())).collect();
    if args.json {
        let (ok, checks) = (report.is_ok(), &report.checks);
        files::print_json(&json!({"ok": ok, "checks": checks, "differences": differences, "signed": signed}))?;
    } else {
        let signed: String = signed.iter().map(|path| format!("signed        {path}\n")).collect();
        files::show(&format!("{report}{differences}{signed}"))?;
    }
    Ok(if report.is_ok() { Outcome::Clean } else { Outcome::Findings })
}

/// The directory of a release, and the given image in it.
pub(in super::super) fn place(release: &Path) -> Result<(&Path, Option<&str>), Failure> {
    let found = release.metadata().map_err(|source| EvidenceError::Read { path: release.to_owned(), source })?;
    if found.is_dir() {
        return Ok((release, None));
    }
    let name = release.file_name().and_then(std::ffi::OsStr::to_str).filter(|name| image_name(name).is_some());
    let name = name.ok_or_else(|| {
        EvidenceError::unusable(release, format!("expected a directory, or a file {}", OutputFormat::FILE_NAMES))
    })?;
    let folder = release.parent().filter(|folder| !folder.as_os_str().is_empty());
    Ok((folder.unwrap_or(Path::new(".")), Some(name)))
}

impl DemandArgs {
    #[cfg(feature = "publish")]
    /// Whether there are no requirements.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.signers.is_empty() && self.policy.is_none()
    }

    /// The policy, and the signers required by options and policy.
    pub(in super::super) fn load(&self) -> Result<(ReleasePolicy, Vec<SignatureDemand>), Failure> {
        let policy = self.policy.as_deref().map(ReleasePolicy::load).transpose()?.unwrap_or_default();
        let mut demands = Vec::new();
        let of = self.signers.named()?;
        if !of.is_empty() {
            demands.push(SignatureDemand { require: of.len(), of });
        }
        if let Some(demand) = &policy.keys {
            demands.push(SignatureDemand { require: demand.require, of: keys(&demand.of)? });
        }
        Ok((policy, demands))
    }
}

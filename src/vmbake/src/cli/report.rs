//! `vmbake report`: an HTML report about an image.

use std::fmt::Display;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use super::catalog::{CatalogArgs, TrustArgs};
use super::network::NetworkArgs;
use super::verify::place;
use super::{Failure, Outcome, READABLE, threads};
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::release::policy::ReleasePolicy;
use vmbake_bake::release::provenance;
use vmbake_bake::release::sign::MAX_STATEMENT;
use vmbake_bake::release::sums::{SumsKind, read_sums};
use vmbake_bake::release::verify::{VerifiedRelease, VerifyRequest, image_name, verify};
use vmbake_common::atomic_file::{PublishError, require_other, write_file};
use vmbake_common::escape;
use vmbake_common::progress::{Event, emit};
use vmbake_proof::sigstore::{self, SigstoreRoot};
use vmbake_report::{Documents, Fact, ReportRequest, ReportedCheck, report};

const EXAMPLES: &str = "\
Examples:
  vmbake report dist/node.debian-13.amd64.qcow2 -o node.html
  vmbake report dist/node.debian-13.amd64.qcow2 --compare before/node.debian-13.amd64.qcow2 --verify -o node.html --force";

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    #[arg(help = format!("Disk image, {READABLE}"))]
    image: PathBuf,
    /// HTML file to write
    #[arg(short = 'o', long = "out", value_name = "FILE")]
    out: PathBuf,
    /// Older image to compare with
    #[arg(long, value_name = "OLD")]
    compare: Option<PathBuf>,
    /// Verify the release of the image as `vmbake verify image` does, and include the results
    #[arg(long)]
    verify: bool,
    /// Partition number; 0 for a file system without a partition table [default: the root partition]
    #[arg(long, value_name = "N")]
    partition: Option<u32>,
    /// Replace an existing report
    #[arg(long)]
    force: bool,
    /// Number of threads [default: number of cores]
    #[arg(short = 'j', long = "jobs", value_name = "N")]
    jobs: Option<NonZeroUsize>,
    #[command(flatten)]
    network: NetworkArgs,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
}

pub(super) fn run(args: &ReportArgs) -> Result<Outcome, Failure> {
    // Checked before reading the image, which takes a while.
    if !args.force && args.out.symlink_metadata().is_ok() {
        return Err(PublishError::Exists { path: args.out.clone() }.into());
    }
    require_other(&args.out, args.compare.iter().chain([&args.image]).map(PathBuf::as_path))?;
    let threads = threads(args.jobs)?;
    let mut documents = documents(&args.image);
    if args.verify {
        documents.checks = Some(args.checks(threads)?);
    }
    let ReportArgs { image, partition, compare, .. } = args;
    let text =
        report(&ReportRequest { image, partition: *partition, compare: compare.as_deref(), documents, threads })?;
    write_file(&args.out, text.as_bytes(), args.force)?;
    emit(&Event::Wrote { path: args.out.clone(), bytes: text.len() as u64 });
    Ok(Outcome::Clean)
}

impl ReportArgs {
    /// Results of verifying the release, without required signatures or ages, so that they do not depend on the clock.
    fn checks(&self, threads: NonZeroUsize) -> Result<Vec<ReportedCheck>, Failure> {
        let (folder, image) = place(&self.image)?;
        let anchors = self.trust.load(&self.catalog)?;
        let request = VerifyRequest {
            folder,
            image,
            signatures: Vec::new(),
            policy: ReleasePolicy::default(),
            root: &SigstoreRoot::parse(&anchors.read(sigstore::ROOT)?)?,
            store: &self.network.store()?,
            sources: &self.network.sources(&self.catalog)?,
            anchors: &anchors,
            now: Timestamp::now(),
            threads,
        };
        let VerifiedRelease { report: found, .. } = verify(&request);
        // The report must not contain directories of the host.
        let inside = format!("{}/", folder.display());
        let check = |check: vmbake_bake::release::verify::ReleaseCheck| ReportedCheck {
            state: check.state.to_string(),
            check: check.check.to_owned(),
            file: check.file,
            said: check.said.replace(&inside, ""),
        };
        Ok(found.checks.into_iter().map(check).collect())
    }
}

/// Reads the documents next to an image.
fn documents(image: &Path) -> Documents {
    let mut found = Documents::default();
    let file = image.file_name().and_then(std::ffi::OsStr::to_str);
    let Some(name) = file.and_then(image_name) else { return found };
    let folder = image.parent().unwrap_or(Path::new(""));
    for kind in SumsKind::ALL {
        match read_sums(folder, kind) {
            Ok(sums) => {
                let all = sums.into_iter().flat_map(|sums| sums.checksums);
                let own = all.filter(|(file, _)| file.strip_prefix(name).is_some_and(|rest| rest.starts_with('.')));
                found.digests.extend(own.map(|(file, checksum)| Fact::new(file, shown(checksum))));
            }
            Err(error) => found.notes.push(unusable(kind.file_name(), &error)),
        }
    }
    builder(image, &mut found);
    found
}

/// Builder and inputs, from the record of inputs and the provenance.
fn builder(image: &Path, found: &mut Documents) {
    let inputs = image.with_extension("inputs.json");
    if let Some(text) = document(&inputs, found) {
        match BuildInputs::parse(&inputs, &text) {
            Ok(inputs) => {
                let program = format!("vmbake {}, {}", inputs.program.version, inputs.program.digest);
                found.builder.push(Fact::new("baked by", program));
            }
            Err(error) => found.notes.push(unusable(&last(&inputs), &error)),
        }
    }
    let statement = image.with_extension("provenance.json");
    if let Some(text) = document(&statement, found) {
        match serde_json::from_slice(&text) {
            Ok(statement) => {
                let builder = provenance::builder(&statement);
                found.builder.extend(builder.map(|builder| Fact::new("builder", builder.to_string())));
            }
            Err(error) => found.notes.push(unusable(&last(&statement), &error)),
        }
    }
}

/// Contents of a document, if it exists.
fn document(path: &Path, found: &mut Documents) -> Option<Vec<u8>> {
    path.symlink_metadata().ok()?;
    match vmbake_bake::release::read(path, MAX_STATEMENT) {
        Ok(text) => Some(text),
        Err(error) => {
            found.notes.push(unusable(&last(path), &error));
            None
        }
    }
}

fn shown(checksum: Checksum) -> String {
    match checksum {
        Checksum::Bytes(digest) => digest.to_string(),
        Checksum::Verity(digest) => format!("fs-verity {digest}"),
    }
}

fn last(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// A note about a document. Errors may contain the directory; only the part after the last one is shown.
fn unusable(file: &str, error: &dyn Display) -> String {
    let text = error.to_string();
    let text = text.rsplit_once(file).map_or(text.as_str(), |(_, rest)| rest);
    format!("{file} is not used{}", escape::line(text))
}

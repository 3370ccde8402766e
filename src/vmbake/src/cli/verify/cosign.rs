//! `vmbake verify cosign`: verifies a file against its `.sig` and `.cert`.

use std::error::Error;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use super::super::{Failure, Outcome};
use super::sigstore::{Common, MAX_FILE};
use super::{EvidenceError, read};
use vmbake_common::progress::{Event, emit};
use vmbake_proof::cosign::{Detached, DetachedPolicy};

const EXAMPLES: &str = "\
Examples:
  vmbake verify cosign --signature kubelet.sig --certificate kubelet.cert --log-entry entry.json \\
      --certificate-identity krel-staging@k8s-releng-prod.iam.gserviceaccount.com \\
      --certificate-oidc-issuer https://accounts.google.com kubelet";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// Signature, base64
    #[arg(long, value_name = "FILE")]
    signature: PathBuf,
    /// Certificate, PEM or base64 of PEM
    #[arg(long, value_name = "FILE")]
    certificate: PathBuf,
    /// Response of a Rekor v1 log with the entry of the signature
    #[arg(long, value_name = "FILE")]
    log_entry: Option<PathBuf>,
    /// Accept a signature without a log entry (its time is not proven)
    #[arg(long)]
    allow_no_log: bool,
    /// Required subject alternative name of the certificate (exact match)
    #[arg(long, value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    certificate_identity: String,
    /// Required OIDC issuer of the certificate (exact match)
    #[arg(long, value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    certificate_oidc_issuer: String,
    #[command(flatten)]
    common: Common,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let unproven =
        |error: Box<dyn Error + Send + Sync>| EvidenceError::unproven(&args.common.artifact, &args.signature, error);
    let (signature, certificate) = (read(&args.signature, MAX_FILE)?, read(&args.certificate, MAX_FILE)?);
    let detached = Detached::parse(&signature, &certificate).map_err(|error| unproven(error.into()))?;
    let answer = args.log_entry.as_ref().map(|path| read(path, MAX_FILE)).transpose()?;
    let policy = DetachedPolicy {
        identity: &args.certificate_identity,
        issuer: &args.certificate_oidc_issuer,
        allow_no_log: args.allow_no_log,
        now: args.common.now(),
    };
    let artifact = args.common.digests()?;
    let proven = detached
        .verify(&artifact, answer.as_deref(), &policy, &args.common.root()?)
        .map_err(|error| unproven(error.into()))?;
    if proven.signed.is_none() {
        emit(&Event::Warning { warning: "the signing time is not proven".to_owned() });
    }
    args.common.print(&proven)
}

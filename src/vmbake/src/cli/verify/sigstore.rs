//! `vmbake verify sigstore`: verifies a file against a sigstore bundle.

use std::io::Read;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use jiff::Timestamp;
use serde_json::Value;
use sha2::Sha512;

use super::super::catalog::{CatalogArgs, TrustArgs};
use super::super::{Failure, Outcome};
use super::{EvidenceError, read};
use vmbake_common::digest::Digest;
use vmbake_common::digest::Hasher;
use vmbake_common::input;
use vmbake_proof::sigstore::{self, BundlePolicy, MAX_BUNDLES, Proven, PublicKey, Signer, SigstoreRoot};

/// Maximum length of other files: keys and certificates have about 1 KB, log entries and roots less than 100.
pub(super) const MAX_FILE: u64 = 4 << 20;

const EXAMPLES: &str = "\
Examples:
  vmbake verify sigstore --bundle app.sigstore.json --certificate-identity release@example.org \\
      --certificate-oidc-issuer https://accounts.example.org app.tar.gz
  vmbake verify sigstore --bundle app.sigstore.json --key cosign.pub app.tar.gz";

#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub(in super::super) struct Args {
    /// Sigstore bundle, or a .jsonl file with one bundle per line
    #[arg(long, value_name = "FILE")]
    bundle: PathBuf,
    #[command(flatten)]
    signer: SignerArgs,
    /// Required public key, PEM, instead of a certificate
    #[arg(long, value_name = "FILE", conflicts_with_all = ["certificate_identity", "certificate_oidc_issuer"])]
    key: Option<PathBuf>,
    /// Required predicateType of the in-toto statement
    #[arg(long, value_name = "URI", value_parser = NonEmptyStringValueParser::new())]
    predicate_type: Option<String>,
    #[command(flatten)]
    common: Common,
}

/// Required identity of the certificate, unless a key is given.
#[derive(Debug, clap::Args)]
struct SignerArgs {
    /// Required subject alternative name of the certificate (exact match)
    #[arg(long, value_name = "ID", required_unless_present = "key", value_parser = NonEmptyStringValueParser::new())]
    certificate_identity: Option<String>,
    /// Required OIDC issuer of the certificate (exact match)
    #[arg(long, value_name = "URL", required_unless_present = "key", value_parser = NonEmptyStringValueParser::new())]
    certificate_oidc_issuer: Option<String>,
}

/// Common options of signature checks.
#[derive(Debug, clap::Args)]
pub(super) struct Common {
    /// Trusted authorities and logs, trusted_root.json [default: sigstore-root.json of the trust anchors]
    #[arg(long, value_name = "FILE", conflicts_with = "trust")]
    trusted_root: Option<PathBuf>,
    #[command(flatten)]
    trust: TrustArgs,
    #[command(flatten)]
    catalog: CatalogArgs,
    /// Verification time, RFC 3339; later signatures are refused [default: now]
    #[arg(long, value_name = "TIME", value_parser = super::time)]
    now: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// File to verify
    #[arg(value_name = "ARTIFACT")]
    pub(super) artifact: PathBuf,
}

pub(super) fn run(args: &Args) -> Result<Outcome, Failure> {
    let bundles = read(&args.bundle, MAX_BUNDLES)?;
    let signer = match &args.key {
        Some(path) => {
            let key = PublicKey::from_pem(&read(path, MAX_FILE)?);
            Signer::Key(key.map_err(|error| EvidenceError::unusable(path, error))?)
        }
        None => Signer::Certificate {
            identity: args.signer.certificate_identity.clone().unwrap_or_default(),
            issuer: args.signer.certificate_oidc_issuer.clone().unwrap_or_default(),
        },
    };
    let policy = BundlePolicy {
        signer,
        predicate_type: args.predicate_type.as_deref(),
        subject_name: None,
        now: args.common.now(),
    };
    let proven = sigstore::verify(&bundles, &args.common.digests()?, &policy, &args.common.root()?)
        .map_err(|error| EvidenceError::unproven(&args.common.artifact, &args.bundle, error))?;
    args.common.print(&proven)
}

impl Common {
    pub(super) fn now(&self) -> Timestamp {
        self.now.unwrap_or_else(Timestamp::now)
    }

    pub(super) fn root(&self) -> Result<SigstoreRoot, Failure> {
        Ok(match &self.trusted_root {
            Some(path) => {
                SigstoreRoot::parse(&read(path, MAX_FILE)?).map_err(|error| EvidenceError::unusable(path, error))?
            }
            None => SigstoreRoot::parse(&self.trust.load(&self.catalog)?.read(sigstore::ROOT)?)?,
        })
    }

    /// Computes both digests in one pass: a statement can have either.
    pub(super) fn digests(&self) -> Result<[Digest; 2], EvidenceError> {
        let failed = |source| EvidenceError::Read { path: self.artifact.clone(), source };
        let mut file = input::open(&self.artifact).map_err(failed)?;
        let (mut sha256, mut sha512) = (Hasher::sha256(), Hasher::Sha512(Sha512::default()));
        let mut buffer = vec![0; 256 << 10];
        loop {
            match file.read(&mut buffer).map_err(failed)? {
                0 => return Ok([sha256.finish(), sha512.finish()]),
                len => {
                    sha256.update(&buffer[..len]);
                    sha512.update(&buffer[..len]);
                }
            }
        }
    }

    pub(super) fn print(&self, proven: &Proven) -> Result<Outcome, Failure> {
        let text = |value: &Option<String>| value.as_deref().map(Value::from);
        let facts = [
            ("identity", text(&proven.identity)),
            ("issuer", text(&proven.issuer)),
            ("log_index", proven.log_index.map(Value::from)),
            ("signed", proven.signed.map(|time| time.to_string().into())),
            ("predicate_type", text(&proven.predicate_type)),
        ];
        let facts: Vec<_> = facts.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
        super::print(&facts, self.json)?;
        Ok(Outcome::Clean)
    }
}

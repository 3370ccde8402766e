//! Options for required signers and the trusted root.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;

use super::super::Failure;
use super::{EvidenceError, read};
use vmbake_bake::release::key::MAX_KEY;
use vmbake_bake::release::verify::NamedSigner;
use vmbake_pin::anchors::Anchors;
use vmbake_proof::sigstore::{self, PublicKey, Signer, SigstoreRoot};

/// The heading of these options in the help.
const SIGNATURES: &str = "Signature options";

#[derive(Debug, clap::Args)]
pub(in super::super) struct SignerArgs {
    /// Required public key, PEM; if repeated, all must have signed
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    key: Vec<PathBuf>,
    /// Required subject alternative name of the signing certificate (exact match)
    #[arg(long, help_heading = SIGNATURES, value_name = "ID", requires = "certificate_oidc_issuer", value_parser = NonEmptyStringValueParser::new())]
    certificate_identity: Option<String>,
    /// Required OIDC issuer of the signing certificate (exact match)
    #[arg(long, help_heading = SIGNATURES, value_name = "URL", requires = "certificate_identity", value_parser = NonEmptyStringValueParser::new())]
    certificate_oidc_issuer: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(in super::super) struct RootArgs {
    /// Trusted authorities and logs, trusted_root.json [default: sigstore-root.json of the trust anchors]
    #[arg(long, help_heading = SIGNATURES, value_name = "FILE")]
    trusted_root: Option<PathBuf>,
}

impl SignerArgs {
    #[cfg(feature = "publish")]
    /// Whether no signer is required.
    pub(in super::super) fn is_empty(&self) -> bool {
        self.key.is_empty() && self.certificate_identity.is_none()
    }

    /// Required signers.
    pub(in super::super) fn named(&self) -> Result<Vec<NamedSigner>, Failure> {
        let mut of = keys(&self.key)?;
        if let (Some(identity), Some(issuer)) = (&self.certificate_identity, &self.certificate_oidc_issuer) {
            let signer = Signer::Certificate { identity: identity.clone(), issuer: issuer.clone() };
            of.push(NamedSigner { name: identity.clone(), signer });
        }
        Ok(of)
    }
}

/// A public key, or an identity with its issuer.
pub(in super::super) type OnlySigner = (Option<String>, Option<(String, String)>);

impl SignerArgs {
    /// The only key or identity, if there is exactly one.
    pub(in super::super) fn only(&self) -> Result<Option<OnlySigner>, Failure> {
        let certificate = self.certificate_identity.clone().zip(self.certificate_oidc_issuer.clone());
        match (&self.key[..], certificate) {
            ([path], None) => {
                let pem = String::from_utf8(read(path, MAX_KEY)?);
                Ok(Some((Some(pem.map_err(|error| EvidenceError::unusable(path, error))?), None)))
            }
            ([], Some(certificate)) => Ok(Some((None, Some(certificate)))),
            _ => Ok(None),
        }
    }
}

impl RootArgs {
    /// The trusted root.
    pub(in super::super) fn load(&self, anchors: &Anchors) -> Result<SigstoreRoot, Failure> {
        Ok(match &self.trusted_root {
            Some(path) => SigstoreRoot::parse(&read(path, super::sigstore::MAX_FILE)?)
                .map_err(|error| EvidenceError::unusable(path, error))?,
            None => SigstoreRoot::parse(&anchors.read(sigstore::ROOT)?)?,
        })
    }
}

/// Reads keys from files. Refuses duplicates, since one key would count twice.
pub(super) fn keys(files: &[PathBuf]) -> Result<Vec<NamedSigner>, Failure> {
    let (mut seen, mut keys) = (BTreeMap::new(), Vec::new());
    for path in files {
        let key = PublicKey::from_pem(&read(path, MAX_KEY)?)
            .and_then(PublicKey::require_p256)
            .map_err(|error| EvidenceError::unusable(path, error))?;
        if let Some(other) = seen.insert(key.der().to_vec(), path) {
            return Err(EvidenceError::unusable(path, format!("same key as {}", other.display())).into());
        }
        keys.push(NamedSigner { name: path.display().to_string(), signer: Signer::KeyWithoutLog(key) });
    }
    Ok(keys)
}

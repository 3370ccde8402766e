//! Signatures over downloaded files: of sigstore, as a bundle or as `.sig` and `.cert`, and of OpenPGP.

use std::collections::BTreeMap;
use std::io::Seek as _;

use super::{ResolveError, Resolver};
use crate::sources::{Demand, Template};
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_manifest::{Document, Form, Proof};
use vmbake_proof::cosign::{self, CosignError, Detached};
use vmbake_proof::openpgp::{FileSignature, Keyring};
use vmbake_proof::sigstore::{self, ROOT, Signer, SigstoreRoot, rekor};
use vmbake_store::download::Downloaded;
use vmbake_store::http::{HttpError, Request, header};
use vmbake_store::store::StoreError;

/// Maximum number of log entries to check: anyone can add entries for the digest of any file.
const MAX_ENTRIES: usize = 32;

impl Resolver<'_> {
    /// Verifies a file with the given SHA-256 by the required signature; stores the evidence.
    pub(super) fn signed(
        &self,
        demand: &Demand,
        values: &BTreeMap<String, String>,
        sha256: Digest,
        evidence: &mut BTreeMap<Digest, Document>,
    ) -> Result<Proof, ResolveError> {
        let render = |place, template: &Template| {
            template.render(values).map_err(|source| ResolveError::Template { place, source })
        };
        match demand {
            Demand::Sigstore { bundle, identity, issuer, predicate_type } => {
                let url = render("bundle", bundle)?;
                let policy = sigstore::BundlePolicy {
                    signer: Signer::Certificate { identity: render("identity", identity)?, issuer: issuer.clone() },
                    predicate_type: predicate_type.as_deref(),
                    subject_name: values.get("file").map(String::as_str),
                    now: self.now,
                };
                let document = self.document(&url)?;
                let proven = sigstore::verify(&document, &[sha256], &policy, &self.root()?);
                let proven =
                    proven.map_err(|source| ResolveError::Sigstore { url: url.clone(), source: source.into() })?;
                let kept = vec![self.keep(&url, Form::Whole, &document, evidence)?];
                Ok(proven.record(kept).map_or(Proof::FirstUse, Proof::Sigstore))
            }
            Demand::Cosign { signature, certificate, identity, issuer, log, without_log } => {
                let (url, certificate_url) = (render("signature", signature)?, render("certificate", certificate)?);
                let refused = |source| ResolveError::Message(message!("{url}: does not prove the artifact").by(source));
                let (signature, certificate) = (self.document(&url)?, self.document(&certificate_url)?);
                let detached = Detached::parse(&signature, &certificate).map_err(refused)?;
                let entry = self.log_entry(log, &sha256, &detached).map_err(|error| match error {
                    LogError::Resolve(error) => error,
                    LogError::Answer(source) => refused(CosignError::Entry { source }),
                })?;
                let answer = entry.as_ref().map(|(_, answer)| answer.as_slice());
                let identity = render("identity", identity)?;
                let policy =
                    cosign::DetachedPolicy { identity: &identity, issuer, allow_no_log: *without_log, now: self.now };
                let proven = detached.verify(&[sha256], answer, &policy, &self.root()?).map_err(refused)?;
                let mut kept = vec![
                    self.keep(&url, Form::Whole, &signature, evidence)?,
                    self.keep(&certificate_url, Form::Whole, &certificate, evidence)?,
                ];
                if let Some((url, answer)) = &entry {
                    let lasting = rekor::lasting(answer).map_err(|source| refused(CosignError::Entry { source }))?;
                    kept.push(self.keep(url, Form::LogEntry, &lasting, evidence)?);
                }
                Ok(proven.record(kept).map_or(Proof::FirstUse, Proof::Cosign))
            }
            Demand::FirstUse | Demand::Checksum | Demand::Stated(_) | Demand::Apt | Demand::Openpgp { .. } => {
                Ok(Proof::FirstUse)
            }
        }
    }

    /// Verifies a file by the detached OpenPGP signature at `url`; stores the signature.
    pub(super) fn signed_file(
        &self,
        url: &str,
        keyring: &str,
        downloaded: &Downloaded,
        evidence: &mut BTreeMap<Digest, Document>,
    ) -> Result<Proof, ResolveError> {
        let keys = Keyring::parse(&self.anchors.read(keyring)?);
        let keys = keys.map_err(|source| ResolveError::Keyring { file: keyring.to_owned(), source })?;
        let signature = self.document(url)?;
        let mut file = &downloaded.file;
        let found = FileSignature::verify(&signature, file, &keys, self.now);
        let read = |source| StoreError::Read { path: self.store.path(&downloaded.digest), source };
        file.rewind().map_err(read)?;
        let refused = |source| ResolveError::Message(message!("{url}: does not prove the artifact").by(source));
        let FileSignature { signers, signed } = found.map_err(refused)?;
        let evidence = vec![self.keep(url, Form::Whole, &signature, evidence)?];
        Ok(Proof::Openpgp { keyring: keyring.to_owned(), signers, signed, evidence })
    }

    fn root(&self) -> Result<SigstoreRoot, ResolveError> {
        let root = SigstoreRoot::parse(&self.anchors.read(ROOT)?);
        root.map_err(|source| ResolveError::Sigstore { url: ROOT.to_owned(), source: Box::new(source) })
    }

    /// The log's response with the entry of this signature and its URL, if there is one.
    fn log_entry(
        &self,
        log: &str,
        sha256: &Digest,
        detached: &Detached,
    ) -> Result<Option<(String, Vec<u8>)>, LogError> {
        let log = log.trim_end_matches('/');
        let query = serde_json::json!({ "hash": sha256.to_string() }).to_string();
        let url = format!("{log}/api/v1/index/retrieve");
        let asked = Request::post(&url, query.as_bytes()).header(header::CONTENT_TYPE, "application/json");
        let found = self.client.send(&asked, |answer| answer.read(super::MAX_DOCUMENT))?;
        for uuid in rekor::uuids(&found)?.into_iter().take(MAX_ENTRIES) {
            let url = format!("{log}/api/v1/log/entries/{uuid}");
            let answer = self.client.get(&url, super::MAX_DOCUMENT)?;
            if detached.find(&answer)?.is_some() {
                return Ok(Some((url, answer)));
            }
        }
        Ok(None)
    }
}

/// Why the log could not be used.
enum LogError {
    Resolve(ResolveError),
    Answer(rekor::RekorError),
}

impl From<HttpError> for LogError {
    fn from(error: HttpError) -> Self {
        Self::Resolve(error.into())
    }
}

impl From<rekor::RekorError> for LogError {
    fn from(error: rekor::RekorError) -> Self {
        Self::Answer(error)
    }
}

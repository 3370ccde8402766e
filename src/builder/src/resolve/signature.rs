//! Signatures of sigstore over a file that was downloaded: as a bundle, or as `.sig` and `.cert`.

use std::collections::BTreeMap;
use std::io::Seek;

use super::{ResolveError, Resolver};
use crate::download::Downloaded;
use crate::manifest::{Digest, Proof};
use crate::proof::cosign::{self, CosignError, Detached};
use crate::proof::sigstore::{self, Proven, Root, Signer, rekor};
use crate::sources::{Demand, Template};
use crate::store::StoreError;

/// File of `trust/` with the authorities and logs of sigstore.
const ROOT: &str = "sigstore-root.json";
/// Entries of the log that are looked at: anybody may log more under the digest of any file.
const MAX_ENTRIES: usize = 32;

impl Resolver<'_> {
    /// Proves a downloaded file by the signature that is demanded; keeps the evidence in the store.
    pub(super) fn signed(
        &self,
        demand: &Demand,
        values: &BTreeMap<String, String>,
        file: &mut Downloaded,
    ) -> Result<Proof, ResolveError> {
        let render = |place, template: &Template| {
            template.render(values).map_err(|source| ResolveError::Template { place, source })
        };
        let digests = self.digests(file)?;
        match demand {
            Demand::Sigstore { bundle, identity, issuer, predicate_type } => {
                let url = render("bundle", bundle)?;
                let policy = sigstore::Policy {
                    signer: Signer::Certificate { identity: render("identity", identity)?, issuer: issuer.clone() },
                    predicate_type: predicate_type.as_deref(),
                    subject_name: values.get("file").map(String::as_str),
                    now: self.now,
                };
                let proven = sigstore::verify(&self.document(&url)?, &digests, &policy, &self.root()?);
                let proven =
                    proven.map_err(|source| ResolveError::Sigstore { url: url.clone(), source: source.into() })?;
                Ok(self.record(&proven)?.map_or(Proof::FirstUse, Proof::Sigstore))
            }
            Demand::Cosign { signature, certificate, identity, issuer, log, without_log } => {
                let url = render("signature", signature)?;
                let refused = |source| ResolveError::Cosign { url: url.clone(), source: Box::new(source) };
                let certificate = self.document(&render("certificate", certificate)?)?;
                let detached = Detached::parse(&self.document(&url)?, &certificate).map_err(refused)?;
                let entry = self.log_entry(log, &digests[0], &detached).map_err(|error| match error {
                    LogError::Resolve(error) => error,
                    LogError::Answer(source) => refused(CosignError::Entry { source }),
                })?;
                let identity = render("identity", identity)?;
                let policy = cosign::Policy { identity: &identity, issuer, allow_no_log: *without_log, now: self.now };
                let proven = detached.verify(&digests, entry.as_deref(), &policy, &self.root()?).map_err(refused)?;
                Ok(self.record(&proven)?.map_or(Proof::FirstUse, Proof::Cosign))
            }
            Demand::FirstUse | Demand::Checksum | Demand::Apt => Ok(Proof::FirstUse),
        }
    }

    fn root(&self) -> Result<Root, ResolveError> {
        let root = Root::parse(&self.anchors.read(ROOT)?);
        root.map_err(|source| ResolveError::Sigstore { url: ROOT.to_owned(), source: Box::new(source) })
    }

    fn record(&self, proven: &Proven) -> Result<Option<crate::manifest::Signed>, StoreError> {
        let evidence = proven.bundle.as_ref().map(|bundle| self.store.insert(bundle)).transpose()?;
        Ok(proven.record(evidence))
    }

    /// The file's digests, SHA-256 first: signatures are over that one.
    fn digests(&self, file: &mut Downloaded) -> Result<Vec<Digest>, StoreError> {
        if let Digest::Sha256(_) = file.digest {
            return Ok(vec![file.digest]);
        }
        let read = |source| StoreError::Read { path: self.store.path(&file.digest), source };
        let (sha256, _) = Digest::of(b"").of_stream(&mut file.file).map_err(read)?;
        file.file.rewind().map_err(read)?;
        Ok(vec![sha256, file.digest])
    }

    /// The log's answer with the entry of this signature, if the log has one.
    fn log_entry(&self, log: &str, sha256: &Digest, detached: &Detached) -> Result<Option<Vec<u8>>, LogError> {
        let log = log.trim_end_matches('/');
        let query = serde_json::json!({ "hash": sha256.to_string() }).to_string();
        let found = self.client.post_json(&format!("{log}/api/v1/index/retrieve"), &query, super::MAX_DOCUMENT)?;
        for uuid in rekor::uuids(&found)?.into_iter().take(MAX_ENTRIES) {
            let answer = self.client.get(&format!("{log}/api/v1/log/entries/{uuid}"), super::MAX_DOCUMENT)?;
            if detached.find(&answer)?.is_some() {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }
}

/// Why the log was of no help.
enum LogError {
    Resolve(ResolveError),
    Answer(rekor::RekorError),
}

impl From<crate::http::HttpError> for LogError {
    fn from(error: crate::http::HttpError) -> Self {
        Self::Resolve(error.into())
    }
}

impl From<rekor::RekorError> for LogError {
    fn from(error: rekor::RekorError) -> Self {
        Self::Answer(error)
    }
}

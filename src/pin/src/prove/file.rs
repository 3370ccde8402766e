//! A single file: verifies its URL, and a checksum file, a bundle or a signature over its digest.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::evidence::Wants;
use super::{LOCAL, LinkError, ManifestContext, Prover, VerifiedProof, same, weak};
use crate::sources::{Demand, Template, Upstream};
use vmbake_common::digest::Digest;
use vmbake_manifest::{Dependency, Form, Proof, Signed};
use vmbake_proof::checksum;
use vmbake_proof::cosign::{self, Detached};
use vmbake_proof::openpgp::{FileSignature, Keyring};
use vmbake_proof::sigstore::{self, Proven, ROOT, Signer, SigstoreRoot, rekor};

pub(super) fn replay(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    upstream: &Upstream,
    demand: &Demand,
    entry: &Dependency,
) -> Result<VerifiedProof, LinkError> {
    let values = upstream.values(place.values(), &entry.version)?;
    let value = |name: &str| values.get(name).map_or("", String::as_str);
    same("URL", &entry.url, value("url"))?;
    let proof = entry.proof.as_ref();
    let render = |template: &Template| template.render(&values);
    match demand {
        Demand::Checksum | Demand::FirstUse => {
            let checksums = upstream.checksums.as_ref().map(render).transpose()?;
            by_checksum(prover, place, entry, demand, checksums.as_deref(), value("file"))
        }
        Demand::Stated(stated) => by_layer(stated, entry),
        Demand::Apt => Err(weak("the signed index of an archive", proof)),
        Demand::Openpgp { signature, keyring } => openpgp(prover, place, &render(signature)?, keyring, entry),
        Demand::Sigstore { bundle, identity, issuer, predicate_type } => {
            let identity = render(identity)?;
            let Some(Proof::Sigstore(signed)) = proof else {
                return Err(weak(format!("a sigstore bundle by {identity}"), proof));
            };
            let documents = evidence(prover, place, signed, &[render(bundle)?], None)?;
            let policy = sigstore::BundlePolicy {
                signer: Signer::Certificate { identity, issuer: issuer.clone() },
                predicate_type: predicate_type.as_deref(),
                subject_name: Some(value("file")),
                now: verification_time(signed),
            };
            let bundle = documents.first().map(Vec::as_slice).unwrap_or_default();
            let proven = sigstore::verify(bundle, &[entry.digest], &policy, &prover.root()?)?;
            recorded(signed, &proven)
        }
        Demand::Cosign { .. } => cosigned(prover, place, demand, &values, entry),
    }
}

/// The digest in the checksum file; unproven if none is required or recorded.
fn by_checksum(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    entry: &Dependency,
    demand: &Demand,
    checksums: Option<&str>,
    file: &str,
) -> Result<VerifiedProof, LinkError> {
    match (&entry.proof, checksums) {
        (Some(Proof::FirstUse), None) if matches!(demand, Demand::FirstUse) => Ok(VerifiedProof::FirstUse),
        (Some(Proof::Checksum { url, evidence }), Some(checksums)) => {
            same("the checksum file", url, checksums)?;
            let Some(digest) = evidence else {
                return Err(LinkError::NoEvidence { proof: format!("checksum file {url}") });
            };
            let text = prover.document(place.content, digest, Wants::from(url.clone()))?;
            same("digest", &entry.digest.to_string(), &checksum::find(&text, file, None)?.to_string())?;
            Ok(VerifiedProof::Checksum)
        }
        (proof, Some(_)) => Err(weak("a checksum file", proof.as_ref())),
        (proof, None) => Err(weak("the first download", proof.as_ref())),
    }
}

/// The digest stated by the layer that requests the file.
fn by_layer(stated: &Digest, entry: &Dependency) -> Result<VerifiedProof, LinkError> {
    match &entry.proof {
        Some(Proof::Local) if entry.url.starts_with(LOCAL) => {
            same("digest", &entry.digest.to_string(), &stated.to_string())?;
            Ok(VerifiedProof::Local)
        }
        Some(Proof::Stated) if !entry.url.starts_with(LOCAL) => {
            same("digest", &entry.digest.to_string(), &stated.to_string())?;
            Ok(VerifiedProof::Stated)
        }
        proof => Err(weak("the SHA-256 stated in its layer", proof.as_ref())),
    }
}

/// The signature is verified over the file again, which is in the store or downloaded.
fn openpgp(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    url: &str,
    keyring: &str,
    entry: &Dependency,
) -> Result<VerifiedProof, LinkError> {
    let Some(Proof::Openpgp { keyring: recorded, signers, signed, evidence }) = &entry.proof else {
        return Err(weak(format!("an OpenPGP signature by a key of {keyring}"), entry.proof.as_ref()));
    };
    same("keyring", recorded, keyring)?;
    let [digest] = &evidence[..] else {
        return Err(LinkError::NoEvidence { proof: format!("the signature {url}") });
    };
    let signature = prover.document(place.content, digest, Wants::from(url.to_owned()))?;
    let unusable = |source| LinkError::Keyring { file: keyring.to_owned(), source };
    let keys = Keyring::parse(&prover.anchors.read(keyring)?).map_err(unusable)?;
    let found = FileSignature::verify(&signature, prover.artifact(entry)?, &keys, *signed)?;
    same("signers", &signers.join(", "), &found.signers.join(", "))?;
    same("time of signing", &signed.to_string(), &found.signed.to_string())?;
    Ok(VerifiedProof::Signer { identity: format!("OpenPGP key {}", found.signers.join(", ")) })
}

fn cosigned(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    demand: &Demand,
    values: &BTreeMap<String, String>,
    entry: &Dependency,
) -> Result<VerifiedProof, LinkError> {
    let Demand::Cosign { signature, certificate, identity, issuer, log, without_log } = demand else {
        return Err(weak("a signature", entry.proof.as_ref()));
    };
    let identity = identity.render(values)?;
    let Some(Proof::Cosign(signed)) = &entry.proof else {
        return Err(weak(format!("a signature by {identity}"), entry.proof.as_ref()));
    };
    let urls = [signature.render(values)?, certificate.render(values)?];
    let log_entry = if *without_log && signed.evidence.len() == urls.len() { None } else { Some(log.as_str()) };
    let documents = evidence(prover, place, signed, &urls, log_entry)?;
    let (signature, certificate, log_entry) = match &documents[..] {
        [signature, certificate] => (signature, certificate, None),
        [signature, certificate, log_entry] => (signature, certificate, Some(log_entry.as_slice())),
        _ => return Err(LinkError::NoEvidence { proof: format!("the entry in the log {log}") }),
    };
    let policy = cosign::DetachedPolicy {
        identity: &identity,
        issuer,
        allow_no_log: *without_log,
        now: verification_time(signed),
    };
    let detached = Detached::parse(signature, certificate)?;
    let proven = detached.verify(&[entry.digest], log_entry, &policy, &prover.root()?)?;
    recorded(signed, &proven)
}

/// The time of the check: the time of signing, which the evidence must prove. Without a log entry, any time is
/// accepted.
fn verification_time(signed: &Signed) -> Timestamp {
    signed.signed.unwrap_or(Timestamp::MAX)
}

/// The evidence of a signature, in order: the documents at `urls`, then the log entry. Exactly these must be listed.
fn evidence(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    signed: &Signed,
    urls: &[String],
    log: Option<&str>,
) -> Result<Vec<Vec<u8>>, LinkError> {
    let mut wants: Vec<Wants> = urls.iter().cloned().map(Wants::from).collect();
    if let Some(log) = log {
        let listed = signed.evidence.get(urls.len()).and_then(|digest| place.content.evidence.get(digest));
        let entries = format!("{}/api/v1/log/entries/", log.trim_end_matches('/'));
        let is_entry = |url: &String| url.strip_prefix(&entries).is_some_and(rekor::is_uuid);
        let url = listed.map(|document| document.url.clone()).filter(is_entry).unwrap_or(entries);
        wants.push(Wants { form: Form::LogEntry, ..Wants::from(url) });
    }
    if signed.evidence.len() != wants.len() {
        return Err(LinkError::NoEvidence { proof: format!("the signature by {}", signed.identity) });
    }
    let document = |(digest, wants)| prover.document(place.content, digest, wants);
    signed.evidence.iter().zip(wants).map(document).collect()
}

/// The signer, if the recorded signer, time and log entry match.
fn recorded(signed: &Signed, proven: &Proven) -> Result<VerifiedProof, LinkError> {
    let identity = proven.identity.as_deref().unwrap_or_default();
    let text = |value: Option<String>| value.unwrap_or_default();
    same("identity", &signed.identity, identity)?;
    same("issuer", &signed.issuer, proven.issuer.as_deref().unwrap_or_default())?;
    same(
        "log index",
        &text(signed.log_index.map(|index| index.to_string())),
        &text(proven.log_index.map(|index| index.to_string())),
    )?;
    same(
        "time of signing",
        &text(signed.signed.map(|time| time.to_string())),
        &text(proven.signed.map(|time| time.to_string())),
    )?;
    Ok(VerifiedProof::Signer { identity: identity.to_owned() })
}

impl Prover<'_> {
    fn root(&self) -> Result<SigstoreRoot, LinkError> {
        Ok(SigstoreRoot::parse(&self.anchors.read(ROOT)?)?)
    }
}

//! A Debian package: verifies the chain from the key to `InRelease`, index and package.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::evidence::{MAX_INDEX, MAX_LEN, Wants};
use super::{LinkError, ManifestContext, Prover, VerifiedProof, differs, same, weak};
use crate::sources::Archive;
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_manifest::{ArchiveSnapshot, Dependency, Form, Proof};
use vmbake_proof::apt::{Expect, IndexFile, Packages, Release};
use vmbake_proof::openpgp::Keyring;

/// The recorded proof.
struct Record<'a> {
    archive: &'a str,
    suite: &'a str,
    date: Timestamp,
    signers: &'a [String],
    signed: Timestamp,
    release: &'a Digest,
    /// The detached signature of a `Release`; `None` for an `InRelease`.
    signature: Option<&'a Digest>,
    index: &'a Digest,
    snapshot: Option<&'a ArchiveSnapshot>,
}

pub(super) fn replay(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    archives: &[&str],
    package: &str,
    entry: &Dependency,
) -> Result<VerifiedProof, LinkError> {
    let record = record(prover, archives, entry)?;
    let Some(archive) = prover.sources.schema().archives.get(record.archive) else {
        return Err(LinkError::NoArchive { archive: record.archive.to_owned() });
    };
    let (mut base, suite) = archive.place(&place.values())?;
    if let Some(snapshot) = record.snapshot {
        let copy = archive.snapshot_of(&base, snapshot.copied).filter(|_| snapshot.copied <= snapshot.at);
        base = copy.ok_or_else(|| weak(format!("archive {}", record.archive), entry.proof.as_ref()))?;
    }
    same("suite", record.suite, &suite)?;
    let dists = Archive::index_directory(&base, &suite);
    let release = release(prover, place, &record, archive, &dists)?;

    let index = release.indexes(archive.component.as_deref(), &place.target.arch)?;
    let index = index.into_iter().find(|index| index.digest == *record.index);
    let what = if record.signature.is_some() { "Release" } else { "InRelease" };
    let index = index.ok_or(LinkError::Message(message!("{what} does not list the index {}", *record.index)))?;
    let packages = packages(prover, place, &record, archive, &dists, &index)?;
    let proven = packages.version(package, &entry.version)?;
    same("URL", &entry.url, &format!("{base}/{}", proven.filename))?;
    same("digest", &entry.digest.to_string(), &proven.digest.to_string())?;
    same("size", &entry.size.to_string(), &proven.size.to_string())?;
    let name = archive.label.as_ref().or(archive.origin.as_ref()).map_or(record.archive, String::as_str);
    Ok(VerifiedProof::Archive { archive: name.to_owned(), date: release.date(), snapshot: record.snapshot.cloned() })
}

/// Verifies a package chosen for a layer: it must be from the archive of the operating system, or from one that the
/// layers name. A bake compares the recorded names with the layers.
pub(super) fn replay_chosen(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    package: &str,
    entry: &Dependency,
) -> Result<VerifiedProof, LinkError> {
    let requests = place.content.closure.iter().flat_map(|closure| closure.layers.values());
    let named = requests.filter_map(|request| request.archive.as_deref());
    let archives: Vec<&str> = place.system.archive.as_deref().into_iter().chain(named).collect();
    replay(prover, place, &archives, package, entry)
}

/// The record, if it is of one of the archives, or of one with their updates.
fn record<'a>(prover: &Prover<'_>, archives: &[&str], entry: &'a Dependency) -> Result<Record<'a>, LinkError> {
    let proof = entry.proof.as_ref();
    let demanded = || weak(format!("the signed index of archive {}", archives.join(" or ")), proof);
    let Some(Proof::Apt { archive: found, suite, date, signers, signed, evidence, snapshot }) = proof else {
        return Err(demanded());
    };
    if !archives.iter().any(|archive| prover.sources.archives_for(archive).any(|archive| archive == found)) {
        return Err(demanded());
    }
    let (release, signature, index) = match &evidence[..] {
        [release, index] => (release, None, index),
        [release, signature, index] => (release, Some(signature), index),
        _ => return Err(LinkError::NoEvidence { proof: format!("archive {found}") }),
    };
    let Some(signed) = *signed else { return Err(LinkError::NoEvidence { proof: format!("archive {found}") }) };
    let (date, snapshot) = (*date, snapshot.as_ref());
    Ok(Record { archive: found, suite, date, signers, signed, release, signature, index, snapshot })
}

/// The `InRelease`, or the `Release` with its signature, by keys that are still trusted and were valid at the time of
/// the last signature.
fn release(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    record: &Record<'_>,
    archive: &Archive,
    directory: &str,
) -> Result<Arc<Release>, LinkError> {
    let wants = |name: &str| {
        let url = format!("{directory}/{name}");
        let past = archive.past(&url, record.date);
        Wants { urls: [vec![url], past].concat(), form: Form::Whole, limit: MAX_LEN }
    };
    let name = if record.signature.is_some() { "Release" } else { "InRelease" };
    prover.listed(place.content, record.release, &wants(name))?;
    if let Some(signature) = record.signature {
        prover.listed(place.content, signature, &wants("Release.gpg"))?;
    }
    // Hundreds of packages may share a release.
    let signature = record.signature.map(ToString::to_string).unwrap_or_default();
    let key = format!("{} {} {signature} {} {}", record.archive, record.release, record.suite, record.signed);
    let release = prover.releases.get(&key, || {
        let text = prover.document(place.content, record.release, wants(name))?;
        let keyring = Keyring::parse(&prover.anchors.read(&archive.keyring)?)
            .map_err(|source| LinkError::Keyring { file: archive.keyring.clone(), source })?;
        let expect = Expect { suite: record.suite, now: record.signed, previous: None };
        Ok::<_, LinkError>(match record.signature {
            None => Release::verify(&text, &keyring, &expect)?,
            Some(signature) => {
                let signature = prover.document(place.content, signature, wants("Release.gpg"))?;
                Release::verify_detached(&text, &signature, &keyring, &expect)?
            }
        })
    })?;
    same("Date", &record.date.to_string(), &release.date().to_string())?;
    same("time of signing", &record.signed.to_string(), &release.signed().to_string())?;
    if let Some(snapshot) = record.snapshot {
        let or_none = |time: Option<Timestamp>| time.map(|time| time.to_string()).unwrap_or_default();
        same("Valid-Until", &or_none(snapshot.valid_until), &or_none(release.valid_until()))?;
    }
    if record.signers != release.signers() {
        return Err(differs("signers", &record.signers.join(", "), &release.signers().join(", ")));
    }
    Ok(release)
}

fn packages(
    prover: &Prover<'_>,
    place: &ManifestContext<'_>,
    record: &Record<'_>,
    archive: &Archive,
    dists: &str,
    index: &IndexFile,
) -> Result<Arc<Packages>, LinkError> {
    let mut urls: Vec<String> =
        index.by_hash.iter().chain([&index.path]).map(|path| format!("{dists}/{path}")).collect();
    urls.extend(archive.past(&format!("{dists}/{}", index.path), record.date));
    let wants = Wants { urls, form: Form::Whole, limit: MAX_INDEX };
    prover.listed(place.content, &index.digest, &wants)?;
    // One pass over the index finds all packages of the manifest.
    let chosen = place.content.dependencies.iter().filter(|(_, entry)| entry.chosen.is_some());
    let chosen = chosen.map(|(name, _)| name.as_str());
    let wanted: BTreeSet<&str> = prover.sources.packages_of(record.archive).chain(chosen).collect();
    let wanted: Vec<&str> = wanted.into_iter().collect();
    let names = Digest::of(wanted.join(" ").as_bytes());
    let key = format!("{} {} {} {names}", record.archive, index.digest, index.arch);
    prover.indexes.get(&key, || {
        let bytes = prover.document(place.content, &index.digest, wants)?;
        Ok(Packages::read(index, &*bytes, &wanted)?)
    })
}

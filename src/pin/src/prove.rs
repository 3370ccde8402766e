//! Replays the proofs of manifest entries from the pinned evidence: a recorded result is never trusted.
//!
//! Given a manifest, `sources.json`, trust anchors and a store, returns the proof of each entry ([`VerifiedProof`]), or the
//! missing link of the chain ([`LinkError`]). The clock is not used: ages and expiry are checked as of the time that
//! the manifest pins, so that an old release can be verified again, while trust anchors and revocations are current.
//!
//! The chain of each entry: a pinned key or identity, a signed index or statement, and in it exactly the version, URL,
//! digest and length of the entry. The required proof is defined in `sources.json`, or in the layer that downloads the
//! artifact, whose request is recorded in the manifest and compared by a bake; an entry without either was pinned
//! manually.

use std::collections::BTreeSet;

use crate::anchors::Anchors;
use crate::sources::{Demand, Sources, System, Upstream, VersionSource};
use crate::version::is_version;
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_common::once_map::OnceMap;
use vmbake_manifest::{ArtifactType, ContainerImage, Content, Dependency, Manifest, OCI, OS_IMAGE, Proof, Target};
use vmbake_proof::apt::{Packages, Release};
use vmbake_proof::program;
use vmbake_store::http::Client;
use vmbake_store::store::{Store, StoreError};

pub use error::{LinkError, ProveError};
pub use verified_proof::{VerificationResult, VerifiedProof};

mod apt;
mod error;
mod evidence;
mod file;
mod image;
mod verified_proof;
mod cache;

/// Prefix of the URL of a local base image.
pub const LOCAL: &str = "local:";
/// The context of verification; shared by all threads.
pub struct Prover<'a> {
    store: &'a Store,
    sources: &'a Sources,
    anchors: &'a Anchors,
    /// Downloads missing evidence; `None` when offline.
    client: Option<&'a Client>,
    /// Whether files in the store are checked as well, if a proof does not cover all properties.
    looks: bool,
    /// Cached indexes.
    indexes: OnceMap<Packages>,
    /// Cached releases with verified signatures.
    releases: OnceMap<Release>,
}

/// The manifest of an entry.
struct ManifestContext<'a> {
    target: Target,
    system: &'a System,
    content: &'a Content,
}

impl<'a> Prover<'a> {
    /// A prover that uses evidence in `store`, and downloads missing evidence with `client`.
    pub fn new(store: &'a Store, sources: &'a Sources, anchors: &'a Anchors, client: Option<&'a Client>) -> Self {
        Self {
            store,
            sources,
            anchors,
            client,
            looks: false,
            indexes: OnceMap::default(),
            releases: OnceMap::default(),
        }
    }

    /// Also checks properties of the artifacts in the store that their proofs do not cover: lengths and program
    /// identities. A fetch and a bake check them anyway.
    #[must_use]
    pub fn looking_at_files(self) -> Self {
        Self { looks: true, ..self }
    }

    /// Verifies every entry of a manifest: the base image, the artifacts, the container images.
    pub fn each(&self, content: &Content) -> impl Iterator<Item = (String, Result<VerifiedProof, ProveError>)> {
        let base = content.os.image.iter().map(|image| (OS_IMAGE.to_owned(), self.os_image(content, image)));
        let artifacts =
            content.dependencies.iter().map(|(name, entry)| (name.clone(), self.dependency(content, name, entry)));
        let images = content.images.iter().map(|image| (image.image.clone(), self.image(content, image)));
        let named = |(name, result): (String, Result<_, _>)| {
            let result = result.map_err(|source| ProveError { name: name.clone(), source: Box::new(source) });
            (name, result)
        };
        base.chain(artifacts).chain(images).map(named)
    }

    /// Verifies the base image and all artifacts of a manifest, or uses the cached result for the same manifest,
    /// sources, anchors and program. Container images are verified by their documents, if these are in the store.
    pub fn all(&self, manifest: &Manifest) -> Result<VerificationResult, ProveError> {
        let key = cache::key(self, manifest);
        // With a client, missing evidence is downloaded even if the result is cached.
        let is_enough = self.client.is_none() || self.has_evidence(manifest.content());
        if let Some(known) = key.as_ref().filter(|_| is_enough).and_then(|key| cache::load(self.store, key)) {
            return Ok(known);
        }
        let content = Content { images: Vec::new(), ..manifest.content().clone() };
        // Stops at the first failure: other entries may wait for the same unresponsive server.
        let entries = self.each(&content).map(|(name, result)| Ok((name, result?)));
        let result = VerificationResult::new(entries.collect::<Result<_, ProveError>>()?);
        if let Some(key) = &key {
            cache::save(self.store, key, &result);
        }
        Ok(result)
    }

    /// Verifies an artifact.
    pub fn dependency(&self, content: &Content, name: &str, entry: &Dependency) -> Result<VerifiedProof, LinkError> {
        let Some(place) = self.place(content) else { return by_hand(entry.proof.as_ref()) };
        // A request of a layer never replaces the requirement of a source.
        let source = self.sources.upstream(&place.target, name);
        match source.or_else(|| content.download(name).map(|(_, upstream)| upstream)) {
            Some(upstream) => {
                let proof = self.upstream(&place, upstream, entry)?;
                if self.looks {
                    self.look(&place, upstream, entry)?;
                }
                Ok(proof)
            }
            None if entry.chosen.is_some() => {
                same("type", entry.kind.name(), ArtifactType::Deb.name())?;
                apt::replay_chosen(self, &place, name, entry)
            }
            None => by_hand(entry.proof.as_ref()),
        }
    }

    /// Verifies the base image.
    pub fn os_image(&self, content: &Content, image: &Dependency) -> Result<VerifiedProof, LinkError> {
        // A local file is given again when it is used: a bake has no other location for it.
        if image.url.starts_with(LOCAL) && image.proof == Some(Proof::Local) {
            return Ok(VerifiedProof::Local);
        }
        // Its digest is that of all that it consists of.
        if image.kind == ArtifactType::Oci && image.url.starts_with(OCI) && image.proof == Some(Proof::FirstUse) {
            return Ok(VerifiedProof::FirstUse);
        }
        match self.place(content) {
            // The base image of a kind without a source may be pinned manually.
            Some(place) if self.sources.lists(&place.target) || image.proof.is_some() => {
                self.upstream(&place, &place.system.image, image)
            }
            _ => by_hand(image.proof.as_ref()),
        }
    }

    /// Verifies a container image, except for its layers.
    pub fn image(&self, content: &Content, image: &ContainerImage) -> Result<VerifiedProof, LinkError> {
        image::replay(self, content, image)
    }

    /// Checks the properties of an artifact that the proof of its digest does not cover.
    fn look(&self, place: &ManifestContext<'_>, upstream: &Upstream, entry: &Dependency) -> Result<(), LinkError> {
        let Some(file) = self.store.blob(&entry.digest)? else {
            return if upstream.program.is_some() { Err(LinkError::Unseen) } else { Ok(()) };
        };
        let path = self.store.path(&entry.digest);
        let read = |source| StoreError::Read { path: path.clone(), source };
        let (found, len) = self.store.digest(&path, &file, &entry.digest).map_err(read)?;
        if found != entry.digest {
            return Ok(());
        }
        same("size", &entry.size.to_string(), &len.to_string())?;
        program::check(upstream, &entry.version, &place.target.arch, &file)
            .map_err(|error| LinkError::Message(Message::new("not the program that its source requires").by(error)))
    }

    /// Whether all evidence of a manifest is in the store and intact.
    fn has_evidence(&self, content: &Content) -> bool {
        let is_there = |digest: &Digest| {
            let file = self.store.blob(digest).ok()??;
            let (found, _) = self.store.digest(&self.store.path(digest), &file, digest).ok()?;
            (found == *digest).then_some(())
        };
        // Deduplicated: hundreds of packages may share evidence.
        let all: BTreeSet<&Digest> =
            content.entries().filter_map(|entry| entry.proof.as_ref()).flat_map(Proof::evidence).collect();
        all.into_iter().all(|digest| is_there(digest).is_some())
    }

    /// `None` if the system is not in the sources.
    fn place<'b>(&'b self, content: &'b Content) -> Option<ManifestContext<'b>> {
        let target = content.target();
        let system = self.sources.system(&target).ok()?;
        Some(ManifestContext { target, system, content })
    }

    fn upstream(
        &self,
        place: &ManifestContext<'_>,
        upstream: &Upstream,
        entry: &Dependency,
    ) -> Result<VerifiedProof, LinkError> {
        same("type", entry.kind.name(), upstream.kind.name())?;
        // The version becomes a part of URLs.
        if !matches!(upstream.version, VersionSource::Apt { .. }) && !is_version(&entry.version) {
            return Err(LinkError::Message(message!("{:?} is not a valid version", entry.version)));
        }
        match &upstream.version {
            VersionSource::Pinned(version) => same("version", &entry.version, version)?,
            VersionSource::SameAs(name) => {
                let leader = place.content.dependencies.get(name).map_or("", |leader| &leader.version);
                same("version", &entry.version, leader)?;
            }
            _ => {}
        }
        match (&upstream.proof, &upstream.version) {
            (Demand::Apt, VersionSource::Apt { archive, package }) => {
                apt::replay(self, place, &[archive], package, entry)
            }
            (demand, _) => file::replay(self, place, upstream, demand, entry),
        }
    }
}

impl ManifestContext<'_> {
    fn values(&self) -> std::collections::BTreeMap<String, String> {
        let versions = self.content.dependencies.iter().map(|(name, entry)| (name.clone(), entry.version.clone()));
        self.system.values(&self.target, &versions.collect())
    }
}

/// An entry without a source; it must not record a proof, which could not be replayed.
fn by_hand(proof: Option<&Proof>) -> Result<VerifiedProof, LinkError> {
    match proof {
        None | Some(Proof::Local) => Ok(VerifiedProof::ByHand),
        Some(proof) => Err(LinkError::Unknown { found: proof.to_string() }),
    }
}

fn same(what: &'static str, found: &str, proven: &str) -> Result<(), LinkError> {
    if found == proven { Ok(()) } else { Err(differs(what, found, proven)) }
}

fn differs(what: &'static str, found: &str, proven: &str) -> LinkError {
    let or_none = |text: &str| if text.is_empty() { "(none)".to_owned() } else { text.to_owned() };
    LinkError::Differs { what, found: or_none(found), proven: or_none(proven) }
}

fn weak(demanded: impl Into<String>, found: Option<&Proof>) -> LinkError {
    let found = found.map_or_else(|| "no proof".to_owned(), ToString::to_string);
    LinkError::Weak { demanded: demanded.into(), found }
}

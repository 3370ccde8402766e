//! Proves every entry of a manifest anew: what a manifest records of a proof is replayed from the evidence that it pins, never read.
//!
//! A manifest, `sources.json`, trust anchors and a store enter; who answers for each entry leaves ([`Standing`]), or which link of
//! the chain is missing ([`LinkError`]). No clock is asked: ages and expiry are judged as of the time that the manifest pins, so
//! that an old release can be proven again, while trust anchors and revocations are those of today.
//!
//! The chain of each entry: a pinned key or identity, a signed index or statement, and in it exactly the version, address, digest
//! and length of the entry. What must prove it is said by `sources.json`, or by the layer that downloads it, whose words the manifest
//! repeats and a bake compares; an entry that neither knows was pinned by hand.

use std::collections::BTreeSet;

use crate::anchors::Anchors;
use crate::sources::{Demand, Sources, System, Upstream, VersionSource};
use crate::version::is_version;
use vmbake_common::digest::Digest;
use vmbake_common::memo::Memo;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_manifest::{ArtifactType, ContainerImage, Content, Dependency, Manifest, OS_IMAGE, Proof, Target};
use vmbake_proof::apt::{Packages, Release};
use vmbake_proof::program;
use vmbake_store::http::Client;
use vmbake_store::store::{Store, StoreError};

pub use error::{LinkError, ProveError};
pub use standing::{Standing, Verdict};

mod apt;
mod error;
mod evidence;
mod file;
mod image;
mod standing;
mod verdict;

/// Prefix of the address of a base image that the user made or chose.
pub const LOCAL: &str = "local:";
/// All that a proof is replayed with; shared by all threads.
pub struct Prover<'a> {
    store: &'a Store,
    sources: &'a Sources,
    anchors: &'a Anchors,
    /// Brings evidence that the store lacks; `None` offline.
    client: Option<&'a Client>,
    /// Whether files that are in the store are looked at as well, where a proof leaves open what they are.
    looks: bool,
    /// Indexes that were read already.
    indexes: Memo<Packages>,
    /// Releases whose signatures were judged already.
    releases: Memo<Release>,
}

/// The manifest that an entry stands in.
struct ManifestContext<'a> {
    target: Target,
    system: &'a System,
    content: &'a Content,
}

impl<'a> Prover<'a> {
    /// Proves with what is in `store`, and what `client` brings there.
    pub fn new(store: &'a Store, sources: &'a Sources, anchors: &'a Anchors, client: Option<&'a Client>) -> Self {
        Self { store, sources, anchors, client, looks: false, indexes: Memo::default(), releases: Memo::default() }
    }

    /// Compares the artifacts in the store, too, with what the proof of their digests leaves open: lengths, and which programs they
    /// are. A fetch and a bake do so when they have them.
    #[must_use]
    pub fn looking_at_files(self) -> Self {
        Self { looks: true, ..self }
    }

    /// Proves every entry of a manifest: the base image, the artifacts, the container images.
    pub fn each(&self, content: &Content) -> impl Iterator<Item = (String, Result<Standing, ProveError>)> {
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

    /// Proves the base image and all artifacts of a manifest, unless that is known of the same manifest, sources, anchors and
    /// program. Container images are proven by their documents, when these are in the store.
    pub fn all(&self, manifest: &Manifest) -> Result<Verdict, ProveError> {
        let key = verdict::key(self, manifest);
        // Whoever can bring evidence does so, that it is there when the verdict is not.
        let is_enough = self.client.is_none() || self.has_evidence(manifest.content());
        if let Some(known) = key.as_ref().filter(|_| is_enough).and_then(|key| verdict::load(self.store, key)) {
            return Ok(known);
        }
        let content = Content { images: Vec::new(), ..manifest.content().clone() };
        // At the first that is not proven it is over: the others may have to wait for the same server that does not answer.
        let entries = self.each(&content).map(|(name, result)| Ok((name, result?)));
        let verdict = Verdict::new(entries.collect::<Result<_, ProveError>>()?);
        if let Some(key) = &key {
            verdict::save(self.store, key, &verdict);
        }
        Ok(verdict)
    }

    /// Proves an artifact.
    pub fn dependency(&self, content: &Content, name: &str, entry: &Dependency) -> Result<Standing, LinkError> {
        let Some(place) = self.place(content) else { return by_hand(entry.proof.as_ref()) };
        // What a layer asks for never takes the place of what a source demands.
        let source = self.sources.upstream(&place.target, name);
        match source.or_else(|| content.download(name).map(|(_, upstream)| upstream)) {
            Some(upstream) => {
                let standing = self.upstream(&place, upstream, entry)?;
                if self.looks {
                    self.look(&place, upstream, entry)?;
                }
                Ok(standing)
            }
            None if entry.chosen.is_some() => {
                same("type", entry.kind.name(), ArtifactType::Deb.name())?;
                apt::replay_chosen(self, &place, name, entry)
            }
            None => by_hand(entry.proof.as_ref()),
        }
    }

    /// Proves the base image.
    pub fn os_image(&self, content: &Content, image: &Dependency) -> Result<Standing, LinkError> {
        // The user names that file again when it is used: a bake takes it from nowhere else.
        if image.url.starts_with(LOCAL) && image.proof == Some(Proof::Local) {
            return Ok(Standing::Local);
        }
        match self.place(content) {
            // For a kind that no source lists somebody may have pinned another one by hand.
            Some(place) if self.sources.lists(&place.target) || image.proof.is_some() => {
                self.upstream(&place, &place.system.image, image)
            }
            _ => by_hand(image.proof.as_ref()),
        }
    }

    /// Proves a container image, all but its layers.
    pub fn image(&self, content: &Content, image: &ContainerImage) -> Result<Standing, LinkError> {
        image::replay(self, content, image)
    }

    /// Compares an artifact with what the proof of its digest leaves open.
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
        program::check(upstream, &entry.version, &place.target.arch, &file).map_err(|error| {
            LinkError::Message(Message::new("it is not the program that its source demands").by(error))
        })
    }

    /// Whether all evidence of a manifest is in the store, undamaged.
    fn has_evidence(&self, content: &Content) -> bool {
        let is_there = |digest: &Digest| {
            let file = self.store.blob(digest).ok()??;
            let (found, _) = self.store.digest(&self.store.path(digest), &file, digest).ok()?;
            (found == *digest).then_some(())
        };
        // Each once: hundreds of packages may rest on the same.
        let all: BTreeSet<&Digest> =
            content.entries().filter_map(|entry| entry.proof.as_ref()).flat_map(Proof::evidence).collect();
        all.into_iter().all(|digest| is_there(digest).is_some())
    }

    /// `None` where the sources know no such image at all.
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
    ) -> Result<Standing, LinkError> {
        same("type", entry.kind.name(), upstream.kind.name())?;
        // It becomes a part of addresses.
        if !matches!(upstream.version, VersionSource::Apt { .. }) && !is_version(&entry.version) {
            return Err(LinkError::Message(message!("{:?} is no version", entry.version)));
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

/// An entry without a source; it must not claim a proof that nobody can replay.
fn by_hand(proof: Option<&Proof>) -> Result<Standing, LinkError> {
    match proof {
        None | Some(Proof::Local) => Ok(Standing::ByHand),
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

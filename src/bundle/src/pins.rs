//! Artifacts of a bundle: its layers and sources in; verified entries out, with their evidence in the store.
//!
//! Resolved artifacts are kept in `pins.json` next to `bundle.json`, and resolved again only on request, or if the layers or sources have
//! changed. Therefore packing again gives the same artifacts: missing ones are downloaded by digest, even if newer versions were published.
//! An artifact that can no longer be downloaded or verified is an error, and is never replaced by another version.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::Path;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::contents::{BundleContents, SOURCES};
use super::document::BundleDocument;
use super::error::BundleError;
use vmbake_common::atomic_file::write_file;
use vmbake_common::catalog::Catalog;
use vmbake_common::digest::Digest;
use vmbake_common::progress::{Event, Progress};
use vmbake_fetch::{Supply, fetch};
use vmbake_layer::Layer;
use vmbake_manifest::{Content, Dependency, Document, Manifest, Os, Proof, Target};
use vmbake_pin::anchors::Anchors;
use vmbake_pin::prove::LinkError;
use vmbake_pin::resolve::{Cache, ManifestContext, Resolver};
use vmbake_pin::sources::{Sources, Upstream};
use vmbake_store::http::Client;
use vmbake_store::store::Store;

/// Name of the file with pins.
pub const PINS: &str = "pins.json";

/// What is pinned for a bundle, as `bundle.json` has it when it is packed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Pins {
    /// Artifacts by `OS.ARCH`, then by name.
    pub artifacts: BTreeMap<String, BTreeMap<String, Dependency>>,
    /// The documents that their proofs rest on.
    pub evidence: BTreeMap<Digest, Document>,
}

/// With what artifacts are resolved and proven.
pub struct PinTools<'a> {
    /// Where they are kept.
    pub store: &'a Store,
    /// Sources other than those of the bundle.
    pub sources: &'a Catalog,
    /// Whom to believe.
    pub anchors: &'a Anchors,
    /// Downloads what is missing; `None` offline.
    pub client: Option<&'a Client>,
    /// Downloads at the same time.
    pub threads: NonZeroUsize,
    /// Whether everything is resolved again.
    pub refresh: bool,
}

/// Pins all artifacts of the bundle in `folder`, and downloads them into the store.
pub fn pin(
    folder: &Path,
    contents: &BundleContents,
    tools: &PinTools<'_>,
    progress: &Progress,
) -> Result<Pins, BundleError> {
    let path = folder.join(PINS);
    let known = if path.symlink_metadata().is_ok() && !tools.refresh {
        let text = super::contents::read(&path)?;
        serde_json::from_slice(&text).map_err(|error| BundleError::syntax(&path, &error))?
    } else {
        Pins::default()
    };
    let fragment = folder.join(SOURCES);
    let sources = match contents.sources {
        Some(_) => Sources::load(&tools.sources.with(fragment))?,
        None => Sources::load(tools.sources)?,
    };
    let mut pins = Pins::default();
    for target in targets(&contents.document) {
        let content = resolve(contents, &target, &known, &sources, tools, progress)?;
        fetch_pinned(&content, &sources, tools, progress)?;
        if !content.dependencies.is_empty() {
            pins.evidence.extend(content.evidence);
            pins.artifacts.insert(format!("{}.{}", target.os, target.arch), content.dependencies);
        }
    }
    if pins != known {
        let mut text = serde_json::to_vec_pretty(&pins)?;
        text.push(b'\n');
        write_file(&path, &text, true)?;
    }
    Ok(pins)
}

/// What a bundle is for: each system and architecture once, of the first kind that it names.
pub(super) fn targets(document: &BundleDocument) -> Vec<Target> {
    let kind = document.kinds.first().cloned().unwrap_or_else(|| document.title());
    let target = |os: &String, arch: &String| Target { kind: kind.clone(), os: os.clone(), arch: arch.clone() };
    document.os.iter().flat_map(|os| document.arch.iter().map(move |arch| target(os, arch))).collect()
}

/// What a manifest would say of the artifacts of a bundle: a value that can be proven.
pub(super) fn content(pins: &Pins, layers: &[Layer], target: &Target) -> Result<Content, BundleError> {
    let mut requests = BTreeMap::new();
    for layer in layers {
        let asked = layer.upstream_request(&target.arch)?;
        if !asked.is_empty() {
            requests.insert(layer.schema.name.clone(), asked);
        }
    }
    let place = format!("{}.{}", target.os, target.arch);
    let mut content = Content {
        version: "dev".to_owned(),
        kind: target.kind.clone(),
        os: Os { name: target.os.clone(), arch: target.arch.clone(), image: None, boot: None, base: None },
        dependencies: pins.artifacts.get(&place).cloned().unwrap_or_default(),
        images: Vec::new(),
        bundles: BTreeMap::new(),
        evidence: pins.evidence.clone(),
        closure: None,
        requests,
        accounts: None,
        seen: BTreeMap::new(),
    };
    content.drop_unused_evidence();
    Ok(content)
}

/// Proves everything in `content` and has it in the store.
pub(super) fn fetch_pinned(
    content: &Content,
    sources: &Sources,
    tools: &PinTools<'_>,
    progress: &Progress,
) -> Result<(), BundleError> {
    let manifest = Manifest::parse(Path::new(PINS), content.to_text()?.into_bytes())?;
    let PinTools { store, anchors, client, threads, .. } = tools;
    let supply = Supply { store, sources, anchors, client: *client, threads: *threads };
    fetch(&manifest, &supply, progress)?;
    Ok(())
}

/// The artifacts of one target: those that are known and proven, and others resolved anew.
fn resolve(
    contents: &BundleContents,
    target: &Target,
    known: &Pins,
    sources: &Sources,
    tools: &PinTools<'_>,
    progress: &Progress,
) -> Result<Content, BundleError> {
    let mut content = content(known, &contents.own, target)?;
    let wanted = wanted(&content, contents, sources, target)?;
    content.dependencies.retain(|name, _| wanted.iter().any(|(wanted, _)| wanted == name));
    // Those that follow the version of another one come after it.
    let (first, second): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(_, upstream)| upstream.version.needs().is_none());
    let supply =
        Supply { store: tools.store, sources, anchors: tools.anchors, client: tools.client, threads: tools.threads };
    let prover = supply.prover();
    for (name, upstream) in first.into_iter().chain(second) {
        if let Some(pinned) = content.dependencies.get(&name) {
            match prover.dependency(&content, &name, pinned) {
                Ok(_) => continue,
                Err(error) if asks_otherwise(pinned, &error) => {}
                Err(source) => return Err(BundleError::PinLost { name, source: Box::new(source) }),
            }
        }
        let Some(client) = tools.client else { return Err(BundleError::Unpinned { name }) };
        let resolver = Resolver {
            client,
            store: tools.store,
            sources,
            anchors: tools.anchors,
            now: Timestamp::now(),
            seen: BTreeMap::new(),
            at: None,
            base: None,
            cache: Cache::default(),
            received: progress.counter("received"),
        };
        let versions = content.dependencies.iter().map(|(name, entry)| (name.clone(), entry.version.clone())).collect();
        let place = ManifestContext { target, system: sources.system(target)?, versions: &versions };
        let found = resolver.dependency(place, &upstream)?;
        resolver.received.finish_and_clear();
        let Dependency { version, digest, size: bytes, .. } = found.dependency.clone();
        progress.emit(Event::Pinned {
            manifest: contents.document.title(),
            name: name.clone(),
            version,
            digest,
            bytes,
        });
        content.evidence.extend(found.evidence);
        content.dependencies.insert(name, found.dependency);
    }
    content.drop_unused_evidence();
    Ok(content)
}

/// Whether a pin is not proven because layers or sources ask for something else since, and not because of what was pinned.
fn asks_otherwise(pinned: &Dependency, error: &LinkError) -> bool {
    match error {
        LinkError::Weak { .. } | LinkError::Unknown { .. } | LinkError::Elsewhere { .. } => true,
        // The layer itself says what it should be.
        LinkError::Differs { what: "digest", .. } => pinned.proof == Some(Proof::Stated),
        LinkError::Differs { what, .. } => ["type", "version", "URL", "the checksum file"].contains(what),
        _ => false,
    }
}

/// The upstreams of all artifacts that the layers install.
fn wanted(
    content: &Content,
    contents: &BundleContents,
    sources: &Sources,
    target: &Target,
) -> Result<Vec<(String, Upstream)>, BundleError> {
    let mut wanted = Vec::new();
    for (_, name, _) in contents.own.iter().flat_map(|layer| layer.schema.installs()) {
        let upstream = sources.upstream(target, name).or_else(|| content.download(name).map(|(_, upstream)| upstream));
        match upstream {
            Some(upstream) => wanted.push((name.clone(), upstream.clone())),
            None => return Err(BundleError::NoSource { name: name.clone(), target: target.name() }),
        }
    }
    Ok(wanted)
}

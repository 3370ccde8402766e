//! Selects targets by kind, operating system and architecture: manifests that exist or can be created.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vmbake_disk::image::quoted;

use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::spelling::{did_you_mean, near};
use vmbake_layer::{Layer, LayerError, Layers};
use vmbake_manifest::{Foundation, Target};
use vmbake_pin::closure::Requests;
use vmbake_pin::sources::Sources;
use vmbake_pin::update::UpstreamRequests;

/// Default architecture.
pub(super) const ARCH: &str = "amd64";

/// Error while selecting targets.
#[derive(Debug, thiserror::Error)]
pub(super) enum TargetError {
    #[error("unknown {what} {name}, expected one of: {}", known.join(", "))]
    Unknown { what: &'static str, name: String, known: Vec<String> },
    #[error("no source for {wanted}, expected one of: {}", known.join(", "))]
    Unmade { wanted: String, known: Vec<String> },
    #[error("{}: manifest not found", path.display())]
    Missing { path: PathBuf, target: Target },
    #[error("{}: not a directory of manifests", path.display())]
    NotFolder { path: PathBuf },
}

impl Hint for TargetError {
    fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Unknown { name, known, .. } => match &near(name, known.iter().map(String::as_str))[..] {
                [] => "add sources with --sources FILE, or create a custom layer with `vmbake init NAME`".to_owned(),
                near => did_you_mean(near),
            },
            Self::Unmade { .. } => {
                "select one with KIND, --os and --arch, or add sources with --sources FILE".to_owned()
            }
            Self::Missing { path, target } => made_by_update(path, target),
            Self::NotFolder { .. } => "use --manifests with a directory, or --manifest with a single file".to_owned(),
        })
    }
}

/// The command that creates a manifest.
fn made_by_update(path: &Path, target: &Target) -> String {
    let Target { kind, os, arch } = target;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let manifests = match folder == Path::new("manifests") {
        true => String::new(),
        false => format!(" --manifests {}", quoted(folder)),
    };
    let name = format!("{}.json", target.name());
    let made = if path.file_name().is_some_and(|found| *found == *name) { "it".to_owned() } else { name };
    format!("`vmbake update {kind} --os {os} --arch {arch}{manifests}` creates {made}")
}

/// A part of a target: its name, the requested values, and a getter.
type Part<'a> = (&'static str, &'a [String], fn(&Target) -> &String);

/// Targets of the sources that match; every requested name must match at least one. An empty list matches all.
pub(super) fn choose(
    sources: &Sources,
    kinds: &[String],
    systems: &[String],
    arches: &[String],
) -> Result<Vec<Target>, TargetError> {
    let all = sources.targets();
    let parts: [Part<'_>; 3] = [
        ("kind", kinds, |target| &target.kind),
        ("operating system", systems, |target| &target.os),
        ("architecture", arches, |target| &target.arch),
    ];
    for (what, wanted, of) in parts {
        if let Some(name) = wanted.iter().find(|name| !all.iter().any(|target| of(target) == *name)) {
            let mut known: Vec<String> = all.iter().map(|target| of(target).clone()).collect();
            known.sort();
            known.dedup();
            return Err(TargetError::Unknown { what, name: name.clone(), known });
        }
    }
    let fits = |target: &&Target| parts.iter().all(|(_, wanted, of)| wanted.is_empty() || wanted.contains(of(target)));
    let chosen: Vec<Target> = all.iter().filter(fits).cloned().collect();
    // Each name matches some target, but maybe none matches all of them.
    let lost = parts.iter().flat_map(|(_, wanted, of)| wanted.iter().map(move |name| (name, of)));
    match lost.into_iter().find(|(name, of)| !chosen.iter().any(|target| of(target) == *name)) {
        None => Ok(chosen),
        Some(_) => {
            let wanted = [kinds, systems, arches].map(|names| names.join(","));
            let wanted = wanted.into_iter().filter(|names| !names.is_empty()).collect::<Vec<_>>().join(" ");
            Err(TargetError::Unmade { wanted, known: all.iter().map(Target::name).collect() })
        }
    }
}

/// As [`choose`], but a kind without sources can be any layer. By default, for the operating systems that both the layer and the sources
/// have, and for the default architecture.
pub(super) fn choose_with_layers(
    sources: &Sources,
    layers: &Layers,
    kinds: &[String],
    systems: &[String],
    arches: &[String],
) -> Result<Vec<Target>, TargetError> {
    let listed = sources.targets();
    let (known, own): (Vec<_>, Vec<_>) =
        kinds.iter().cloned().partition(|kind| listed.iter().any(|target| target.kind == *kind));
    let of_layer = |kind: &String| layers.iter().find(|layer| layer.schema.name == *kind);
    let mut chosen = match known.is_empty() && !kinds.is_empty() && own.iter().all(|kind| of_layer(kind).is_some()) {
        true => Vec::new(),
        false => {
            let unknown = own.iter().filter(|kind| of_layer(kind).is_none());
            choose(sources, &[known, unknown.cloned().collect()].concat(), systems, arches)?
        }
    };
    for layer in own.iter().filter_map(of_layer) {
        let kind = &layer.schema.name;
        let os = layer.schema.os.iter().filter(|os| systems.is_empty() || systems.contains(os));
        let before = chosen.len();
        for (os, system) in os.filter_map(|os| Some((os, sources.schema().systems.get(os)?))) {
            let is_wanted = |arch: &&String| if arches.is_empty() { *arch == ARCH } else { arches.contains(arch) };
            let target = |arch: &String| Target { kind: kind.clone(), os: os.clone(), arch: arch.clone() };
            chosen.extend(system.arches.iter().filter(is_wanted).map(target));
        }
        if chosen.len() == before {
            let wanted = [std::slice::from_ref(kind), systems, arches].map(|names| names.join(","));
            let wanted = wanted.into_iter().filter(|names| !names.is_empty()).collect::<Vec<_>>().join(" ");
            let os = layer.schema.os.iter().filter_map(|os| Some((os, sources.schema().systems.get(os)?)));
            let known = os.flat_map(|(os, system)| system.arches.iter().map(move |arch| format!("{kind}.{os}.{arch}")));
            return Err(TargetError::Unmade { wanted, known: known.collect() });
        }
    }
    Ok(chosen)
}

/// Packages that the layers of each target request by name, on the layer below them of those that are made of packages.
/// Kinds without layers request none.
pub(super) fn requests(
    layers: &Layers,
    targets: &[Target],
    on_packages: &BTreeSet<Target>,
) -> Result<BTreeMap<Target, Requests>, LayerError> {
    let asked = resolved_on(layers, targets, on_packages)?.into_iter().map(|(target, layers)| {
        let asked = layers.iter().map(|layer| (layer.schema.name.clone(), layer.schema.request()));
        (target, asked.filter(|(_, request)| !request.is_empty()).collect())
    });
    Ok(asked.collect())
}

/// Files of layer directories that they install.
pub(super) fn local_files(layers: &Layers, targets: &[Target]) -> Result<Vec<(PathBuf, Digest)>, LayerError> {
    let layers = resolved(layers, targets)?;
    Ok(layers.values().flatten().flat_map(Layer::local_files).collect())
}

/// Downloads from other upstreams.
pub(super) fn upstreams(layers: &Layers, targets: &[Target]) -> Result<BTreeMap<Target, UpstreamRequests>, LayerError> {
    let mut all = BTreeMap::new();
    for (target, layers) in resolved(layers, targets)? {
        let asked: &mut UpstreamRequests = all.entry(target.clone()).or_default();
        for layer in layers {
            asked.insert(layer.schema.name.clone(), layer.upstream_request(&target.arch)?);
        }
        asked.retain(|_, asked| !asked.is_empty());
    }
    Ok(all)
}

/// Layers of each target that has layers.
fn resolved(layers: &Layers, targets: &[Target]) -> Result<BTreeMap<Target, Vec<Layer>>, LayerError> {
    resolved_on(layers, targets, &BTreeSet::new())
}

/// The same, on the layer below them of those that are made of packages.
fn resolved_on(
    layers: &Layers,
    targets: &[Target],
    on_packages: &BTreeSet<Target>,
) -> Result<BTreeMap<Target, Vec<Layer>>, LayerError> {
    let mut all = BTreeMap::new();
    for target in targets {
        layers.require(&target.kind)?;
        // Sources can list an operating system that the layer does not support; it can be pinned nevertheless.
        let supports = |layer: &Layer| layer.schema.name == target.kind && layer.schema.os.contains(&target.os);
        if !layers.iter().any(supports) {
            continue;
        }
        let bottom = on_packages.contains(target).then(|| Foundation::Packages.layer());
        all.insert(target.clone(), layers.resolve_on(bottom, &target.kind, &target.os, &[])?);
    }
    Ok(all)
}

/// The error for a missing manifest at `path`: unknown target, or not created yet.
pub(super) fn missing(path: &Path, target: Target, sources: &Sources, layers: &Layers) -> TargetError {
    let folder = path.parent().unwrap_or(path);
    if folder.metadata().is_ok_and(|found| !found.is_dir()) {
        return TargetError::NotFolder { path: folder.to_owned() };
    }
    let [kind, os, arch] = [&target.kind, &target.os, &target.arch].map(std::slice::from_ref);
    match choose_with_layers(sources, layers, kind, os, arch) {
        Ok(_) => TargetError::Missing { path: path.to_owned(), target },
        Err(error) => error,
    }
}

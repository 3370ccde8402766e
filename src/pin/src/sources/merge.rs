//! Merges sources of several roots: archives and anchors by name, systems by name and part, artifacts and images by
//! name for each target.

use std::collections::BTreeMap;

use super::schema::{Document, SystemPart};
use super::{Archive, ImageSource, Source, SourcesSchema, System, TrustSource, downgrade};
use vmbake_common::catalog::{Catalog, CatalogError, Entries, Entry, Override, Root};
use vmbake_manifest::Target;

impl Entry for Archive {
    const SORT: &'static str = "archives";

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }

    fn weaker_than(&self, other: &Self) -> Option<String> {
        downgrade::archive(self, other)
    }
}

impl Entry for TrustSource {
    const SORT: &'static str = "trust";

    fn is_same(&self, other: &Self) -> bool {
        self == other
    }
}

/// Documents being merged.
struct Merge<'a> {
    catalog: &'a Catalog,
    /// With their roots, in the order of the roots.
    documents: &'a [(Root, Document)],
    overridden: Vec<Override>,
}

/// The merged documents.
pub(super) struct Merged {
    /// Of artifacts and images for the same target, the first one applies.
    pub(super) schema: Document,
    /// All targets with manifests.
    pub(super) targets: Vec<Target>,
    /// The entries that replaced others.
    pub(super) overridden: Vec<Override>,
}

/// The sources of all documents.
pub(super) fn merge(catalog: &Catalog, documents: &[(Root, Document)]) -> Result<Merged, CatalogError> {
    let mut merge = Merge { catalog, documents, overridden: Vec::new() };
    let archives = merge.archives()?;
    let systems = merge.systems()?;
    let mut trust = Entries::default();
    for (root, document) in documents {
        for (name, source) in &document.trust {
            trust.add(catalog, root, name.clone(), source.clone())?;
        }
    }
    merge.overridden.extend_from_slice(trust.overridden());
    let targets = targets(&systems);
    let dependencies = merge.dependencies(&targets)?;
    let images = merge.images(&targets)?;
    merge.overridden.sort();
    merge.overridden.dedup();
    let schema = SourcesSchema { archives, systems, dependencies, images, trust: values(&trust) };
    Ok(Merged { schema, targets, overridden: merge.overridden })
}

/// The sources, with complete systems only.
pub(super) fn complete(schema: Document) -> SourcesSchema {
    let SourcesSchema { archives, systems, dependencies, images, trust } = schema;
    let system = |part: SystemPart| {
        let SystemPart { codename, kinds, arches, image, archive } = part;
        Some(System { codename: codename?, kinds, arches, image: image?, archive })
    };
    let systems = systems.into_iter().filter_map(|(name, part)| Some((name, system(part)?))).collect();
    SourcesSchema { archives, systems, dependencies, images, trust }
}

fn targets(systems: &BTreeMap<String, SystemPart>) -> Vec<Target> {
    let mut targets = Vec::new();
    for (os, system) in systems {
        for kind in &system.kinds {
            let target = |arch: &String| Target { kind: kind.clone(), os: os.clone(), arch: arch.clone() };
            targets.extend(system.arches.iter().map(target));
        }
    }
    targets.sort();
    targets
}

fn values<T: Clone>(merged: &Entries<T>) -> BTreeMap<String, T> {
    merged.iter().map(|(name, _, value)| (name.clone(), value.clone())).collect()
}

impl Merge<'_> {
    fn replace(
        &mut self,
        entry: String,
        known: &Root,
        found: &Root,
        weaker: Option<String>,
    ) -> Result<(), CatalogError> {
        self.overridden.push(self.catalog.replace(entry, known, found, weaker)?);
        Ok(())
    }

    fn archives(&mut self) -> Result<BTreeMap<String, Archive>, CatalogError> {
        let mut merged: Entries<Archive> = Entries::default();
        for (root, document) in self.documents {
            for (name, archive) in &document.archives {
                if let Some((known, weaker)) = weaker_alias(&merged, root, name, archive) {
                    self.replace(format!("archives/{name}"), &known, root, Some(weaker))?;
                }
                merged.add(self.catalog, root, name.clone(), archive.clone())?;
            }
        }
        self.overridden.extend_from_slice(merged.overridden());
        Ok(values(&merged))
    }

    /// Kinds and architectures of all roots are combined; other properties must be equal.
    fn systems(&mut self) -> Result<BTreeMap<String, SystemPart>, CatalogError> {
        let mut merged: BTreeMap<String, (Root, SystemPart)> = BTreeMap::new();
        for (root, document) in self.documents {
            for (name, part) in &document.systems {
                if let Some((known, weaker)) = weaker_image(&merged, root, name, part) {
                    self.replace(format!("systems/{name}"), &known, root, Some(weaker))?;
                }
                let Some((known, system)) = merged.get_mut(name) else {
                    merged.insert(name.clone(), (root.clone(), part.clone()));
                    continue;
                };
                system.kinds.extend(part.kinds.iter().cloned());
                system.arches.extend(part.arches.iter().cloned());
                let codenames = part.codename.as_ref().zip(system.codename.as_ref());
                let archives = part.archive.as_ref().zip(system.archive.as_ref());
                let images = part.image.as_ref().zip(system.image.as_ref());
                if [codenames, archives].into_iter().flatten().any(|(found, known)| found != known)
                    || images.is_some_and(|(found, known)| found != known)
                {
                    let weaker = images.and_then(|(found, known)| downgrade::upstream(found, known));
                    self.overridden.push(self.catalog.replace(format!("systems/{name}"), known, root, weaker)?);
                }
                system.codename = part.codename.clone().or(system.codename.take());
                system.image = part.image.clone().or(system.image.take());
                system.archive = part.archive.clone().or(system.archive.take());
            }
        }
        Ok(merged.into_iter().map(|(name, (_, system))| (name, system)).collect())
    }

    fn dependencies(&mut self, targets: &[Target]) -> Result<Vec<Source>, CatalogError> {
        let documents = self.documents;
        for (at, (root, document)) in documents.iter().enumerate() {
            let earlier = documents.iter().take(at);
            let known: Vec<_> =
                earlier.flat_map(|(root, known)| known.dependencies.iter().map(move |one| (root, one))).collect();
            for source in &document.dependencies {
                for (of, other) in &known {
                    let is_file = source.upstream.url.is_some() && source.upstream.url == other.upstream.url;
                    let meets = |target: &Target| source.serves(target) && other.serves(target);
                    let replaces =
                        source.name == other.name && source.upstream != other.upstream && targets.iter().any(meets);
                    if !replaces && !is_file {
                        continue;
                    }
                    let weaker = downgrade::upstream(&source.upstream, &other.upstream);
                    // The same file must not be proven less for another kind, or under another name.
                    if replaces || weaker.is_some() {
                        self.replace(format!("dependencies/{}", source.name), of, root, weaker)?;
                    }
                }
            }
        }
        Ok(latest_first(documents, |document| &document.dependencies))
    }

    fn images(&mut self, targets: &[Target]) -> Result<Vec<ImageSource>, CatalogError> {
        let documents = self.documents;
        for (at, (root, document)) in documents.iter().enumerate() {
            for image in &document.images {
                for (of, known) in documents.iter().take(at) {
                    let meets = |other: &&ImageSource| {
                        targets.iter().any(|target| image.serves(target) && other.serves(target))
                    };
                    let mut others =
                        known.images.iter().filter(|other| other.image == image.image && other.tag != image.tag);
                    if others.any(|other| meets(&other)) {
                        self.replace(format!("images/{}", image.image), of, root, None)?;
                    }
                }
            }
        }
        Ok(latest_first(documents, |document| &document.images))
    }
}

/// The requirement that a system relaxes for its image, compared with another root's for the same image of another
/// system.
fn weaker_image(
    known: &BTreeMap<String, (Root, SystemPart)>,
    root: &Root,
    name: &str,
    part: &SystemPart,
) -> Option<(Root, String)> {
    let image = part.image.as_ref().filter(|image| image.url.is_some())?;
    let mut others = known.iter().filter(|(of, (from, _))| *of != name && from != root);
    others.find_map(|(_, (from, system))| {
        let other = system.image.as_ref().filter(|other| other.url == image.url)?;
        Some((from.clone(), downgrade::upstream(image, other)?))
    })
}

/// The requirement that an archive relaxes, compared with another root's for the same suite under another name, which
/// must not circumvent it.
fn weaker_alias(known: &Entries<Archive>, root: &Root, name: &str, archive: &Archive) -> Option<(Root, String)> {
    let is_alias = |other: &Archive| (&other.url, &other.suite) == (&archive.url, &archive.suite);
    let mut others = known.iter().filter(|(of, from, other)| *of != name && *from != root && is_alias(other));
    others.find_map(|(_, from, other)| Some((from.clone(), downgrade::signature(archive, other)?)))
}

/// The entries of all documents, those of later ones first, without duplicates.
fn latest_first<T: Clone + PartialEq>(
    documents: &[(Root, Document)],
    entries: impl Fn(&Document) -> &Vec<T>,
) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    for entry in documents.iter().rev().flat_map(|(_, document)| entries(document)) {
        if !all.contains(entry) {
            all.push(entry.clone());
        }
    }
    all
}

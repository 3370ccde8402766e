//! Collects the inventory of a tree: dpkg packages, artifacts of the record of origins, Go modules.

use std::collections::BTreeMap;

use vmbake_disk::tree::{Kind, Tree};

use super::copyright::Copyrights;
use super::inventory::{Element, IMAGE, Inventory, Relationship, Role, Supplier};
use super::purl::Purl;
use super::status::{self, Deb, Providers};
use super::{SbomError, golang};
use vmbake_compose::origin::{RECORD, Record};
use vmbake_compose::stage::FIRSTBOOT;
use vmbake_image::inspect::os_release;
use vmbake_manifest::{ArtifactType, ContainerImage, Dependency, Manifest, Proof};

/// Information about an image in addition to its tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct Knowledge<'a> {
    /// Name of the image, if no manifest has one.
    pub file_name: &'a str,
    pub record: Option<&'a Record>,
    /// The manifest of the record.
    pub manifest: Option<&'a Manifest>,
}

/// Builds an inventory.
struct Collector<'a> {
    tree: &'a Tree,
    known: Knowledge<'a>,
    inventory: Inventory,
    /// Elements of bundles, by their layers.
    bundles: BTreeMap<String, usize>,
    /// `ID` and `VERSION_ID` of os-release.
    distribution: (String, String),
}

/// Collects the components of `tree`.
pub(super) fn collect(tree: &Tree, known: Knowledge<'_>) -> Result<Inventory, SbomError> {
    let mut os_release = os_release(tree).map_err(SbomError::Tree)?;
    let mut take = |key: &str| os_release.remove(key).unwrap_or_default();
    let (id, version, pretty) = (take("ID"), take("VERSION_ID"), take("PRETTY_NAME"));
    let (image_id, image_version) = (take("IMAGE_ID"), take("IMAGE_VERSION"));
    let inventory = Inventory::new(created(tree));
    let mut collector = Collector { tree, known, inventory, bundles: BTreeMap::new(), distribution: (id, version) };
    collector.image(&image_id, &image_version);
    let system = collector.system(&pretty);
    collector.base();
    collector.bundles();
    collector.packages(system)?;
    collector.artifacts();
    collector.go()?;
    Ok(collector.inventory)
}

/// Creation time of the image: the time of its record, else of its newest file.
fn created(tree: &Tree) -> i64 {
    let record = tree.find(RECORD.as_bytes()).ok().flatten().map(|id| tree.inode(id).meta.mtime.secs);
    let files = || tree.walk().filter(|(.., inode)| matches!(inode.kind, Kind::File(_)));
    record.or_else(|| files().map(|(.., inode)| inode.meta.mtime.secs).max()).unwrap_or_default()
}

impl Collector<'_> {
    fn note(&mut self, text: &str) {
        self.inventory.notes.push(text.to_owned());
    }

    fn image(&mut self, image_id: &str, image_version: &str) {
        let manifest = self.known.manifest;
        let own = if image_id.is_empty() { self.known.file_name } else { image_id };
        let name = manifest.map_or_else(|| own.to_owned(), Manifest::name);
        let version = manifest.map_or(image_version, |manifest| &manifest.content().version);
        let mut image = self.inventory.element(Role::Image, &name, Some(version), &["Image"]);
        image.purl = Some(Purl::generic(&name, Some(version), None, None));
        self.inventory.name.clone_from(&name);
        self.inventory.add(image);
        match (self.known.record, manifest) {
            (None, _) => self
                .note("no record of origins: the packages of the base image and the origins of programs are unknown"),
            (Some(_), None) => self.note("no manifest: versions, URLs and proofs of artifacts are unknown"),
            (Some(_), Some(_)) => {}
        }
    }

    fn system(&mut self, pretty: &str) -> usize {
        let (id, version) = self.distribution.clone();
        if id.is_empty() {
            self.note("no os-release with the name of the distribution");
        }
        let name = if id.is_empty() { "linux" } else { &id };
        let mut system = self.inventory.element(Role::System, name, Some(&version), &["OperatingSystem"]);
        if !pretty.is_empty() {
            system.facts.insert("description", pretty.to_owned());
        }
        let place = self.inventory.add(system);
        self.inventory.relate(IMAGE, Relationship::Contains, place);
        place
    }

    /// Adds the base image.
    fn base(&mut self) {
        let Some(pinned) = self.known.record.and_then(|record| record.base.as_ref()) else { return };
        let image = self.known.manifest.and_then(|manifest| manifest.content().os.image.as_ref());
        let proof = image.filter(|image| image.digest == pinned.digest).and_then(|image| image.proof.as_ref());
        let mut base = self.inventory.element(Role::Base, "base image", Some(&pinned.version), &["Base"]);
        let url = fetchable(&pinned.url);
        base.purl = Some(Purl::generic("base-image", Some(&pinned.version), url.as_deref(), Some(&pinned.digest)));
        (base.url, base.digest) = (url, Some(pinned.digest));
        note_proof(&mut base, proof);
        let place = self.inventory.add(base);
        self.inventory.relate(IMAGE, Relationship::DescendantOf, place);
    }

    /// Adds bundles with their layers.
    fn bundles(&mut self) {
        let Some(manifest) = self.known.manifest else { return };
        for (name, bundle) in &manifest.content().bundles {
            let mut element = self.inventory.element(Role::Bundle, name, Some(&bundle.version), &["Bundle", name]);
            element.purl = Some(Purl::generic(name, Some(&bundle.version), None, Some(&bundle.digest)));
            element.digest = Some(bundle.digest);
            element.facts.insert("publisher", bundle.publisher.clone());
            let layers: Vec<&str> = bundle.layers.iter().map(String::as_str).collect();
            element.facts.insert("layer", layers.join(", "));
            element.facts.insert("proof", format!("signed by {}", bundle.signer));
            let place = self.inventory.add(element);
            self.inventory.relate(IMAGE, Relationship::Contains, place);
            self.bundles.extend(bundle.layers.iter().map(|layer| (layer.clone(), place)));
        }
    }

    /// Relates an element to the bundle of its layer.
    fn brought(&mut self, layer: Option<&String>, element: usize) {
        if let Some(bundle) = layer.and_then(|layer| self.bundles.get(layer)) {
            self.inventory.relate(*bundle, Relationship::Contains, element);
        }
    }

    fn packages(&mut self, system: usize) -> Result<(), SbomError> {
        let Some(status) = status::read(self.tree)? else {
            self.note("no dpkg database: packages are unknown");
            return Ok(());
        };
        self.inventory.notes.extend(status.notes);
        let mut copyrights = Copyrights::default();
        let mut places = Vec::new();
        for deb in &status.debs {
            let licence = copyrights.of(self.tree, &deb.name).map_err(SbomError::Tree)?;
            let element = self.package(deb, licence);
            let layer = element.facts.get("layer").cloned();
            let place = self.inventory.add(element);
            self.inventory.relate(system, Relationship::Contains, place);
            self.brought(layer.as_ref(), place);
            places.push(place);
        }
        let providers = Providers::new(&status.debs);
        for (deb, from) in status.debs.iter().zip(&places) {
            for needed in providers.of(deb) {
                self.inventory.relate(*from, Relationship::DependsOn, places[needed]);
            }
        }
        self.inventory.notes.extend(copyrights.notes);
        self.inventory.licences = copyrights.own;
        Ok(())
    }

    fn package(&mut self, deb: &Deb, licence: Option<String>) -> Element {
        let Deb { name, arch, version, source: (source, source_version), maintainer, .. } = deb;
        let mut element = self.inventory.element(Role::Package, name, Some(version), &["Package", name, arch]);
        let (id, release) = &self.distribution;
        let vendor = if id.is_empty() { "debian" } else { id };
        let distro = if id.is_empty() { String::new() } else { format!("{id}-{release}") };
        let upstream = match (source == name, source_version == version) {
            (true, true) => String::new(),
            (false, true) => source.clone(),
            (_, false) => format!("{source}@{source_version}"),
        };
        let purl = Purl::new("deb", &format!("{vendor}/{name}"), Some(version));
        let purl = purl.with("arch", arch).with("distro", distro.trim_end_matches('-')).with("upstream", &upstream);
        element.purl = Some(purl.text());
        element.supplier = maintainer.as_deref().map(Supplier::parse);
        element.licence = licence;
        element.source = Some((source.clone(), source_version.clone()));
        if let Some((artifact, layer)) = self.artifact_of(deb) {
            element.facts.insert("layer", layer);
            element.digest = self.known.record.and_then(|record| Some(record.artifacts.get(&artifact)?.digest));
            let pinned = self.pinned(&artifact);
            element.url = pinned.and_then(|pinned| fetchable(&pinned.url));
            note_proof(&mut element, pinned.and_then(|pinned| pinned.proof.as_ref()));
        }
        element
    }

    /// The artifact and layer of a package, by the origin of its file list.
    fn artifact_of(&self, deb: &Deb) -> Option<(String, String)> {
        let record = self.known.record?;
        let list = |stem: &str| record.paths.get(&format!("/var/lib/dpkg/info/{stem}.list"));
        let origin = list(&deb.name).or_else(|| list(&format!("{}:{}", deb.name, deb.arch)))?;
        Some((origin.artifact.clone()?, origin.layer.clone()))
    }

    fn pinned(&self, artifact: &str) -> Option<&Dependency> {
        self.known.manifest?.content().dependencies.get(artifact)
    }

    /// Adds artifacts of layers that are not packages: programs, archives, container images.
    fn artifacts(&mut self) {
        let Some(record) = self.known.record else { return };
        for (name, artifact) in &record.artifacts {
            let pinned = self.pinned(name).cloned();
            if pinned.as_ref().is_some_and(|pinned| pinned.kind == ArtifactType::Deb) {
                continue;
            }
            let images = self.known.manifest.map(|manifest| manifest.content().images.as_slice()).unwrap_or_default();
            let mut element = match images.iter().find(|image| image.image == *name) {
                Some(image) => self.container(image),
                None => self.program(name, pinned.as_ref()),
            };
            element.digest = Some(artifact.digest);
            element.facts.insert("layer", artifact.layer.clone());
            if element.role == Role::Program {
                let (version, url) = (element.version.as_deref(), element.url.as_deref());
                element.purl = Some(Purl::generic(name, version, url, Some(&artifact.digest)));
            }
            let place = self.inventory.add(element);
            self.inventory.relate(IMAGE, Relationship::Contains, place);
            self.brought(Some(&artifact.layer), place);
        }
    }

    fn program(&mut self, name: &str, pinned: Option<&Dependency>) -> Element {
        let version = pinned.map(|pinned| pinned.version.as_str());
        let mut element = self.inventory.element(Role::Program, name, version, &["Package-upstream", name]);
        element.url = pinned.and_then(|pinned| fetchable(&pinned.url));
        note_proof(&mut element, pinned.and_then(|pinned| pinned.proof.as_ref()));
        if pinned.is_none() && name == FIRSTBOOT {
            element.facts.insert("proof", "none: built into the vmbake that baked the image".to_owned());
        }
        element
    }

    fn container(&mut self, image: &ContainerImage) -> Element {
        let tag = image.image.rsplit_once(':').map(|(_, tag)| tag).filter(|tag| !tag.contains('/'));
        let mut element = self.inventory.element(Role::Container, &image.image, tag, &["Package-oci", &image.image]);
        let repository = tag.and_then(|tag| image.image.strip_suffix(tag)?.strip_suffix(':')).unwrap_or(&image.image);
        let last = repository.rsplit('/').next().unwrap_or(repository).to_lowercase();
        let arch = image.platform.rsplit('/').next().unwrap_or_default();
        let purl = Purl::new("oci", &last, Some(&image.digest.to_string())).with("arch", arch);
        element.purl = Some(purl.with("repository_url", repository).with("tag", tag.unwrap_or_default()).text());
        element.facts.insert("index", image.index.to_string());
        note_proof(&mut element, image.proof.as_ref());
        element
    }

    /// Adds Go programs and their modules, including Go's standard library.
    fn go(&mut self) -> Result<(), SbomError> {
        let (programs, notes) = golang::programs(self.tree)?;
        self.inventory.notes.extend(notes);
        let mut modules: BTreeMap<(String, String), usize> = BTreeMap::new();
        for golang::GoFile { path, info } in programs {
            let version = info.module.as_ref().map(|module| module.version.as_str());
            let mut element = self.inventory.element(Role::GoProgram, &path, version, &["Application", &path]);
            element.facts.extend([("path", path.clone()), ("package", info.package), ("go", info.go.clone())]);
            let program = self.inventory.add(element);
            self.inventory.relate(IMAGE, Relationship::Contains, program);
            let go = info.go.split_whitespace().next().unwrap_or_default();
            let library = ("stdlib".to_owned(), go.trim_start_matches("go").to_owned());
            let main = info.module.filter(|module| module.version != "(devel)");
            let linked = main.into_iter().chain(info.dependencies).map(|module| (module.path, module.version));
            for module in linked.chain([library]) {
                let place = match modules.get(&module) {
                    Some(place) => *place,
                    None => self.module(&module),
                };
                modules.insert(module, place);
                self.inventory.relate(program, Relationship::Contains, place);
            }
        }
        Ok(())
    }

    fn module(&mut self, (path, version): &(String, String)) -> usize {
        let mut element = self.inventory.element(Role::GoModule, path, Some(version), &["Package-go", path, version]);
        element.purl = Some(Purl::golang(path, version));
        self.inventory.add(element)
    }
}

fn note_proof(element: &mut Element, proof: Option<&Proof>) {
    if let Some(proof) = proof {
        element.facts.insert("proof", proof.to_string());
    }
}

/// A public URL.
fn fetchable(url: &str) -> Option<String> {
    (url.starts_with("https://") || url.starts_with("http://")).then(|| url.to_owned())
}

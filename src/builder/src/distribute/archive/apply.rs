//! Makes the images of an archive at the site: those that are in it are written out, the others are baked of their inputs.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use vmbake_disk::image::Format;

use super::CarryError;
use super::contents::Contents;
use super::document::{self, ArchiveManifest, BlobReference, BlobRole, InputsConfig};
use super::import::{import, input_names, unpack_inputs};
use super::verify::digest;
use crate::atomic_file::{Pending, write_file};
use crate::bake::{BakeRequest, bake_all};
use crate::catalog::Catalog;
use crate::manifest::{Additions, Manifest, Target};
use crate::pin::anchors::Anchors;
use crate::pin::sources::Sources;
use crate::progress::{Event, Progress};
use crate::release::provenance::BuilderId;
use crate::release::sums::SumsKind;
use crate::supply::store::Store;

/// Where the content of an archive goes.
pub struct SiteRequest<'a> {
    /// Where images go.
    pub out: &'a Path,
    /// Where manifests, sources, layers and trust anchors go: a new folder.
    pub inputs: &'a Path,
    /// Whether images that are there may be replaced.
    pub force: bool,
    /// Formats of images that are baked.
    pub formats: &'a [Format],
    /// Where blobs go.
    pub store: &'a Store,
    /// Threads.
    pub threads: NonZeroUsize,
}

/// Writes out the images of an archive, or bakes them; returns the options with which a site bakes each of them again.
pub fn apply(contents: &Contents, request: &SiteRequest<'_>, progress: &Progress) -> Result<Vec<String>, CarryError> {
    contents.require_complete()?;
    let of = |role| contents.manifests.iter().filter(move |manifest| manifest.artifact_type == role);
    if contents.manifests.is_empty() {
        return Err(CarryError::Empty { path: contents.path.clone() });
    }
    let mut options = Vec::new();
    if of(BlobRole::Inputs).next().is_some() {
        import(contents, request.store, request.threads)?;
        unpack_inputs(contents, request.inputs)?;
        for manifest in of(BlobRole::Inputs) {
            options.push(Inputs::read(contents, manifest, request)?.options(request));
        }
    }
    if of(BlobRole::Images).next().is_some() {
        of(BlobRole::Images).try_for_each(|manifest| write_images(contents, manifest, request, progress))?;
        return Ok(options);
    }
    for manifest in of(BlobRole::Inputs) {
        let bake = Inputs::read(contents, manifest, request)?.bake(request)?;
        bake_all::<CarryError>(std::slice::from_ref(&bake), false, |_| Ok(()))?;
    }
    Ok(options)
}

/// What the folder has for one image.
struct Inputs {
    config: InputsConfig,
    manifest: PathBuf,
    target: Target,
    layers: Vec<PathBuf>,
    sources: Vec<PathBuf>,
    trust: Vec<PathBuf>,
}

impl Inputs {
    fn read(contents: &Contents, of: &ArchiveManifest, request: &SiteRequest<'_>) -> Result<Self, CarryError> {
        let config = document::parse(&contents.document(&of.config)?);
        let named = |source| {
            let name = of.config.digest.to_string();
            CarryError::Document { path: contents.path.clone(), name, source }
        };
        let config: InputsConfig = config.map_err(named)?;
        let paths = |role| -> Vec<PathBuf> {
            input_names(of, role).into_iter().map(|name| request.inputs.join(name)).collect()
        };
        let empty = || CarryError::Empty { path: contents.path.clone() };
        let manifest = paths(BlobRole::Manifest).into_iter().next().ok_or_else(empty)?;
        let target = Manifest::load(&manifest)?.content().target();
        let [layers, sources, trust] = [BlobRole::Layers, BlobRole::Sources, BlobRole::Trust].map(paths);
        Ok(Self { config, manifest, target, layers, sources, trust })
    }

    fn base(&self, store: &Store) -> Option<PathBuf> {
        self.config.base.map(|digest| store.path(&digest))
    }

    fn bake(self, request: &SiteRequest<'_>) -> Result<BakeRequest, CarryError> {
        let base = self.base(request.store);
        let Self { config, manifest, target, layers, sources, trust } = self;
        let catalog = |paths| Catalog::new(false, paths).overriding(config.overrides.iter().cloned());
        Ok(BakeRequest {
            kind: target.kind,
            os: target.os,
            arch: target.arch,
            manifest,
            base,
            partition: config.partition,
            layers: catalog(layers),
            more: Additions::default(),
            store: request.store.clone(),
            sources: Sources::load(&catalog(sources))?,
            anchors: Anchors::load(&catalog(trust))?,
            client: None,
            size: config.size,
            epoch: config.source_date_epoch,
            formats: request.formats.to_vec(),
            out: request.out.to_owned(),
            force: request.force,
            builder: BuilderId::default(),
            threads: request.threads,
        })
    }

    /// The command that bakes the same.
    fn options(&self, request: &SiteRequest<'_>) -> String {
        let Target { kind, os, arch } = &self.target;
        let epoch = self.config.source_date_epoch.map(|epoch| format!("SOURCE_DATE_EPOCH={epoch} "));
        let epoch = epoch.unwrap_or_default();
        let mut words = vec![format!("{epoch}vmbake bake {kind} --os {os} --arch {arch} --offline --no-builtin")];
        let mut option = |name: &str, path: &Path| {
            words.push(format!("--{name} {}", vmbake_disk::image::quoted(path)));
        };
        option("manifest", &self.manifest);
        for (name, paths) in [("layers", &self.layers), ("sources", &self.sources), ("trust", &self.trust)] {
            paths.iter().for_each(|path| option(name, path));
        }
        self.config.overrides.iter().for_each(|entry| option("override", Path::new(entry)));
        if let Some(base) = self.base(request.store) {
            option("base", &base);
        }
        option("store", request.store.root());
        let numbers = [("partition", self.config.partition.map(u64::from)), ("size", self.config.size)];
        words.extend(numbers.iter().filter_map(|(name, number)| Some(format!("--{name} {}", (*number)?))));
        words.join(" ")
    }
}

/// Writes an image and the documents beside it.
fn write_images(
    contents: &Contents,
    of: &ArchiveManifest,
    request: &SiteRequest<'_>,
    progress: &Progress,
) -> Result<(), CarryError> {
    for layer in &of.layers {
        let path = request.out.join(file_name(contents, layer)?);
        match layer.role {
            _ if layer.is_held() => {}
            BlobRole::Image => write_image(contents, layer, &path, request)?,
            BlobRole::Sidecar => write_file(&path, &contents.document(layer)?, request.force)?,
            _ => continue,
        }
        progress.tell(Event::Wrote { path, bytes: layer.size });
    }
    Ok(())
}

/// The name of an image's file or of a document beside it.
fn file_name<'a>(contents: &Contents, layer: &'a BlobReference) -> Result<&'a str, CarryError> {
    let name = layer.title();
    let is_list = SumsKind::ALL.iter().any(|kind| name == kind.file_name());
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-+~".contains(char);
    let ends = is_list || name.ends_with(".json") || name.ends_with(".qcow2");
    match ends && !name.starts_with('.') && name.chars().all(is_plain) {
        true => Ok(name),
        false => {
            let (path, name) = (contents.path.clone(), name.to_owned());
            Err(CarryError::Meaning { path, name, what: "cannot be the name of a file beside an image".to_owned() })
        }
    }
}

fn write_image(
    contents: &Contents,
    layer: &BlobReference,
    path: &Path,
    request: &SiteRequest<'_>,
) -> Result<(), CarryError> {
    let Some(member) = contents.members.get(&layer.digest) else { return Ok(()) };
    let pending = Pending::create(path, request.force)?;
    let (file, mut at): (&File, u64) = (pending.file(), 0);
    let unwritten = |source| CarryError::Write { path: path.to_owned(), source };
    let found = digest(contents, &layer.digest, member, |bytes| {
        file.write_all_at(bytes, at).map_err(unwritten)?;
        at += bytes.len() as u64;
        Ok(())
    })?;
    if found != layer.digest {
        let (title, expected) = (layer.title().to_owned(), Box::new(layer.digest));
        return Err(CarryError::Changed { title, found: Box::new(found), expected });
    }
    pending.publish()?;
    Ok(())
}

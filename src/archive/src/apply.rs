//! Creates the images of an archive at the site: extracts included images, and bakes the others from their inputs.

use std::fs::File;
use std::num::NonZeroUsize;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use vmbake_common::message::FileError;

use super::ArchiveError;
use super::contents::Contents;
use super::document::{self, ArchiveManifest, BlobReference, BlobRole, InputsConfig};
use super::import::{import, input_names, stage_inputs};
use super::staged::StagedFolder;
use super::verify::{digest, require_undamaged};
use vmbake_bake::release::provenance::BuilderId;
use vmbake_bake::release::sums::SumsKind;
use vmbake_bake::{BakeRequest, bake};
use vmbake_common::atomic_file::{Pending, PublishError, write_file};
use vmbake_common::catalog::Catalog;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::progress::{Event, Progress};
use vmbake_manifest::{Additions, Manifest, Target};
use vmbake_pin::anchors::Anchors;
use vmbake_pin::sources::Sources;
use vmbake_store::store::Store;

/// The targets for the contents of an archive.
pub struct SiteRequest<'a> {
    /// Output directory for images.
    pub out: &'a Path,
    /// New directory for manifests, sources, layers and trust anchors.
    pub inputs: &'a Path,
    /// Whether existing images may be replaced.
    pub force: bool,
    /// Formats of baked images.
    pub formats: &'a [OutputFormat],
    /// The store for blobs.
    pub store: &'a Store,
    pub threads: NonZeroUsize,
}

/// Extracts the images of an archive, or bakes them; returns the options to bake each of them again.
///
/// Both directories are filled under hidden names and renamed when they are complete, the inputs first. After an error
/// neither exists; after a kill, complete inputs may exist.
pub fn apply(contents: &Contents, request: &SiteRequest<'_>) -> Result<Vec<String>, ArchiveError> {
    contents.require_complete()?;
    let of = |role| contents.manifests.iter().filter(move |manifest| manifest.artifact_type == role);
    if contents.manifests.is_empty() {
        return Err(ArchiveError::Empty { path: contents.path.clone() });
    }
    let has_inputs = of(BlobRole::Inputs).next().is_some();
    if has_inputs {
        require_apart(request)?;
    }
    require_undamaged(contents, request.threads)?;
    let staged_inputs = if has_inputs { stage_inputs(contents, request.inputs)? } else { None };
    let folder = staged_inputs.as_ref().map_or(request.inputs, StagedFolder::path);
    let inputs = of(BlobRole::Inputs).map(|manifest| Inputs::read(contents, manifest, folder));
    let inputs: Vec<Inputs> = inputs.collect::<Result<_, ArchiveError>>()?;
    let options = inputs.iter().map(|inputs| inputs.options(request)).collect();

    let out = StagedFolder::over(request.out)?;
    let has_images = of(BlobRole::Images).next().is_some();
    if !request.force {
        let images = of(BlobRole::Images).flat_map(|manifest| &manifest.layers).filter(|layer| is_output(layer));
        let baked = inputs.iter().filter(|_| !has_images).flat_map(|inputs| inputs.image_names(request));
        let names = images.map(|layer| layer.title().to_owned()).chain(baked);
        names.map(|name| request.out.join(name)).try_for_each(require_free)?;
    }
    let progress = Progress::staged(out.path().to_owned(), request.out.to_owned());
    if has_inputs {
        import(contents, request.store, request.threads)?;
    }
    for manifest in of(BlobRole::Images) {
        write_images(contents, manifest, out.path(), &progress)?;
    }
    for inputs in inputs.into_iter().filter(|_| !has_images) {
        bake(&inputs.bake(request, folder, out.path())?, &progress)?;
    }
    publish(staged_inputs, out, request)?;
    progress.release();
    Ok(options)
}

/// Renames both directories; if the second rename fails, the first directory is removed.
fn publish(inputs: Option<StagedFolder>, out: StagedFolder, request: &SiteRequest<'_>) -> Result<(), ArchiveError> {
    let are_new = inputs.is_some();
    inputs.map_or(Ok(()), StagedFolder::publish)?;
    out.publish().inspect_err(|_| {
        if are_new {
            // The inputs have not been used yet. The returned error takes precedence over a failed removal.
            let _removed = std::fs::remove_dir_all(request.inputs);
        }
    })
}

/// Neither directory may contain the other, since each is replaced in one step.
fn require_apart(request: &SiteRequest<'_>) -> Result<(), ArchiveError> {
    let absolute = |path: &Path| {
        let real =
            path.ancestors().find_map(|folder| Some((folder.canonicalize().ok()?, path.strip_prefix(folder).ok()?)));
        let absolute = std::path::absolute(path).map_err(|source| ArchiveError::Read { path: path.to_owned(), source });
        real.map_or(absolute, |(real, rest)| Ok(real.join(rest)))
    };
    let (inputs, out) = (absolute(request.inputs)?, absolute(request.out)?);
    match inputs.starts_with(&out) || out.starts_with(&inputs) {
        false => Ok(()),
        true => Err(ArchiveError::Nested { inputs: request.inputs.to_owned(), out: request.out.to_owned() }),
    }
}

/// The inputs of one image, with paths relative to the directory.
struct Inputs {
    config: InputsConfig,
    manifest: PathBuf,
    target: Target,
    name: String,
    layers: Vec<PathBuf>,
    sources: Vec<PathBuf>,
    trust: Vec<PathBuf>,
}

impl Inputs {
    fn read(contents: &Contents, of: &ArchiveManifest, folder: &Path) -> Result<Self, ArchiveError> {
        let config = document::parse(&contents.document(&of.config)?);
        let named = |source| {
            let name = of.config.digest.to_string();
            ArchiveError::Document { path: contents.path.clone(), name, source }
        };
        let config: InputsConfig = config.map_err(named)?;
        let paths = |role| -> Vec<PathBuf> { input_names(of, role).into_iter().map(PathBuf::from).collect() };
        let empty = || ArchiveError::Empty { path: contents.path.clone() };
        let manifest = paths(BlobRole::Manifest).into_iter().next().ok_or_else(empty)?;
        let loaded = Manifest::load(&folder.join(&manifest))?;
        let (target, name) = (loaded.content().target(), loaded.name());
        let [layers, sources, trust] = [BlobRole::Layers, BlobRole::Sources, BlobRole::Trust].map(paths);
        Ok(Self { config, manifest, target, name, layers, sources, trust })
    }

    /// Names of the images to bake.
    fn image_names(&self, request: &SiteRequest<'_>) -> Vec<String> {
        request.formats.iter().map(|format| format.file_name(&self.name)).collect()
    }

    fn base(&self, store: &Store) -> Option<PathBuf> {
        self.config.base.map(|digest| store.path(&digest))
    }

    /// Bakes the inputs in `folder` to `out`.
    fn bake(self, request: &SiteRequest<'_>, folder: &Path, out: &Path) -> Result<BakeRequest, ArchiveError> {
        let base = self.base(request.store);
        let Self { config, manifest, target, layers, sources, trust, .. } = self;
        let catalog = |paths: Vec<PathBuf>| {
            let paths: Vec<PathBuf> = paths.iter().map(|path| folder.join(path)).collect();
            Catalog::new(false, paths).overriding(config.overrides.iter().cloned())
        };
        Ok(BakeRequest {
            kind: target.kind,
            os: target.os,
            arch: target.arch,
            manifest: folder.join(manifest),
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
            compression: config.compression,
            out: out.to_owned(),
            force: request.force,
            builder: BuilderId::default(),
            threads: request.threads,
        })
    }

    /// The equivalent command.
    fn options(&self, request: &SiteRequest<'_>) -> String {
        let Target { kind, os, arch } = &self.target;
        let epoch = self.config.source_date_epoch.map(|epoch| format!("SOURCE_DATE_EPOCH={epoch} "));
        let epoch = epoch.unwrap_or_default();
        let mut words = vec![format!("{epoch}vmbake bake {kind} --os {os} --arch {arch} --offline --no-builtin")];
        let mut option = |name: &str, path: &Path| {
            words.push(format!("--{name} {}", vmbake_disk::image::quoted(path)));
        };
        option("manifest", &request.inputs.join(&self.manifest));
        for (name, paths) in [("layers", &self.layers), ("sources", &self.sources), ("trust", &self.trust)] {
            paths.iter().for_each(|path| option(name, &request.inputs.join(path)));
        }
        self.config.overrides.iter().for_each(|entry| option("override", Path::new(entry)));
        if let Some(base) = self.base(request.store) {
            option("base", &base);
        }
        option("store", request.store.root());
        let numbers = [("partition", self.config.partition.map(u64::from)), ("size", self.config.size)];
        if !self.config.compression.is_usual() {
            words.push(format!("--compression {}", self.config.compression));
        }
        words.extend(numbers.iter().filter_map(|(name, number)| Some(format!("--{name} {}", (*number)?))));
        words.join(" ")
    }
}

/// Writes an image and its documents to the directory `out`.
fn write_images(
    contents: &Contents,
    of: &ArchiveManifest,
    out: &Path,
    progress: &Progress,
) -> Result<(), ArchiveError> {
    for layer in of.layers.iter().filter(|layer| is_output(layer)) {
        let path = out.join(file_name(contents, layer)?);
        match layer.role {
            BlobRole::Image => write_image(contents, layer, &path)?,
            _ => write_file(&path, &contents.document(layer)?, true)?,
        }
        progress.emit(Event::Wrote { path, bytes: layer.size });
    }
    Ok(())
}

/// Whether it is written to the output directory.
fn is_output(layer: &BlobReference) -> bool {
    !layer.is_held() && matches!(layer.role, BlobRole::Image | BlobRole::Sidecar)
}

fn require_free(path: PathBuf) -> Result<(), ArchiveError> {
    match path.symlink_metadata().is_ok() {
        true => Err(PublishError::Exists { path }.into()),
        false => Ok(()),
    }
}

/// The file name of an image or one of its documents.
fn file_name<'a>(contents: &Contents, layer: &'a BlobReference) -> Result<&'a str, ArchiveError> {
    let name = layer.title();
    let is_list = SumsKind::ALL.iter().any(|kind| name == kind.file_name());
    let is_plain = |char: char| char.is_ascii_alphanumeric() || "._-+~".contains(char);
    let ends = is_list || name.ends_with(".json") || name.ends_with(".qcow2");
    match ends && !name.starts_with('.') && name.chars().all(is_plain) {
        true => Ok(name),
        false => {
            let (path, name) = (contents.path.clone(), name.to_owned());
            Err(ArchiveError::Meaning { path, name, what: "is not a valid file name for an output".to_owned() })
        }
    }
}

fn write_image(contents: &Contents, layer: &BlobReference, path: &Path) -> Result<(), ArchiveError> {
    let Some(member) = contents.members.get(&layer.digest) else { return Ok(()) };
    let pending = Pending::create(path, true)?;
    let (file, mut at): (&File, u64) = (pending.file(), 0);
    let unwritten = |source| ArchiveError::File(FileError::new(path, "write", source));
    let found = digest(contents, &layer.digest, member, |bytes| {
        file.write_all_at(bytes, at).map_err(unwritten)?;
        at += bytes.len() as u64;
        Ok(())
    })?;
    if found != layer.digest {
        let (title, expected) = (layer.title().to_owned(), Box::new(layer.digest));
        return Err(ArchiveError::Changed { title, found: Box::new(found), expected });
    }
    pending.publish()?;
    Ok(())
}

//! Finds the origin of a path in an image.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

use vmbake_common::message;
use vmbake_common::message::{FileError, Message};
use vmbake_disk::ext4::{Depth, Want};
use vmbake_disk::source::MapReader;
use vmbake_disk::tree::{Inode, InodeId, Kind, Tree, TreeError, components};

mod report;
mod error;

use super::packages::{self, InstalledPackage};
pub use error::ExplainError;
pub use report::{ArtifactReport, BaseReport, BundleReport, ContentOrigin, Explanation, KeptReport, LayerReport, Link};
use vmbake_common::escape;
use vmbake_common::input;
use vmbake_compose::merge;
use vmbake_compose::origin::{KeptOrigin, MAX_LEN, PathOrigin, RECORD, Record, inside_record};
use vmbake_compose::stage::FIRSTBOOT;
use vmbake_image::inspect::open_some;
use vmbake_manifest::{ArtifactType, Dependency, Manifest, ManifestError, PinnedBundle};

/// Maximum length of a manifest and of an account file, in bytes.
const MAX_TEXT: u64 = 4 << 20;

/// Maximum number of symbolic links to follow, as `MAXSYMLINKS` of Linux.
const MAX_LINKS: usize = 40;

/// Explains `path` of the image's root file system, or of `partition`, by the record of origins in file `record`, else by the one in the image,
/// else by the one next to it. If both of the latter exist, they must be equal.
pub fn explain(
    image: &Path,
    partition: Option<u32>,
    path: &[u8],
    record: Option<&Path>,
) -> Result<Explanation, ExplainError> {
    let wants = [
        Want { path, depth: Depth::Node },
        Want { path: RECORD.as_bytes(), depth: Depth::Node },
        Want { path: merge::RECORD.as_bytes(), depth: Depth::Node },
        Want { path: b"/etc/passwd", depth: Depth::Node },
        Want { path: b"/etc/group", depth: Depth::Node },
    ];
    let tree = open_some(image, partition, &[&wants[..], &packages::WANTS].concat())?;
    let unusable = |error| ExplainError::Message(Message::new("the manifest in the image is invalid").by(error));
    let (record, manifest) = match record {
        Some(file) => (Some(read_record(file)?), inside_manifest(&tree).map_err(unusable)?),
        None => match own_record(image, &tree)? {
            Some(record) => (Some(record), image_manifest(image, &tree).map_err(unusable)?),
            None => (None, None),
        },
    };
    if let (Some(record), Some(manifest)) = (&record, &manifest) {
        check(record, manifest)?;
    }
    let origins = Origins { tree: &tree, record: record.as_ref(), manifest: manifest.as_ref() };
    origins.explain(path, origins.follow(path)?)
}

/// The record in the image, else the one next to it. If both exist, they must be equal.
pub(super) fn own_record(image: &Path, tree: &Tree) -> Result<Option<Record>, ExplainError> {
    let Some((record, text)) = inside_record(tree)? else { return record_beside(image) };
    let sidecar = image.with_extension("origin.json");
    if sidecar.symlink_metadata().is_ok() && read_file(&sidecar)? != text {
        return Err(ExplainError::Sidecar { sidecar, image: image.to_owned() });
    }
    Ok(Some(record))
}

/// The record next to an image that contains none.
pub(super) fn record_beside(image: &Path) -> Result<Option<Record>, ExplainError> {
    let sidecar = image.with_extension("origin.json");
    sidecar.symlink_metadata().is_ok().then(|| read_record(&sidecar)).transpose()
}

/// The manifest in an image with a record, else the one next to it.
pub(super) fn image_manifest(image: &Path, tree: &Tree) -> Result<Option<Manifest>, ManifestError> {
    if let Some(manifest) = inside_manifest(tree)? {
        return Ok(Some(manifest));
    }
    let sidecar = image.with_extension("json");
    sidecar.symlink_metadata().is_ok().then(|| Manifest::load(&sidecar)).transpose()
}

pub(super) fn read_record(path: &Path) -> Result<Record, ExplainError> {
    Ok(Record::parse(&path.display().to_string(), &read_file(path)?)?)
}

fn read_file(path: &Path) -> Result<Vec<u8>, ExplainError> {
    let read = |source| ExplainError::File(FileError::new(path, "read the record of origins", source));
    let mut text = Vec::new();
    input::open(path).map_err(read)?.take(MAX_LEN + 1).read_to_end(&mut text).map_err(read)?;
    match text.len() as u64 {
        0..=MAX_LEN => Ok(text),
        _ => Err(ExplainError::LargeRecord { path: path.to_owned() }),
    }
}

/// The manifest in the image; `None` if it has none.
pub fn inside_manifest(tree: &Tree) -> Result<Option<Manifest>, ManifestError> {
    match tree.read(merge::RECORD.as_bytes(), MAX_TEXT) {
        Ok(text) => Manifest::parse(Path::new(merge::RECORD), text).map(Some),
        Err(TreeError::NotFound { .. }) => Ok(None),
        Err(error) => {
            let source = std::io::Error::other(error);
            Err(ManifestError::Read { path: merge::RECORD.into(), source })
        }
    }
}

/// Fails unless record and manifest belong to the same bake.
pub fn check(record: &Record, manifest: &Manifest) -> Result<(), ExplainError> {
    if record.manifest != manifest.digest() {
        let (expected, found) = (Box::new(record.manifest), Box::new(manifest.digest()));
        return Err(ExplainError::Message(message!(
            "the record of origins is for manifest {expected}, but the image has {found}"
        )));
    }
    let content = manifest.content();
    let images = content.images.iter().map(|image| (&image.image, image.digest));
    let pinned: BTreeMap<_, _> =
        content.dependencies.iter().map(|(name, pinned)| (name, pinned.digest)).chain(images).collect();
    for (name, artifact) in &record.artifacts {
        match pinned.get(name) {
            Some(expected) if *expected != artifact.digest => {
                let (expected, found) = (Box::new(*expected), Box::new(artifact.digest));
                return Err(ExplainError::Message(message!(
                    "artifact {name}: the record of origins has {found}, but the manifest in the image has {expected}"
                )));
            }
            None if name != FIRSTBOOT => return Err(ExplainError::UnknownArtifact { name: name.clone() }),
            _ => {}
        }
    }
    if let Some(name) = record.kept.keys().find(|name| !pinned.contains_key(name)) {
        return Err(ExplainError::UnknownArtifact { name: name.clone() });
    }
    Ok(())
}

/// Records of an image about its paths.
struct Origins<'a> {
    tree: &'a Tree,
    record: Option<&'a Record>,
    manifest: Option<&'a Manifest>,
}

/// A resolved path.
struct Arrival {
    links: Vec<Link>,
    path: Vec<u8>,
    id: InodeId,
}

impl Origins<'_> {
    /// The links from `path` to its node, and that node with its path. A dangling link resolves to itself.
    fn follow(&self, path: &[u8]) -> Result<Arrival, ExplainError> {
        let mut links = Vec::new();
        let mut next = path.to_vec();
        let mut last = None;
        for _ in 0..=MAX_LINKS {
            let Some((real, id)) = self.tree.real_path(&next, false)? else {
                return last.map(|(path, id)| Arrival { links, path, id }).ok_or_else(|| self.absent(path));
            };
            let Kind::Symlink(target) = &self.tree.inode(id).kind else { return Ok(Arrival { links, path: real, id }) };
            let origin = self.origin(&real);
            links.push(Link {
                path: escape::path(&real),
                target: escape::path(target),
                layer: origin.map(|origin| origin.layer.clone()),
                artifact: origin.and_then(|origin| origin.artifact.clone()),
            });
            let parent = real.iter().rposition(|byte| *byte == b'/').map_or(&real[..0], |at| &real[..at]);
            next = if target.starts_with(b"/") { target.clone() } else { [parent, b"/", target.as_slice()].concat() };
            last = Some((real, id));
        }
        Err(TreeError::SymlinkLoop { path: escape::path(path) }.into())
    }

    /// The error for a missing path: names the layer that removed it, or the missing directory.
    fn absent(&self, path: &[u8]) -> ExplainError {
        let mut gone: Vec<u8> = components(path).flat_map(|name| [b"/", name].concat()).collect();
        while let Some(at) = gone.iter().rposition(|byte| *byte == b'/') {
            // The record has the base image's paths, without links in them.
            let (dir, name) = gone.split_at(at);
            let real = self.tree.real_path(dir, true).ok().flatten().map_or_else(|| dir.to_vec(), |(real, _)| real);
            let own = escape::path(&[real.as_slice(), name].concat());
            let removed = self.record.and_then(|record| record.removed.get(&own));
            if let Some(layer) = removed.cloned().flatten() {
                return ExplainError::Message(message!(
                    "{}: not in the image: layer {layer} removed it",
                    escape::path(path)
                ));
            }
            gone.truncate(at);
        }
        TreeError::NotFound { path: escape::path(path) }.into()
    }

    fn origin(&self, path: &[u8]) -> Option<&PathOrigin> {
        self.record?.paths.get(&escape::path(path))
    }

    fn pinned(&self, artifact: &str) -> Option<&Dependency> {
        self.manifest?.content().dependencies.get(artifact)
    }

    fn explain(&self, asked: &[u8], Arrival { links, path, id }: Arrival) -> Result<Explanation, ExplainError> {
        let inode = self.tree.inode(id);
        let origin = self.origin(&path);
        let layer = origin.and_then(|origin| {
            let layer = self.record?.layers.get(&origin.layer)?;
            Some(LayerReport { name: origin.layer.clone(), version: layer.version.clone(), digest: layer.digest })
        });
        let bundle = origin.and_then(|origin| self.bundle(&origin.layer));
        let artifact = origin.and_then(|origin| self.artifact(origin.artifact.as_ref()?));
        let content = self.content(&path, inode, artifact.as_ref())?;
        let (uid, gid) = (inode.meta.uid, inode.meta.gid);
        let packages = packages::owners(self.tree, &path)?;
        let kept = if origin.is_none() { self.kept(&packages) } else { None };
        Ok(Explanation {
            path: escape::path(asked),
            links,
            resolved: escape::path(&path),
            kind: inode.kind.name(),
            mode: format!("{:04o}", inode.meta.mode),
            uid,
            gid,
            owner: account(self.tree, "/etc/passwd", uid)?,
            group: account(self.tree, "/etc/group", gid)?,
            size: if let Kind::File(map) = &inode.kind { Some(map.len()) } else { None },
            recorded: self.record.is_some(),
            base: if self.record.is_some() && origin.is_none() { self.base() } else { None },
            layer,
            bundle,
            artifact,
            content,
            kept,
            packages,
        })
    }

    /// The bundle of a layer.
    fn bundle(&self, layer: &str) -> Option<BundleReport> {
        let mut all = self.manifest?.content().bundles.iter();
        let (name, bundle) = all.find(|(_, bundle)| bundle.layers.contains(layer))?;
        let PinnedBundle { version, digest, publisher, signer, .. } = bundle.clone();
        Some(BundleReport { name: name.clone(), version, digest, publisher, signer })
    }

    fn artifact(&self, name: &str) -> Option<ArtifactReport> {
        let digest = self.record?.artifacts.get(name)?.digest;
        let found = ArtifactReport { name: name.to_owned(), digest, version: None, url: None, proof: None, own: false };
        let Some(manifest) = self.manifest else { return Some(found) };
        if let Some(pinned) = self.pinned(name) {
            let (version, url) = (Some(pinned.version.clone()), Some(pinned.url.clone()));
            return Some(ArtifactReport { version, url, proof: pinned.proof.clone(), ..found });
        }
        match manifest.content().images.iter().find(|image| image.image == name) {
            Some(image) => {
                let (version, url) = (Some(image.platform.clone()), Some(format!("index {}", image.index)));
                Some(ArtifactReport { version, url, proof: image.proof.clone(), ..found })
            }
            // All other artifacts are in the manifest; otherwise the record is refused.
            None => Some(ArtifactReport { own: true, ..found }),
        }
    }

    /// The artifact that is one of the packages, if the base image had it in the pinned version.
    fn kept(&self, packages: &[InstalledPackage]) -> Option<KeptReport> {
        let mut kept = self.record?.kept.iter();
        let is = |kept: &KeptOrigin| {
            packages.iter().any(|found| found.name == kept.package && found.version.as_ref() == Some(&kept.version))
        };
        let (name, kept) = kept.find(|(_, kept)| is(kept))?;
        Some(KeptReport { name: name.clone(), layer: kept.layer.clone(), version: kept.version.clone() })
    }

    /// The base image of the record, with its proof from the manifest.
    fn base(&self) -> Option<BaseReport> {
        let base = self.record?.base.as_ref()?;
        let image = self.manifest.and_then(|manifest| manifest.content().os.image.as_ref());
        let proof = image.filter(|image| image.digest == base.digest).and_then(|image| image.proof.clone());
        Some(BaseReport { version: base.version.clone(), url: base.url.clone(), digest: base.digest, proof })
    }

    /// A file that is an artifact itself must have its digest: a program of the manifest, or vmbake's built-in program.
    fn content(
        &self,
        path: &[u8],
        inode: &Inode,
        artifact: Option<&ArtifactReport>,
    ) -> Result<Option<ContentOrigin>, ExplainError> {
        let (Kind::File(map), Some(artifact)) = (&inode.kind, artifact) else { return Ok(None) };
        let program = self.pinned(&artifact.name).is_some_and(|pinned| pinned.kind == ArtifactType::Binary);
        if !program && !artifact.own {
            return Ok(None);
        }
        let shown = escape::path(path);
        let read = |source| TreeError::Read { path: shown.clone(), source };
        let (found, _) = artifact.digest.of_stream(MapReader::new(map, self.tree.sources())).map_err(read)?;
        if found != artifact.digest {
            let (expected, found) = (Box::new(artifact.digest), Box::new(found));
            let artifact = artifact.name.clone();
            return Err(ExplainError::Message(message!(
                "{shown}: expected {expected} of artifact {artifact}, found {found}"
            )));
        }
        Ok(Some(ContentOrigin::Matches))
    }
}

/// The name of a user or group of the image, by id.
fn account(tree: &Tree, path: &str, id: u32) -> Result<Option<String>, TreeError> {
    let text = match tree.read(path.as_bytes(), MAX_TEXT) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(TreeError::NotFound { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let names: BTreeMap<u32, &str> = text
        .lines()
        .rev()
        .filter_map(|line| {
            let mut fields = line.split(':');
            let (name, id) = (fields.next()?, fields.nth(1)?);
            Some((id.parse().ok()?, name))
        })
        .collect();
    Ok(names.get(&id).map(|name| escape::path(name.as_bytes())))
}

//! Turns proven artifacts into entries whose contents are ranges of files: [`Artifact`]s in, [`Staged`] out.
//!
//! A compressed archive is decompressed once and kept in the store; an uncompressed one is used in place.

mod requests;
mod control;
mod deb;
mod error;
mod order;

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::Arc;

use vmbake_common::message;
use vmbake_disk::source::{FileSource, ReadAt};

pub use control::{Control, ControlFault};
pub use deb::{Deb, DebError};
pub use error::StageError;
pub use vmbake_unpack::archive::{self, ArchiveError, ArchiveLimits, Member, MemberFault, MemberKind};

use vmbake_common::content_id::identified;
use vmbake_embedded::program;
use vmbake_fetch::images::Layout;
use vmbake_fetch::verify::Artifact;
use vmbake_layer::{ExtractOption, Install, Layer};
use vmbake_manifest::{ArtifactType, Manifest, Proof};
use vmbake_store::store::{DecodedForm, Store};

/// Name of the built-in artifact: the first-boot program.
pub const FIRSTBOOT: &str = "firstboot";

/// What an artifact puts into the tree.
pub(crate) enum StagedContent {
    File {
        path: String,
        mode: u16,
        len: u64,
    },
    /// Members of an archive, with their paths in the image, and how tar would extract them.
    Members(Vec<Member>, Option<ExtractOption>),
    /// A Debian package.
    Deb(Deb),
}

/// One artifact with its place in the image.
pub struct StagedArtifact {
    pub(crate) layer: usize,
    pub(crate) name: String,
    pub(crate) digest: String,
    pub(crate) source: Arc<dyn ReadAt>,
    pub(crate) content: StagedContent,
    /// The version of the base that was there when the package was chosen, whose place it may take.
    pub(crate) upgrades: Option<String>,
}

impl StagedArtifact {
    /// The package, if it is one.
    pub(crate) fn deb(&self) -> Option<&Deb> {
        match &self.content {
            StagedContent::Deb(deb) => Some(deb),
            _ => None,
        }
    }
}

/// All artifacts of an image, in the order in which they are installed; created only from a [`Plan`].
pub struct Staged {
    pub(crate) layers: Vec<Layer>,
    pub(crate) artifacts: Vec<StagedArtifact>,
    /// The container images, if a layer includes them.
    pub(crate) images: Option<Layout>,
}

impl Staged {
    /// The layers, in their order.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }
}

/// Which layer installs which artifact, before anything was read.
pub struct Plan {
    layers: Vec<Layer>,
    arch: String,
    /// By name of the artifact: its layer.
    owners: BTreeMap<String, usize>,
    /// Packages chosen for layers, with the version of the base that each replaces.
    chosen: BTreeMap<String, Option<String>>,
}

impl Plan {
    /// Every artifact of the manifest must be installed by exactly one of `layers`.
    pub fn new(layers: Vec<Layer>, manifest: &Manifest) -> Result<Self, StageError> {
        let content = manifest.content();
        requests::check_bases(&layers, content)?;
        requests::check_upstreams(&layers, content)?;
        let mut owners = BTreeMap::new();
        for (index, layer) in layers.iter().enumerate() {
            for (_, name, _) in layer.schema.installs() {
                let schema = &layer.schema;
                if let Some(first) = owners.insert(name.clone(), index) {
                    let (first, second) = (layers[first].schema.name.clone(), schema.name.clone());
                    return Err(StageError::Twice { name: name.clone(), first, second });
                }
                if name != FIRSTBOOT && !content.dependencies.contains_key(name) {
                    return Err(StageError::Message(message!(
                        "layer {} installs artifact {name}, which the manifest does not pin",
                        schema.name
                    )));
                }
            }
        }
        requests::check_packages(&layers, content)?;
        let mut chosen = BTreeMap::new();
        for (name, entry) in &content.dependencies {
            let Some(because) = &entry.chosen else { continue };
            let layer = || because.layer.clone();
            let Some(index) = layers.iter().position(|layer| layer.schema.name == because.layer) else {
                return Err(StageError::NoLayer { name: name.clone(), layer: layer() });
            };
            if let Some(first) = owners.insert(name.clone(), index) {
                let first = layers[first].schema.name.clone();
                return Err(StageError::Twice { name: name.clone(), first, second: layer() });
            }
            chosen.insert(name.clone(), because.upgrades.clone());
        }
        match content.dependencies.keys().find(|name| !owners.contains_key(*name)) {
            Some(name) => Err(StageError::Unused { name: name.clone() }),
            None => Ok(Self { layers, arch: content.os.arch.clone(), owners, chosen }),
        }
    }

    /// Stages one artifact; what it is decoded to is kept in `store`.
    pub fn stage(&self, artifact: &Artifact, store: &Store) -> Result<StagedArtifact, StageError> {
        let unused = || StageError::Unused { name: artifact.name().to_owned() };
        let layer = *self.owners.get(artifact.name()).ok_or_else(unused)?;
        let install = match self.chosen.contains_key(artifact.name()) {
            true => &Install::Deb,
            false => self.layers[layer].schema.install(artifact.name()).ok_or_else(unused)?,
        };
        let upgrades = self.chosen.get(artifact.name()).cloned().flatten();
        Ok(StagedArtifact { upgrades, ..stage_one(layer, artifact, install, &self.arch, store)? })
    }

    /// All that is installed, once every artifact was staged: in the order of the layers, then of their names. In a layer that packages
    /// were chosen for, each comes behind those that it needs.
    pub fn complete(self, mut artifacts: Vec<StagedArtifact>, images: Option<Layout>) -> Result<Staged, StageError> {
        let there = artifacts.iter().any(|artifact| artifact.name == FIRSTBOOT);
        if let Some(layer) = self.owners.get(FIRSTBOOT).filter(|_| !there)
            && let Some(install) = self.layers[*layer].schema.artifacts.get(FIRSTBOOT)
        {
            artifacts.push(stage_program(*layer, install, &self.arch)?);
        }
        artifacts.sort_by(|a, b| (a.layer, &a.name).cmp(&(b.layer, &b.name)));
        let mut ordered = Vec::with_capacity(artifacts.len());
        for layer in 0..self.layers.len() {
            let later = artifacts.split_off(artifacts.partition_point(|artifact| artifact.layer <= layer));
            let own = std::mem::replace(&mut artifacts, later);
            let is_chosen = own.iter().any(|artifact| self.chosen.contains_key(&artifact.name));
            ordered.extend(if is_chosen { order::by_needs(own) } else { own });
        }
        Ok(Staged { layers: self.layers, artifacts: ordered, images })
    }
}

fn stage_program(layer: usize, install: &Install, arch: &str) -> Result<StagedArtifact, StageError> {
    let (digest, bytes) = program(arch)?;
    let Install::File { path, mode, .. } = install else {
        return Err(StageError::Unused { name: FIRSTBOOT.to_owned() });
    };
    Ok(StagedArtifact {
        layer,
        name: FIRSTBOOT.to_owned(),
        digest: format!("sha256:{digest}"),
        source: Arc::new(bytes.to_vec()),
        content: StagedContent::File { path: path.clone(), mode: *mode, len: bytes.len() as u64 },
        upgrades: None,
    })
}

/// Fails if a signature over the whole file is all that proves a package, and the package is another one, or of another version. A signature
/// does not tell which release of which program it is over.
fn check_signed(artifact: &Artifact, deb: &Deb) -> Result<(), StageError> {
    let (name, dependency) = (artifact.name(), artifact.dependency());
    if !matches!(dependency.proof, Some(Proof::Openpgp { .. })) {
        return Ok(());
    }
    let version = deb.version();
    let is_version =
        version.strip_prefix(&dependency.version).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    if deb.name() == name && is_version {
        return Ok(());
    }
    let expected = format!("{name} {}", dependency.version);
    Err(StageError::OtherPackage { name: name.to_owned(), expected, found: format!("{} {version}", deb.name()) })
}

fn stage_one(
    layer: usize,
    artifact: &Artifact,
    install: &Install,
    arch: &str,
    store: &Store,
) -> Result<StagedArtifact, StageError> {
    let (name, digest) = (artifact.name().to_owned(), &artifact.dependency().digest);
    let read = |source| StageError::Message(message!("{name}: cannot read").by(source));
    let archive = |source| StageError::Archive { name: name.clone(), source };
    let (file, form, content): (File, &str, StagedContent) = match install {
        Install::File { path, mode, decompress: true } => {
            let kind = artifact.dependency().kind;
            if kind != ArtifactType::Compressed {
                return Err(StageError::NotCompressed { name, kind });
            }
            let failed = |source| StageError::Compressed { name: name.clone(), source };
            let plain = archive::decompress_kept(artifact.file(), digest, store).map_err(failed)?;
            let len = plain.metadata().map_err(read)?.len();
            let content = StagedContent::File { path: path.clone(), mode: *mode, len };
            (plain, DecodedForm::File.name(), content)
        }
        Install::File { path, mode, decompress: false } => {
            let len = artifact.dependency().size;
            let content = StagedContent::File { path: path.clone(), mode: *mode, len };
            (artifact.file().try_clone().map_err(read)?, "file", content)
        }
        Install::Tar { path, strip, members, absent, extract } => {
            let (plain, entries) =
                archive::open_kept(artifact.file(), digest, store, &ArchiveLimits::ARTIFACT).map_err(archive)?;
            let select = if extract.is_some() { archive::extract } else { archive::select };
            let members = select(entries, path, *strip, members).map_err(archive)?;
            archive::require_absent(&members, absent).map_err(archive)?;
            (plain, DecodedForm::Tar.name(), StagedContent::Members(members, *extract))
        }
        Install::Zip { path, strip, members } => {
            let (plain, entries) = archive::open_zip_kept(artifact.file(), digest, store).map_err(archive)?;
            let members = archive::select(entries, path, *strip, members).map_err(archive)?;
            (plain, DecodedForm::Zip.name(), StagedContent::Members(members, None))
        }
        Install::Deb => {
            let failed = |source| StageError::Message(message!("{name}: invalid Debian package").by(source));
            let (data, deb) = deb::read(artifact, arch, store).map_err(failed)?;
            check_signed(artifact, &deb)?;
            (data, DecodedForm::DebData.name(), StagedContent::Deb(deb))
        }
    };
    let source = identified(Arc::new(FileSource::new(file).map_err(read)?), digest, form);
    Ok(StagedArtifact { layer, name: name.clone(), digest: digest.to_string(), source, content, upgrades: None })
}

//! Plans a bake without running it.

use serde::Serialize;

use super::{BakeError, BakeRequest};
use crate::incremental::previous_bake::PreviousBake;
use vmbake_common::progress::Progress;
use vmbake_fetch as fetch;
use vmbake_layer::Layers;
use vmbake_manifest::{Content, Dependency, Manifest};
use vmbake_pin::prove::LOCAL;
use vmbake_store::store::Store;

/// The planned action for an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PlannedState {
    /// Up to date, with the same inputs.
    Unchanged,
    /// To be baked.
    Bake,
}

/// The plan for one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedBake {
    /// `<kind>.<os>.<arch>`.
    pub name: String,
    /// Kind of image.
    pub kind: String,
    /// Operating system, such as `debian-13`.
    pub os: String,
    /// Architecture as Debian names it.
    pub arch: String,
    /// The planned action.
    pub state: PlannedState,
    /// Pending downloads.
    pub fetch: Missing,
}

/// Pinned files that are missing in the store.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Missing {
    /// Number of artifacts, evidence documents and base images.
    pub files: usize,
    /// Their length in bytes.
    pub bytes: u64,
    /// Number of container images, whose length the manifest does not state.
    pub container_images: usize,
}

/// Runs the first checks of a bake, without network access or writing anything.
pub fn plan(request: &BakeRequest) -> Result<PlannedBake, BakeError> {
    let manifest = Manifest::load_with(&request.manifest, &request.more)?;
    if let Some(base) = &request.base {
        fetch::open_base_file(&manifest, base)?;
    }
    let BakeRequest { kind, os, arch, store, .. } = request;
    manifest.require(&request.manifest, kind, os, arch)?;
    request.check_base(&manifest)?;
    let layers = request.layers_of(&manifest, &Layers::load(&request.layers)?)?;
    let program = store.running_program().ok_or(BakeError::Program)?;
    let previous = PreviousBake::look(store, program, &request.targets(&manifest.name()));
    let offline = BakeRequest { client: None, ..request.clone() };
    // Problems with proofs, such as missing evidence, are reported by the bake itself.
    let unchanged = offline.unchanged(&manifest, &layers, &previous, &Progress::held(true)).ok().flatten();
    let state = if unchanged.is_some() { PlannedState::Unchanged } else { PlannedState::Bake };
    let fetch = match state {
        PlannedState::Unchanged => Missing::default(),
        PlannedState::Bake => missing(manifest.content(), store, request.base.is_none()),
    };
    let [kind, os, arch] = [kind, os, arch].map(Clone::clone);
    Ok(PlannedBake { name: manifest.name(), kind, os, arch, state, fetch })
}

fn missing(content: &Content, store: &Store, with_base: bool) -> Missing {
    let lacks = |digest: &_| !store.path(digest).exists();
    let is_file = |image: &&Dependency| !image.url.starts_with(LOCAL) && content.root_base().is_none();
    let base = content.os.image.iter().filter(|image| with_base && is_file(image));
    let entries = base
        .chain(content.dependencies.values().filter(|entry| !entry.url.starts_with(LOCAL)))
        .map(|entry| (&entry.digest, entry.size));
    let evidence = content.evidence.iter().map(|(digest, evidence)| (digest, evidence.size));
    let mut missing = Missing::default();
    for (_, size) in entries.chain(evidence).filter(|(digest, _)| lacks(digest)) {
        missing.files += 1;
        missing.bytes = missing.bytes.saturating_add(size);
    }
    let container = content.base_container();
    let images = content.images.iter().chain(&container);
    missing.container_images = images.filter(|image| !fetch::is_complete(store, image)).count();
    missing
}

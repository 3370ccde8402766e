//! Checks that a manifest was made for the requests of the layers: base images, packages, downloads and container images.

use super::StageError;
use vmbake_common::digest::Digest;
use vmbake_layer::Layer;
use vmbake_manifest::Content;

/// Fails if a layer is made for other base images than the one that the manifest pins.
pub(super) fn check_bases(layers: &[Layer], content: &Content) -> Result<(), StageError> {
    let (arch, found) = (&content.os.arch, content.os.image.as_ref().map(|image| image.digest));
    for layer in layers.iter().filter(|layer| !layer.schema.bases.is_empty()) {
        let expected = layer.schema.bases.get(arch).copied();
        if expected.is_none() || expected != found {
            let text = |digest: Option<Digest>| digest.map_or_else(|| "none".to_owned(), |digest| digest.to_string());
            let (layer, arch) = (layer.schema.name.clone(), arch.clone());
            return Err(StageError::OtherBase { layer, arch, expected: text(expected), found: text(found) });
        }
    }
    Ok(())
}

/// Fails unless the packages of the manifest were resolved for the requests of the layers.
pub(super) fn check_packages(layers: &[Layer], content: &Content) -> Result<(), StageError> {
    let mut known = content.closure.iter().flat_map(|closure| closure.layers.keys());
    if let Some(layer) = known.find(|name| !layers.iter().any(|layer| layer.schema.name == **name)) {
        return Err(StageError::OtherPackages { layer: layer.clone() });
    }
    let differs = |layer: &&Layer| {
        let request = layer.schema.request();
        let made_for = content.closure.as_ref().and_then(|closure| closure.layers.get(&layer.schema.name));
        made_for.map_or(!request.is_empty(), |made_for| *made_for != request)
    };
    match layers.iter().find(differs) {
        Some(layer) => Err(StageError::OtherPackages { layer: layer.schema.name.clone() }),
        None => Ok(()),
    }
}

/// Fails unless the manifest pins the downloads and container images that the layers request.
pub(super) fn check_upstreams(layers: &[Layer], content: &Content) -> Result<(), StageError> {
    let mut known = content.requests.keys();
    if let Some(layer) = known.find(|name| !layers.iter().any(|layer| layer.schema.name == **name)) {
        return Err(StageError::OtherUpstreams { layer: layer.clone() });
    }
    for layer in layers {
        let (name, asked) = (&layer.schema.name, layer.upstream_request(&content.os.arch)?);
        if asked != content.requests.get(name).cloned().unwrap_or_default() {
            return Err(StageError::OtherUpstreams { layer: name.clone() });
        }
        let is_pinned = |image: &&String| content.images.iter().any(|pinned| pinned.image == **image);
        if let Some(image) = asked.container_images.iter().find(|image| !is_pinned(image)) {
            return Err(StageError::NoImage { layer: name.clone(), image: image.clone() });
        }
    }
    Ok(())
}

//! What only shows when all layers of a kind are seen: two downloads of one name, and container images that have no place.

use std::collections::BTreeMap;

use super::{Layer, LayerError};

/// Fails where the layers of a kind do not go together.
pub(super) fn check(kind: &str, layers: &[Layer]) -> Result<(), LayerError> {
    let mut owners: BTreeMap<&String, &Layer> = BTreeMap::new();
    for layer in layers {
        for (_, name, _) in layer.schema.installs() {
            let Some(first) = owners.insert(name, layer) else { continue };
            let is_download = |layer: &Layer| layer.schema.downloads.contains_key(name);
            if is_download(first) || is_download(layer) {
                let (first, second) = (first.schema.name.clone(), layer.schema.name.clone());
                return Err(LayerError::DownloadTwice { name: name.clone(), first, second });
            }
        }
    }
    let has_place = layers.iter().any(|layer| layer.schema.images.is_some());
    match layers.iter().find(|layer| !layer.schema.container_images.is_empty()) {
        Some(layer) if !has_place => {
            Err(LayerError::NoImages { layer: layer.schema.name.clone(), kind: kind.to_owned() })
        }
        _ => Ok(()),
    }
}

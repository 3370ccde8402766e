//! Checks that need all layers of a kind: two downloads of the same name, container images without a directory, and
//! contradictory layers.

use std::collections::BTreeMap;

use super::{Layer, LayerError, keys};

/// Fails where the layers of a kind do not go together.
pub fn check(kind: &str, layers: &[Layer]) -> Result<(), LayerError> {
    let mut owners: BTreeMap<&String, &Layer> = BTreeMap::new();
    for layer in layers {
        for (_, name, _) in layer.schema.installs() {
            let Some(first) = owners.insert(name, layer) else { continue };
            let is_download = |layer: &Layer| {
                layer.schema.downloads.contains_key(name) || layer.schema.local_files.contains_key(name)
            };
            if is_download(first) || is_download(layer) {
                let (first, second) = (first.schema.name.clone(), layer.schema.name.clone());
                return Err(LayerError::DownloadTwice { name: name.clone(), first, second });
            }
        }
    }
    contradictions(layers)?;
    let has_place = layers.iter().any(|layer| layer.schema.images.is_some());
    match layers.iter().find(|layer| !layer.schema.container_images.is_empty()) {
        Some(layer) if !has_place => {
            Err(LayerError::NoImages { layer: layer.schema.name.clone(), kind: kind.to_owned() })
        }
        _ => Ok(()),
    }
}

/// Two layers with different values for one entry of a key, or for one package.
fn contradictions(layers: &[Layer]) -> Result<(), LayerError> {
    let mut values: BTreeMap<(&'static str, String), (&Layer, String)> = BTreeMap::new();
    for layer in layers {
        let schema = &layer.schema;
        for (key, entry, value) in keys::exclusive(schema) {
            match values.get(&(key, entry.clone())) {
                Some((first, other)) if *other != value => {
                    let (first, second) = (first.schema.name.clone(), schema.name.clone());
                    return Err(LayerError::Contradiction { key, entry, first, second });
                }
                Some(_) => {}
                None => {
                    values.insert((key, entry), (layer, value));
                }
            }
        }
    }
    removals(layers)?;
    let held = |name: &String| layers.iter().find(|layer| layer.schema.hold.contains(name));
    let upgraded = layers.iter().flat_map(|layer| layer.schema.upgrade.names().iter().map(move |name| (layer, name)));
    match upgraded.filter_map(|(layer, name)| Some((held(name)?, layer, name))).next() {
        Some((first, second, name)) => {
            let (entry, first, second) = (name.clone(), first.schema.name.clone(), second.schema.name.clone());
            Err(LayerError::Contradiction { key: "hold", entry, first, second })
        }
        None => Ok(()),
    }
}

/// A layer that removes what another one installs, holds or upgrades.
fn removals(layers: &[Layer]) -> Result<(), LayerError> {
    let removed = layers.iter().flat_map(|layer| layer.schema.remove_packages.iter().map(move |name| (layer, name)));
    for (first, name) in removed {
        let installs = |layer: &&Layer| layer.schema.packages.iter().any(|wanted| wanted.name == *name);
        if let Some(second) = layers.iter().find(installs) {
            let (package, first, second) = (name.clone(), first.schema.name.clone(), second.schema.name.clone());
            return Err(LayerError::Removes { package, first, second });
        }
        let changes = |layer: &&Layer| layer.schema.hold.contains(name) || layer.schema.upgrade.names().contains(name);
        if let Some(second) = layers.iter().find(changes) {
            let (entry, first, second) = (name.clone(), first.schema.name.clone(), second.schema.name.clone());
            return Err(LayerError::Contradiction { key: "remove_packages", entry, first, second });
        }
    }
    Ok(())
}

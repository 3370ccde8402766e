//! `vmbake layer check` and `release`: lists all errors of a layer, and records its version as released.
//!
//! Input: the directory of a layer, and the [`Catalog`] that a bake would use. The parent directory of the layer is an additional root.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::read::{self, DESCRIPTION};
use super::released::{self, Released};
use super::set::{Loaded, by_name, contents, faults, folder, load_one};
use super::{Fault, Layer, LayerError, validate};
use vmbake_common::catalog::{Catalog, Entries, Root};

/// All faults of the layer in directory `dir`, seen among the layers of `catalog` and those next to it.
pub fn check(dir: &Path, catalog: &Catalog) -> Result<Vec<Fault>, LayerError> {
    Ok(checked(dir, catalog)?.1)
}

/// Lists the layer in directory `dir` as released, in the file next to it, unless it has faults: from then on, a layer with
/// its version must be the same. Tells whether it was not listed before.
pub fn release(dir: &Path, catalog: &Catalog) -> Result<(Layer, bool), LayerError> {
    let (layer, mut faults) = checked(dir, catalog)?;
    faults.retain(|fault| !fault.warning);
    match layer.filter(|_| faults.is_empty()) {
        Some(layer) => {
            let is_new = released::record(&siblings(&real(dir)?), &layer)?;
            Ok((layer, is_new))
        }
        None => Err(LayerError::Faults(faults)),
    }
}

/// The layer in directory `dir`, if it has the right form, and what is wrong with it.
fn checked(dir: &Path, catalog: &Catalog) -> Result<(Option<Layer>, Vec<Fault>), LayerError> {
    let path = real(dir)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let own = match load_one(dir, &name, read::read(dir)?) {
        Ok(own) => own,
        Err(mut faults) => {
            faults.sort();
            return Ok((None, faults));
        }
    };
    // Layers next to it come last, as in a directory of layers under development.
    let catalog = catalog.with(siblings(&path));
    let mut released = Released::default();
    catalog.roots().iter().try_for_each(|root| released.add(root))?;
    let (all, mut found) = gather(&name, &own, &catalog)?;
    found.extend(faults(&own, &by_name(&all), &released, true));
    found.sort();
    Ok((Some(own.layer), found))
}

/// The layer `own` with all that it requires, and warnings of those that a bake would not take; `own` is in the last root.
fn gather(name: &str, own: &Loaded, catalog: &Catalog) -> Result<(Entries<Loaded>, Vec<Fault>), LayerError> {
    let (mut all, mut warnings) = (Entries::default(), Vec::new());
    let (mut seen, mut todo) = (BTreeSet::new(), vec![name.to_owned()]);
    while let Some(next) = todo.pop() {
        if !seen.insert(next.clone()) {
            continue;
        }
        for root in catalog.roots() {
            let is_own = next == name && Some(root) == catalog.roots().last();
            let loaded = if is_own { Some(own.clone()) } else { load_from(root, &next)? };
            let Some(loaded) = loaded else { continue };
            if let Err(error) = all.add(catalog, root, next.clone(), loaded.clone()) {
                let message = format!("{error}: a bake needs --override layers/{next}");
                warnings.push(Fault { path: loaded.path.clone(), position: None, warning: true, message });
                all.put(root, next.clone(), loaded);
            }
        }
        let requires = all.get(&next).map(|loaded| &loaded.layer.schema.requires);
        let names = requires.into_iter().flatten().map(|required| required.name.clone());
        // An invalid name is a fault, and may lead out of the directory.
        todo.extend(names.filter(|name| validate::name(name).is_none()));
    }
    Ok((all, warnings))
}

fn real(dir: &Path) -> Result<PathBuf, LayerError> {
    dir.canonicalize().map_err(|source| LayerError::Read { path: dir.to_owned(), source })
}

/// The directory that a layer's directory is in.
fn siblings(layer: &Path) -> PathBuf {
    layer.parent().unwrap_or(layer).to_owned()
}

/// The layer of that name in a root, if it has one.
fn load_from(root: &Root, name: &str) -> Result<Option<Loaded>, LayerError> {
    let path = folder(root).join(name);
    let content = match root {
        Root::BuiltIn => contents(root)?.remove(name),
        Root::Path(_) => match path.join(DESCRIPTION).symlink_metadata() {
            Ok(_) => Some(read::read(&path)?),
            Err(_) => None,
        },
    };
    content.map(|content| load_one(&path, name, content).map_err(LayerError::Faults)).transpose()
}

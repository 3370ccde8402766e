//! The store as an OCI image layout: `oci-layout` and `index.json` list the pulled images, so that other tools find
//! them (OCI image specification 1.1, image layout).

use std::collections::BTreeSet;
use std::io::BufReader;

use super::{Store, StoreError, create_dir};
use vmbake_common::atomic_file::write_file;
use vmbake_common::digest::Digest;
use vmbake_common::ownership;
use vmbake_oci::{Descriptor, INDEX, Index, MARKER, MARKER_FILE, REF_NAME};

/// Lists an image under its reference, replacing an earlier one.
pub(super) fn list(store: &Store, reference: &str, root: &Descriptor) -> Result<(), StoreError> {
    change(store, |images| {
        images.retain(|image| image.annotations.get(REF_NAME).is_none_or(|name| name != reference));
        let mut image = root.clone();
        image.annotations.insert(REF_NAME.to_owned(), reference.to_owned());
        images.push(image);
    })
}

/// Removes the images that are not among `keep`.
pub(super) fn retain(store: &Store, keep: &BTreeSet<Digest>) -> Result<(), StoreError> {
    if !store.root.join(INDEX).exists() {
        return Ok(());
    }
    change(store, |images| images.retain(|image| keep.contains(&image.digest)))
}

fn change(store: &Store, change: impl FnOnce(&mut Vec<Descriptor>)) -> Result<(), StoreError> {
    create_dir(&store.root)?;
    let path = store.root.join(INDEX);
    let write = |source| StoreError::Write { path: path.clone(), source };
    let lock = ownership::open_or_make(&store.root.join("index.lock")).map_err(write)?;
    lock.lock().map_err(write)?;
    // An unreadable index is created anew: it only lists what is in the store.
    let old =
        ownership::open(&path).ok().and_then(|file| serde_json::from_reader::<_, Index>(BufReader::new(file)).ok());
    let mut images = old.map(|index| index.manifests).unwrap_or_default();
    change(&mut images);
    images.sort_by(|a, b| a.annotations.get(REF_NAME).cmp(&b.annotations.get(REF_NAME)));
    let text = serde_json::to_vec(&Index::of(images)).map_err(|error| write(error.into()))?;
    let failed = |error| write(std::io::Error::other(error));
    write_file(&store.root.join(MARKER_FILE), MARKER.as_bytes(), true).map_err(failed)?;
    write_file(&path, &text, true).map_err(failed)
}

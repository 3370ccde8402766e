//! Compares an image with the release next to it: its lists of checksums and documents. Whatever is missing is not
//! compared, since an image and its manifest are sufficient.

use std::io::ErrorKind;
use std::path::Path;

use super::{MAX_ORIGINS, PodplaneError, stem};
use crate::DocumentError;
use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::read;
use vmbake_bake::release::sums::{SumsKind, read_sums};
use vmbake_bake::release::verify::{belongs, image_name};
use vmbake_common::digest::Digest;
use vmbake_common::message::FileError;
use vmbake_manifest::Manifest;

/// Maximum size of a document next to an image in bytes.
const MAX_DOCUMENT: u64 = 64 << 20;

/// Fails if the image at `path`, with this digest, manifest and record of origins, does not belong to the release next to it.
pub(super) fn check(
    path: &Path,
    digest: &Digest,
    manifest: &Manifest,
    origins: Option<&[u8]>,
) -> Result<(), PodplaneError> {
    listed(path, digest)?;
    let name = stem(path);
    let sidecar = path.with_file_name(Sidecar::Origins.file_name(&name));
    if let Some(found) = document(&sidecar, MAX_ORIGINS)?
        && Some(found.as_slice()) != origins
    {
        return Err(PodplaneError::OtherOrigins { path: sidecar, image: path.to_owned() });
    }
    let sidecar = path.with_file_name(Sidecar::Inputs.file_name(&name));
    if let Some(text) = document(&sidecar, MAX_DOCUMENT)? {
        let expected = manifest.digest();
        let found = BuildInputs::parse(&sidecar, &text).map_err(DocumentError::Inputs)?.manifest;
        if found != expected {
            let (expected, found) = (Box::new(expected), Box::new(found));
            return Err(PodplaneError::OtherManifest { path: sidecar, image: path.to_owned(), expected, found });
        }
    }
    Ok(())
}

/// Compares the image and its documents with the list of checksums.
fn listed(path: &Path, digest: &Digest) -> Result<(), PodplaneError> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Some(sums) = read_sums(folder, SumsKind::Bytes).map_err(DocumentError::Sums)? else { return Ok(()) };
    let (file, name) = (path.file_name().unwrap_or_default().to_string_lossy(), stem(path));
    for (listed, expected) in sums.checksums {
        let path = folder.join(&listed);
        let found = if listed == file {
            *digest
        } else if belongs(&listed, &name) && image_name(&listed).is_none() {
            match document(&path, MAX_DOCUMENT)? {
                Some(content) => Digest::of(&content),
                None => continue,
            }
        } else {
            continue;
        };
        let found = Checksum::Bytes(found);
        if found != expected {
            let (expected, found) = (Box::new(expected), Box::new(found));
            return Err(PodplaneError::Release(DocumentError::Checksum { path, expected, found }));
        }
    }
    Ok(())
}

/// A document next to an image, if it exists.
fn document(path: &Path, limit: u64) -> Result<Option<Vec<u8>>, PodplaneError> {
    match read(path, limit) {
        Ok(content) => Ok(Some(content)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(source) => Err(PodplaneError::File(FileError::new(path, "read", source))),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    const MANIFEST: &str = r#"{"vmconfig": {"version": "dev", "kind": "knc", "os": {"name": "o", "arch": "amd64"}, "dependencies": {}, "images": []}}"#;

    /// The error for an image `knc.o.amd64.qcow2` with the content `image`, next to these files.
    fn checked(files: &[(&str, &str)]) -> Option<String> {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files {
            fs::write(dir.path().join(name), content).unwrap();
        }
        let manifest = Manifest::parse(Path::new("m"), MANIFEST.as_bytes().to_vec()).unwrap();
        let path = dir.path().join("knc.o.amd64.qcow2");
        let checked = check(&path, &Digest::of(b"image"), &manifest, Some(b"origins"));
        checked.err().map(|error| error.to_string().replace(&format!("{}/", dir.path().display()), ""))
    }

    #[test]
    fn an_image_fits_the_release_next_to_it() {
        let line = |content: &str, name: &str| format!("{}  {name}\n", Digest::of(content.as_bytes()).hex());
        let image = line("image", "knc.o.amd64.qcow2");
        let origins = line("origins", "knc.o.amd64.origin.json");
        let other = line("other", "knc.o.amd64.qcow2");
        let digest = |content: &str| Digest::of(content.as_bytes());
        let states = |name: &str, found: &str, expected: &str| {
            Some(format!("{name}: has {}, but the list states {}", digest(found), digest(expected)))
        };
        let not_of_image =
            Some("knc.o.amd64.origin.json: differs from the record of origins in knc.o.amd64.qcow2".to_owned());
        for (files, expected) in [
            (vec![], None),
            (vec![("SHA256SUMS", image.as_str())], None),
            (vec![("SHA256SUMS", "")], None),
            (vec![("SHA256SUMS", &*line("x", "knd.o.amd64.qcow2"))], None),
            (vec![("SHA256SUMS", &*other)], states("knc.o.amd64.qcow2", "image", "other")),
            (vec![("SHA256SUMS", "x\n")], Some("SHA256SUMS:1: expected a digest and a name".to_owned())),
            // Documents may be missing, but not differ.
            (vec![("SHA256SUMS", &*origins)], None),
            (vec![("SHA256SUMS", &*origins), ("knc.o.amd64.origin.json", "origins")], None),
            (
                vec![("SHA256SUMS", &*origins), ("knc.o.amd64.origin.json", "x")],
                states("knc.o.amd64.origin.json", "x", "origins"),
            ),
            (vec![("knc.o.amd64.origin.json", "x")], not_of_image),
            (
                vec![("knc.o.amd64.inputs.json", "{}")],
                Some("knc.o.amd64.inputs.json:1:2: invalid record of inputs".to_owned()),
            ),
        ] {
            assert_eq!(checked(&files), expected, "{files:?}");
        }
    }
}

//! The directory of a release: its images with their listed checksums, and the documents next to them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vmbake_bake::incremental::build_inputs::BuildInputs;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::release::sign::BUNDLE;
use vmbake_bake::release::sums::{SumsKind, read_sums};
use vmbake_bake::release::verify::{belongs, image_name};
use vmbake_common::digest::Digest;
use vmbake_common::message;
use vmbake_manifest::Manifest;

use super::error::DocumentError;
use vmbake_disk::image::Format;

/// Maximum size of an attached file.
pub const MAX_ATTACHED: u64 = 64 << 20;

/// An image of a release, with its properties.
#[derive(Clone, Debug)]
pub struct NamedImage {
    pub path: PathBuf,
    /// `<kind>.<os-name>.<arch>`.
    pub name: String,
    /// Its format, according to its file name.
    pub format: Format,
    /// The listed checksum.
    pub checksum: Checksum,
    pub inputs: BuildInputs,
    /// Version of its manifest.
    pub version: String,
}

/// Images and the files next to them.
#[derive(Clone, Debug)]
pub struct ReleaseFolder {
    /// The images, by architecture and format.
    pub images: Vec<NamedImage>,
    /// The files next to them, by name, except for signatures.
    pub files: BTreeMap<String, Vec<u8>>,
    /// The signatures next to them, by name.
    pub signatures: BTreeMap<String, Vec<u8>>,
}

impl ReleaseFolder {
    /// Reads the files next to these images, which must be in one directory.
    pub fn read(paths: &[PathBuf]) -> Result<Self, DocumentError> {
        let parent = |path: &Path| {
            let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
            folder.unwrap_or(Path::new(".")).to_owned()
        };
        let folder = paths.first().map(|path| parent(path)).unwrap_or_default();
        if let Some(path) = paths.iter().find(|path| parent(path) != folder) {
            return Err(DocumentError::Folder { path: path.clone(), folder });
        }
        let (mut listed, mut files) = (BTreeMap::new(), BTreeMap::new());
        for kind in SumsKind::ALL {
            if let Some(sums) = read_sums(&folder, kind)? {
                listed.extend(sums.checksums);
                files.insert(kind.file_name().to_owned(), sums.text);
            }
        }
        let mut images: BTreeMap<(String, Format), NamedImage> = BTreeMap::new();
        for path in paths {
            let image = image(path, &folder, &listed)?;
            sidecars(&folder, &image.name, &listed, &mut files)?;
            let key = (image.inputs.arch.clone(), image.format);
            if let Some(other) = images.get(&key) {
                return Err(DocumentError::Twice { path: path.clone(), other: other.path.clone() });
            }
            images.insert(key, image);
        }
        let images: Vec<NamedImage> = images.into_values().collect();
        let signatures = signatures(&folder, &files)?;
        Ok(Self { images, files, signatures })
    }

    /// The files that belong to an image, with their digests.
    pub fn files_of(&self, name: &str) -> BTreeMap<String, Digest> {
        let is_list = |file: &str| SumsKind::ALL.iter().any(|kind| kind.file_name() == file);
        let own = self.files.iter().filter(|(file, _)| is_list(file) || belongs(file, name));
        own.map(|(file, content)| (file.clone(), Digest::of(content))).collect()
    }
}

fn image(path: &Path, folder: &Path, listed: &BTreeMap<String, Checksum>) -> Result<NamedImage, DocumentError> {
    let file = path.file_name().and_then(|file| file.to_str()).unwrap_or_default();
    let (name, format) = Format::split_file_name(file).ok_or_else(|| DocumentError::Name { path: path.to_owned() })?;
    let checksum = *listed.get(file).ok_or_else(|| DocumentError::Unlisted { path: path.to_owned() })?;
    let inputs_path = folder.join(Sidecar::Inputs.file_name(name));
    let inputs = BuildInputs::parse(&inputs_path, &read(&inputs_path)?)?;
    let manifest = Manifest::load(&folder.join(Sidecar::Manifest.file_name(name)))?;
    let version = manifest.content().version.clone();
    Ok(NamedImage { path: path.to_owned(), name: name.to_owned(), format, checksum, inputs, version })
}

/// Adds the listed files next to an image. All must exist and match their checksums.
fn sidecars(
    folder: &Path,
    name: &str,
    listed: &BTreeMap<String, Checksum>,
    files: &mut BTreeMap<String, Vec<u8>>,
) -> Result<(), DocumentError> {
    let own = listed.iter().filter(|(file, _)| belongs(file, name) && image_name(file).is_none());
    for (file, expected) in own {
        let path = folder.join(file);
        let content = read(&path)?;
        let found = Checksum::Bytes(Digest::of(&content));
        if found != *expected {
            let (expected, found) = (Box::new(*expected), Box::new(found));
            return Err(DocumentError::Checksum { path, expected, found });
        }
        files.insert(file.clone(), content);
    }
    Ok(())
}

/// The signatures of these files.
fn signatures(folder: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<BTreeMap<String, Vec<u8>>, DocumentError> {
    let failed = |source| DocumentError::Read { path: folder.to_owned(), source };
    let mut found = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let Ok(name) = entry.map_err(failed)?.file_name().into_string() else { continue };
        if is_signature(&name, files.keys().map(String::as_str)) {
            found.insert(name.clone(), read(&folder.join(name))?);
        }
    }
    Ok(found)
}

/// Whether a name is that of a signature of one of these files: `NAME[.LABEL].sigstore.json`, where NAME has no suffix
/// `.json`.
pub fn is_signature<'a>(name: &str, mut files: impl Iterator<Item = &'a str>) -> bool {
    let Some(stem) = name.strip_suffix(BUNDLE) else { return false };
    files.any(|file| {
        let rest = stem.strip_prefix(file.trim_end_matches(".json"));
        rest.is_some_and(|rest| rest.is_empty() || (rest.starts_with('.') && !rest[1..].contains('.')))
    })
}

/// Reads a file to attach.
pub(super) fn read(path: &Path) -> Result<Vec<u8>, DocumentError> {
    let failed = |source| DocumentError::Read { path: path.to_owned(), source };
    let len = path.metadata().map_err(failed)?.len();
    if len > MAX_ATTACHED {
        return Err(DocumentError::Message(message!(
            "{}: {len} bytes, more than the limit of {} for attachments",
            path.display(),
            MAX_ATTACHED
        )));
    }
    vmbake_bake::release::read(path, MAX_ATTACHED).map_err(failed)
}

//! Verifies the image itself: the record of origins next to it must match the one inside, and the recorded files must
//! exist.

use std::collections::BTreeMap;

use vmbake_disk::source::MapReader;
use vmbake_disk::tree::{InodeId, Kind, Tree};

use super::Verification;
use super::archives::open_output;
use super::statements::Documented;
use crate::incremental::published::Sidecar;
use vmbake_common::escape;
use vmbake_common::output_format::OutputFormat;
use vmbake_compose::origin::{MAX_LEN, Record, inside_record};
use vmbake_compose::stage::FIRSTBOOT;
use vmbake_manifest::ArtifactType;
use vmbake_query::explain;

impl Verification<'_> {
    /// Checks every existing image and archive.
    pub(super) fn origin(&mut self, documented: &Documented) {
        let name = &documented.name;
        let sidecar = match crate::release::read(&self.request.folder.join(Sidecar::Origins.file_name(name)), MAX_LEN) {
            Ok(sidecar) => sidecar,
            Err(error) => return self.report.failed_by(&Sidecar::Origins.file_name(name), "origin", &error),
        };
        // The materials are read from the first valid image: all contain the same files.
        let mut asked = None;
        for format in OutputFormat::ALL {
            let file = format.file_name(name);
            let path = self.request.folder.join(&file);
            if !path.is_file() {
                continue;
            }
            let tree = open_output(&path, format, &documented.inputs);
            match tree.and_then(|tree| Ok((compare(&tree, &sidecar, documented)?, tree))) {
                Ok((record, tree)) => {
                    self.report.ok(&file, "origin", format!("{} paths", record.paths.len()));
                    asked.get_or_insert((record, tree));
                }
                Err(message) => self.report.failed(&file, "origin", message),
            }
        }
        if let Some((record, tree)) = asked {
            self.materials(documented, &tree, &record);
        }
    }
}

/// Compares the image with its record, and returns the record.
fn compare(tree: &Tree, sidecar: &[u8], documented: &Documented) -> Result<Record, String> {
    let inside = inside_record(tree).map_err(|error| escape::chain(&error))?;
    // An image without the first-boot layer contains no record: then the listed one applies.
    if inside.is_some_and(|(_, text)| text != sidecar) {
        return Err("the record of origins in the image differs from the one next to it".to_owned());
    }
    let record = Record::parse("the record of origins", sidecar).map_err(|error| escape::chain(&error))?;
    let manifest = explain::inside_manifest(tree).map_err(|error| escape::chain(&error))?;
    if manifest.is_some_and(|manifest| manifest.digest() != documented.manifest.digest()) {
        return Err("the manifest in the image differs from the one next to it".to_owned());
    }
    explain::check(&record, &documented.manifest).map_err(|error| escape::chain(&error))?;
    let found: BTreeMap<String, InodeId> = tree.walk().map(|(path, id, _)| (escape::path(&path), id)).collect();
    if let Some(path) = record.paths.keys().find(|path| !found.contains_key(*path)) {
        return Err(format!("{path} is listed in the record of origins, but missing in the image"));
    }
    if let Some(path) = record.removed.keys().find(|path| found.contains_key(*path)) {
        return Err(format!("{path} is removed according to the record of origins, but present in the image"));
    }
    match found.iter().find_map(|(path, id)| changed(tree, &record, documented, path, *id)) {
        Some(message) => Err(message),
        None => Ok(record),
    }
}

/// The fault in a file that must be an unmodified artifact.
fn changed(tree: &Tree, record: &Record, documented: &Documented, path: &str, id: InodeId) -> Option<String> {
    let name = record.paths.get(path)?.artifact.as_ref()?;
    let pinned = documented.manifest.content().dependencies.get(name);
    let is_whole = name == FIRSTBOOT || pinned.is_some_and(|pinned| pinned.kind == ArtifactType::Binary);
    let Kind::File(map) = &tree.inode(id).kind else { return None };
    let expected = record.artifacts.get(name).filter(|_| is_whole)?.digest;
    match expected.of_stream(MapReader::new(map, tree.sources())) {
        Ok((found, _)) if found == expected => None,
        Ok((found, _)) => Some(format!("{path} in the image has {found}, but {name} is {expected}")),
        Err(error) => Some(format!("cannot read {path} in the image: {error}")),
    }
}

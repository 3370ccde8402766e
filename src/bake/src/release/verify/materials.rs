//! Verifies the SBOMs next to an image: each must match the image.

use serde_json::Value;
use vmbake_disk::tree::Tree;

use super::statements::Documented;
use super::{CheckState, Verification};
use crate::incremental::published::Sidecar;
use crate::release::provenance::difference;
use crate::release::sign::MAX_STATEMENT;
use vmbake_common::escape;
use vmbake_compose::origin::Record;
use vmbake_query::sbom::{Inventory, Knowledge, SbomFormat};

/// Name of the check.
const CHECK: &str = "sbom";

/// The documents with their formats.
const DOCUMENTS: [(Sidecar, SbomFormat); 2] =
    [(Sidecar::Spdx, SbomFormat::Spdx), (Sidecar::CycloneDx, SbomFormat::CycloneDx)];

impl Verification<'_> {
    /// Compares the SBOMs with the packages and files of the image in `tree`.
    pub(super) fn materials(&mut self, documented: &Documented, tree: &Tree, record: &Record) {
        let known = Knowledge { file_name: "", record: Some(record), manifest: Some(&documented.manifest) };
        let inventory = Inventory::of_tree(tree, known);
        for (sidecar, form) in DOCUMENTS {
            let file = sidecar.file_name(&documented.name);
            if !self.listed.contains_key(&file) {
                self.report.add(CheckState::NotAsked, &file, CHECK, "missing");
                continue;
            }
            let expected = inventory.as_ref().map_err(|error| escape::chain(error));
            let expected = expected.and_then(|inventory| inventory.text(form).map_err(|error| escape::chain(&error)));
            match expected.and_then(|expected| self.compare_materials(&file, &expected)) {
                Ok(()) => self.report.ok(&file, CHECK, form.to_string()),
                Err(message) => {
                    let (state, message) = classified(documented, message);
                    self.report.add(state, &file, CHECK, message);
                }
            }
        }
    }

    fn compare_materials(&self, file: &str, expected: &str) -> Result<(), String> {
        let path = self.request.folder.join(file);
        let found = crate::release::read(&path, MAX_STATEMENT).map_err(|error| error.to_string())?;
        if found == expected.as_bytes() {
            return Ok(());
        }
        let parsed = |text: &[u8]| serde_json::from_slice::<Value>(text).map_err(|error| error.to_string());
        Err(match difference(&parsed(&found)?, &parsed(expected.as_bytes())?) {
            Some(other) => format!("{} is {}, but {} in the image", other.pointer, other.found, other.expected),
            None => "not in the form that vmbake writes".to_owned(),
        })
    }
}

/// Another version may describe the same image differently.
fn classified(documented: &Documented, message: String) -> (CheckState, String) {
    let version = &documented.inputs.program.version;
    match version == env!("CARGO_PKG_VERSION") {
        true => (CheckState::Failed, message),
        false => (
            CheckState::NotVerified,
            format!("written by vmbake {version}, which is required to compare it: {message}"),
        ),
    }
}

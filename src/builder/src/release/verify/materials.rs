//! The bills of materials: those beside an image are compared with the ones that its files lead to.

use vmbake_disk::tree::Tree;

use super::Verification;
use super::statements::Documented;
use crate::incremental::published::Sidecar;
use crate::query::sbom;
use crate::release::sign::MAX_STATEMENT;

impl Verification<'_> {
    /// Asks the image `file`, whose files are `tree`.
    pub(super) fn materials(&mut self, file: &str, tree: &Tree, origins: &[u8], documented: &Documented) {
        let sidecars = [Sidecar::Spdx, Sidecar::CycloneDx].map(|sidecar| sidecar.file_name(&documented.name));
        let expected = match sbom::sidecars(tree, &documented.manifest, origins) {
            Ok(expected) => expected,
            Err(error) => return self.report.failed_by(file, "sbom", &error),
        };
        for (sidecar, expected) in sidecars.iter().zip(expected) {
            match crate::release::read(&self.request.folder.join(sidecar), MAX_STATEMENT) {
                Ok(found) if found == expected => self.report.ok(sidecar, "sbom", format!("is that of {file}")),
                Ok(_) => self.report.failed(sidecar, "sbom", format!("is not the one that {file} leads to")),
                Err(error) => self.report.failed_by(sidecar, "sbom", &error),
            }
        }
    }
}

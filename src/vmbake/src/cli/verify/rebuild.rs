//! `vmbake verify image --rebuild`: rebuilds each image from its inputs, and compares every byte.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vmbake_disk::image::Format;

use super::super::Failure;
use vmbake_bake::BakeRequest;
use vmbake_bake::incremental::checksums::Checksum;
use vmbake_bake::incremental::published::Sidecar;
use vmbake_bake::rebuild::rebuild;
use vmbake_bake::release::provenance::BuilderId;
use vmbake_bake::release::verify::{CheckState, Documented, ReleaseReport, VerifyRequest};
use vmbake_common::catalog::Catalog;
use vmbake_common::escape;
use vmbake_common::output_format::OutputFormat;
use vmbake_manifest::Additions;
use vmbake_query::diff::{DiffOptions, diff};

/// Name of the checks.
const CHECK: &str = "rebuild";

/// Inputs of a bake that are not in the record of inputs.
pub(super) struct Rebuild {
    /// Base image; `None` for the one that the manifest pins.
    pub(super) base: Option<PathBuf>,
    pub(super) layers: Catalog,
    /// Whether progress is suppressed.
    pub(super) quiet: bool,
}

impl Rebuild {
    /// Rebuilds an image, and adds the result to the report. Returns the differences between files in the images, if any.
    pub(super) fn check(
        &self,
        image: &Documented,
        request: &VerifyRequest<'_>,
        report: &mut ReleaseReport,
    ) -> Result<String, Failure> {
        let out = tempfile::tempdir()?;
        let bake = self.request(image, request, out.path());
        let found = match rebuild(&bake, &image.inputs, self.quiet) {
            Ok(found) => found,
            Err(error) => {
                report.add(CheckState::Failed, &Sidecar::Inputs.file_name(&image.name), CHECK, escape::chain(&error));
                return Ok(String::new());
            }
        };
        compare(image, &found, report);
        let is_disk = |file: &str| Format::split_file_name(file).is_some();
        let differ = |file: &&String| is_disk(file) && found.get(*file) != image.subjects.get(*file);
        let mut text = String::new();
        for file in image.subjects.keys().filter(differ) {
            let (from, to) = (request.folder.join(file), out.path().join(file));
            if !from.is_file() {
                continue;
            }
            let options = DiffOptions { partition: image.inputs.partition, times: true, threads: request.threads };
            let found = diff(&from, &to, options)?;
            text += &format!("{found}{}: {}\n", escape::line(file), found.summary());
        }
        Ok(text)
    }

    fn request(&self, image: &Documented, request: &VerifyRequest<'_>, out: &Path) -> BakeRequest {
        let inputs = &image.inputs;
        BakeRequest {
            kind: inputs.kind.clone(),
            os: inputs.os.clone(),
            arch: inputs.arch.clone(),
            manifest: request.folder.join(Sidecar::Manifest.file_name(&image.name)),
            base: self.base.clone(),
            partition: inputs.partition,
            layers: self.layers.clone(),
            more: Additions::default(),
            store: request.store.clone(),
            sources: request.sources.clone(),
            anchors: request.anchors.clone(),
            client: None,
            size: inputs.size,
            epoch: inputs.source_date_epoch,
            formats: OutputFormat::ALL.into_iter().filter(|format| inputs.formats.contains(format.name())).collect(),
            compression: inputs.compression,
            out: out.to_owned(),
            force: false,
            builder: BuilderId::default(),
            threads: request.threads,
        }
    }
}

/// Compares the checksum lists with the baked outputs.
fn compare(image: &Documented, found: &BTreeMap<String, Checksum>, report: &mut ReleaseReport) {
    for (file, expected) in &image.subjects {
        match found.get(file) {
            Some(found) if found == expected => report.add(CheckState::Ok, file, CHECK, "identical"),
            Some(found) => {
                let result = format!("listed with {expected}, but the rebuild has {found}");
                report.add(CheckState::Failed, file, CHECK, result);
            }
            None => report.add(CheckState::Failed, file, CHECK, "not an output of the rebuild"),
        }
    }
}

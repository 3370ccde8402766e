//! The record of inputs of an image.

use vmbake_common::message;
use vmbake_disk::image::Format;

use super::{BakeError, BakeRequest};
use crate::incremental::build_inputs::{BuildInputs, FORMAT, LayerInput, ProgramInput};
use vmbake_common::digest::Digest;
use vmbake_common::output_format::OutputFormat;
use vmbake_common::qcow2_compression::Qcow2Compression;
use vmbake_embedded as embedded;
use vmbake_layer::Layer;
use vmbake_manifest::Manifest;

/// The modification time set in the environment: `SOURCE_DATE_EPOCH`.
pub fn source_date_epoch() -> Result<Option<u32>, BakeError> {
    let Some(value) = std::env::var_os("SOURCE_DATE_EPOCH") else { return Ok(None) };
    let seconds = value.to_str().and_then(|value| value.parse().ok());
    let invalid = || {
        BakeError::Message(message!(
            "invalid SOURCE_DATE_EPOCH={:?}: expected seconds since 1970",
            value.to_string_lossy()
        ))
    };
    seconds.ok_or_else(invalid).map(Some)
}

impl BakeRequest {
    /// All inputs that determine the bytes of the image.
    pub(super) fn inputs(
        &self,
        manifest: &Manifest,
        layers: &[Layer],
        program: Digest,
        base: Option<Digest>,
    ) -> BuildInputs {
        let layer = |layer: &Layer| {
            let (name, version) = (layer.schema.name.clone(), layer.schema.version.clone());
            LayerInput { name, version, digest: layer.digest }
        };
        let target = manifest.content().target();
        let firstboot = embedded::program(&target.arch).ok();
        BuildInputs {
            format: FORMAT,
            kind: target.kind,
            os: target.os,
            arch: target.arch,
            program: ProgramInput { version: env!("CARGO_PKG_VERSION").to_owned(), digest: program },
            firstboot: firstboot.and_then(|(hex, _)| format!("sha256:{hex}").parse().ok()),
            manifest: manifest.digest(),
            base,
            partition: self.partition,
            layers: layers.iter().map(layer).collect(),
            bundles: self.more.references.clone(),
            sources: self.sources.digest(),
            trust: self.anchors.digests(&self.sources, manifest.content()),
            size: self.size,
            formats: self.formats.iter().map(OutputFormat::to_string).collect(),
            compression: if self.formats.contains(&Format::Qcow2.into()) {
                self.compression
            } else {
                Qcow2Compression::default()
            },
            source_date_epoch: self.epoch,
        }
    }
}

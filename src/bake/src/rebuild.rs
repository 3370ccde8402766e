//! Rebuilds an image to verify that its inputs lead to its bytes: bakes with the recorded inputs and reports identical
//! and different outputs.
//!
//! The running program must be the one in the record, with the same first-boot program: another one proves nothing
//! about the image. Caches of decoded and baked data are not used.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{BakeError, BakeRequest, Baked, bake_all};
use crate::incremental::build_inputs::BuildInputs;
use crate::incremental::checksums::Checksum;
use crate::incremental::published::Sidecar;
use crate::release::provenance::{StatementDifference, difference};
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_embedded as embedded;
use vmbake_layer::Layers;
use vmbake_manifest::Manifest;

/// Why an image cannot be rebuilt.
#[derive(Debug, thiserror::Error)]
pub enum RebuildError {
    #[error("the image was baked by vmbake {version}, {expected}, but this is vmbake {}, {found}", env!("CARGO_PKG_VERSION"))]
    Program {
        version: String,
        expected: Box<Digest>,
        /// The digest of the running program.
        found: Box<Digest>,
    },
    #[error("the image has the first-boot program {expected}, but this vmbake has {found}")]
    Firstboot { expected: String, found: String },
    #[error("{} is {}, but {} here", .0.pointer, .0.expected, .0.found)]
    Inputs(StatementDifference),
    #[error("cannot compare the records of inputs")]
    Json(#[from] serde_json::Error),
    #[error("cannot read the record of inputs of the rebuilt image")]
    Read(#[source] std::io::Error),
    #[error("cannot rebuild the image")]
    Bake(#[from] BakeError),
}

impl Hint for RebuildError {
    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Program { .. } | Self::Firstboot { .. } => "use the program with the digest in the record of inputs",
            Self::Inputs(_) => "use --base, --layers, --sources and --trust to provide the inputs listed in the record",
            Self::Json(_) | Self::Read(_) | Self::Bake(_) => return None,
        };
        Some(text.to_owned())
    }

    vmbake_common::causes!(Read, Bake);
}

/// Bakes `request`, which must be for an image with these inputs, and returns its checksums by file name.
pub fn rebuild(
    request: &BakeRequest,
    expected: &BuildInputs,
    quiet: bool,
) -> Result<BTreeMap<String, Checksum>, RebuildError> {
    check_program(request, expected)?;
    let mut request = BakeRequest { store: request.store.clone().without_caches(), ..request.clone() };
    request.more.layers = more_layers(&request, expected)?;
    request.more.references.clone_from(&expected.bundles);
    let mut all = Vec::new();
    bake_all::<RebuildError>(std::slice::from_ref(&request), quiet, |baked| {
        all.push(baked);
        Ok(())
    })?;
    let mut checksums = BTreeMap::new();
    for Baked { name, sidecars, outputs, .. } in all {
        let inputs = input::read(&request.out.join(Sidecar::Inputs.file_name(&name)), input::MAX_INPUT)
            .map_err(RebuildError::Read)?;
        let (found, expected): (Value, Value) = (serde_json::from_slice(&inputs)?, serde_json::to_value(expected)?);
        if let Some(other) = difference(&found, &expected) {
            return Err(RebuildError::Inputs(other));
        }
        checksums
            .extend(sidecars.into_iter().map(|(sidecar, digest)| (sidecar.file_name(&name), Checksum::Bytes(digest))));
        let file_name = |output: &super::BakedFile| output.format.file_name(&name);
        checksums.extend(outputs.iter().map(|output| (file_name(output), output.checksum)));
    }
    Ok(checksums)
}

/// Layers of the image that its kind does not require: those of bundles, whose artifacts are in its manifest.
fn more_layers(request: &BakeRequest, expected: &BuildInputs) -> Result<Vec<String>, BakeError> {
    let bottom = Manifest::load(&request.manifest)?.content().bottom();
    let own = Layers::load(&request.layers)?.resolve_on(bottom, &request.kind, &request.os, &[])?;
    let is_own = |name: &String| own.iter().any(|layer| layer.schema.name == *name);
    let names = expected.layers.iter().map(|layer| layer.name.clone());
    Ok(names.filter(|name| !is_own(name)).collect())
}

fn check_program(request: &BakeRequest, expected: &BuildInputs) -> Result<(), RebuildError> {
    let found = request.store.running_program().ok_or(BakeError::Program)?;
    if found != expected.program.digest {
        let (version, expected) = (expected.program.version.clone(), Box::new(expected.program.digest));
        return Err(RebuildError::Program { version, expected, found: Box::new(found) });
    }
    let own = embedded::program(&expected.arch).ok().map(|(hex, _)| format!("sha256:{hex}"));
    let of_image = expected.firstboot.map(|digest| digest.to_string());
    if own != of_image {
        let or_none = |digest: Option<String>| digest.unwrap_or_else(|| "none".to_owned());
        return Err(RebuildError::Firstboot { expected: or_none(of_image), found: or_none(own) });
    }
    Ok(())
}

//! Verifies the provenance next to an image: compares it with the one created from inputs, manifest and lists.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{Verification, belongs};
use crate::incremental::build_inputs::BuildInputs;
use crate::incremental::checksums::Checksum;
use crate::incremental::published::Sidecar;
use crate::release::provenance::{self, BuilderId, difference};
use crate::release::sign::MAX_STATEMENT;
use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::message;
use vmbake_common::message::Message;
use vmbake_manifest::Manifest;
use vmbake_proof::sigstore::json;

/// Why there is no statement to compare with.
#[derive(Debug, thiserror::Error)]
enum StatementError {
    #[error("{file}: cannot be used")]
    Unusable { file: String, source: Box<dyn std::error::Error> },
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for StatementError {
    vmbake_common::causes!(Message);
}

/// The consistent documents of an image.
pub struct Documented {
    /// `<kind>.<os-name>.<arch>`.
    pub name: String,
    pub inputs: BuildInputs,
    pub(super) manifest: Manifest,
    /// The listed checksums, except that of the statement itself.
    pub subjects: BTreeMap<String, Checksum>,
}

impl Documented {
    /// The SHA-256 of every output that has one.
    pub(super) fn digests(&self) -> Vec<Digest> {
        let digest = |checksum: &Checksum| match checksum {
            Checksum::Bytes(digest) => Some(*digest),
            Checksum::Verity(_) => None,
        };
        self.subjects.values().filter_map(digest).collect()
    }

    /// The text of the statement by `builder`.
    pub fn statement_text(&self, builder: &BuilderId) -> Result<Vec<u8>, serde_json::Error> {
        provenance::statement(&self.inputs, &self.manifest, &self.subjects, builder)
    }

    /// The statement by `builder`.
    pub(super) fn statement(&self, builder: &BuilderId) -> Result<Value, serde_json::Error> {
        json::parse(&self.statement_text(builder)?)
    }
}

impl Verification<'_> {
    /// Compares the statement about an image with the expected one.
    pub(super) fn statement(&mut self, name: &str) -> Option<Documented> {
        let file = Sidecar::Provenance.file_name(name);
        let documented = match self.documented(name) {
            Ok(documented) => documented,
            Err(error) => {
                self.report.failed_by(&file, "provenance", &error);
                return None;
            }
        };
        match self.compare(&file, &documented) {
            Ok(Ok(builder)) => self.report.ok(&file, "provenance", format!("by {builder}")),
            Ok(Err(said)) => self.report.failed(&file, "provenance", said),
            Err(error) => self.report.failed_by(&file, "provenance", &error),
        }
        Some(documented)
    }

    fn text(&self, file: &str) -> Result<Vec<u8>, StatementError> {
        let text = crate::release::read(&self.request.folder.join(file), MAX_STATEMENT);
        text.map_err(|source| StatementError::Message(message!("{file}: cannot read").by(source)))
    }

    fn documented(&self, name: &str) -> Result<Documented, StatementError> {
        let [inputs_file, manifest_file] = [Sidecar::Inputs, Sidecar::Manifest].map(|sidecar| sidecar.file_name(name));
        let unusable = |file: &str, source| StatementError::Unusable { file: file.to_owned(), source };
        let text = self.text(&inputs_file)?;
        let inputs =
            BuildInputs::parse(Path::new(&inputs_file), &text).map_err(|error| unusable(&inputs_file, error.into()))?;
        let text = self.text(&manifest_file)?;
        // Other parsers use the second of duplicate keys.
        json::parse(&text).map_err(|error| unusable(&manifest_file, error.into()))?;
        let manifest = Manifest::parse(Path::new(&manifest_file), text);
        let manifest = manifest.map_err(|error| unusable(&manifest_file, error.into()))?;
        if manifest.digest() != inputs.manifest {
            let (expected, found) = (Box::new(inputs.manifest), Box::new(manifest.digest()));
            return Err(StatementError::Message(message!(
                "{inputs_file} states manifest {expected}, but {manifest_file} is {found}"
            )));
        }
        let of_inputs = format!("{}.{}.{}", inputs.kind, inputs.os, inputs.arch);
        for (file, found) in [(inputs_file, of_inputs), (manifest_file, manifest.name())] {
            if found != name {
                return Err(StatementError::Message(message!("{file} is for {found}")));
            }
        }
        let own = Sidecar::Provenance.file_name(name);
        let is_subject = |(file, _): &(&String, &Checksum)| belongs(file, name) && **file != own;
        let subjects = self.listed.iter().filter(is_subject).map(|(file, digest)| (file.clone(), *digest)).collect();
        Ok(Documented { name: name.to_owned(), inputs, manifest, subjects })
    }

    /// The builder of the statement, or the first difference.
    fn compare(&self, file: &str, documented: &Documented) -> Result<Result<BuilderId, String>, StatementError> {
        let unusable =
            |error: serde_json::Error| StatementError::Unusable { file: file.to_owned(), source: error.into() };
        let found = json::parse(&self.text(file)?).map_err(unusable)?;
        let Some(builder) = provenance::builder(&found) else {
            return Ok(Err("no valid builder URI".to_owned()));
        };
        if let Some(said) = self.request.policy.refuses_builder(&builder) {
            return Ok(Err(said));
        }
        let expected = documented.statement(&builder).map_err(unusable)?;
        Ok(differs(&found, &expected).map_or(Ok(builder), Err))
    }
}

/// The first fault in a statement, if any.
pub(super) fn differs(found: &Value, expected: &Value) -> Option<String> {
    let names = |statement: &Value| -> Vec<String> {
        let subjects = statement["subject"].as_array().into_iter().flatten();
        subjects.filter_map(|subject| subject["name"].as_str().map(str::to_owned)).collect()
    };
    let (there, wanted) = (names(found), names(expected));
    if let Some(missing) = wanted.iter().find(|name| !there.contains(name)) {
        return Some(format!("{missing} is missing in its subjects"));
    }
    if let Some(other) = there.iter().find(|name| !wanted.contains(name)) {
        return Some(format!("subject {other} is not an output of this image"));
    }
    let difference = difference(found, expected)?;
    Some(format!("{} is {}, expected {}", difference.pointer, difference.found, difference.expected))
}

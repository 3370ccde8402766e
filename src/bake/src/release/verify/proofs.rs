//! Replays the proofs of the manifest with the evidence in the store, and checks the policy for inputs.

use std::collections::BTreeMap;

use super::statements::Documented;
use super::{CheckState, Verification};
use crate::incremental::published::Sidecar;
use vmbake_common::escape;
use vmbake_common::hint::Hint;
use vmbake_common::progress::counted;
use vmbake_oci::OciError;
use vmbake_pin::prove::{LinkError, ProveError, Prover};

impl Verification<'_> {
    /// Replays every proof.
    pub(super) fn proofs(&mut self, documented: &Documented) {
        let (file, request) = (Sidecar::Manifest.file_name(&documented.name), self.request);
        let prover = Prover::new(request.store, request.sources, request.anchors, None);
        let (mut proofs, mut count) = (BTreeMap::new(), 0);
        let (mut refused, mut open) = (Vec::new(), Vec::new());
        for (_, result) in prover.each(documented.manifest.content()) {
            match result {
                Ok(proof) => *proofs.entry((!proof.is_signed(), proof.to_string())).or_insert(0_u64) += 1,
                Err(error) if is_absent(&error.source) => open.push(error),
                Err(error) => refused.push(error),
            }
            count += 1;
        }
        for error in &refused {
            self.report.failed_by(&file, "proof", error);
        }
        for (index, error) in open.iter().enumerate() {
            let hint = error.source.hint().filter(|_| index == 0).map(|hint| format!("; {hint}")).unwrap_or_default();
            let message = format!("{}{hint}", chain(error));
            self.report.add(CheckState::NotVerified, &file, "proof", message);
        }
        if refused.is_empty() && open.is_empty() {
            let by = proofs.into_iter().map(|((_, by), count)| format!("{count} {by}"));
            let message = format!(
                "{}: {}",
                counted(count, "entry").replace("entrys", "entries"),
                by.collect::<Vec<_>>().join(", ")
            );
            self.report.ok(&file, "proof", message);
        }
        self.demands(documented, &file);
    }

    /// Checks the policy for inputs.
    fn demands(&mut self, documented: &Documented, manifest: &str) {
        let (policy, inputs) = (&self.request.policy, &documented.inputs);
        if let Some(known) = &policy.sources {
            let (file, found) = (Sidecar::Inputs.file_name(&documented.name), inputs.sources);
            match known.contains(&found) {
                true => self.report.ok(&file, "policy", format!("sources {found}")),
                false => self.report.failed(&file, "policy", format!("sources {found} are not listed in the policy")),
            }
        }
        for age in policy.index_ages(documented.manifest.content(), self.request.now) {
            match age {
                Ok(message) => self.report.ok(manifest, "policy", message),
                Err(message) => self.report.failed(manifest, "policy", message),
            }
        }
    }
}

fn chain(error: &ProveError) -> String {
    escape::chain(error)
}

/// Whether the evidence only has to be downloaded.
fn is_absent(error: &LinkError) -> bool {
    match error {
        LinkError::Absent { .. } | LinkError::Damaged { .. } | LinkError::Unseen => true,
        LinkError::Oci(error) => matches!(error, OciError::Absent { .. }),
        _ => false,
    }
}

//! Release notes: two images or documents next to them in, a [`Changelog`] out.
//!
//! Unlike [`diff`](super::diff), which compares paths, this compares components and privileges: first security, then packages,
//! programs, layers, settings and sizes.

mod document;
mod report;
mod security;
mod side;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use debversion::Version;

use crate::diff::changes;
use crate::explain::ExplainError;
pub use report::{Changelog, PackageChanges, ReleaseName, SecurityChanges, SizeChange};
pub use security::SecurityFacts;
pub use side::{MAX_PLAN, PLAN, describe};
use side::{Side, SideFacts};
use vmbake_common::hint::Hint;
use vmbake_common::message::Message;
use vmbake_image::disk::InspectError;

/// Error of a comparison of releases.
#[derive(Debug, thiserror::Error)]
pub enum ChangelogError {
    #[error(transparent)]
    Inspect(#[from] InspectError),
    #[error("{}: cannot read the document", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{}: not an SPDX document written by vmbake", path.display())]
    Document { path: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Origins(#[from] ExplainError),
    #[error(transparent)]
    Message(#[from] Message),
}

impl Hint for ChangelogError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
                Some(format!("create it with `vmbake sbom IMAGE > {}`", path.display()))
            }
            Self::Document { .. } => Some("use an image, or a document that a bake wrote next to it".to_owned()),
            _ => None,
        }
    }

    vmbake_common::causes!(Inspect, Origins, Message; Read);
}

/// Compares two releases. Each is an image, or a document that a bake wrote next to it.
pub fn changelog(from: &Path, to: &Path) -> Result<Changelog, ChangelogError> {
    let (from, to) = (Side::read(from)?, Side::read(to)?);
    let both = from.facts.as_ref().zip(to.facts.as_ref());
    let mut notes: Vec<String> = from.notes.iter().chain(&to.notes).cloned().collect();
    if both.is_none() {
        notes.push(
            "accounts, units, set-uid files, keys, settings and sizes are not compared, since that requires two images"
                .to_owned(),
        );
    }
    let of = |pick: fn(&SideFacts) -> &BTreeMap<String, String>| {
        both.map(|(from, to)| changes(pick(from), pick(to))).unwrap_or_default()
    };
    Ok(Changelog {
        security: both.map(|(from, to)| SecurityChanges::between(&from.security, &to.security)),
        packages: package_changes(&from.packages, &to.packages),
        programs: changes(&from.programs, &to.programs),
        bundles: changes(&from.bundles, &to.bundles),
        layers: changes(&from.layers, &to.layers),
        settings: of(|facts| &facts.settings),
        sizes: both.map(|(from, to)| sizes(from, to)).unwrap_or_default(),
        from: from.release,
        to: to.release,
        notes,
    })
}

fn package_changes(from: &BTreeMap<String, String>, to: &BTreeMap<String, String>) -> PackageChanges {
    let mut sorted = PackageChanges::default();
    for change in changes(from, to) {
        let list = match (&change.from, &change.to) {
            (None, _) => &mut sorted.added,
            (_, None) => &mut sorted.removed,
            (Some(from), Some(to)) if is_older(to, from) => &mut sorted.downgraded,
            (Some(_), Some(_)) => &mut sorted.upgraded,
        };
        list.push(change);
    }
    sorted
}

/// Whether a version is older than another, by dpkg's order.
fn is_older(version: &str, than: &str) -> bool {
    match (version.parse::<Version>(), than.parse::<Version>()) {
        (Ok(version), Ok(than)) => version < than,
        _ => false,
    }
}

fn sizes(from: &SideFacts, to: &SideFacts) -> Vec<SizeChange> {
    let sizes = from.sizes.iter().zip(&to.sizes);
    sizes.map(|((what, from), (_, to))| SizeChange { what, from: *from, to: *to }).collect()
}

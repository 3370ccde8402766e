//! The proofs of manifest entries.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use vmbake_common::progress::{Event, ProofCount};
use vmbake_manifest::{ArchiveSnapshot, OS_IMAGE};

/// The proof of an entry's digest, verified now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum VerifiedProof {
    /// The signed index of an archive.
    Archive {
        /// Its label.
        archive: String,
        /// `Date` of its `InRelease`.
        date: Timestamp,
        /// The snapshot, unless it is from the archive itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<ArchiveSnapshot>,
    },
    /// A sigstore identity or key.
    Signer {
        /// Subject alternative name of the certificate.
        identity: String,
    },
    /// A checksum file of the site.
    Checksum,
    /// The layer that requests it.
    Stated,
    /// None: first download from the site.
    FirstUse,
    /// A file of the user.
    Local,
    /// None: pinned manually.
    ByHand,
}

impl VerifiedProof {
    /// Whether it is a signature.
    pub fn is_signed(&self) -> bool {
        matches!(self, Self::Archive { .. } | Self::Signer { .. })
    }
}

impl fmt::Display for VerifiedProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive { archive, date, snapshot } => {
                write!(f, "by the {archive} archive of {}", date.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d"))?;
                snapshot.iter().try_for_each(|snapshot| write!(f, " ({snapshot})"))
            }
            Self::Signer { identity } => write!(f, "by the signature of {identity}"),
            Self::Checksum => f.write_str("by a checksum file of the site, not signed"),
            Self::Stated => f.write_str("by the digest in its layer, not signed"),
            Self::FirstUse => f.write_str("as first downloaded, not signed"),
            Self::Local => f.write_str("a local file"),
            Self::ByHand => f.write_str("pinned manually"),
        }
    }
}

/// The proofs of all entries of a manifest, including the base image.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct VerificationResult {
    entries: Vec<(String, VerifiedProof)>,
}

impl VerificationResult {
    pub(super) fn new(entries: Vec<(String, VerifiedProof)>) -> Self {
        Self { entries }
    }

    /// Adds the proof of an entry.
    pub fn add(&mut self, name: String, proof: VerifiedProof) {
        self.entries.push((name, proof));
    }

    /// The event: the number of artifacts and container images, and the number of entries for each proof.
    pub fn event(&self) -> Event {
        let mut groups: BTreeMap<(bool, String), usize> = BTreeMap::new();
        let (base, artifacts): (Vec<_>, Vec<_>) = self.entries.iter().partition(|(name, _)| name == OS_IMAGE);
        for (_, proof) in &artifacts {
            *groups.entry((!proof.is_signed(), proof.to_string())).or_default() += 1;
        }
        let proofs =
            groups.into_iter().map(|((unsigned, by), count)| ProofCount { count, by, signed: !unsigned }).collect();
        let base = base.first().map(|(_, proof)| proof.to_string());
        Event::Verified { artifacts: artifacts.len(), proofs, base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_signed_is_called_so() {
        let date = "2026-09-12T07:55:41Z".parse().unwrap();
        let debian = VerifiedProof::Archive { archive: "Debian".to_owned(), date, snapshot: None };
        let entries =
            [("a", VerifiedProof::ByHand), ("b", debian.clone()), ("c", debian), ("d", VerifiedProof::Checksum)];
        let mut entries = entries.map(|(name, proof)| (name.to_owned(), proof)).to_vec();
        entries.push((vmbake_manifest::OS_IMAGE.to_owned(), VerifiedProof::Local));
        let proven = |count, by: &str, signed| ProofCount { count, by: by.to_owned(), signed };
        let proofs = vec![
            proven(2, "by the Debian archive of 2026-09-12", true),
            proven(1, "by a checksum file of the site, not signed", false),
            proven(1, "pinned manually", false),
        ];
        let base = Some("a local file".to_owned());
        assert_eq!(VerificationResult::new(entries).event(), Event::Verified { artifacts: 4, proofs, base });
    }
}

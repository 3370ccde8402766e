//! Who answers for the entries of a manifest.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use vmbake_common::progress::{Event, ProofCount};
use vmbake_manifest::{ArchiveSnapshot, OS_IMAGE};

/// Who answers for the digest of an entry, proven anew.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "kebab-case")]
pub enum Standing {
    /// The signed index of an archive.
    Archive {
        /// Its label.
        archive: String,
        /// `Date` of its `InRelease`.
        date: Timestamp,
        /// The snapshot, if it is not from the archive itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        snapshot: Option<ArchiveSnapshot>,
    },
    /// An identity of sigstore's.
    Signer {
        /// Subject alternative name of the certificate.
        identity: String,
    },
    /// Nobody but the site, in a checksum file.
    Checksum,
    /// The layer that asks for it.
    Stated,
    /// Nobody but the site, when it was first asked.
    FirstUse,
    /// The user, who brought the file.
    Local,
    /// Whoever wrote the manifest.
    ByHand,
}

impl Standing {
    /// Whether a signature proves it.
    pub fn is_signed(&self) -> bool {
        matches!(self, Self::Archive { .. } | Self::Signer { .. })
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Archive { archive, date, snapshot } => {
                write!(f, "by the {archive} archive of {}", date.to_zoned(TimeZone::UTC).strftime("%Y-%m-%d"))?;
                snapshot.iter().try_for_each(|snapshot| write!(f, " ({snapshot})"))
            }
            Self::Signer { identity } => write!(f, "by the signature of {identity}"),
            Self::Checksum => f.write_str("by a checksum file of the site, which nobody has signed"),
            Self::Stated => f.write_str("by the digest that its layer states, which nobody has signed"),
            Self::FirstUse => f.write_str("as first downloaded, which nobody has signed"),
            Self::Local => f.write_str("a file of the user's"),
            Self::ByHand => f.write_str("pinned by hand"),
        }
    }
}

/// Who answers for all entries of a manifest, the base image among them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    entries: Vec<(String, Standing)>,
}

impl Verdict {
    pub(super) fn new(entries: Vec<(String, Standing)>) -> Self {
        Self { entries }
    }

    /// Adds who answers for one more entry.
    pub fn add(&mut self, name: String, standing: Standing) {
        self.entries.push((name, standing));
    }

    /// What is told of it: how many artifacts and container images, and who answers for how many.
    pub fn event(&self) -> Event {
        let mut groups: BTreeMap<(bool, String), usize> = BTreeMap::new();
        let (base, artifacts): (Vec<_>, Vec<_>) = self.entries.iter().partition(|(name, _)| name == OS_IMAGE);
        for (_, standing) in &artifacts {
            *groups.entry((!standing.is_signed(), standing.to_string())).or_default() += 1;
        }
        let proofs =
            groups.into_iter().map(|((unsigned, by), count)| ProofCount { count, by, signed: !unsigned }).collect();
        let base = base.first().map(|(_, standing)| standing.to_string());
        Event::Verified { artifacts: artifacts.len(), proofs, base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_signed_is_called_so() {
        let date = "2026-09-12T07:55:41Z".parse().unwrap();
        let debian = Standing::Archive { archive: "Debian".to_owned(), date, snapshot: None };
        let entries = [("a", Standing::ByHand), ("b", debian.clone()), ("c", debian), ("d", Standing::Checksum)];
        let mut entries = entries.map(|(name, standing)| (name.to_owned(), standing)).to_vec();
        entries.push((vmbake_manifest::OS_IMAGE.to_owned(), Standing::Local));
        let proven = |count, by: &str, signed| ProofCount { count, by: by.to_owned(), signed };
        let proofs = vec![
            proven(2, "by the Debian archive of 2026-09-12", true),
            proven(1, "by a checksum file of the site, which nobody has signed", false),
            proven(1, "pinned by hand", false),
        ];
        let base = Some("a file of the user's".to_owned());
        assert_eq!(Verdict::new(entries).event(), Event::Verified { artifacts: 4, proofs, base });
    }
}

//! Verifies a snapshot: compares its block list and contents with the uploaded data.

use std::collections::{BTreeMap, BTreeSet};

use crate::Aws;
use vmbake_common::parallel::for_each;
use vmbake_publish::ebs::blocks::BlockDigest;

use sha2::{Digest as _, Sha256};

use super::error::AmiError;
use super::identity::Subject;
use super::options::{AmiOptions, Verification};
use super::parent::{Parent, Sent};

/// Number of blocks in a sample.
const SAMPLE: usize = 64;

/// How a snapshot was created.
pub(super) struct Made<'a> {
    pub(super) parent: Option<&'a Parent>,
    pub(super) sent: &'a Sent,
}

impl Made<'_> {
    /// The first difference in the list of blocks that a snapshot does not share with its parent.
    fn difference(&self, subject: &Subject, changed: &BTreeSet<u64>) -> Option<String> {
        let sent: BTreeSet<u64> = self.sent.iter().map(|(index, _)| *index).collect();
        if let Some(index) = changed.difference(&sent).next() {
            return Some(format!("unexpected block {index}"));
        }
        // A block equal to the parent's is uploaded only if nothing differs.
        let other = |index: &u64| {
            self.parent.is_none_or(|parent| subject.blocks.beyond(&parent.blocks).any(|(other, _)| other == *index))
        };
        let mut unlisted = sent.difference(changed);
        unlisted.find(|index| other(index)).map(|index| format!("block {index} was uploaded, but is not listed"))
    }
}

/// Compares a snapshot with the disk and, if it is new, with the uploaded blocks. Returns the number of blocks read.
pub(super) fn verify(
    aws: &Aws,
    options: &AmiOptions<'_>,
    subject: &Subject,
    snapshot: &str,
    made: Option<&Made<'_>>,
) -> Result<u64, AmiError> {
    let differs = |reason: String| AmiError::Differs { snapshot: snapshot.to_owned(), reason };
    let listed = aws.snapshot_blocks(snapshot)?;
    if listed.volume_size != subject.blocks.gib() {
        return Err(differs(format!("its size is {} GiB, expected {}", listed.volume_size, subject.blocks.gib())));
    }
    let tokens: BTreeMap<u64, &str> = listed.blocks.iter().map(|block| (block.index, block.token.as_str())).collect();
    let expected: Vec<(u64, BlockDigest)> = subject.blocks.iter().collect();
    if let Some((index, _)) = expected.iter().find(|(index, _)| !tokens.contains_key(index)) {
        return Err(differs(format!("block {index} is missing")));
    }
    if let Some(made) = made {
        let changed = match made.parent {
            Some(parent) => aws.changed_blocks(&parent.id, snapshot)?.iter().map(|block| block.index).collect(),
            None => tokens.keys().copied().collect(),
        };
        made.difference(subject, &changed).map_or(Ok(()), |reason| Err(differs(reason)))?;
    }
    let chosen = match options.verification {
        Verification::Index => Vec::new(),
        Verification::Sample => sample(&expected),
        Verification::Full => expected,
    };
    let count = chosen.len() as u64;
    let results = for_each(chosen, options.workers, |(index, digest)| {
        let token = tokens.get(&index).copied().unwrap_or_default();
        let found: BlockDigest = Sha256::digest(aws.get_block(snapshot, index, token)?).into();
        if found == digest { Ok(()) } else { Err(differs(format!("block {index} has different contents"))) }
    });
    results.into_iter().collect::<Result<(), AmiError>>()?;
    Ok(count)
}

/// Evenly distributed blocks, including the first and the last.
fn sample(all: &[(u64, BlockDigest)]) -> Vec<(u64, BlockDigest)> {
    let last = all.len().saturating_sub(1);
    let chosen: BTreeSet<usize> = (0..SAMPLE).map(|number| number * last / (SAMPLE - 1)).collect();
    chosen.into_iter().filter_map(|number| all.get(number).copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_has_the_first_and_the_last() {
        let all = |count: u64| (0..count).map(|index| (index, [0; 32])).collect::<Vec<_>>();
        assert!(sample(&[]).is_empty());
        assert_eq!(sample(&all(1)), all(1));
        assert_eq!(sample(&all(63)), all(63));
        let chosen = sample(&all(5000));
        assert_eq!((chosen.len(), chosen[0].0, chosen[SAMPLE - 1].0), (SAMPLE, 0, 4999));
    }
}

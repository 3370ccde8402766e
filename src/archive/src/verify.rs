//! Verifies an archive: hashes every member and compares it with the documents. No network access.

use std::num::NonZeroUsize;

use serde::Serialize;

use super::ArchiveError;
use super::contents::{ArchiveProblem, Contents, blob_name, called};
use super::tar::TarMember;
use vmbake_common::digest::Digest;
use vmbake_common::parallel::for_each;

/// Buffer size for reading, hashing and writing: fits into the cache of a processor.
const PIECE: usize = 128 << 10;

/// The result of a verification.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ArchiveReport {
    /// Whether there are no problems.
    pub ok: bool,
    /// Digest of its index, which covers all contents.
    pub index: Digest,
    pub blobs: usize,
    /// Their length in bytes.
    pub bytes: u64,
    /// Number of blobs that the site must have from an earlier archive.
    pub held: usize,
    pub problems: Vec<ArchiveProblem>,
}

/// Verifies every member of an archive.
pub fn verify(contents: &Contents, threads: NonZeroUsize) -> Result<ArchiveReport, ArchiveError> {
    let damaged = damaged(contents, threads)?.into_iter().map(|Damaged { title, expected, found }| ArchiveProblem {
        state: "damaged",
        name: blob_name(&expected),
        said: format!("{title}: digest is {found}"),
    });
    let problems: Vec<_> = contents.problems().iter().cloned().chain(damaged).collect();
    Ok(ArchiveReport {
        ok: problems.is_empty(),
        index: contents.index_digest,
        blobs: contents.members.len(),
        bytes: contents.members.values().map(|member| member.len).sum(),
        held: contents.held().len(),
        problems,
    })
}

/// A corrupt member.
struct Damaged {
    title: String,
    expected: Digest,
    found: Digest,
}

fn damaged(contents: &Contents, threads: NonZeroUsize) -> Result<Vec<Damaged>, ArchiveError> {
    let checked = for_each(contents.members.iter().collect(), threads, |(expected, member)| {
        let found = digest(contents, expected, member, |_| Ok(()))?;
        let title = contents.listed.get(expected).map_or("a blob", called).to_owned();
        Ok((found != *expected).then_some(Damaged { title, expected: *expected, found }))
    });
    Ok(checked.into_iter().collect::<Result<Vec<_>, ArchiveError>>()?.into_iter().flatten().collect())
}

/// Refuses an archive with a corrupt member.
pub(super) fn require_undamaged(contents: &Contents, threads: NonZeroUsize) -> Result<(), ArchiveError> {
    match damaged(contents, threads)?.pop() {
        None => Ok(()),
        Some(Damaged { title, expected, found }) => {
            Err(ArchiveError::Changed { title, found: Box::new(found), expected: Box::new(expected) })
        }
    }
}

/// Hashes a member with the algorithm of `like`, and passes on its bytes.
pub(super) fn digest(
    contents: &Contents,
    like: &Digest,
    member: &TarMember,
    mut pass: impl FnMut(&[u8]) -> Result<(), ArchiveError>,
) -> Result<Digest, ArchiveError> {
    let (mut hasher, mut done) = (like.hasher(), 0);
    let mut buffer = vec![0; usize::try_from(member.len).map_or(PIECE, |len| len.min(PIECE))];
    while done < member.len {
        let len = usize::try_from(member.len - done).map_or(PIECE, |left| left.min(buffer.len()));
        let piece = &mut buffer[..len];
        contents.archive.read_exact_at(piece, member.at + done).map_err(|source| contents.unreadable(source))?;
        hasher.update(piece);
        pass(piece)?;
        done += len as u64;
    }
    Ok(hasher.finish())
}

//! Decodes all inputs of a bake concurrently: [`Artifact`]s to [`Staged`], and a [`Base`] to a raw disk.
//!
//! Each artifact is a job, the largest first; the base's disk is decoded in pieces by idle threads. Cached decoded
//! forms are taken from the store.

mod base;

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;

use vmbake_common::message::FileError;
use vmbake_disk::source::ReadAt;

use vmbake_common::digest::Digest;
use vmbake_common::hint::Hint;
use vmbake_common::parallel::run;
use vmbake_compose::stage::{Plan, StageError, Staged, StagedArtifact};
use vmbake_fetch::images::Layout;
use vmbake_fetch::verify::{Artifact, Base};
use vmbake_store::store::Store;

use base::{Piece, PieceError, Raw};

/// Why an input cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    #[error(transparent)]
    Stage(#[from] StageError),
    #[error(transparent)]
    File(#[from] FileError),
}

impl Hint for InputError {
    vmbake_common::causes!(Stage, File);
}

/// The decoded base image.
pub struct DecodedBase {
    pub path: PathBuf,
    /// Digest of its file.
    pub digest: Digest,
    pub disk: Arc<dyn ReadAt>,
}

enum Job {
    Artifact(Box<Artifact>),
    Base(Base),
    Piece(Piece),
}

/// The result of a job.
enum Done {
    Artifact(Result<StagedArtifact, StageError>),
    Base(Raw),
    Piece(Result<(), PieceError>),
}

/// Decodes the artifacts that `plan` installs, and the base, on up to `threads` threads.
///
/// Which error is returned does not depend on scheduling: that of the first artifact, then that of the base.
pub fn prepare(
    plan: Plan,
    artifacts: Vec<Artifact>,
    base: Option<Base>,
    images: Option<Layout>,
    store: &Store,
    threads: NonZeroUsize,
) -> Result<(Staged, Option<DecodedBase>), InputError> {
    let mut jobs: Vec<_> = base.into_iter().map(|base| (u64::MAX, Job::Base(base))).collect();
    jobs.extend(artifacts.into_iter().map(|artifact| (artifact.dependency().size, Job::Artifact(Box::new(artifact)))));
    let done = run(jobs, threads, |job, queue| match job {
        Job::Artifact(artifact) => Done::Artifact(plan.stage(&artifact, store)),
        // Its pieces fill the gaps between artifacts.
        Job::Base(base) => Done::Base(Raw::start(base, store, |piece| queue.add(0, Job::Piece(piece)))),
        Job::Piece(piece) => Done::Piece(piece.decode()),
    });
    let (mut raw, mut artifacts, mut pieces) = (None, Vec::new(), Ok(()));
    for one in done {
        match one {
            Done::Base(base) => raw = Some(base),
            Done::Artifact(artifact) => artifacts.push(artifact),
            Done::Piece(piece) => pieces = pieces.and(piece),
        }
    }
    let artifacts = artifacts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let base = raw.map(|raw| finish(raw, pieces)).transpose()?;
    Ok((plan.complete(artifacts, images)?, base))
}

fn finish(raw: Raw, pieces: Result<(), PieceError>) -> Result<DecodedBase, InputError> {
    let complete = match pieces {
        Ok(()) => true,
        Err(PieceError::Write) => false,
        Err(PieceError::Read(source)) => {
            return Err(InputError::File(FileError::new(raw.path(), "decode the base image", source)));
        }
    };
    Ok(raw.finish(complete))
}

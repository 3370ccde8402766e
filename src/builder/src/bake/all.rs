//! Several images by one command: while one is written, the next is prepared. Writing waits for the disk, and for the one core that
//! hashes a file.

use std::panic::resume_unwind;

use super::{BakeError, Baked, Request, author};
use crate::progress::Progress;

/// Bakes one image after the other, each with what the one before it has decoded and the clusters that they share, and passes
/// each to `done` when it is published.
///
/// The first error, in this order, ends all; what is being prepared then comes to its end, and is dropped.
pub fn bake_all<E: From<BakeError>>(
    requests: &[Request],
    quiet: bool,
    mut done: impl FnMut(Baked) -> Result<(), E>,
) -> Result<(), E> {
    let progress: Vec<Progress> = requests.iter().map(|_| Progress::held(quiet)).collect();
    std::thread::scope(|scope| {
        let mut images = requests
            .iter()
            .zip(&progress)
            .map(|(request, progress)| (scope.spawn(|| author(request, progress)), progress));
        let mut next = images.next();
        while let Some((preparing, progress)) = next {
            progress.release();
            let prepared = preparing.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            next = images.next();
            done(prepared.write(progress)?)?;
        }
        Ok(())
    })
}

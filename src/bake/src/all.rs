//! Several images by one command: while one is written, the next is prepared. Writing waits for the disk, and for the one core that
//! hashes a file.

use std::panic::resume_unwind;

use super::{BakeError, BakeRequest, Baked, author};
use vmbake_common::progress::Progress;

/// Bakes one image.
pub fn bake(request: &BakeRequest, progress: &Progress) -> Result<Baked, BakeError> {
    author(request, progress)?.write(progress)
}

/// Bakes one image after the other, each with what the one before it has decoded and the clusters that they share, and passes
/// each to `done` when it is published.
///
/// What may have to be downloaded is not prepared ahead: that can take long, and is to be seen. The first error, in the order of the
/// images, ends all; what is being prepared then comes to its end, and is dropped.
pub fn bake_all<E: From<BakeError>>(
    requests: &[BakeRequest],
    quiet: bool,
    mut done: impl FnMut(Baked) -> Result<(), E>,
) -> Result<(), E> {
    let is_offline = requests.iter().all(|request| request.client.is_none());
    let new = if is_offline { Progress::held } else { Progress::new };
    let progress: Vec<Progress> = requests.iter().map(|_| new(quiet)).collect();
    std::thread::scope(|scope| {
        let mut images = requests
            .iter()
            .zip(&progress)
            .map(|(request, progress)| (scope.spawn(|| author(request, progress)), progress));
        let mut next = images.next();
        while let Some((preparing, progress)) = next {
            progress.release();
            // A panic is a fault of the program in whatever thread: it ends this one as well, and is not taken for an error of the input.
            let prepared = preparing.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            let ahead = if is_offline { images.next() } else { None };
            match prepared.write(progress) {
                Ok(baked) => done(baked)?,
                Err(error) => {
                    // Whatever became of the next one, this is why all ends.
                    let _ended = ahead.map(|(preparing, _)| preparing.join().is_ok());
                    return Err(error.into());
                }
            }
            next = ahead.or_else(|| images.next());
        }
        Ok(())
    })
}

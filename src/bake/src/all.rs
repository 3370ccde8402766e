//! Bakes several images: while one is written, the next is prepared, since writing is limited by the disk and by the
//! core that hashes a file.

use std::panic::resume_unwind;

use super::{BakeError, BakeRequest, Baked, author};
use vmbake_common::progress::Progress;

/// Bakes one image.
pub fn bake(request: &BakeRequest, progress: &Progress) -> Result<Baked, BakeError> {
    author(request, progress)?.write(progress)
}

/// Bakes images one after the other, sharing decoded inputs and clusters, and passes each published image to `done`.
///
/// Images with missing downloads are not prepared ahead, as the download can take long and should be visible. The first
/// error, in the order of the images, ends the command; an image being prepared is then finished and dropped.
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
            // A panic in the thread is a bug, so it is propagated rather than reported as an error.
            let prepared = preparing.join().unwrap_or_else(|panic| resume_unwind(panic))?;
            let ahead = if is_offline { images.next() } else { None };
            match prepared.write(progress) {
                Ok(baked) => done(baked)?,
                Err(error) => {
                    // This error takes precedence over the result of the next image.
                    let _ended = ahead.map(|(preparing, _)| preparing.join().is_ok());
                    return Err(error.into());
                }
            }
            next = ahead.or_else(|| images.next());
        }
        Ok(())
    })
}

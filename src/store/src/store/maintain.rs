//! Verification and garbage collection of a store.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::path::PathBuf;

use serde::Serialize;

use vmbake_common::digest::Digest;
use vmbake_common::ownership;
use vmbake_common::parallel::for_each;

use super::{BAKES, Store, StoreError, VERDICTS, decoded, digest_cache, files, remove};

/// A corrupt blob that has been removed.
#[derive(Clone, Debug, Serialize)]
pub struct Corrupt {
    pub path: PathBuf,
    /// Digest of its content; `None` if it was not a regular file or had an invalid name.
    pub found: Option<Digest>,
}

/// The result of a garbage collection or its dry run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Garbage {
    pub files: Vec<PathBuf>,
    pub bytes: u64,
}

pub(super) fn verify(store: &Store, threads: NonZeroUsize) -> Result<(u64, Vec<Corrupt>), StoreError> {
    for folder in [decoded::FOLDER, digest_cache::FOLDER, BAKES, VERDICTS] {
        files(store.root.join(folder))?.iter().try_for_each(|path| remove(path))?;
    }
    let blobs = blobs(store)?;
    let count = blobs.len() as u64;
    let results = for_each(blobs, threads, |(path, name)| {
        let read = |source| StoreError::Read { path: path.clone(), source };
        let file = match ownership::open(&path) {
            // A link or a pipe in place of a blob.
            Err(_) if path.symlink_metadata().is_ok_and(|meta| !meta.is_file()) => None,
            opened => Some(opened.map_err(read)?),
        };
        let found = match name.zip(file) {
            Some((name, file)) => {
                let (found, _) = name.of_stream(file).map_err(read)?;
                if found == name {
                    return Ok(None);
                }
                Some(found)
            }
            None => None,
        };
        remove(&path)?;
        Ok(Some(Corrupt { path, found }))
    });
    let corrupt = results.into_iter().filter_map(Result::transpose).collect::<Result<_, _>>()?;
    Ok((count, corrupt))
}

pub(super) fn collect(
    store: &Store,
    keep: &BTreeSet<Digest>,
    stale: Vec<PathBuf>,
    dry_run: bool,
) -> Result<Garbage, StoreError> {
    let needless = blobs(store)?.into_iter().filter(|(_, name)| name.is_none_or(|name| !keep.contains(&name)));
    let needless: Vec<_> = needless.map(|(path, _)| path).collect();
    let kept: BTreeSet<String> = keep.iter().map(Digest::hex).collect();
    let forms = decoded::needless(store, |hex| kept.contains(hex))?;
    let mut garbage = Garbage::default();
    let needless = needless.into_iter().chain(forms).chain(digest_cache::stale(store)?).chain(stale);
    for path in needless.chain(files(store.root.join("partial"))?) {
        let len = std::fs::symlink_metadata(&path).map_or(0, |meta| meta.len());
        if !dry_run {
            remove(&path)?;
        }
        garbage.bytes += len;
        garbage.files.push(path);
    }
    Ok(garbage)
}

/// Every file below `blobs/`, with the digest in its name, sorted by path.
fn blobs(store: &Store) -> Result<Vec<(PathBuf, Option<Digest>)>, StoreError> {
    let mut found = Vec::new();
    for algorithm in ["sha256", "sha512"] {
        for path in files(store.root.join("blobs").join(algorithm))? {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let digest = format!("{algorithm}:{name}").parse().ok();
            found.push((path, digest));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found_and_garbage_goes() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path().to_owned())).unwrap();
        let (kept, needless) = (store.insert(b"kept").unwrap(), store.insert(b"needless").unwrap());
        remove(&store.path(&kept)).unwrap();
        std::fs::write(store.path(&kept), b"kepT").unwrap();
        let (count, corrupt) = store.verify(NonZeroUsize::MIN).unwrap();
        assert_eq!((count, corrupt.len()), (2, 1));
        assert_eq!(corrupt[0].found, Some(Digest::of(b"kepT")));
        assert!(store.blob(&kept).unwrap().is_none());

        store.insert(b"kept").unwrap();
        std::fs::write(dir.path().join("partial/left"), b"half").unwrap();
        let keep = BTreeSet::from([kept]);
        let keep = || Ok::<_, StoreError>(keep.clone());
        assert_eq!(store.collect_garbage(keep, |_| Vec::new(), true).unwrap().files.len(), 2);
        assert!(store.blob(&needless).unwrap().is_some());
        assert_eq!(store.collect_garbage(keep, |_| Vec::new(), false).unwrap().bytes, 12);
        assert!(store.blob(&needless).unwrap().is_none() && store.blob(&kept).unwrap().is_some());
    }

    #[test]
    fn what_is_pinned_while_others_are_waited_for_is_no_garbage() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Some(dir.path().to_owned())).unwrap();
        let pinned = std::sync::Mutex::new(BTreeSet::new());
        let shared = store.share().unwrap();
        std::thread::scope(|scope| {
            let pinned = &pinned;
            let keep = move || Ok::<_, StoreError>(pinned.lock().unwrap().clone());
            let collector = scope.spawn({
                let store = &store;
                move || store.collect_garbage(keep, |_| Vec::new(), false).unwrap()
            });
            // Lets the collector start waiting; if it is late, the test passes nevertheless.
            std::thread::sleep(std::time::Duration::from_millis(200));
            let digest = store.insert(b"new").unwrap();
            pinned.lock().unwrap().insert(digest);
            drop(shared);
            assert!(collector.join().unwrap().files.is_empty());
            assert!(store.blob(&digest).unwrap().is_some());
        });
    }
}

//! Files from layer directories: copied into the store, from which they are installed like artifacts.

use std::io::Read;
use std::path::PathBuf;

use vmbake_common::digest::{Digest, Hasher};
use vmbake_common::hint::Hint;
use vmbake_common::input;
use vmbake_store::store::{Store, StoreError};

/// Buffer size for copying.
const CHUNK: usize = 1 << 20;

/// Why a file of a layer cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LocalFileError {
    #[error("{path}: cannot read")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: file changed during the run: expected digest {expected}, found {found}")]
    Changed { path: PathBuf, expected: Box<Digest>, found: Box<Digest> },
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Hint for LocalFileError {
    fn hint(&self) -> Option<String> {
        match self {
            Self::Changed { .. } => {
                Some("run the command again when no other program is writing to the file".to_owned())
            }
            Self::Store(error) => error.hint(),
            Self::Read { .. } => None,
        }
    }

    vmbake_common::causes!(Store; Read);
}

/// Copies files with the given digests into the store.
pub fn keep(files: impl IntoIterator<Item = (PathBuf, Digest)>, store: &Store) -> Result<(), LocalFileError> {
    for (path, expected) in files {
        if store.blob(&expected)?.is_some() {
            continue;
        }
        let read = |source| LocalFileError::Read { path: path.clone(), source };
        let mut file = input::open_regular(&path).map_err(read)?;
        let mut partial = store.partial(&expected.to_string(), Hasher::sha256())?;
        partial.reset()?;
        let mut chunk = vec![0; CHUNK];
        loop {
            let len = file.read(&mut chunk).map_err(read)?;
            match chunk.get(..len) {
                Some([]) | None => break,
                Some(bytes) => partial.write(bytes)?,
            }
        }
        if partial.digest() != expected {
            let (found, expected) = (Box::new(partial.digest()), Box::new(expected));
            partial.discard()?;
            return Err(LocalFileError::Changed { path, expected, found });
        }
        partial.publish()?;
    }
    Ok(())
}

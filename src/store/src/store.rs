//! The content-addressed store of artifacts: `blobs/<algorithm>/<hex>`, as in an OCI image layout.
//!
//! A blob is hashed while it is written, named after its digest when complete, and never changed. Readers hash it
//! again, unless the file is known to be unchanged (`seen/`). Decoded forms of blobs are cached (`decoded/`). Processes
//! of a user may share a store: files being written are locked below `partial/`, and only garbage collection needs
//! exclusive access. The permissions of the store decide how far it is trusted (`trust_level`).

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use trust_level::TrustLevel;
use vmbake_common::digest::Digest;
use vmbake_common::digest::Hasher;
use vmbake_common::hint::Hint;
use vmbake_common::ownership::{self, InsecurePermissions};
use vmbake_oci::Descriptor;

pub use decoded::{Decoded, DecodedForm, Spool};
pub use maintain::{Corrupt, Garbage};
pub use partial::Partial;
pub use partial::lock;
pub use shared::SharedBlobs;

mod decoded;
mod layout;
mod maintain;
mod partial;
mod private;
mod digest_cache;
mod shared;
mod trust_level;

/// Directory of the records of bakes.
pub const BAKES: &str = "bakes";
/// Directory of cached verification results.
pub const VERDICTS: &str = "verdicts";

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot locate the store: neither HOME nor XDG_CACHE_HOME is set")]
    NoHome,
    #[error("{path}: cannot read the store")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path}: cannot write to the store")]
    Write { path: PathBuf, source: std::io::Error },
    #[error("{digest} is not in the store {path}")]
    Absent { digest: Box<Digest>, path: PathBuf },
    #[error("{path}: cannot be used as a store: not a directory")]
    NotFolder { path: PathBuf },
    #[error("{path}: the store is writable by other users: {exposed}")]
    InsecurePermissions { path: PathBuf, exposed: InsecurePermissions },
}

impl Hint for StoreError {
    fn hint(&self) -> Option<String> {
        let exposed = match self {
            Self::NoHome => return Some("use --store to choose a directory".to_owned()),
            Self::Absent { .. } => return Some("`vmbake fetch KIND` downloads what a manifest pins".to_owned()),
            Self::NotFolder { .. } => return Some("use --store to choose a directory".to_owned()),
            Self::InsecurePermissions { exposed, .. } => Some(exposed),
            Self::Read { source, .. } | Self::Write { source, .. } => {
                source.get_ref().and_then(|error| error.downcast_ref())
            }
        };
        let Some(exposed) = exposed else { return self.is_read_only().then(|| READ_ONLY.to_owned()) };
        let hint = exposed.hint()?;
        Some(match self {
            Self::InsecurePermissions { path, exposed: InsecurePermissions::Mode { .. } } => {
                format!(
                    "{hint}; then run `vmbake store verify --store {}`, as its contents may have been tampered with",
                    path.display()
                )
            }
            _ => hint,
        })
    }

    vmbake_common::causes!(; Read, Write);
}

impl StoreError {
    /// Whether the cause is only that this user may not write there.
    fn is_read_only(&self) -> bool {
        let Self::Write { source, .. } = self else { return false };
        source.get_ref().is_none()
            && matches!(source.kind(), ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem)
    }
}

const READ_ONLY: &str = "use --store to choose a writable store; of a read-only store, only complete blobs can be used";

/// A store in a directory.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
    trust_level: TrustLevel,
    shared: Option<Arc<dyn SharedBlobs>>,
}

/// A shared lock that blocks garbage collection until dropped.
#[derive(Debug)]
pub struct Shared(#[allow(dead_code, reason = "held for its lock")] File);

impl Store {
    /// The store at `root`, or the user's own: `$XDG_CACHE_HOME/vmbake/store`, by default below `~/.cache`. A store
    /// that others can write to is refused, unless it is read-only for this user.
    pub fn open(root: Option<PathBuf>) -> Result<Self, StoreError> {
        let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
        let default = || {
            let cache = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
            Some(cache.join("vmbake/store"))
        };
        let root = root.or_else(default).ok_or(StoreError::NoHome)?;
        if root.metadata().is_ok_and(|found| !found.is_dir()) {
            return Err(StoreError::NotFolder { path: root });
        }
        let trust_level = TrustLevel::of(&root)?;
        Ok(Self { root, trust_level, shared: None })
    }

    /// The same store, backed by a shared store.
    pub fn sharing(self, shared: Arc<dyn SharedBlobs>) -> Self {
        Self { shared: Some(shared), ..self }
    }

    /// The shared store behind this one.
    pub(super) fn shared(&self) -> Option<&dyn SharedBlobs> {
        self.shared.as_deref()
    }

    /// This store without the shared one.
    pub(super) fn alone(&self) -> Self {
        Self { shared: None, ..self.clone() }
    }

    /// The same store without caches: blobs are hashed and decoded again on each use, and only blobs are stored.
    pub fn without_caches(self) -> Self {
        Self { trust_level: TrustLevel::Uncached, ..self }
    }

    /// Whether caches are trusted.
    pub fn is_trusted(&self) -> bool {
        self.trust_level == TrustLevel::Full
    }

    /// Why caches are not trusted, unless they were disabled by request.
    pub fn insecure_permissions(&self) -> Option<&InsecurePermissions> {
        if let TrustLevel::Insecure(exposed) = &self.trust_level { Some(exposed) } else { None }
    }

    /// The path of a blob, whether or not it exists.
    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.root.join("blobs").join(digest.algorithm()).join(digest.hex())
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The blob of that digest, opened but not verified; `None` if it is missing. A file that others could modify is
    /// copied.
    pub fn blob(&self, digest: &Digest) -> Result<Option<File>, StoreError> {
        let path = self.path(digest);
        match ownership::open(&path) {
            Ok(file) => match self.private(&path, file) {
                Ok((file, _)) => Ok(Some(file)),
                Err(source) => Err(StoreError::Read { path, source }),
            },
            Err(source) if source.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(source) => Err(StoreError::Read { path, source }),
        }
    }

    /// Stores a small document; returns its SHA-256.
    pub fn insert(&self, content: &[u8]) -> Result<Digest, StoreError> {
        let digest = Digest::of(content);
        let mut partial = self.partial(&digest.hex(), digest.hasher())?;
        partial.reset()?;
        partial.write(content)?;
        partial.publish()?;
        Ok(digest)
    }

    /// Removes a corrupt blob.
    pub fn discard(&self, digest: &Digest) -> Result<(), StoreError> {
        remove(&self.path(digest))
    }

    /// Starts or resumes a blob; `key` identifies it among those in progress. Blocks while another process writes it.
    pub fn partial(&self, key: &str, hasher: Hasher) -> Result<Partial, StoreError> {
        Partial::open(self, key, hasher)
    }

    /// Blocks garbage collection until the result is dropped.
    pub fn share(&self) -> Result<Shared, StoreError> {
        let file = self.lock_file()?;
        file.lock_shared().map_err(|source| StoreError::Write { path: self.root.join("lock"), source })?;
        Ok(Shared(file))
    }

    /// As [`Store::share`]; `None` if this user cannot write to the store, and so cannot lock it.
    pub fn share_if_writable(&self) -> Result<Option<Shared>, StoreError> {
        match self.share() {
            Err(error) if error.is_read_only() => Ok(None),
            result => result.map(Some),
        }
    }

    /// Hashes every blob on up to `threads` threads and removes the corrupt ones. Clears all caches: decoded forms,
    /// file identities and records of bakes.
    pub fn verify(&self, threads: std::num::NonZeroUsize) -> Result<(u64, Vec<Corrupt>), StoreError> {
        maintain::verify(self, threads)
    }

    /// Removes all blobs except those in `keep`, and the files in `stale`; in a dry run, only lists them.
    ///
    /// Both are evaluated under the exclusive lock, so that entries pinned while waiting for it are kept.
    pub fn collect_garbage<E: From<StoreError>>(
        &self,
        keep: impl FnOnce() -> Result<BTreeSet<Digest>, E>,
        stale: impl FnOnce(&Self) -> Vec<PathBuf>,
        dry_run: bool,
    ) -> Result<Garbage, E> {
        let file = self.lock_file()?;
        file.lock().map_err(|source| StoreError::Write { path: self.root.join("lock"), source })?;
        let keep = keep()?;
        if !dry_run {
            layout::retain(self, &keep)?;
        }
        Ok(maintain::collect(self, &keep, stale(self), dry_run)?)
    }

    /// Digest of the running program, even if its file has been replaced; `None` if the system does not support that.
    pub fn running_program(&self) -> Option<Digest> {
        let file = File::open("/proc/self/exe").ok()?;
        Some(self.digest(&std::env::current_exe().ok()?, &file, &Digest::of(b"")).ok()?.0)
    }

    /// Lists a pulled image in the store's `index.json`.
    pub fn list_image(&self, reference: &str, root: &Descriptor) -> Result<(), StoreError> {
        layout::list(self, reference, root)
    }

    fn lock_file(&self) -> Result<File, StoreError> {
        let path = self.root.join("lock");
        create_dir(&self.root)?;
        ownership::open_or_make(&path).map_err(|source| StoreError::Write { path, source })
    }
}

fn create_dir(path: &Path) -> Result<(), StoreError> {
    ownership::make_folder(path).map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

/// Every file of a directory, sorted by path; empty if it is missing.
fn files(folder: PathBuf) -> Result<Vec<PathBuf>, StoreError> {
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(source) if source.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(StoreError::Read { path: folder, source }),
    };
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>();
    let mut paths = paths.map_err(|source| StoreError::Read { path: folder, source })?;
    paths.sort();
    Ok(paths)
}

fn remove(path: &Path) -> Result<(), StoreError> {
    let removed = match std::fs::remove_file(path) {
        // A store has no directories in the place of files.
        Err(source) if source.kind() == std::io::ErrorKind::IsADirectory => std::fs::remove_dir_all(path),
        result => result,
    };
    match removed {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Write { path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

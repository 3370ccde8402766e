//! A store that several machines share, behind the one on disk.

use std::fmt::Debug;
use std::fs::File;

use super::Store;
use vmbake_common::digest::Digest;

/// Blobs that several machines share. It is asked before upstreams and believed no more than they are: what comes is hashed on
/// arrival. It never stops anything: whoever asks in vain goes on to the upstream.
pub trait SharedBlobs: Debug + Send + Sync {
    /// Brings the blob of that digest into `store`, if it can; `size` is its length in bytes, where it is known, and `limit` the most it may
    /// have where it is not.
    fn bring(&self, store: &Store, digest: &Digest, size: Option<u64>, limit: u64) -> bool;

    /// Takes a blob of `size` bytes that is in the store on disk, for others.
    fn offer(&self, digest: &Digest, file: &File, size: u64);
}

//! A store shared by several machines, used behind the local one.

use std::fmt::Debug;
use std::fs::File;

use super::Store;
use vmbake_common::digest::Digest;

/// Blobs shared by several machines. It is queried before upstreams and trusted no more than they are: everything is
/// hashed on arrival. Failures are not fatal: the caller continues with the upstream.
pub trait SharedBlobs: Debug + Send + Sync {
    /// Downloads the blob of that digest into `store`, if possible; `size` is its length in bytes, if known, and
    /// `limit` the maximum length otherwise.
    fn fetch(&self, store: &Store, digest: &Digest, size: Option<u64>, limit: u64) -> bool;

    /// Uploads a blob of `size` bytes from the local store.
    fn offer(&self, digest: &Digest, file: &File, size: u64);
}

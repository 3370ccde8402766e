//! stub
use crate::http::Client;
use crate::manifest::{ContainerImage, Digest};
use crate::store::{Store, StoreError};
/// e
#[derive(Debug, thiserror::Error)]
#[error("stub")]
pub struct RegistryError;
/// p
pub fn pull_tag(_: &Client, _: &Store, _: &str, _: &str) -> Result<ContainerImage, RegistryError> {
    Err(RegistryError)
}
/// p
pub fn pull_pinned(_: &Client, _: &Store, _: &ContainerImage) -> Result<u64, RegistryError> {
    Err(RegistryError)
}
/// b
pub fn blobs(_: &Store, _: &ContainerImage) -> Result<Vec<Digest>, StoreError> {
    Ok(Vec::new())
}

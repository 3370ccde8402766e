//! The registry client: reads and writes manifests and blobs of a repository with the user's credentials (OCI
//! distribution specification 1.1).
//!
//! Every document and blob is checked against its expected digest before use. A tag is not proof: its digest is pinned
//! on first use. Credentials are sent only to the registry that they are for and to the token server that it names,
//! never over plain HTTP if the registry uses TLS, and never to the target of a redirect or upload.

pub mod credentials;
mod challenge;
mod error;
mod session;
mod repository;
mod upload;
mod pages;
mod referrers;
mod images;

pub use credentials::Credentials;
pub use error::RegistryError;
pub use images::{blobs, pull_name, pull_pinned, pull_tag};
pub use repository::{Access, RemoteManifest, Repository};
pub use upload::Arrival;

//! The client of registries: a repository and the user's credentials enter, manifests and blobs go both ways (OCI distribution
//! specification 1.1).
//!
//! Every document and blob is checked against the digest that led to it before it is used. A tag proves nothing: the digest that it
//! stands for is pinned when it is first seen. Credentials go to the registry that they are for and to the token server that it names,
//! never over plain HTTP if the registry is asked over TLS, and never to where a redirect or an upload leads.

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
pub use images::{blobs, pull_pinned, pull_tag};
pub use repository::{Access, RemoteManifest, Repository};
pub use upload::Arrival;

//! A release as OCI documents: an index, a manifest for each image, blobs and attachments, created from images and
//! their documents. The same files give the same documents.
//!
//! The index has the type `application/vnd.vmbake.release.v1` and an entry for each architecture and format. A raw
//! image is split into chunks ([`chunks`]), each an independent zstd frame, so that their concatenation is the
//! compressed image. A qcow2 image is one layer. The config of an image ([`config`]) contains the digests of the image,
//! of each uncompressed chunk, and of the files next to it. So a signature of the index covers all of them. Documents
//! next to the images are attached to the index ([`attachments`]).
//!
//! [`push`] uploads a release to a registry, and [`pull`] downloads it. [`delta`] updates one image to the next, and
//! [`podplane`] lists an image for the command line of that name. Only `push` and `pull` access the network.

pub mod version;
pub mod document;
pub mod binding;
pub mod config;
pub mod chunks;
pub mod attachments;
pub mod signature;
mod error;
mod folder;
mod assemble;
pub mod push;
pub mod pull;
pub mod delta;
pub mod podplane;

pub use assemble::{BlobSource, EachBlob, ReleaseBlob, ReleaseDocuments, assemble};
pub use error::DocumentError;
pub use folder::{MAX_ATTACHED, NamedImage, ReleaseFolder, is_signature};

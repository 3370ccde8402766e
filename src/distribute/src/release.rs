//! A release as OCI documents: images and what lies beside them enter; an index, a manifest for each image, blobs and attachments leave.
//! No socket is opened, and the same files give the same documents.
//!
//! The index is of type `application/vnd.vmbake.release.v1` and has an entry for each architecture and format. A raw image is cut into
//! chunks ([`chunks`]), each a zstd frame of its own, so that the frames in their order are the compressed image. A qcow2 image is one
//! layer. The config of an image ([`config`]) has the digests of all that must hold: of the image, of each chunk before compression, and
//! of the files beside it. So whoever signs the index signs all of it. What lies beside the images refers to the index ([`attachments`]).

pub mod document;
pub mod binding;
pub mod config;
pub mod chunks;
pub mod attachments;
pub mod signature;
mod error;
mod folder;
mod assemble;

pub use assemble::{BlobSource, EachBlob, ReleaseBlob, ReleaseDocuments, assemble};
pub use error::DocumentError;
pub use folder::{MAX_ATTACHED, NamedImage, ReleaseFolder, is_signature};

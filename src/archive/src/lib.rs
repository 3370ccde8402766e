//! Archives: one file with everything that a site without network access needs to bake images, or with the images
//! themselves.
//!
//! An archive is a plain tar file that contains an OCI image layout (OCI image specification 1.1). Blobs of the store,
//! documents and image files are written in one pass ([`create`]). A site verifies it ([`verify`]), imports the blobs
//! into its store ([`import`]), and bakes ([`apply`]).
//!
//! Guarantees: the same contents give the same bytes. An archive is accepted only in the form in which it is written:
//! other types of members are refused. Files are named only after their digest is verified, and directories are
//! published atomically (`staged`).

mod error;
pub mod tar;
pub mod parts;
mod document;
pub mod folder;
mod plan;
pub mod create;
pub mod contents;
pub mod earlier;
pub mod verify;
mod staged;
pub mod import;
pub mod apply;

pub use error::ArchiveError;

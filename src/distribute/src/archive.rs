//! Archives: one file with everything that a site without a network needs to bake images, or with the images themselves.
//!
//! An archive is a plain tar file with an OCI image layout in it (OCI image specification 1.1). Blobs of the store, documents and image
//! files enter, the file leaves, written in one pass ([`create`]). A site checks it ([`verify`]), brings the blobs into its own store
//! ([`import`]), and bakes ([`apply`]).
//!
//! What holds: the same content leads to the same bytes. An archive is read in the one form in which it is written: whatever a tar
//! file can have beside regular files is refused by its name. Nothing that is read gets a name before its digest is right, and folders
//! appear whole or not at all (`staged`).

mod error;
pub(crate) mod tar;
pub(crate) mod parts;
mod document;
pub(crate) mod folder;
mod plan;
pub mod create;
pub mod contents;
pub mod earlier;
pub mod verify;
mod staged;
pub mod import;
pub mod apply;

pub use error::CarryError;

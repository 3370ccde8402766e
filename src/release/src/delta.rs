//! Deltas: update one release of an image to another.
//!
//! [`create`] writes a qcow2 overlay on the old image, and next to it a statement about both disks ([`statement`]) that
//! can be signed. A site applies the overlay to its old image ([`apply`]) to create the new one.
//!
//! Guarantees: a delta depends only on the bytes of the two images. The result is published only if the delta, the disk
//! that it was applied to and the resulting disk match the statement.

mod error;
pub mod statement;
mod known;
pub mod create;
pub mod apply;

pub use error::DeltaError;

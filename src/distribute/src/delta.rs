//! Deltas: what a site that has one release needs to make the next one of it.
//!
//! Two images enter ([`create`]); a qcow2 overlay on the old one leaves, with a statement of both disks beside it ([`statement`]) that can
//! be signed. A site gives the overlay and its old image back ([`apply`]) and gets the new one.
//!
//! What holds: a delta depends on the bytes of the two images alone. A result appears only if the delta, the disk that it
//! was applied to and the disk that came of it are those of the statement.

mod error;
pub mod statement;
mod known;
pub mod create;
pub mod apply;

pub use error::DeltaError;

//! What an earlier bake to the same place has left, so that the next one need not do it again.
//!
//! Nothing here decides what is in an image: whatever is missing, damaged or no longer certain only costs time.

pub mod build_inputs;
pub mod checksums;
pub mod published;
pub mod record;
pub(crate) mod previous_bake;

//! Incremental bakes: reuses the results of an earlier bake with the same output directory.
//!
//! Nothing here affects the contents of an image: missing, corrupt or outdated data only cost time.

pub mod build_inputs;
pub mod checksums;
pub mod published;
pub mod record;
pub(crate) mod previous_bake;

//! Network access and the store: URLs and digests are the input, files in the store the output.
//!
//! Downloads are hashed as they arrive and checked against the expected digest; `vmbake-pin` decides which digest is
//! expected. Only this crate opens sockets.

pub mod download;
pub mod http;
pub mod registry;
pub mod shared;
pub mod file_identity;
pub mod store;

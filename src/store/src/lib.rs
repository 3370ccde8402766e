//! Bytes from elsewhere: addresses and digests enter, files in the store leave.
//!
//! What comes is hashed while it comes and has the digest that was asked for; whether that is the right digest is for
//! `vmbake-pin` to say. Only this crate opens sockets.

pub mod download;
pub mod http;
pub mod registry;
pub mod shared;
pub mod stamp;
pub mod store;

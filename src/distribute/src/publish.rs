//! What of a disk a cloud's store of blocks has to be sent: an image enters, the blocks of a snapshot leave.
//!
//! Blocks are those of the EBS direct APIs: 512 KiB, told by their SHA-256. A block that is left out may read as anything
//! afterwards, as one of an encrypted volume does, so zeros alone are no reason to leave it out.

mod extent;
pub mod blocks;
pub mod snapshot;

//! Determines the blocks that must be uploaded to Amazon EBS for a snapshot.
//!
//! Blocks are those of the EBS direct APIs: 512 KiB, identified by their SHA-256. A block that is not uploaded has
//! undefined contents, for instance in an encrypted volume, so blocks of zeros cannot always be left out.

mod extent;
pub mod blocks;
pub mod snapshot;

//! The file tree of an image: verified artifacts, layers and the tree of the base in, one merged tree out.
//!
//! `stage` unpacks each artifact into a separate tree, `merge` applies layers and packages to the tree of the base, and `origin` records
//! the origin of each path.

pub mod merge;
pub mod origin;
pub mod stage;

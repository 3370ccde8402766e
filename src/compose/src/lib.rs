//! The file tree of an image: verified artifacts, layers and the tree of the base enter, one merged tree leaves.
//!
//! `stage` unpacks each artifact into a separate tree, `merge` lays the trees over the base as the layers and dpkg would,
//! and `origin` records where each path came from.

pub mod merge;
pub mod origin;
pub mod stage;

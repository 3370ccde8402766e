//! Reads archives: files in, their members out, and root file systems as trees.
//!
//! Contents stay ranges of the archives. Members never lead out of the tree, and sizes are limited. A root file system
//! is an archive, or the layers of a container image, which are verified first.

pub mod archive;
pub mod root;

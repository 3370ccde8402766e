//! Bundles: components that others publish, from a folder to an image.

mod documents;

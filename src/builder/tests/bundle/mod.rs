//! Bundles: components that others publish, from a folder to an image.

mod composing;
mod copies;
mod documents;
mod finished;
mod forge;
mod hostile;
mod packing;
mod publishers;
mod rules;
mod shop;

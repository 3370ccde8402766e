//! Bundles of third-party components, from a directory to an image.

mod boot;
mod clashes;
mod composing;
mod copies;
mod documents;
#[cfg(feature = "sysext")]
mod extensions;
mod finished;
mod forge;
#[cfg(feature = "sysext")]
mod forms;
mod grants;
mod hostile;
mod landings;
mod newest;
mod origins;
mod packing;
mod publishers;
mod rules;
mod shop;
mod units;
mod upgrading;

//! Origins of paths, differences between images, and caches in the store: small images are
//! baked, changed and queried as an ordinary user.

pub mod image;
pub mod bakery;
mod explain;
mod generated;
mod poison;
mod rebake;
mod diff;
mod decoded;
mod again;
mod inputs;
mod attacks;
mod bases;

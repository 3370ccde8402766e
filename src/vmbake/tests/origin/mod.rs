//! Where the paths of an image came from, how two images differ, and what a store keeps for the next one: small images are
//! baked, changed and asked, as an ordinary user.

pub mod image;
pub mod bakery;
mod explain;
mod poison;
mod rebake;
mod diff;
mod decoded;
mod again;
mod inputs;
mod attacks;
mod bases;

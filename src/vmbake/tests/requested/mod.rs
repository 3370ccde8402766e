//! What layers ask of upstreams themselves: downloads and container images, from `layer.json` to an image that has them.

mod downloads;
mod images;
mod refusals;
mod words;
pub mod yard;

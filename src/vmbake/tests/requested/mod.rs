//! Downloads and container images of layers, from `layer.json` to an image with them.

mod downloads;
mod images;
mod refusals;
mod words;
pub mod yard;

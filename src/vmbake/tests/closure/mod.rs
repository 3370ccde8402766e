//! Packages of layers: selection in addition to the base image, pinning, installation and refusals.

mod archive;
mod bake;
mod flat;
mod hold;
mod local;
mod refusals;
mod removal;
mod rules;
mod snapshot;
mod swap;

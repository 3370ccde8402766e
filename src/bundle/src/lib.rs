//! Bundles: components of other publishers, as data that a bake checks before it uses any of it.
//!
//! `bundle.json` and layers in, an OCI layout with everything that they need out. Bundles never run code on the host. `docs/bundles.md`
//! shows how to publish and use one; `docs/bundle-reference.md` lists the keys and the rules.

mod validate;
pub mod document;
pub mod contents;
mod foreign_units;
pub mod check;
pub mod skeleton;
pub mod pins;
pub mod pack;
mod listing;
pub mod place;
pub mod packed;
pub mod inspect;
pub mod footprint;
pub mod publisher;
pub mod push;
pub mod lock;
pub mod conflicts;
pub mod newest;
pub mod upgrade;
pub mod compose;
mod error;

pub use error::BundleError;

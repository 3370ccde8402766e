//! Bundles: components that others publish apart from the system, as data that a bake can check before it takes anything of them.
//!
//! A folder with a document and layers enters, an OCI layout with all that they need leaves. Nothing of a bundle ever runs on the host.
//! `docs/bundles.md` shows how to publish and use one; `docs/bundle-reference.md` lists the keys and the rules.

mod validate;
pub mod document;
pub mod contents;
pub mod effects;
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
pub use validate::is_below;

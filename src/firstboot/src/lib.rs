//! What the first-boot program does: a [plan](plan::Plan), made by the builder, in; files, users and units of the machine out.
//!
//! The builder uses the same code to check a plan before it reaches an image.

pub mod accounts;
pub mod env;
pub mod error;
pub mod permissions;
pub mod plan;
pub mod root;
pub mod template;

//! Bundles as extensions of machines that run: a bundle enters, a volume or directory leaves that systemd-sysext(8) or systemd-confext(8)
//! merges.
//!
//! An extension holds the files of the bundle's own layers, and an extension-release file by which systemd decides whether it fits. What
//! systemd would not do as a bake does is refused, all of it at once. `docs/sysext.md` tells the rules.

mod error;
mod release;
mod rules;
mod form;
mod volume;
mod folder;
mod author;

pub use author::{Extension, ExtensionTools};
pub use error::ExtensionError;
pub use form::{ExtensionForm, ExtensionFormat};
pub use release::{ExtensionIdentity, ExtensionKind};

//! Bundles as extensions of running machines: a bundle in, a volume or directory for systemd-sysext(8) or systemd-confext(8)
//! out.
//!
//! An extension consists of the files of the bundle's layers, and of an extension-release file by which systemd decides whether it is compatible. Keys
//! that systemd would not handle as a bake does are refused, all at once. `docs/sysext.md` has the rules.

mod error;
mod release;
mod compatibility;
mod form;
mod volume;
mod folder;
mod author;

pub use author::{Extension, ExtensionTools};
pub use error::ExtensionError;
pub use form::{ExtensionForm, ExtensionFormat};
pub use release::{ExtensionIdentity, ExtensionKind};

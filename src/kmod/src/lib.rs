//! Indexes of Linux kernel modules: a tree with the modules of a kernel in; the indexes of depmod(8), or the answers of modprobe(8) and
//! modinfo(8) from those, out.
//!
//! [`depmod()`] reads the modules and returns the indexes, [`Modules`] reads indexes and answers queries. There is no access to the host: both
//! see only the [`Files`] of their caller.
//!
//! The bytes of the indexes are those of kmod in Debian, of the [`Release`] that the caller names, and do not depend on the number of threads or
//! the order of directories. Input for which depmod itself depends on that order is refused. All input is untrusted: sizes and offsets are
//! checked, and a fault is reported with path and offset.

mod error;
mod files;
mod release;
mod name;
mod conf;
mod module;
mod index;
mod depmod;
mod query;
pub mod linux_version;

pub use depmod::{Indexes, Settings, depmod};
pub use error::{Fault, KmodError};
pub use files::{Entry, EntryKind, Files};
pub use index::Index;
pub use module::{Field, Module, Names};
pub use query::{Action, Modules, Softdep, Target};
pub use release::Release;

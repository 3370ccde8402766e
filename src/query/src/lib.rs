//! Queries about images: trees and records in, reports out.

pub mod diff;
pub mod explain;
pub mod lint;
pub mod sbom;
pub mod changelog;
pub mod preflight;
mod packages;

pub use packages::{InstalledPackage, PackageError, owned_files};

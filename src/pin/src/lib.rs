//! Sources, trust anchors and verification: creates manifests with pinned, proven entries, and replays their proofs.
//!
//! `sources` defines upstreams and the required proofs, `trust` and `anchors` hold the keys. `resolve` queries
//! upstreams for versions, `closure` resolves the packages that layers request, `proof` verifies signatures and
//! documents, and `update` pins the results with their evidence. `prove` replays every proof of a manifest from that
//! evidence, without network access.

pub mod anchors;
pub mod closure;
pub mod prove;
pub mod resolve;
pub mod root_base;
pub mod sources;
pub mod trust;
pub mod update;
mod version;

pub use version::is_version;

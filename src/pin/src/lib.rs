//! What may enter an image, and why it is believed: sources and trust anchors enter, pinned and proven manifests leave.
//!
//! `sources` says where upstreams live and what each must prove, `trust` and `anchors` hold the keys. `resolve` asks upstreams
//! for versions, `closure` chooses the packages that layers ask for, `proof` judges signatures and documents, and `update` pins what was found with its evidence. `prove` replays
//! every proof of a manifest from that evidence, without network.

pub mod anchors;
pub mod closure;
pub mod prove;
pub mod resolve;
pub mod sources;
pub mod trust;
pub mod update;
mod version;

pub use version::is_version;

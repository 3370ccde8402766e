//! Origins of paths: a merged tree in, the record of origins out, in the tree and next to the image. `explain` maps a path to its layer.
//!
//! The record is JSON in a canonical form: sorted keys, no blanks, one newline at the end. Paths that are not listed are from the base
//! image.

mod record;
mod collect;

pub use collect::{Ingredients, OriginError, check_base, record};
pub use record::{ArtifactOrigin, BaseImage, KeptOrigin, LayerOrigin, PathOrigin, Record, RecordError};

pub use record::{MAX_LEN, inside_record};

/// Where the record is in an image.
pub const RECORD: &str = vmbake_layer::ORIGINS;

/// Name of the base image where a layer's name is expected; no layer can be called so.
const BASE: &str = "base";

//! Where each path of an image came from: a merged tree enters, the record of its origins leaves, inside the tree and for
//! the place next to the image; `explain` maps a path back to its layer.
//!
//! The record is JSON in exactly one form: keys sorted, no blanks, one newline at the end. What is not listed came with
//! the base image.

mod record;
mod collect;

pub use collect::{Ingredients, OriginError, check_base, record};
pub use record::{ArtifactOrigin, BaseImage, KeptOrigin, LayerOrigin, PathOrigin, Record, RecordError};

pub use record::{MAX_LEN, inside_record};

/// Where the record is in an image.
pub const RECORD: &str = "/opt/podplane/share/vmbake-origin.json";

/// Name of the base image where a layer's name is expected; no layer can be called so.
const BASE: &str = "base";

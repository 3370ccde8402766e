//! Profiles of the operating-system-manager (OSM): an `OperatingSystemProfile`, a `MachineDeployment` and the options of OSM in; the
//! results of OSM, the `OperatingSystemConfig` and the cloud-configs for bootstrap and provisioning, out.
//!
//! Unambiguous input gives the same result as OSM; everything else is refused with file, line and column. Limits: 1 MiB, 40 levels, no
//! aliases. Parts of a profile that cannot become an image of Debian are refused by name.

mod cloud_config;
mod config;
mod constraint;
mod deployment;
mod error;
mod fields;
mod names;
mod node;
mod options;
mod registries;
mod schema;
mod size;
mod template;
mod values;
mod yaml;
pub mod import;

pub use config::{MachinePhase, OperatingSystemConfig};
pub use deployment::Deployment;
pub use error::{Location, ProfileError};
pub use options::ControllerOptions;
pub use schema::Profile;
pub use size::UserDataSize;

use std::io::Read;
use std::path::Path;

use node::{Document, MAX_BYTES};

use vmbake_common::input;
use vmbake_common::message;

impl Profile {
    /// Reads a profile.
    pub fn open(path: &Path) -> Result<Self, ProfileError> {
        Self::read(&Document::parse(path, &text(path)?)?)
    }
}

impl Deployment {
    /// Reads a deployment.
    pub fn open(path: &Path) -> Result<Self, ProfileError> {
        Self::read(&Document::parse(path, &text(path)?)?)
    }
}

impl ControllerOptions {
    /// Reads assignments in the order in which they were given; the files that some name are read as well.
    pub fn open(assignments: &[(String, String)]) -> Result<Self, ProfileError> {
        Self::parse(assignments, text)
    }
}

/// The text of a file of at most [`MAX_BYTES`].
fn text(path: &Path) -> Result<String, ProfileError> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX);
    input::open(path)
        .and_then(|file| file.take(limit.saturating_add(1)).read_to_end(&mut bytes))
        .map_err(|source| ProfileError::Read { path: path.to_owned(), source })?;
    if bytes.len() > MAX_BYTES {
        return Err(ProfileError::Message(message!(
            "{}: expected at most {} bytes, found more",
            path.display(),
            MAX_BYTES
        )));
    }
    String::from_utf8(bytes).map_err(|_| ProfileError::NotText { path: path.to_owned() })
}

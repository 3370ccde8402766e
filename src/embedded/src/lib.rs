//! Built-in data of the program: layers, sources, trust anchors and
//! first-boot programs.

use vmbake_common::hint::Hint;

/// `manifests/sources.json`.
pub static SOURCES: &[u8] = include_bytes!("../../../manifests/sources.json");

include!(concat!(env!("OUT_DIR"), "/embedded.rs"));

/// The builder was built without the first-boot program of an architecture.
#[derive(Debug, thiserror::Error)]
#[error("this vmbake was built without the first-boot program for {arch}")]
pub struct MissingProgram {
    /// Debian architecture.
    pub arch: String,
}

impl Hint for MissingProgram {
    fn hint(&self) -> Option<String> {
        Some("run `make firstboot` and build vmbake again".to_owned())
    }
}

/// The first-boot program of an architecture: its SHA-256 in hexadecimal, and its bytes.
pub fn program(arch: &str) -> Result<(&'static str, &'static [u8]), MissingProgram> {
    let found = PROGRAMS.iter().find(|(name, ..)| *name == arch);
    found.map(|(_, digest, bytes)| (*digest, *bytes)).ok_or_else(|| MissingProgram { arch: arch.to_owned() })
}

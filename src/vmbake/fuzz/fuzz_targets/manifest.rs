//! Manifests: what is read is written so that it is read as the same again.
#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use vmbake_manifest::Manifest;

fuzz_target!(|bytes: &[u8]| {
    let Ok(manifest) = Manifest::parse(Path::new("fuzz"), bytes.to_vec()) else { return };
    let text = manifest.content().to_text().unwrap();
    let again = Manifest::parse(Path::new("fuzz"), text.into_bytes()).unwrap();
    assert_eq!(again.content(), manifest.content());
});

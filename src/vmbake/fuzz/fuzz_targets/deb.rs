//! Debian packages: ar, control archive and its fields, data archive.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vmbake_compose::stage::{Control, Deb};

fuzz_target!(|bytes: &[u8]| {
    if let Ok(text) = str::from_utf8(bytes) {
        let _ = Control::parse(text);
    }
    let Ok((_, deb)) = Deb::open(&vmbake_fuzz::file(bytes), "amd64") else { return };
    assert!(!deb.info_stem().contains('/'));
    for path in deb.conffiles() {
        assert!(path.starts_with('/'));
    }
});
